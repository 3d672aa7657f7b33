-- Elementwise rows, casts, copies, fills and random numbers on a CUDA device: the bits of the CPU's
-- results, for every row x dtype x layout. What the values ought to be is ops_spec's business.
local luma = require "luma"
local device = require "spec.support.device"
local layouts = require "spec.support.layouts"
local oracle = require "spec.support.oracle"

local D = device.cuda
if not D then
  describe("elementwise work on a CUDA device", function()
    it("needs one", function() pending(device.no_cuda) end)
  end)
  return
end

local numbers = {affine = {2, 3}, clamp = {1, 4}}
local divides = {floor_div = true, trunc_div = true, remainder = true, fmod = true}
local counts = {lshift = true, rshift = true, pow = true}

-- Bytes; all NaNs are one.
local function bits(x)
  x = x:cpu()
  if x.dtype:match "float" then
    x = luma.where(x:isnan(), luma.full({}, 0 / 0, {dtype = x.dtype, device = "cpu"}), x)
  end
  return x:tobytes()
end

local function same(what, a, b)
  if a.dtype ~= b.dtype then error(("%s: %s, not %s"):format(what, b.dtype, a.dtype), 0) end
  if bits(a) == bits(b) then return end
  local x, y = layouts.flat(a:cpu()), layouts.flat(b:cpu())
  for i = 1, #x do
    local equal = x[i] == y[i] or (x[i] ~= x[i] and y[i] ~= y[i])
    if not equal then
      error(("%s: at %d of %d: %s on the device, %s on the CPU"):format(what, i, #x, y[i], x[i]), 0)
    end
  end
  error(what .. ": signs of zeros differ", 0)
end

-- The view of host memory and its like on the device: the same strides over a copy of the storage.
local function both(make)
  luma.set_default_device("cpu")
  local host = make()
  luma.set_default_device(D)
  local there = make()
  luma.set_default_device(device.name)
  return host, there
end

local function operand(op, dtype, i, n, seed)
  local mask = op.row == "ternary" and i == 1
  local kind = oracle.dtypes[dtype].kind
  local values = oracle.values(mask and "bool" or dtype, n, op.lo, op.hi, seed, true)
  if kind ~= "float" and i == 2 and (divides[op.name] or counts[op.name]) then
    for k, v in ipairs(values) do
      if divides[op.name] and v == 0 then values[k] = 1 end
      if counts[op.name] then values[k] = v & 15 end
    end
  end
  return values, mask and "bool" or dtype
end

local function run(op, ...)
  local p = numbers[op.name]
  if p then return luma[op.name]((...), p[1], p[2]) end
  return luma[op.name](table.unpack({...}, 1, op.inputs))
end

-- Does the row take the dtype?
local function takes(op, dtype)
  return (pcall(run, op, luma.ones(1, {dtype = op.row == "ternary" and "bool" or dtype}),
                luma.ones(1, {dtype = dtype}), luma.ones(1, {dtype = dtype})))
end

local lengths = {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100}

-- Operand i of 48 elements as a 2-d view that meets others in [4 x 12].
local shapes = {
  function(values, dtype) return layouts.make(values, dtype):reshape(4, 12) end,
  function(values, dtype) return layouts.make(values, dtype):reshape(12, 4):t() end,
  function(values, dtype) return layouts.make(values, dtype):narrow(1, 3, 12) end, -- a row
  function(values, dtype) return layouts.make(values, dtype):narrow(1, 2, 4):reshape(4, 1) end,
  function(values, dtype) return layouts.make(values, dtype):select(1, 5) end,
  function(values, dtype) return layouts.make(values, dtype):reshape(4, 12):flip(2) end,
  function(values, dtype)
    local x = luma.zeros({4, 13}, {dtype = dtype}):narrow(2, 2, 12)
    x:copy_(layouts.make(values, dtype):reshape(4, 12))
    return x
  end,
}

for _, op in ipairs(luma.ops) do
  if op.inputs > 0 then
    describe(op.name .. " on a CUDA device", function()
      for _, dtype in ipairs(oracle.names) do
        if takes(op, dtype) then
          it(dtype .. " in every layout", function()
            for _, n in ipairs(lengths) do
              for which = 1, #layouts.list do
                local host, there = {}, {}
                for i = 1, op.inputs do
                  local make = layouts.list[(which + 2 * i - 3) % #layouts.list + 1]
                  host[i], there[i] = both(function()
                    return make[2](operand(op, dtype, i, n, n + i)):reshape(-1)
                  end)
                end
                same(("n = %d, %s"):format(n, layouts.list[which][1]), run(op, table.unpack(host)),
                     run(op, table.unpack(there)))
              end
            end
          end)

          it(dtype .. " broadcast", function()
            for a = 1, #shapes do
              for b = 1, op.inputs > 1 and #shapes or 1 do
                local host, there = {}, {}
                for i = 1, op.inputs do
                  local make = shapes[i == 1 and a or i == 2 and b or (a + b) % #shapes + 1]
                  host[i], there[i] = both(function() return make(operand(op, dtype, i, 48, i)) end)
                end
                same(("shapes %d and %d"):format(a, b), run(op, table.unpack(host)),
                     run(op, table.unpack(there)))
              end
            end
          end)
        end
      end

      it("operands of several dtypes, numbers, out= and in place", function()
        local dtypes = (op.takes == "ints" or op.takes == "bits") and {"int32", "uint8", "int64"}
          or {"float32", "float16", "int32"}
        for n = 15, 17 do
          local host, there = {}, {}
          for i = 1, op.inputs do
            host[i], there[i] = both(function()
              return layouts.make(operand(op, dtypes[(i + n) % 3 + 1], i, n, n + i))
            end)
          end
          local want = run(op, table.unpack(host))
          same("several dtypes", want, run(op, table.unpack(there)))
          if op.inputs == 2 then
            same("a number", luma[op.name](host[1], 3), luma[op.name](there[1], 3))
            if op.name ~= "lshift" and op.name ~= "rshift" and op.name ~= "pow" then
              same("a number first", luma[op.name](3, host[2]), luma[op.name](3, there[2]))
            end
            local out = luma.zeros({2 * n}, {dtype = want.dtype, device = D}):slice(1, 1, 2 * n, 2)
            luma[op.name](there[1], there[2], {out = out})
            same("out=", want, out)
          end
          local twin = luma[op.name .. "_"]
          if twin and op.inputs == 2 then
            local a, b = host[1]:clone(), there[1]:clone()
            local ok, message = pcall(twin, a, host[2])
            local there_ok, there_message = pcall(twin, b, there[2])
            assert.equal(ok, there_ok)
            if ok then
              same("in place", a, b)
            else
              assert.equal(message, there_message)
            end
          end
        end
      end)
    end)
  end
end

describe("casts on a CUDA device", function()
  for _, from in ipairs(oracle.names) do
    it("of " .. from, function()
      for _, to in ipairs(oracle.names) do
        for n = 15, 17 do
          for _, layout in ipairs(layouts.list) do
            local host, there = both(function()
              return layout[2](oracle.values(from, n, -300, 300, n, true), from)
            end)
            same(from .. " to " .. to .. ", " .. layout[1], host:to(to), there:to(to))
          end
        end
      end
    end)
  end

  it("of a large transposed one", function()
    local host, there = both(function() return luma.range(0, 300 * 301 - 1, {dtype = "int32"}) end)
    same("int32 to float16", host:reshape(300, 301):t():to("float16"),
         there:reshape(300, 301):t():to("float16"))
  end)
end)

-- Views of a tensor of whole numbers, as functions.
local views = {
  {"whole", {5, 7}, function(x) return x end},
  {"rows of a part", {9, 40}, function(x) return x:narrow(2, 9, 32) end},
  {"rows of an odd part", {9, 40}, function(x) return x:narrow(2, 4, 31) end},
  {"transposed", {5, 7}, function(x) return x:t() end},
  {"transposed tiles", {65, 40}, function(x) return x:t() end},
  {"transposed tiles of a part", {3, 70, 40}, function(x) return x:narrow(2, 3, 66):transpose(2, 3) end},
  {"permuted", {4, 33, 9, 10}, function(x) return x:permute(3, 1, 4, 2) end},
  {"reversed", {13, 17}, function(x) return x:flip({1, 2}) end},
  {"reversed and transposed", {33, 34}, function(x) return x:flip(1):t() end},
  {"stepped", {12, 20}, function(x) return x:slice(1, 1, 12, 3):slice(2, 2, 20, 2) end},
  {"repeated rows", {1, 40}, function(x) return x:expand(6, 40) end},
  {"repeated elements", {40, 1}, function(x) return x:expand(40, 48) end},
  {"windows", {50}, function(x) return x:unfold(1, 9, 4) end},
  {"8 dims", {2, 3, 1, 2, 3, 2, 2, 3}, function(x) return x:permute(8, 1, 3, 6, 2, 7, 5, 4) end},
  {"0-d", {3}, function(x) return x:select(1, 2) end},
  {"empty", {3, 0, 2}, function(x) return x:transpose(1, 3) end},
}

describe("copies on a CUDA device", function()
  for _, dtype in ipairs {"uint8", "int16", "float32", "float64"} do
    it("of " .. dtype, function()
      for _, v in ipairs(views) do
        local n = 1
        for _, size in ipairs(v[2]) do n = n * size end
        local host, there = both(function()
          return v[3](luma.range(0, n - 1, {dtype = "int64"}):remainder(251):to(dtype):reshape(v[2]))
        end)
        same(v[1], host:clone(), there:clone())
      end
    end)

    it("into views of " .. dtype, function()
      for _, v in ipairs(views) do
        local n = 1
        for _, size in ipairs(v[2]) do n = n * size end
        if v[1] ~= "windows" and not v[1]:match "repeated" then
          local host, there = both(function()
            local x = luma.zeros(v[2], {dtype = dtype})
            local view = v[3](x)
            local m = view:numel()
            view:copy_(luma.range(1, m, {dtype = "int64"}):remainder(251):reshape(view.shape))
            return x
          end)
          same(v[1], host, there)
        end
      end
    end)

    it("fills of views of " .. dtype, function()
      for _, v in ipairs(views) do
        for _, value in ipairs {0, 1, 77} do
          if v[1] ~= "windows" and not v[1]:match "repeated" then
            local host, there = both(function()
              local x = luma.zeros(v[2], {dtype = dtype})
              v[3](x):fill_(value)
              return x
            end)
            same(v[1], host, there)
          end
        end
      end
    end)
  end

  it("far apart", function()
    -- 64-bit offsets; only the pages that are touched take memory
    local x = luma.empty((1 << 31) + 64, {dtype = "uint8", device = D}):as_strided({2, 33}, {1 << 31, 1})
    local y = luma.range(1, 66, {dtype = "uint8", device = D}):reshape(2, 33)
    x:copy_(y)
    same("copied", y:cpu(), x)
    same("added", (y + y):cpu(), x + x)
    same("converted", y:cpu():to("int32"), x:to("int32"))
    same("transposed", y:cpu():t():clone(), x:t():clone())
  end)
end)

describe("random numbers on a CUDA device", function()
  local function draws(dtype, n, offset)
    luma.set_default_device("cpu")
    luma.manual_seed(1234)
    local result = {}
    local function draw(what, f)
      local made = {}
      for _, name in ipairs {"cpu", D} do
        luma.set_rng_state({seed = 99, offset = offset}, name)
        made[#made + 1] = f(name)
      end
      same(("%s %s, n = %d, offset %d"):format(what, dtype, n, offset), made[1], made[2])
    end
    local float = dtype:match "float"
    if float then
      draw("rand", function(name) return luma.rand(n, {dtype = dtype, device = name}) end)
      draw("randn", function(name) return luma.randn(n, {dtype = dtype, device = name}) end)
    end
    draw("randint", function(name)
      return luma.randint(0, dtype == "bool" and 1 or 100, n, {dtype = dtype, device = name})
    end)
    luma.set_default_device(device.name)
    return result
  end
  for _, dtype in ipairs(oracle.names) do
    it("of " .. dtype, function()
      for n = 1, 9 do
        for offset = 0, 5 do draws(dtype, n, offset) end
      end
      draws(dtype, 1000, 262143)
    end)
  end
end)

describe("integer division by zero on a CUDA device", function()
  it("names the first place", function()
    for n = 15, 40 do
      local x = luma.ones({2, n}, {dtype = "int32", device = D})
      local y = x:clone()
      y[{2, n - 3}] = 0
      y[{2, n}] = 0
      local z = x // y
      local ok, message = pcall(luma.cuda.synchronize)
      assert.is_false(ok)
      assert.matches(("attempt to perform 'n//0' at [2, %d]"):format(n - 3), message, 1, true)
      assert.equal(0, z[{2, n - 3}])
      assert.equal(1, z[{2, 1}])
    end
  end)

  it("of a view and of a row that repeats", function()
    local x = luma.ones({4, 6}, {dtype = "int64", device = D})
    local y = luma.tensor({1, 2, 0, 4}, {dtype = "int64", device = D})
    local _ = x:t() % y
    assert.has_error(luma.cuda.synchronize)
    _ = x % y:reshape(4, 1)
    local ok, message = pcall(luma.cuda.synchronize)
    assert.is_false(ok)
    assert.matches("at [3, 1]", message, 1, true)
  end)

  it("numbers are refused at once", function()
    local x = luma.ones({3}, {dtype = "int64", device = D})
    assert.error_matches(function() return x // 0 end, "attempt to perform 'n//0'")
    assert.error_matches(function() return luma.pow(x, -1) end, "negative power of an integer")
  end)
end)
