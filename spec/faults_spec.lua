-- faults_spec.lua -- faults that users of other tensor libraries reported, where no other spec holds
-- them: integers, casts, ranges, random numbers. Each case is run for every dtype and layout it fits.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local device = require "device"
local oracle = require "oracle"
local layouts = require "layouts"

local integers = {"uint8", "int8", "int16", "int32", "uint32", "int64"}
local signed = {"int8", "int16", "int32", "int64"}
local nan, inf = 0 / 0, math.huge

local function each_layout(values, dtype, f)
  for _, layout in ipairs(layouts.list) do
    local list = {table.unpack(values)}
    if layout[1] ~= "expanded" then f(layout[2](list, dtype), layout[1]) end
  end
end

it("size 1 broadcasts against size 0", function()
  local function add(a, b) return luma.add(luma.zeros(a), luma.zeros(b)).shape end
  assert.same({0}, add({1}, {0}))
  assert.same({3, 0}, add({3, 1}, {1, 0}))
  assert.same({0, 2}, add({}, {0, 2}))
  assert.has_error(function() add({2}, {0}) end)
  assert.has_error(function() add({3, 0}, {3, 2}) end)
  assert.has_error(function() add({0}, {3}) end)
end)

it("the least integer by -1", function()
  for _, dtype in ipairs(signed) do
    local least = oracle.dtypes[dtype].min
    local x = luma.full({9}, least, {dtype = dtype})
    for _, y in ipairs {-1, luma.full({9}, -1, {dtype = dtype})} do
      assert.is_true((x % y):equal(luma.zeros(9, {dtype = dtype})))
      assert.is_true((x // y):equal(x))
      assert.is_true(x:fmod(y):equal(luma.zeros(9, {dtype = dtype})))
      assert.is_true(x:div(y, {rounding = "trunc"}):equal(x))
      assert.is_true(x:div(y, {rounding = "floor"}):equal(x))
    end
    assert.is_true((-x):equal(x))
    assert.is_true(x:abs():equal(x))
  end
end)

it("floor division of integers rounds down", function()
  local a, b = {7, -7, 7, -7, 1, -1, 0, -8}, {2, 2, -2, -2, 2, 2, -3, 3}
  for _, dtype in ipairs(signed) do
    each_layout(a, dtype, function(x)
      local y = luma.tensor(b, dtype):reshape(x.shape)
      assert.same({3, -4, -4, 3, 0, -1, 0, -3}, layouts.flat(x // y))
      assert.same({1, 1, -1, -1, 1, 1, 0, 1}, layouts.flat(x % y))
      assert.is_true(x:equal(x // y * y + x % y))
    end)
    for i = 1, #a do
      assert.same(a[i] // b[i], (luma.tensor({a[i]}, dtype) // b[i])(1))
      assert.same(a[i] % b[i], (a[i] % luma.tensor({b[i]}, dtype))(1))
    end
  end
end)

it("remainders of floats are those of exact arithmetic, whatever the quotient", function()
  local odd = {0.0, -0.0, 1e-40, -1e-30, 1e30, -1e38, 3e-5, inf, -inf, nan}
  local formulas = {fmod = math.fmod, remainder = function(a, b) return a % b end}
  local function same(want, got) return want == got or (want ~= want and got ~= got) end
  for dtype, code in pairs {float32 = "f", float64 = "d"} do
    local function rounded(value) return string.unpack(code, string.pack(code, value)) end
    local a = luma.randn(203, {dtype = dtype}):mul(10)
    local b = luma.randn(203, {dtype = dtype})
    for i = 1, 203, 29 do -- quotients that are near stand beside such that are not
      a[i], b[i + 3] = odd[i // 29 + 1], odd[i // 29 + 2]
      b[i + 7] = odd[i // 29 + 4]
    end
    local x, y = a:totable(), b:totable()
    for name, formula in pairs(formulas) do
      local op = luma[name]
      local whole, inplace = op(a, b):totable(), a:clone()[name .. "_"](a:clone(), b):totable()
      local turned = op(a:flip(1), b:flip(1)):flip(1):totable()
      local function compare(p, q, ...)
        local want = rounded(formula(p, q))
        for _, got in ipairs {...} do
          if not same(want, got) then
            error(("%s %s(%.17g, %.17g): %.17g, not %.17g"):format(dtype, name, p, q, got, want))
          end
        end
      end
      for i = 1, #x do compare(x[i], y[i], whole[i], inplace[i], turned[i]) end
      for i = 1, #x, 29 do
        local by_one, of_one = op(a, b[i]):totable(), op(a[i], b):totable()
        for k = 1, #x do
          compare(x[k], y[i], by_one[k])
          compare(x[i], y[k], of_one[k])
        end
      end
    end
  end
end)

it("integers divided by zero are an error, floats are not", function()
  for _, dtype in ipairs(integers) do
    each_layout({1, 2, 3}, dtype, function(x)
      local before = x:tobytes()
      local zeros = luma.zeros(x.shape, {dtype = dtype})
      for _, name in ipairs {"floor_div", "remainder", "fmod", "trunc_div"} do
        for _, y in ipairs {0, zeros} do
          assert.is_false(device.pcall(luma[name], x, y))
          if y == 0 or device.is_cpu then -- a device has written x when it finds the zeros
            assert.is_false(pcall(luma[name .. "_"], x, y))
          end
        end
      end
      assert.equal(before, x:tobytes())
      local list = layouts.flat(x / zeros)
      assert.same({inf, inf, inf}, list)
    end)
  end
  local z = luma.tensor {1, 0, -1} / luma.zeros(3)
  assert.equal(inf, z(1))
  assert.is_true(z(2) ~= z(2))
  assert.equal(-inf, z(3))
end)

it("shifts by the width and more", function()
  for _, dtype in ipairs {"uint8", "int16", "int32", "uint32", "int64"} do
    local d = oracle.dtypes[dtype]
    for n = 1, 9 do
      each_layout(oracle.values("bool", n, 2, 3), dtype, function(x)
        x = luma.ones(x.shape, {dtype = dtype})
        local top = d.signed and d.min or (d.max + 1) // 2
        assert.is_true(x:lshift(d.bits):equal(luma.zeros(x.shape, {dtype = dtype})))
        assert.is_true(x:lshift(d.bits - 1):equal(luma.full(x.shape, top, {dtype = dtype})))
        assert.is_true(x:rshift(d.bits):equal(luma.zeros(x.shape, {dtype = dtype})))
      end)
    end
  end
  local x = luma.tensor({255}, "uint8")
  assert.equal(0, x:rshift(8)(1))
  assert.equal(0, x:lshift(8)(1))
  assert.equal(0, x:lshift(32)(1))
  assert.equal(-1, luma.tensor({-5}, "int32"):rshift(40)(1))
  assert.has_error(function() x:lshift(-1) end)
  assert.is_false(device.pcall(luma.rshift, luma.tensor({1}, "int8"), luma.tensor({-1}, "int8")))
end)

it("float to integer truncates, saturates, NaN is 0", function()
  local values = {nan, inf, -inf, -3, 300, 1e20, -1e20, -0.9, 0.9, 255.9, 1.5, 2.5}
  for _, from in ipairs {"float32", "float64"} do
    for _, to in ipairs(integers) do
      each_layout(values, from, function(x, name)
        local want = {}
        for i, v in ipairs(values) do want[i] = oracle.cast(to, oracle.cast(from, v + 0.0)) end
        assert.same(want, layouts.flat(x:to(to)), from .. to .. name)
      end)
    end
  end
  assert.same({0, 0, 255, 1, 2},
              luma.tensor({-0.9, 0.9, 255.9, 1.5, 2.5}):to("uint8"):totable())
  assert.same({-1, -1, 1, 2147483520},
              luma.tensor({-1.9, -1.5, 1.9, 2147483520}):to("int32"):totable())
end)

it("float32 to bfloat16 rounds to nearest even", function()
  local cases = {
    {0.2691408770272292, 0.26953125}, {1 + 2 ^ -8, 1}, {1 + 3 * 2 ^ -8, 1.015625},
    {1 + 2 ^ -8 + 2 ^ -20, 1.0078125}, {-(1 + 2 ^ -8), -1}, {3.14, 3.140625},
    {1e-8, 1.0011717677116394e-08}, {3.3961775292304957e38, inf}, {0x1.FFFFFEp127, inf},
    {2.0 ^ -134, 0}, {3 * 2.0 ^ -135, 2.0 ^ -133}}
  for _, case in ipairs(cases) do
    for n = 1, 40, 13 do
      local x = luma.full({n}, case[1], {dtype = "float32"}):to("bfloat16"):to("float64")
      assert.is_true(x:eq(case[2]):all(), tostring(case[1]))
    end
  end
  local x = luma.frombytes("\x01\x00\x80\x7f", "float32", {1}):to("bfloat16")
  assert.is_true(x:isnan():all())
end)

it("float8 rounds once, saturates, keeps NaN", function()
  local cases = {
    {17, 16}, {19, 20}, {21, 20}, {25, 24}, {27, 28}, {248, 256}, {260, 256}, {300, 288}, {368, 384},
    {432, 448}, {447, 448}, {455, 448}, {464, 448}, {-17, -16}, {-464, -448}, {2 ^ -9, 2 ^ -9},
    {2 ^ -10, 0}, {1.0001 * 2 ^ -10, 2 ^ -9}, {1.5 * 2 ^ -9, 2 ^ -8}, {2.5 * 2 ^ -9, 2 ^ -8},
    {0.07, 0.0703125}, {465, 448}, {500, 448}, {inf, 448}, {-inf, -448}}
  for _, case in ipairs(cases) do
    for _, from in ipairs {"float32", "float64"} do
      local x = luma.full({37}, case[1], {dtype = from}):to("float8_e4m3"):to("float64")
      assert.is_true(x:eq(case[2]):all(), tostring(case[1]))
    end
    assert.equal(case[2], luma.tensor({case[1]}, "float8_e4m3")(1))
    assert.equal(case[2], luma.zeros(1, {dtype = "float8_e4m3"}):fill_(case[1])(1))
  end
  assert.is_true(luma.tensor({nan}, "float8_e4m3"):isnan():all())
  local bytes = {}
  for i = 0, 255 do bytes[i + 1] = string.char(i) end
  local codes = luma.frombytes(table.concat(bytes), "float8_e4m3", {256})
  for _, through in ipairs {"float16", "bfloat16", "float32", "float64"} do
    local back = codes:to(through):to("float8_e4m3")
    local same = back:isnan():logical_and(codes:isnan())
    local a, b = codes:tobytes(), back:tobytes()
    for i = 1, 256 do assert.is_true(same(i) or a:byte(i) == b:byte(i), through) end
  end
end)

it("casts are right for every pair of dtypes, in every layout", function()
  for _, from in ipairs(oracle.names) do
    for _, to in ipairs(oracle.names) do
      local values = oracle.values(from, 40, -300, 300, 7, true)
      if from == "int64" then
        for i, v in ipairs {(1 << 53) + 1, (1 << 24) + 1, -(1 << 62) - 1, (1 << 62) + (1 << 54) + 1} do
          values[20 + i] = v
        end
      elseif from == "float64" then
        for i, v in ipairs {65519.0, 65520.0, 1 + 2 ^ -11 + 2 ^ -40, 2 ^ -25 + 2 ^ -60, 464.0001, 2.0 ^ 63} do
          values[20 + i] = v
        end
      end
      each_layout(values, from, function(x, name)
        local got = layouts.flat(x:to(to))
        for i, v in ipairs(values) do
          local want = oracle.cast(to, v)
          local equal = got[i] == want and 1 / got[i] == 1 / want or (want ~= want and got[i] ~= got[i])
          if not equal then
            error(("%s %s to %s gives %s, expected %s (%s, %d)"):format(from, v, to, got[i], want, name, i))
          end
        end
      end)
    end
  end
end)

it("linspace ends where it was told", function()
  local x = luma.linspace(-2.3328583, 2.8459014, 10)
  local last = string.unpack("<f", string.pack("<f", 2.8459014))
  assert.equal(last, x(10))
  assert.equal(last, luma.linspace(-2.3328583, 2.8459014, 2)(2))
  local y = luma.linspace(0, 99.78730976641236, 100, {dtype = "float64"})
  assert.equal(99.78730976641236, y(100))
  assert.same({0}, luma.linspace(0, 1, 1):totable())
  assert.same({0}, luma.linspace(0, 1, 0).shape)
  assert.same({5, 5, 5}, luma.linspace(5, 5, 3):totable())
  assert.same({1, 0.5, 0}, luma.linspace(1, 0, 3):totable())
end)

it("uniform numbers are in [0, 1)", function()
  luma.manual_seed(1)
  local most = {float32 = 1 - 2 ^ -24, float64 = 1 - 2 ^ -53, float16 = 1 - 2 ^ -11,
                bfloat16 = 1 - 2 ^ -8, float8_e4m3 = 1 - 2 ^ -4}
  for dtype, top in pairs(most) do
    local x = luma.rand(1000000, {dtype = dtype})
    assert.is_true(x:min():item() >= 0)
    assert.is_true(x:max():item() <= top)
    if dtype ~= "float64" and dtype ~= "float32" then assert.equal(top, x:max():item()) end
    local mean = x:to("float64"):mean():item()
    assert.is_true(math.abs(mean - top / 2) < 0.002, dtype .. mean)
  end
end)

it("a seed repeats a run exactly", function()
  local function bits(draw)
    luma.manual_seed(31)
    return draw():tobytes()
  end
  for _, n in ipairs {1, 3, 7, 255, 257} do
    for _, dtype in ipairs {"float32", "float64", "float16"} do
      local function normal() return luma.randn(n, {dtype = dtype}) end
      assert.equal(bits(normal), bits(normal))
      assert.equal(bits(normal), bits(normal))
      local function mixed()
        luma.rand(1)
        return normal()
      end
      assert.equal(bits(mixed), bits(mixed))
    end
    luma.manual_seed(5)
    luma.randn(n)
    local state = luma.get_rng_state()
    local a = luma.randn(n):tobytes()
    luma.randn(3)
    luma.set_rng_state(state)
    assert.equal(a, luma.randn(n):tobytes())
  end
end)
