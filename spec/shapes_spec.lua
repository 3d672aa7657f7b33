-- shapes_spec.lua -- every row of the registry with 8 dims, where it must give what it gives for the 3
-- that are not of size 1, and with no elements, where it gives a result of the right shape or an error.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local device = require "device"

-- Rows for which dims at the front mean something else: channels, positions, memory.
local by_place = {
  batch_norm = true, instance_norm = true, group_norm = true, cross_entropy = true, nll_loss = true,
  diagonal = true, as_strided = true, nonzero = true, hstack = true, vstack = true, rot90 = true,
}

-- A world: how it sees a tensor of 3 dims, and where dims 1 to 3 stand in it.
local three = {
  of = function(x) return x end,
  dims = {1, 2, 3},
}
local eight = {
  of = function(x) -- the dims behind each other in memory, as nobody likes them
    local s = x.shape
    local turned = x:permute(3, 1, 2):contiguous():permute(2, 3, 1)
    return turned:as_strided({1, 1, s[1], 1, 1, 1, s[2], s[3]},
      {7, 5, turned:stride(1), 3, 2, 1, turned:stride(2), turned:stride(3)})
  end,
  dims = {3, 7, 8},
}

local function numbers(shape, dtype)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  if n == 0 then return luma.zeros(shape, {dtype = dtype}) end
  return luma.range(1, n):remainder(7):reshape(shape):to(dtype)
end

local function positions(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  if n == 0 then return luma.zeros(shape, {dtype = "int64"}) end
  return luma.range(1, n):remainder(2):reshape(shape) + 1
end

-- Names and types of the parameters before the options; false: left out.
local function parameters(signature)
  local list = {}
  for name, kind, optional in signature:gsub("{.*", ""):gmatch "([%w_]+):?([%w_|]*)(%??)" do
    kind = kind == "" and "tensor" or kind
    list[#list + 1] = (optional == "" or kind == "dim") and {name, kind}
  end
  return list
end

local function arguments(op, world, shape)
  local list = {n = 0}
  local dtype = (op.takes == "ints" or op.takes == "bits") and "int32" or "float32"
  local dim = 3
  for i, p in ipairs(parameters(op.signature)) do
    local name, kind = table.unpack(p or {})
    local v
    if not p then v = nil
    elseif kind == "tensor" or (kind == "operand" and op.row ~= "op") then
      v = world.of(numbers(shape, dtype))
      if op.row == "ternary" and i == 1 then v = v:gt(3) end
    elseif kind == "operand" then v = 0.5
    elseif kind == "mask" then v = world.of(numbers(shape, "float32"):gt(3))
    elseif kind == "tensors" then v = {world.of(numbers(shape, dtype)), world.of(numbers(shape, dtype))}
    elseif kind == "index" then
      local flat = op.name:find "^index" or op.name == "take"
      v = flat and luma.tensor({2, 1}, "int64") or world.of(positions(shape))
    elseif kind == "dim" then
      dim = dim > 1 and dim - 1 or 3
      v = world.dims[dim]
    elseif kind == "dims" then v = {world.dims[1], world.dims[3]}
    elseif kind == "position" then v = 1
    elseif kind == "int" then v = 2
    elseif kind == "number" then v = name == "max" and 4 or 2
    elseif kind == "sizes" then v = 2
    elseif kind == "list" then v = name == "shifts" and {1} or {1, 2}
    elseif kind == "shape" then v = {-1, 3}
    else return nil end
    list[i], list.n = v, i
  end
  return list
end

-- What a call gave: one string for each result.
local function show(result)
  local out = {}
  for i = 1, result.n or #result do
    local v = result[i]
    if luma.is_tensor(v) then out[i] = v.dtype .. v:tobytes()
    elseif type(v) == "table" then out[i] = show(v)
    else out[i] = tostring(v) end
  end
  return table.concat(out, "|")
end

local function call(name, list)
  luma.manual_seed(1)
  return table.pack(device.pcall(luma[name], table.unpack(list, 1, list.n)))
end
-- What it gave after its first result, which says how it went.
local function rest(result) return show(table.move(result, 2, result.n, 1, {n = result.n - 1})) end

describe("8 dims", function()
  local ran = 0
  for _, op in ipairs(luma.ops) do
    if op.row ~= "make" and not by_place[op.name] then
      it("in " .. op.name, function()
        local plain = arguments(op, three, {2, 3, 4})
        if not plain then return end
        local want = call(op.name, plain)
        local got = call(op.name, arguments(op, eight, {2, 3, 4}))
        if not want[1] or not got[1] then -- wants other shapes, or makes a dim too many
          local message = not got[1] and got[2] or not want[1] and want[2]
          assert.equal("string", type(message))
          return
        end
        ran = ran + 1
        assert.equal(rest(want), rest(got))
        local list = arguments(op, eight, {2, 3, 4})
        if not op.inplace or op.row == "ternary" or not luma[op.name .. "_"] then return end
        list[1] = list[1]:contiguous():clone()
        local changed = call(op.name .. "_", list)
        if changed[1] then assert.equal(rest(want), rest(changed)) end
      end)
    end
  end
  it("ran most rows", function() assert.is_true(ran >= 120, tostring(ran)) end)
end)

-- Results of these have the shape of their first argument.
local keeps = {
  softmax = true, log_softmax = true, cumsum = true, cumprod = true, cummax = true, cummin = true,
  logcumsumexp = true, sort = true, argsort = true, clone = true, contiguous = true,
  force_contiguous = true, tril = true, triu = true, flip = true, roll = true, masked_fill = true,
  dropout = true, detach = true,
}

describe("no elements", function()
  for _, shape in ipairs {{2, 0, 3}, {0, 3, 4}, {2, 3, 0}, {0, 0, 0}} do
    for _, world in ipairs {three, eight} do
      local name = table.concat(shape, " ") .. (world == eight and ", 8 dims" or "")
      it("of [" .. name .. "] in every row", function()
        for _, op in ipairs(luma.ops) do
          local list = op.row ~= "make" and arguments(op, world, shape)
          if list then
            local result = call(op.name, list)
            if not result[1] then
              assert.equal("string", type(result[2]), op.name)
              assert.is_false(keeps[op.name] or op.inputs > 0, op.name .. ": " .. result[2])
            else
              rest(result)
              if keeps[op.name] or op.inputs > 0 then
                local first = luma.is_tensor(list[1]) and list[1] or list[2]
                assert.same(first.shape, result[2].shape, op.name)
              end
            end
          end
        end
      end)
    end
  end

  it("reduce to what no elements have", function()
    for _, dtype in ipairs {"bool", "uint8", "int64", "float16", "float32", "float64"} do
      for _, world in ipairs {three, eight} do
        local x, dims = world.of(luma.zeros(2, 0, 3, {dtype = dtype})), world.dims
        local left = world == three and {2, 3} or {1, 1, 2, 1, 1, 1, 3}
        assert.same(left, x:sum(dims[2]).shape)
        assert.is_true(x:sum(dims[2]):eq(0):all())
        assert.is_true(x:prod(dims[2]):eq(1):all())
        assert.is_true(x:all(dims[2]):all())
        assert.is_false(x:any(dims[2]):any())
        assert.equal(0, x:sum():item())
        assert.equal(1, x:prod():item())
        assert.is_true(x:mean():isnan():all())
        assert.is_true(x:mean(dims[2]):isnan():all())
        for _, name in ipairs {"amax", "amin", "argmax", "argmin", "max", "min", "median"} do
          local good, message = device.pcall(luma[name], x, dims[2])
          assert.is_false(good, name)
          assert.equal("string", type(message))
        end
        assert.is_true(x:sum(dims[1]):numel() == 0)
        if dtype ~= "bool" then assert.is_true(x:amax(dims[1]):numel() == 0) end
      end
    end
  end)
end)
