-- blend_spec.lua -- compositions of elementwise rows (core/blend.c) against formulas of plain Lua, over
-- dtypes and views; powers by numbers; edges of the elementwise words.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local raises = require("check").raises
local huge, nan = math.huge, 0 / 0

local floats = {"float8_e4m3", "float16", "bfloat16", "float32", "float64"}
local tolerance = {float8_e4m3 = 0.1, float16 = 2e-3, bfloat16 = 2e-2, float32 = 3e-6, float64 = 1e-12}

-- A (5,4) tensor of drawn numbers, in several layouts, and its values row by row.
local function views(dtype, seed, lo, hi)
  local x = luma.tensor(oracle.values(dtype, 20, lo or -3, hi or 3, seed), dtype):reshape(5, 4)
  local wide = luma.zeros({10, 8}, {dtype = dtype})
  local stepped = wide:slice(1, 1, 10, 2):slice(2, 1, 8, 2)
  stepped:copy_(x)
  return {x, x:t():contiguous():t(), stepped, x:flip({1, 2}):contiguous():flip({1, 2})}, x
end

local function near(want, got, dtype, what)
  local w, g = want, got:to("float64"):reshape(-1):totable()
  assert.equal(#w, #g)
  for i = 1, #w do
    local ok = w[i] == g[i] or (w[i] ~= w[i] and g[i] ~= g[i])
               or math.abs(w[i] - g[i]) <= tolerance[dtype] * math.max(1, math.abs(w[i]))
    if not ok then error(("%s %s: %g at %d, expected %g"):format(what, dtype, g[i], i, w[i]), 0) end
  end
end

local function flat(x) return x:to("float64"):reshape(-1):totable() end

local function each(f, ...)
  local lists, out = {...}, {}
  for i = 1, #lists[1] do
    local v = {}
    for k = 1, #lists do v[k] = lists[k][i] end
    out[i] = f(table.unpack(v))
  end
  return out
end

-- f of three tensors against g of three numbers, over dtypes and views; a twin and out= give the same.
local function check(name, g, run, lo)
  describe(name, function()
    for _, dtype in ipairs(floats) do
      it(dtype, function()
        local xs, x = views(dtype, 1)
        local as = views(dtype, 2)
        local bs = views(dtype, 3, lo or -3, 3)
        local want = each(g, flat(x), flat(as[1]), flat(bs[1]))
        for i = 1, #xs do
          local r = run(luma, xs[i], as[i % #as + 1], bs[(i + 1) % #bs + 1])
          assert.equal(dtype, r.dtype)
          near(want, r, dtype, name)
        end
        local bits = run(luma, x, as[1], bs[1]):tobytes()
        local self = x:clone()
        local twin = setmetatable({}, {__index = function(_, k) return luma[k .. "_"] end})
        assert.is_true(rawequal(self, run(twin, self, as[1], bs[1])))
        assert.equal(bits, self:tobytes())
      end)
    end
  end)
end

check("addcmul", function(x, a, b) return x + 0.5 * a * b end,
      function(l, x, a, b) return l.addcmul(x, a, b, {value = 0.5}) end)
check("addcdiv", function(x, a, b) return x + a / b end,
      function(l, x, a, b) return l.addcdiv(x, a, b) end, 1)
check("lerp by a tensor", function(x, a, b) return x + b * (a - x) end,
      function(l, x, a, b) return l.lerp(x, a, b) end)
check("lerp by a number", function(x, a) return x + 0.75 * (a - x) end,
      function(l, x, a) return l.lerp(x, a, 0.75) end)
check("prelu", function(x) return x > 0 and x or 0.25 * x end,
      function(l, x) return l.prelu(x, luma.tensor(0.25, x.dtype)) end)
check("nan_to_num", function(x) return x end, function(l, x) return l.nan_to_num(x) end)

describe("compositions", function()
  it("of integers stay integers, or say why not", function()
    local x = luma.tensor({1, 2, 3}, "int32")
    assert.same({3, 10, 21}, luma.addcmul(x, x, x, {value = 2}):totable())
    assert.equal("float32", luma.addcdiv(x, x, x).dtype)
    assert.has_error(function() luma.addcmul(x, x, x, {value = 0.5}) end)
    assert.has_error(function() luma.addcmul_(x, luma.ones(3), x) end)
    assert.same({1, 2, 3}, luma.nan_to_num(x):totable())
  end)

  it("broadcast, and refuse what does not", function()
    local x = luma.ones(2, 1)
    assert.same({2, 3}, luma.addcmul(x, luma.ones(3), luma.ones(2, 3)).shape)
    assert.has_error(function() luma.addcmul(luma.ones(2), luma.ones(3), luma.ones(2)) end)
    assert.has_error(function() luma.addcmul_(x, luma.ones(3), luma.ones(2, 3)) end)
    assert.same({0, 3}, luma.lerp(luma.ones(0, 3), luma.ones(0, 3), 0.5).shape)
    assert.same({}, luma.lerp(luma.tensor(1.0), luma.tensor(2.0), 0.5).shape)
  end)

  it("lerp ends exactly at both ends", function()
    local x, y = luma.tensor({1e8, -3.3}), luma.tensor({-0.1, 7.7})
    assert.same(x:totable(), luma.lerp(x, y, 0):totable())
    assert.same(y:totable(), luma.lerp(x, y, 1):totable())
    assert.same(y:totable(), luma.lerp(x, y, luma.tensor(1.0)):totable())
  end)

  it("nan_to_num replaces what it is told", function()
    for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
      local x = luma.tensor({nan, huge, -huge, 1.5}, dtype)
      local d = oracle.dtypes[dtype]
      assert.same({0, d.max, -d.max, 1.5}, flat(x:nan_to_num()))
      assert.same({7, 8, -d.max, 1.5}, flat(x:nan_to_num {nan = 7, posinf = 8}))
      assert.same({huge, d.max, -9, 1.5}, flat(x:nan_to_num {nan = huge, neginf = -9}))
    end
  end)

  it("isclose agrees with the formula", function()
    local x = luma.tensor({1, 2, huge, nan, huge, 1})
    local y = luma.tensor({1.0001, 2, huge, nan, -huge, huge})
    assert.same({true, true, true, false, false, false}, x:isclose(y, {rtol = 1e-3}):totable())
    assert.same({false, true, true, true, false, false}, x:isclose(y, {equal_nan = true}):totable())
    assert.same({true, false}, luma.tensor({1, 2}, "int64"):isclose(1):totable())
    assert.same({2, 3}, luma.ones(2, 1):isclose(luma.ones(3)).shape)
    assert.has_error(function() x:isclose(y, {rtol = -1}) end)
  end)

  it("round to decimals", function()
    local x = luma.tensor({1.2345, -2.5551, 1234.5}, "float64")
    near({1.23, -2.56, 1234.5}, x:round {decimals = 2}, "float64", "round")
    near({0, -0.0, 1200}, x:round {decimals = -2}, "float64", "round")
    assert.same(x:round():totable(), x:round {decimals = 0}:totable())
    assert.has_error(function() x:round {decimals = 1000} end)
    assert.has_error(function() luma.tensor({1}, "int32"):round {decimals = -1} end)
    assert.same({1}, luma.tensor({1}, "int32"):round {decimals = 2}:totable())
  end)

  it("glu and swiglu halve a dim", function()
    for _, dtype in ipairs(floats) do
      local x = luma.tensor(oracle.values(dtype, 24, -3, 3, 5), dtype):reshape(2, 4, 3)
      for dim = 1, 3 do
        if x.shape[dim] % 2 == 0 then
          local h = x.shape[dim] // 2
          local a, b = flat(x:narrow(dim, 1, h)), flat(x:narrow(dim, h + 1, h))
          near(each(function(u, v) return u / (1 + math.exp(-v)) end, a, b), x:glu(dim), dtype, "glu")
          near(each(function(u, v) return u / (1 + math.exp(-u)) * v end, a, b), x:swiglu(dim), dtype,
               "swiglu")
        end
      end
      assert.has_error(function() x:glu(3) end)
      raises("#1 to 'glu' (a 0-d tensor has no halves)", luma.glu, luma.tensor(1))
    end
  end)

  it("prelu has one weight a channel", function()
    local x = luma.tensor({-1, -1, -1, 2, -2, -3}):reshape(1, 3, 2)
    assert.same({{{-0.5, -0.5}, {-0.25, 2}, {-4, -6}}}, x:prelu(luma.tensor({0.5, 0.25, 2})):totable())
    assert.has_error(function() x:prelu(luma.ones(2)) end)
    assert.has_error(function() x:prelu(luma.ones(1, 3)) end)
  end)

  it("rot90 turns by views", function()
    local x = luma.range(1, 6):reshape(2, 3)
    assert.same({{3, 6}, {2, 5}, {1, 4}}, x:rot90():totable())
    assert.same({{6, 5, 4}, {3, 2, 1}}, x:rot90(2):totable())
    assert.same({{4, 1}, {5, 2}, {6, 3}}, x:rot90(-1):totable())
    assert.same(x:totable(), x:rot90(4):totable())
    assert.same(x:rot90(3):totable(), x:rot90(1, {2, 1}):totable())
    local y = luma.range(1, 24):reshape(2, 3, 4)
    for k = -5, 5 do
      local want = y
      for _ = 1, k % 4 do want = want:rot90(1, {1, 3}) end
      assert.same(want:totable(), y:rot90(k, {1, 3}):totable())
    end
    assert.has_error(function() x:rot90(1, {1, 1}) end)
    assert.has_error(function() x:rot90(1, {1}) end)
    assert.has_error(function() luma.ones(3):rot90() end)
  end)

  it("nextafter steps through every number of the small floats", function()
    for _, dtype in ipairs {"float8_e4m3", "float16", "bfloat16"} do
      local n = dtype == "float8_e4m3" and 0x7e or dtype == "float16" and 0x7c00 or 0x7f80
      local format = dtype == "float8_e4m3" and "<I1" or "<I2"
      local bytes = {}
      for i = 0, n do bytes[i + 1] = format:pack(i) end -- 0 to infinity, or to the greatest
      local x = luma.frombytes(table.concat(bytes), dtype, n + 1)
      local low, high = x:narrow(1, 1, n), x:narrow(1, 2, n)
      local top = luma.full({}, huge, {dtype = dtype})
      assert.equal(high:tobytes(), low:nextafter(top):tobytes())
      assert.equal(low:tobytes(), high:nextafter(luma.zeros({}, {dtype = dtype})):tobytes())
      assert.equal((-high):tobytes(), (-low):nextafter(-top):tobytes())
      assert.equal(high:tobytes(), luma.nextafter_(low:clone(), top):tobytes())
    end
  end)
  it("nextafter of the wide ones, and of what has no next", function()
    for _, dtype in ipairs {"float32", "float64"} do
      local u = oracle.ulp(dtype, 1.0)
      local x = luma.tensor({1, 1, 0, 0, 3, nan, 1, huge, -0.0}, dtype)
      local y = luma.tensor({2, 0, 1, -1, 3, 1, nan, 0, 0.0}, dtype)
      local least, d = oracle.ulp(dtype, 0), oracle.dtypes[dtype]
      local got = luma.nextafter(x:reshape(3, 3):t(), y:reshape(3, 3):t()):t():reshape(-1):totable()
      local want = {1 + u, 1 - u / 2, least, -least, 3, nan, nan, d.max, 0}
      for i = 1, 9 do assert.is_true(got[i] == want[i] or want[i] ~= want[i] and got[i] ~= got[i]) end
    end
    assert.equal("float32", luma.nextafter(luma.tensor({1}, "int32"), luma.tensor({2}, "int32")).dtype)
  end)

  it("repeat_interleave", function()
    local x = luma.tensor({{1, 2}, {3, 4}})
    assert.same({1, 1, 2, 2, 3, 3, 4, 4}, x:repeat_interleave(2):totable())
    assert.same({{1, 1, 1, 2, 2, 2}, {3, 3, 3, 4, 4, 4}}, x:repeat_interleave(3, 2):totable())
    assert.same({{1, 3}, {1, 3}, {2, 4}, {2, 4}}, x:t():repeat_interleave(2, 1):totable())
    assert.same({{1, 2}, {3, 4}, {3, 4}}, x:repeat_interleave(luma.tensor({1, 2}, "int64"), 1):totable())
    assert.same({{2, 2}, {4, 4}}, x:repeat_interleave(luma.tensor({0, 2}, "uint8"), 2):totable())
    assert.same({2, 0}, x:repeat_interleave(0, 2).shape)
    assert.same({0}, luma.ones(0):repeat_interleave(3).shape)
    assert.same({5, 5}, luma.tensor(5):repeat_interleave(2):totable())
    local few = luma.tensor(2, {dtype = "int64", device = "cpu"}) -- goes anywhere
    assert.same({1, 1, 2, 2, 3, 3, 4, 4}, x:repeat_interleave(few):totable())
    local function fails(pattern, ...) raises(pattern, luma.repeat_interleave, ...) end
    local function repeats(...) return luma.tensor({...}, "int64") end
    fails("#2 to 'repeat_interleave' (whole numbers, not negative, expected)", x, -1)
    fails("whole numbers, not negative, expected", x, 0.5)
    fails("#2 to 'repeat_interleave' (9223372036854775807 repeats of 4 positions in 1 dim)", x,
      math.maxinteger)
    fails("repeats of 2 positions in 2 dims", x:narrow(2, 1, 1):expand(2, 2 ^ 30 | 0), 2 ^ 32 | 0, 1)
    fails("#2 to 'repeat_interleave' (-1 repeats at position 2: 0 or more expected)", x, repeats(1, -1), 1)
    fails("#2 to 'repeat_interleave' (3 repeats for 2 positions)", x, repeats(1, 1, 1), 1)
    fails("9223372036854775807 repeats at position 1: the result is too large", x,
      repeats(math.maxinteger, 1), 1)
    fails("#2 to 'repeat_interleave' (float32: an integer dtype expected)", x, luma.ones(2), 1)
    fails("#1 to 'repeat_interleave' (a 0-d tensor has no positions along a dim)", luma.tensor(5), 2, 1)
  end)

  it("hstack and vstack", function()
    local a, b = luma.tensor({1, 2}), luma.tensor({3, 4})
    assert.same({1, 2, 3, 4}, luma.hstack {a, b}:totable())
    assert.same({{1, 2}, {3, 4}}, luma.vstack {a, b}:totable())
    assert.same({{1, 3, 4}, {2, 5, 6}},
                luma.hstack {a:reshape(2, 1), luma.tensor({{3, 4}, {5, 6}})}:totable())
    assert.same({{1, 2}, {3, 4}, {5, 6}}, luma.vstack {a, luma.tensor({{3, 4}, {5, 6}})}:totable())
    assert.same({5, 6}, luma.hstack {luma.tensor(5), luma.tensor(6)}:totable())
    assert.has_error(function() luma.hstack {} end)
    assert.has_error(function() luma.vstack {a, luma.ones(3)} end)
  end)
end)

describe("powers by numbers", function()
  for _, dtype in ipairs {"float16", "float32", "float64", "int32", "int64", "uint8"} do
    it(dtype .. " agree with powers by tensors", function()
      local real = oracle.dtypes[dtype].kind == "float"
      local x = luma.tensor(oracle.values(dtype, 40, 0, 9, 3), dtype)
      for _, p in ipairs(real and {2, 3, 1, -1, 0.5, 2.0, 3.0} or {1, 2, 3}) do
        local r, y = luma.pow(x, p), luma.pow(x, luma.full({40}, p, {dtype = dtype}))
        assert.equal(dtype, r.dtype)
        if real then
          near(flat(y), r, dtype, "power")
        else
          assert.same(y:totable(), r:totable())
        end
        local out = luma.zeros({80}, {dtype = dtype}):slice(1, 1, 80, 2)
        assert.equal(r:tobytes(), luma.pow(x, p, {out = out}):tobytes())
        assert.equal(r:tobytes(), x:clone():pow_(p):tobytes())
      end
    end)
  end

  it("of integers are what they were", function()
    local x = luma.tensor({1, 2, 3}, "int32")
    assert.equal("float32", (x ^ 0.5).dtype)
    assert.equal("float32", (x ^ 2).dtype)
    assert.equal("float32", luma.pow(x, 2.0).dtype)
    assert.has_error(function() return luma.pow(x, -1) end)
    assert.equal("int64", luma.pow(luma.tensor {true, false}, 2).dtype)
  end)
end)

describe("options that choose a row", function()
  it("gelu", function()
    local x = luma.linspace(-4, 4, 33)
    assert.equal(luma.gelu_tanh(x):tobytes(), x:gelu {approximate = "tanh"}:tobytes())
    assert.equal(luma.gelu(x):tobytes(), x:gelu {approximate = "none"}:tobytes())
    local out = luma.zeros(33)
    assert.equal(out, x:gelu {approximate = "tanh", out = out})
    assert.equal(luma.gelu_tanh(x):tobytes(), out:tobytes())
    assert.has_error(function() x:gelu {approximate = "erf"} end)
  end)
  it("numbers of activations have defaults", function()
    local x = luma.tensor({-2, -0.5, 0.5, 30}, "float64")
    near({-0.02, -0.005, 0.5, 30}, x:leaky_relu(), "float64", "leaky_relu")
    near({math.exp(-2) - 1, math.exp(-0.5) - 1, 0.5, 30}, x:elu(), "float64", "elu")
    near({math.exp(-2) - 1, math.exp(-0.5) - 1, 0.5, 30}, x:celu(), "float64", "celu")
    near({-1, -0.5, 0.5, 1}, x:hardtanh(), "float64", "hardtanh")
    assert.equal(30, x:softplus()[4])
    assert.is_true(x:softplus(0.5)[4] > 30)
    -- not rounded to the dtype of small floats
    local h = luma.full({1}, -64, {dtype = "float16"}):leaky_relu(0.01):item()
    assert.equal(oracle.cast("float16", -0.64), h)
  end)
end)

describe("words at their edges", function()
  local edges = {
    expm1 = {{-0.0, -0.0}, {1e-40, 1e-40}, {huge, huge}, {-huge, -1}, {nan, nan}},
    log1p = {{-0.0, -0.0}, {1e-40, 1e-40}, {-1, -huge}, {-2, nan}, {huge, huge}},
    atanh = {{1, huge}, {-1, -huge}, {2, nan}, {-0.0, -0.0}, {1e-40, 1e-40}},
    asinh = {{huge, huge}, {-huge, -huge}, {-0.0, -0.0}, {1e-40, 1e-40}},
    acosh = {{1, 0}, {0.5, nan}, {-5, nan}, {huge, huge}},
    sinh = {{huge, huge}, {-huge, -huge}, {-0.0, -0.0}, {1e-40, 1e-40}},
    cosh = {{huge, huge}, {-huge, huge}, {0, 1}},
    tan = {{huge, nan}, {-0.0, -0.0}, {1e-40, 1e-40}, {1e22, math.tan(1e22)}},
    asin = {{1, math.pi / 2}, {-1, -math.pi / 2}, {1.5, nan}, {-0.0, -0.0}},
    acos = {{1, 0}, {-1, math.pi}, {-1.5, nan}},
    atan = {{huge, math.pi / 2}, {-huge, -math.pi / 2}, {-0.0, -0.0}},
    cbrt = {{-8, -2}, {27, 3}, {huge, huge}, {-0.0, -0.0}, {1e-300, 1e-100}},
    exp2 = {{10, 1024}, {-1074, 2.0 ^ -1074}, {2000, huge}, {-huge, 0}},
    log2 = {{8, 3}, {2.0 ^ -1074, -1074}, {0, -huge}, {-1, nan}, {huge, huge}},
    log10 = {{1000, 3}, {1e22, 22}, {0, -huge}},
    lgamma = {{1, 0}, {2, 0}, {0, huge}, {-3, huge}, {huge, huge}, {-huge, huge}, {nan, nan}},
    digamma = {{0, -huge}, {-0.0, huge}, {-2, nan}, {huge, huge}},
    erfc = {{huge, 0}, {-huge, 2}, {0, 1}},
    erfinv = {{1, huge}, {-1, -huge}, {1.5, nan}, {-0.0, -0.0}},
    logit = {{0, -huge}, {1, huge}, {0.5, 0}, {2, nan}},
    sinc = {{0, 1}, {1, 0}, {huge, nan}, {2.0 ^ 60, 0}},
    softplus = {{-huge, 0}, {huge, huge}, {nan, nan}},
    logsigmoid = {{huge, 0}, {-huge, -huge}, {nan, nan}},
    gelu_tanh = {{-huge, -0.0}, {huge, huge}, {nan, nan}},
  }
  for name, list in pairs(edges) do
    it(name, function()
      for _, pair in ipairs(list) do
        local x, want = pair[1] * 1.0, pair[2] * 1.0
        local got = luma[name](luma.full({}, x, {dtype = "float64"})):item()
        local same = got == want and (got ~= 0 or 1 / got == 1 / want or want ~= want)
        if want ~= want then same = got ~= got end
        if not same and want == want and want ~= 0 and math.abs(want) ~= huge then
          same = math.abs(got - want) <= 1e-15 * math.abs(want)
        end
        if want == 0 and got == 0 and x ~= 0 then same = true end
        if not same then error(("%s(%g) gives %.17g, expected %.17g"):format(name, x, got, want), 0) end
      end
    end)
  end

  it("atan2 has all quarters", function()
    for _, y in ipairs {0.0, -0.0, 1.0, -1.0, huge, -huge, nan, 1e-310, 1e308} do
      for _, x in ipairs {0.0, -0.0, 1.0, -1.0, huge, -huge, nan, 1e-310, -1e308} do
        local got = luma.atan2(luma.full({}, y, {dtype = "float64"}), luma.full({}, x, {dtype = "float64"}))
                        :item()
        local want = math.atan(y, x)
        local same = want ~= want and got ~= got
                     or math.abs(got - want) <= 4.5e-16 * math.abs(want) and 1 / got * want >= 0
                     or got == want and 1 / got == 1 / want
        if not same then error(("atan2(%g, %g) gives %.17g, expected %.17g"):format(y, x, got, want), 0) end
      end
    end
  end)

  it("gcd and lcm of the least integers wrap", function()
    for _, dtype in ipairs {"int8", "int16", "int32", "int64"} do
      local least = oracle.dtypes[dtype].min
      local x = luma.full({}, least, {dtype = dtype})
      assert.equal(least, luma.gcd(x, luma.full({}, 0, {dtype = dtype})):item())
      assert.equal(least, luma.gcd(x, x):item())
      assert.equal(1, luma.gcd(x, luma.full({}, oracle.dtypes[dtype].max, {dtype = dtype})):item())
      assert.equal(0, luma.lcm(x, luma.full({}, 0, {dtype = dtype})):item())
      assert.equal(oracle.dtypes[dtype].bits, luma.full({}, -1, {dtype = dtype}):popcount():item())
    end
  end)
end)
