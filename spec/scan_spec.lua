-- scan_spec.lua -- running products, extremes, logarithms of sums of exponentials and differences
-- against references in plain Lua: every dtype and layout, random shapes, NaN and infinities, lines in
-- pieces, errors; on the CUDA device against the CPU.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local reference = require "reference"
local order = require "order_reference"
local layouts = require "layouts"
local check = require "check"
local device = require "spec.support.device"

local T, nan, huge = luma.tensor, 0 / 0, math.huge
local seed = require "seed".value
math.randomseed(seed)
local function where_from(text) return ("%s (LUMA_SPEC_SEED=%d)"):format(text, seed) end

local names = {"cumprod", "cummax", "cummin", "logcumsumexp"}
local function is_real(dtype) return oracle.dtypes[dtype].kind == "float" end

local function result_dtype(name, dtype)
  if name:find "^cumm" or is_real(dtype) then return dtype end
  return name == "cumprod" and "int64" or "float32"
end

-- Values whose products stay in range, with NaN and infinities now and then.
local function draw(dtype, n, special)
  local values = {}
  for i = 1, n do
    local v = math.random(-9, 9)
    if is_real(dtype) then
      v = math.random(4) == 1 and -1.25 or math.random(3) == 1 and 0.75 or math.random(-8, 8) / 4
      if v == 0 then v = math.random(2) == 1 and 0.0 or -0.0 end
      if special and math.random(12) == 1 then v = ({nan, huge, -huge})[math.random(3)] end
    end
    values[i] = oracle.cast(dtype, v)
  end
  return values
end

local function near(dtype, want, got)
  if want ~= want then return got ~= got end
  if got == want then return true end
  local share = (math.abs(want) + 1) * 2.0 ^ (dtype == "float64" and -47 or -22)
  return math.abs(got - want) <= oracle.ulp(dtype, want) * 0.51 + share
    or got == oracle.cast(dtype, want)
end

-- Every running result along dim, in every layout.
local function scan_all(values, shape, dim, dtype, place)
  local x = layouts.make(values, dtype):reshape(shape)
  for _, name in ipairs(names) do
    local wanted, places = {}, {}
    for _, at in ipairs(reference.groups(shape, {[dim] = true})) do
      local out, positions = order.running[name](reference.pick(values, at), is_real(dtype))
      for i, p in ipairs(at) do
        wanted[p] = out[i]
        places[p] = positions and positions[i]
      end
    end
    for _, v in ipairs(layouts.views) do
      local view = v[2](x)
      local y, positions = view[name](view, dim)
      local what = where_from(("%s of %s %s %s"):format(name, dtype, place, v[1]))
      assert.equal(result_dtype(name, dtype), y.dtype)
      assert.same(shape, y.shape)
      local got = layouts.flat(y)
      for i, want in ipairs(wanted) do
        if not (got[i] == want or want ~= want and got[i] ~= got[i]
            or is_real(y.dtype) and near(y.dtype, want, got[i])) then
          error(("%s, element %d: %s, not %s"):format(what, i, got[i], want))
        end
      end
      if places[1] then
        assert.equal("int64", positions.dtype)
        assert.same(places, layouts.flat(positions), what)
      end
    end
  end
end

describe("running results", function()
  for _, dtype in ipairs(oracle.names) do
    it("along every dim and layout: " .. dtype, function()
      for _, n in ipairs {0, 1, 2, 3, 7, 8, 9, 33} do
        scan_all(draw(dtype, n, true), {n}, 1, dtype, n)
        for dim = 1, 2 do
          scan_all(draw(dtype, 3 * n, true), {n, 3}, dim, dtype, n .. " x 3, dim " .. dim)
          scan_all(draw(dtype, 3 * n, false), {3, n}, dim, dtype, "3 x " .. n .. ", dim " .. dim)
        end
      end
      for _ = 1, 4 do
        local shape = {}
        for d = 1, math.random(1, 5) do shape[d] = math.random(1, 5) end
        local dim = math.random(#shape)
        scan_all(draw(dtype, reference.numel(shape), true), shape, dim, dtype,
          table.concat(shape, " x ") .. ", dim " .. dim)
      end
      scan_all(draw(dtype, 600, false), {600}, 1, dtype, "600")
      scan_all(draw(dtype, 1300, false), {650, 2}, 1, dtype, "650 x 2")
    end)
  end

  it("of 0-d tensors, of no elements, along the last dim", function()
    assert.equal(3, luma.tensor(3):cumprod():item())
    local v, p = T(3):cummax()
    assert.equal(3, v:item())
    assert.equal(1, p:item())
    assert.same({0, 3}, luma.zeros(0, 3):cummin(1).shape)
    assert.same({2, 0}, luma.zeros(2, 0):logcumsumexp().shape)
    check.tensor({{1, 2}, {3, 12}}, "float32", T({{1, 2}, {3, 4}}):cumprod())
    assert.equal("float64", T({1, 2}, "float64"):logcumsumexp().dtype)
  end)

  it("of eight dims and of repeated elements", function()
    local x = luma.range(1, 2 * 3 * 2 * 2):reshape(1, 2, 1, 3, 2, 1, 2, 1)
    local y = x:cumprod(4)
    assert.is_true(y:select(4, 3):equal(x:prod(4)))
    local v, p = T({5}):expand(6):cummax()
    check.tensor({5, 5, 5, 5, 5, 5}, "float32", v)
    check.tensor({1, 1, 1, 1, 1, 1}, "int64", p)
    check.tensor({5, 25, 125}, "int64", T({5}, "int8"):expand(3):cumprod())
  end)

  it("integer products wrap", function()
    local x = luma.full({64}, 3, {dtype = "int64"})
    local want, product = {}, 1
    for i = 1, 64 do
      product = product * 3
      want[i] = product
    end
    check.tensor(want, "int64", x:cumprod())
  end)

  it("products that leave the range of double come back", function()
    local x = T({1e300, 1e300, 1e-300, -1e-300, 2}, "float64"):cumprod()
    check.near({1e300, huge, 1e300, -1, -2}, x, 1e-12)
    x = T({1e-300, 1e-300, 1e300, 1e300, 0, 5}, "float64")
    check.near({1e-300, 0, 1e-300, 1, 0, 0}, x:cumprod(), 1e-12)
    local columns = x:reshape(6, 1):expand(6, 3):clone()
    check.near({1e-300, 0, 1e-300, 1, 0, 0}, columns:cumprod(1):select(2, 2), 1e-12)
    x = T({5e-324, 2, 1e308, 1e308, 1e-292}, "float64"):cumprod()
    check.near({5e-324, 1e-323, 1e-15, 1e293, 10}, x, 0.02)
    check.tensor({2, 0, 0, nan, nan}, "float64", T({2, 0, 3, huge, 1}, "float64"):cumprod())
  end)

  it("extremes: NaN stays, of equals the first, zeros are equal", function()
    local v, p = T({-0.0, 0.0, 1, 1, nan, 9, nan}):cummax()
    check.tensor({-0.0, -0.0, 1, 1, nan, nan, nan}, "float32", v)
    check.tensor({1, 1, 3, 3, 5, 5, 5}, "int64", p)
    v, p = T({3, 3, 0.0, -0.0, nan, -9}):cummin()
    check.tensor({3, 3, 0, 0, nan, nan}, "float32", v)
    check.tensor({1, 1, 3, 3, 5, 5}, "int64", p)
    assert.equal(huge, 1 / v[3])
    v, p = T({false, true, true}):cummax()
    check.tensor({false, true, true}, "bool", v)
    check.tensor({1, 2, 2}, "int64", p)
    v = T({math.mininteger, math.maxinteger - 1, math.maxinteger}, "int64"):cummax()
    check.tensor({math.mininteger, math.maxinteger - 1, math.maxinteger}, "int64", v)
  end)

  it("logarithms of sums of exponentials: far apart, infinite", function()
    local ln2 = math.log(2)
    for _, dtype in ipairs {"float32", "float64"} do
      check.near({1000, 1000 + ln2}, T({1000, 1000}, dtype):logcumsumexp())
      check.near({-1000, 0, ln2}, T({-1000, 0, 0}, dtype):logcumsumexp())
      check.near({0, 1000, 1000 + ln2}, T({0, 1000, 1000}, dtype):logcumsumexp())
      check.tensor({-huge, -huge, 1}, dtype, T({-huge, -huge, 1}, dtype):logcumsumexp())
      check.tensor({1, huge, huge, nan}, dtype, T({1, huge, 5, nan}, dtype):logcumsumexp())
      check.tensor({nan, nan}, dtype, T({nan, 5}, dtype):logcumsumexp())
      check.tensor({-2000, 0, 2000}, dtype, T({-2000, 0, 2000}, dtype):logcumsumexp())
    end
    check.near({0, ln2, math.log(3)}, T({0, 0, 0}, "int32"):logcumsumexp())
  end)
end)

-- Lines long enough for pieces and chunks, checked at many places.
describe("long lines", function()
  local n = 200003
  local function at_places(f)
    for _, i in ipairs {1, 2, 8, 65535, 65536, 65537, 131072, 131073, 180000, n} do f(i) end
  end
  local base = luma.range(1, n):remainder(1009) -- 1 2 ... 1008 0 1 ...
  it("extremes", function()
    for _, dtype in ipairs {"int32", "int64", "float32", "float16"} do
      local x = base:to(dtype)
      local best = math.tointeger(x:amax():item())
      local column = x:reshape(n, 1):expand(n, 2):clone():select(2, 1)
      for _, v in ipairs {x, x:flip(1):contiguous():flip(1), column} do
        local values, places = v:cummax()
        at_places(function(i)
          local want = math.min(i, 1008)
          assert.equal(oracle.cast(dtype, want), values[i])
          if dtype ~= "float16" then assert.equal(want, places[i]) end
        end)
        values, places = v:cummin()
        at_places(function(i)
          assert.equal(oracle.cast(dtype, i < 1009 and 1 or 0), values[i])
          assert.equal(i < 1009 and 1 or 1009, places[i])
        end)
      end
      assert.is_true(best <= 1008)
    end
    local x = base:to("float32")
    x[70000] = nan
    x[150000] = nan
    local values, places = x:cummin()
    assert.equal(0, values[69999])
    assert.is_true(values[70000] ~= values[70000] and values[n] ~= values[n])
    assert.equal(70000, places[n])
  end)
  it("products", function()
    local x = base:remainder(2):mul(-2):add(1) -- -1 and 1
    local want, product = {}, 1
    for i, v in ipairs(x:totable()) do
      product = product * v
      want[i] = product
    end
    for _, dtype in ipairs {"int8", "int64", "float32", "float64", "bfloat16"} do
      local y = x:to(dtype):cumprod()
      at_places(function(i) assert.equal(want[i], y[i]) end)
    end
    for _, dtype in ipairs {"bool", "uint8", "int32", "uint32", "float8_e4m3", "float16"} do
      local ones = luma.ones({n}, {dtype = dtype})
      ones[150000] = 0
      local y = ones:cumprod()
      at_places(function(i) assert.equal(i < 150000 and 1 or 0, y[i]) end)
    end
    -- 2 and 1/2, mostly 2: out of range, then back
    local up = luma.full({n}, 2, {dtype = "float64"})
    up:narrow(1, 100002, 100002):fill_(0.5)
    local y = up:cumprod()
    assert.equal(8.0, y[3])
    assert.equal(huge, y[100001])
    assert.equal(2.0, y[200001])
    assert.equal(0.5, y[n])
    up[5] = 0
    y = up:cumprod()
    assert.equal(16.0, y[4])
    assert.equal(0.0, y[n])
  end)
  it("logarithms of sums of exponentials", function()
    for _, dtype in ipairs {"float32", "float64"} do
      local y = luma.zeros(n, {dtype = dtype}):logcumsumexp()
      at_places(function(i) check.near(math.log(i), y[i], 1e-6) end)
      local x = luma.range(1, n, {dtype = dtype}) * 0.5
      y = x:logcumsumexp()
      at_places(function(i)
        if i > 100 then check.near(i * 0.5 - math.log(1 - math.exp(-0.5)), y[i], 1e-6) end
      end)
      y = x:flip(1):logcumsumexp()
      check.near(n * 0.5 - math.log(1 - math.exp(-0.5)), y[n], 1e-6)
    end
  end)
  it("columns, whatever strips threads take them in", function()
    local before = luma.config().threads
    for _, columns in ipairs {64, 513, 1300} do
      local x = luma.randint(-9, 10, {23, columns}):to("float64")
      for threads = 1, 5, 2 do
        luma.set_num_threads(threads)
        for _, name in ipairs {"cumsum", "cumprod", "cummax", "logcumsumexp"} do
          local all = luma[name](x, 1)
          for _, at in ipairs {1, 63, columns // 2, columns - 1} do -- narrow enough for one strip
            local few = luma[name](x:narrow(2, at, 2):contiguous(), 1)
            assert.is_true(all:narrow(2, at, 2):tobytes() == few:tobytes(),
              ("%s of %d columns, %d threads, from %d"):format(name, columns, threads, at))
          end
        end
      end
    end
    luma.set_num_threads(before or 2)
  end)

  it("the same from any number of threads", function()
    if not device.is_cpu then return end
    local before = luma.config().threads
    local results = {}
    local x = luma.randn(28600 * 7)
    for threads = 1, 3 do
      luma.set_num_threads(threads)
      local y = {x:cumprod(), x:logcumsumexp(), x:reshape(-1, 7):clone():logcumsumexp(1)}
      y[4], y[5] = x:cummax()
      for i, t in ipairs(y) do
        local bytes = t:tobytes()
        assert.is_true(bytes == (results[i] or bytes))
        results[i] = bytes
      end
    end
    luma.set_num_threads(before or 2)
  end)
end)

it("results go into tensors that are given", function()
  local x = T {{3, 1, 4}, {1, 5, 9}}
  local v, p = luma.zeros(3, 2):t(), luma.zeros({2, 3}, {dtype = "int64"}):flip(1)
  local a, b = x:cummax(2, {out = {v, p}})
  assert.is_true(rawequal(a, v) and rawequal(b, p))
  check.tensor({{3, 3, 4}, {1, 5, 9}}, "float32", v)
  check.tensor({{1, 1, 3}, {1, 2, 3}}, "int64", p)
  luma.cumprod(x, 2, {out = x})
  check.tensor({{3, 3, 12}, {1, 5, 45}}, "float32", x)
  luma.cumprod(x, 2, {out = x:flip(2)})
  check.tensor({{108, 9, 3}, {225, 5, 1}}, "float32", x)
  check.raises("int64", luma.cummax, x, 1, {out = {luma.zeros(2, 3), luma.zeros(2, 3)}})
  check.raises("dim", luma.cumprod, x, 3)
  check.raises("dim", luma.cummin, x, 0)
  local bytes = x:tobytes()
  check.raises("float32", luma.logcumsumexp, x, 1, {out = luma.zeros({2, 3}, {dtype = "float64"})})
  assert.equal(bytes, x:tobytes())
end)

describe("diff", function()
  it("of every dtype and layout", function()
    for _, dtype in ipairs(oracle.names) do
      for _, shape in ipairs {{7}, {1}, {0}, {4, 5}, {2, 3, 4}, {3, 0}} do
        local values = draw(dtype, reference.numel(shape), true)
        local x = layouts.make(values, dtype):reshape(shape)
        for dim = 1, #shape do
          local wanted = {}
          for g, at in ipairs(reference.groups(shape, {[dim] = true})) do
            local list = {}
            for i, p in ipairs(at) do list[i] = values[p] end
            wanted[g] = order.diff(list, dtype == "bool")
          end
          for _, v in ipairs(layouts.views) do
            local y = v[2](x):diff(1, dim)
            assert.equal(dtype, y.dtype)
            assert.equal(math.max(shape[dim] - 1, 0), y.shape[dim])
            for g, at in ipairs(reference.groups(y.shape, {[dim] = true})) do
              local flat = layouts.flat(y)
              for i, p in ipairs(at) do
                local want = oracle.cast(dtype, wanted[g][i])
                if not (want == flat[p] or want ~= want and flat[p] ~= flat[p]) then
                  error(where_from(("%s %s: %s, not %s"):format(dtype, v[1], flat[p], want)))
                end
              end
            end
          end
        end
      end
    end
  end)
  it("n times, with what is put before and behind", function()
    local x = T {1, 4, 9, 16, 25}
    check.tensor({3, 5, 7, 9}, "float32", x:diff())
    check.tensor({2, 2, 2}, "float32", x:diff(2))
    check.tensor({1, 4, 9, 16, 25}, "float32", x:diff(0))
    check.tensor({}, "float32", x:diff(5))
    check.tensor({}, "float32", x:diff(math.maxinteger))
    check.tensor({1, 3, 5, 7, 9, 11}, "float32", x:diff(1, {prepend = T {0}, append = T {36}}))
    local m = T {{1, 2}, {4, 8}}
    check.tensor({{3, 6}}, "float32", m:diff(1, 1))
    check.tensor({{1, 2}, {3, 6}}, "float32", m:diff(1, 1, {prepend = luma.zeros(1, 2)}))
    check.tensor({true, false}, "bool", T({true, false, false}):diff())
    assert.is_false(rawequal(x, x:diff(0)))
    luma.diff(x, 1, 1, {out = x:narrow(1, 1, 4)})
    check.tensor({3, 5, 7, 9, 25}, "float32", x)
  end)
  it("errors", function()
    check.raises("n is -1", luma.diff, T {1, 2}, -1)
    check.raises("0-d", luma.diff, T(1))
    check.raises("dim", luma.diff, T {1, 2}, 1, 2)
    check.raises("[2 x 1] beside [2]", luma.diff, T {1, 2}, 1, 1, {prepend = luma.zeros(2, 1)})
    check.raises("[2 x 3] beside [2 x 2]", luma.diff, luma.zeros(2, 2), 1, 1, {append = luma.zeros(2, 3)})
  end)
end)

-- ---- the device against the CPU ----

describe("as on the CPU", function()
  local D = device.cuda
  if not D then
    pending("no CUDA device: " .. tostring(device.no_cuda))
    return
  end
  for _, dtype in ipairs(oracle.names) do
    it("running results: " .. dtype, function()
      local shapes = {{5, 33}, {33, 5}, {3, 257}, {513, 3}}
      if dtype == "float32" or dtype == "int16" then
        for _, long in ipairs {{2, 2049}, {2, 20000}, {9000, 3}} do shapes[#shapes + 1] = long end
      end
      for _, shape in ipairs(shapes) do
        local x = T(draw(dtype, shape[1] * shape[2], false), dtype == "bool" and "int8" or dtype)
        x = x:to("cpu"):to(dtype):reshape(shape)
        local on = x:to(D)
        for _, f in ipairs {function(t) return t end, function(t) return t:t():flip({1, 2}) end} do
          for _, name in ipairs(names) do
            for dim = 1, 2 do
              local a, b = f(x), f(on)
              local want, at = a[name](a, dim)
              local got, places = b[name](b, dim)
              local what = where_from(("%s %s %d x %d dim %d"):format(name, dtype, shape[1], shape[2], dim))
              assert.equal(want.dtype, got.dtype)
              got = got:to("cpu")
              local exact = name ~= "logcumsumexp" and not (name == "cumprod" and is_real(dtype))
              local share = exact and 0 or math.max(oracle.ulp(want.dtype, 1.0), 1e-11)
              assert.is_true(want:to("float64"):allclose(got:to("float64"),
                {rtol = share, atol = exact and 0 or share, equal_nan = true}), what)
              if at then assert.is_true(at:equal(places:to("cpu")), what) end
            end
          end
        end
      end
    end)
  end
end)
