-- failure_spec.lua -- memory that fails at the first, second, third ... allocation of every row:
-- inputs stay as they were, nothing leaks, and what follows works.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"

local function float(...) return luma.range(1, 12):to("float32"):reshape(...) end
local function positions() return luma.tensor({3, 1}, "int64") end
local function rows() return luma.range(1, 96):to("float32"):reshape(3, 32):flip(1) end

-- Arguments by the type in the signature; what a row needs beyond that stands in `special`.
local by_type = {
  tensor = function() return float(3, 4) end,
  operand = function() return float(3, 4) end,
  mask = function() return float(3, 4):gt(5) end,
  index = function() return luma.tensor({3, 1}, "int64") end,
  tensors = function() return {float(3, 4), float(3, 4):t():clone():t()} end,
  dim = function() return 1 end,
  newdim = function() return 1 end,
  dims = function() return {1} end,
  position = function() return 1 end,
  int = function() return 2 end,
  number = function() return 2 end,
  bool = function() return true end,
  shape = function() return {4, 3} end,
  list = function() return {4, 3} end,
  sizes = function() return 2 end,
}
local special = {
  permute = function() return {float(3, 4), {2, 1}} end,
  movedim = function() return {float(3, 4), {1}, {2}} end,
  expand = function() return {float(1, 12), {3, 12}} end,
  broadcast_to = function() return {float(1, 12), {3, 12}} end,
  as_strided = function() return {float(3, 4), {2, 2}, {1, 2}} end,
  unflatten = function() return {float(3, 4), 2, {2, 2}} end,
  squeeze = function() return {float(1, 12)} end,
  transpose = function() return {float(3, 4), 1, 2} end,
  tile = function() return {float(3, 4), {2, 2}} end,
  roll = function() return {float(3, 4), {1}, {2}} end,
  pad = function() return {float(3, 4), {1, 1}} end,
  view = function() return {float(3, 4), {4, 3}} end,
  reshape = function() return {float(3, 4):t(), {2, 6}} end,
  flatten = function() return {float(3, 4):t()} end,
  contiguous = function() return {float(3, 4):t()} end,
  split = function() return {float(3, 4), 2} end,
  gather = function() return {float(3, 4), 1, luma.tensor({{1, 2, 3, 1}}, "int64")} end,
  take = function() return {float(3, 4), luma.tensor({12, 1}, "int8")} end,
  scatter = function() return {float(3, 4), 1, luma.tensor({{1, 2, 3, 1}}, "int64"), float(3, 4)} end,
  scatter_add = function()
    return {float(3, 4), 1, luma.tensor({{1, 2, 3, 1}}, "int64"), float(3, 4)}
  end,
  index_add = function() return {float(3, 4), 1, luma.tensor({3, 1, 1}, "int64"), float(3, 4)} end,
  index_copy = function() return {float(3, 4), 1, luma.tensor({3, 1, 2}, "int64"), float(3, 4)} end,
  masked_fill = function() return {float(3, 4), float(3, 4):gt(4), 7} end,
  matmul = function() return {float(3, 4), float(3, 4):t()} end,
  mm = function() return {float(3, 4), float(3, 4):t()} end,
  bmm = function() return {float(1, 3, 4), float(1, 4, 3)} end,
  mv = function() return {float(3, 4), float(3, 4)[1]} end,
  dot = function() return {float(12), float(12)} end,
  conv1d = function() return {float(3, 4), float(2, 3, 2), luma.ones(2)} end,
  conv2d = function()
    return {float(1, 3, 4):to("float16"), float(3, 1, 2, 2):transpose(3, 4), luma.ones(3)}
  end,
  conv3d = function() return {float(1, 1, 3, 4), float(3, 1, 1, 2, 2), {padding = 1}} end,
  conv_transpose1d = function() return {float(3, 4), float(3, 2, 2), {stride = 3}} end,
  conv_transpose2d = function() return {float(1, 3, 4), float(1, 3, 2, 2), luma.ones(3), {stride = 2}} end,
  conv_transpose3d = function() return {float(1, 1, 3, 4), float(1, 3, 1, 2, 2)} end,
  im2col = function() return {float(1, 3, 4), {2, 2}, {padding = 1}} end,
  col2im = function() return {float(4, 3):to("float16"), {2, 4}, {2, 2}} end,
  fold = function() return {float(3, 4):t(), {2, 4}, {2, 2}} end,
  topk = function() return {float(3, 4), 2} end,
  layer_norm = function()
    return {float(4, 3):t(), 4, luma.ones(4, {dtype = "float16"}), luma.ones(4, 2):select(2, 1)}
  end,
  rms_norm = function() return {float(3, 4):to("int32"), {3, 4}, luma.ones(3, 4)} end,
  batch_norm = function()
    return {float(3, 4):to("float16"), luma.zeros(4), luma.ones(4), luma.ones(4, {dtype = "float16"}),
      luma.ones(4), {training = true, momentum = 0}}
  end,
  instance_norm = function() return {float(1, 3, 4), luma.zeros(3), luma.ones(3), {momentum = 0}} end,
  scaled_dot_product_attention = function()
    local half = {dtype = "float16"}
    return {float(2, 2, 3), luma.ones(1, 2, 3, half), luma.ones(1, 2, 3), luma.ones(2, 2, half),
      {enable_gqa = true, is_causal = true}}
  end,
  rope = function() return {float(3, 4), luma.ones(3, 2, {dtype = "float16"}), luma.ones(2, 3):t()} end,
  dropout = function() return {luma.zeros(3, 4), 0.5} end,
  diff = function() return {float(3, 4), 2, 2, {prepend = luma.zeros(3, 1)}} end,
  median = function() return {float(3, 4):flip(2), 2} end,
  quantile = function() return {float(3, 4):flip(2), luma.tensor {0.5, 0.9}, 2} end,
  nanquantile = function() return {luma.range(1, 4), luma.tensor(0.5)} end,
  unique = function() return {float(3, 4), 1, {return_inverse = true, return_counts = true}} end,
  unique_consecutive = function() return {float(3, 4), {return_counts = true}} end,
  searchsorted = function() return {float(3, 4), float(4, 3):t()} end,
  bucketize = function() return {float(3, 4):t(), luma.range(1, 5)} end,
  bincount = function()
    return {luma.tensor({3, 1}, "int64"), {weights = luma.tensor({1, 2}, "float16")}}
  end,
  clamp = function() return {float(3, 4), 2, 5} end,
  einsum = function() return {"ij,kj->ik", float(3, 4), float(4, 3):t()} end,
  index_fill = function() return {float(3, 4), 1, positions(), 7} end,
  scatter_reduce = function()
    return {float(3, 4), 2, luma.tensor({{3, 1}, {1, 1}}, "int64"), luma.ones(2, 2), {reduce = "mean"}}
  end,
  index_reduce = function() return {float(3, 4), 1, positions(), luma.ones(2, 4), {reduce = "prod"}} end,
  index_put = function() return {float(3, 4), {positions(), luma.tensor({4, 4}, "int64")}, luma.ones(2)} end,
  prelu = function() return {float(3, 4), luma.ones(1, {dtype = "float16"})} end,
  masked_scatter = function() return {float(3, 4), float(3, 4):gt(8), luma.ones(5)} end,
  addmm = function()
    return {float(3, 4), float(3, 2, 2):select(3, 1), float(4, 3):t():slice(1, 3, 1, -2)}
  end,
  addmv = function() return {float(12), float(12, 1), luma.ones(1, {dtype = "int32"})} end,
  addr = function() return {float(3, 4), luma.ones(3), luma.ones(8):slice(1, 1, 8, 2)} end,
  baddbmm = function() return {float(2, 2, 3), float(2, 2, 3), luma.ones(2, 3, 3)} end,
  addbmm = function() return {luma.ones(2, 3), float(2, 2, 3), luma.ones(2, 3, 3)} end,
  quantize_blocks = function() return {rows():to("float64")} end,
  dequantize_blocks = function() return {luma.quantize_blocks(rows()):flip(1)} end,
  matmul_blocks = function()
    return {rows():to("float16"), luma.quantize_blocks(rows()):flip(1)}
  end,
}

-- What a row's arguments above are no good for runs as the example of its help does.
local examples = dofile "lua/luma/examples.lua"

-- Types of the parameters that must be given.
local function parameters(signature)
  local list = {}
  for name, kind, optional in signature:gsub("{.*", ""):gmatch "([%w_]+):?(%w*)(%??)" do
    if name ~= "" and optional == "" then list[#list + 1] = kind == "" and "tensor" or kind end
  end
  return list
end

local function arguments(op)
  if special[op.name] then return special[op.name]() end
  local list = {}
  for i, kind in ipairs(parameters(op.signature)) do list[i] = by_type[kind]() end
  if op.takes == "ints" or op.takes == "bits" then
    for i, x in ipairs(list) do list[i] = x:to("int32") end
  end
  return list
end

local function bytes(list)
  local texts = {}
  for i, x in ipairs(list) do texts[i] = luma.is_tensor(x) and x:tobytes() or "" end
  return texts
end

-- What a call gave, as something to compare.
local function show(...)
  local out = {}
  for i, v in ipairs {...} do
    if luma.is_tensor(v) then out[i] = v:tobytes()
    elseif type(v) == "table" then out[i] = show(table.unpack(v))
    else out[i] = tostring(v) end
  end
  return table.concat(out, "|")
end

local function allocated()
  collectgarbage()
  collectgarbage()
  luma.empty_cache() -- with what a device keeps for products
  return luma.memory().allocated
end

-- Runs f(list) with the n-th allocation failing, for n = 1, 2, ... until none is left to fail.
local function fail_each(f, list, want)
  local before = bytes(list)
  for n = 1, 100 do
    for _, forever in ipairs {true, false} do
      local live = allocated()
      luma.fail_after(n, forever)
      local result = table.pack(pcall(f, list))
      local failed = not luma.fail_after()
      if result[1] then
        assert.equal(want, show(table.unpack(result, 2, result.n)))
      else
        assert.matches("memory", result[2], 1, true)
        assert.is_true(forever)
      end
      assert.same(before, bytes(list))
      result = nil -- luacheck: ignore
      assert.equal(live, allocated())
      if not failed then return end
    end
  end
  error "it never stops to allocate"
end

describe("failing allocations in", function()
  for _, op in ipairs(luma.ops) do
    if op.row ~= "make" then
      it(op.name, function()
        local list = arguments(op)
        local function f(arguments_) return luma[op.name](table.unpack(arguments_)) end
        if not pcall(f, list) then
          assert(examples[op.name], op.name)
          list, f = {}, assert(load("return " .. examples[op.name], op.name, "t", {luma = luma}))
        end
        luma.manual_seed(1)
        local want = show(f(list))
        fail_each(function(arguments_)
          luma.manual_seed(1)
          return f(arguments_)
        end, list, want)
      end)
    end
  end

  local others = {
    ["construction"] = function() return luma.tensor({{1, 2}, {3, 4}}) end,
    ["indexing by a mask"] = function(list) return list[1][list[1]:gt(4)] end,
    ["indexing by tensors"] = function(list)
      return list[1][{luma.tensor({1, 2}, "int64"), luma.tensor({2, 1}, "int64")}]
    end,
    ["operators"] = function(list) return -(list[1] * 2 + list[1]) / 3 end,
    ["mixed dtypes"] = function(list) return list[1] + list[1]:to("float64"):t():clone():t() end,
    ["unique integers"] = function(list)
      return list[1]:to("int32"):unique {return_inverse = true, return_counts = true}
    end,
    ["places of a number"] = function(list) return list[1]:flatten():to("uint8"):searchsorted(3.5) end,
    ["printing"] = function(list) return tostring(list[1]) end,
    ["linspace"] = function() return luma.linspace(0, 1, 5) end,
    ["eye"] = function() return luma.eye(3) end,
    ["fused functions, of more rows than keep their room"] = function(list)
      return luma.fuse(function(x)
        for i = 1, 30 do x = x * 0.5 + i end
        return x
      end)(list[1])
    end,
    ["fused functions, of more tensors than one pass takes, and of numbers"] = function(list)
      local x = list[1]
      return luma.fuse(function(first, ...)
        for _, v in ipairs {...} do first = first * v - 1 end
        return first
      end)(x, 2, x, 3, x, 4, x, 5, x, 6, x, x, x, x, x, x)
    end,
  }
  for name, f in pairs(others) do
    it(name, function()
      local list = {float(3, 4)}
      fail_each(f, list, show(f(list)))
    end)
  end

  it("saving and loading", function()
    local name = os.tmpname()
    for _, ending in ipairs {".npy", ".npz", ".safetensors"} do
      local path = name .. ending
      local x = float(3, 4):t()
      local what = ending == ".npy" and x or {a = x, b = float(12)}
      luma.save(path, what)
      fail_each(function() return luma.save(path, what) end, {x}, "")
      local function load()
        local y = luma.load(path)
        return luma.is_tensor(y) and y or y.a
      end
      fail_each(load, {x}, x:tobytes())
      os.remove(path)
    end
    os.remove(name)
  end)
end)

describe("in-place and out= keep what they had when memory fails in", function()
  for _, op in ipairs(luma.ops) do
    local twin = luma[op.name .. "_"]
    if twin and op.row ~= "make" then
      it(op.name .. "_", function()
        local list = arguments(op)
        local x = list[1]
        local base = luma.zeros(7, 4, {dtype = x.dtype})
        local view = base:slice(1, 2, 7, 2) -- a view of other strides than the other operands
        if x.ndim == 2 and x:size(1) == 3 and x:size(2) == 4 then
          view:copy_(x)
          list[1] = view
        end
        local before = list[1]:tobytes()
        for n = 1, 20 do
          luma.fail_after(n, true)
          local ok, message = pcall(twin, table.unpack(list))
          local failed = not luma.fail_after()
          if ok then
            list[1]:copy_(luma.frombytes(before, x.dtype, list[1].shape))
          else
            assert.matches("memory", message, 1, true)
            assert.equal(before, list[1]:tobytes())
          end
          if not failed then break end
        end
      end)
    end
  end
end)
