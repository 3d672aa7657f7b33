-- random_spec.lua -- the words of the generators against known ones, numbers made of them by
-- position, frequencies, states; draws that fail take nothing. Seeds are fixed: runs repeat.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"

local T = luma.tensor

-- {seed, offset, words...} of CURAND_RNG_PSEUDO_PHILOX4_32_10, from cuRAND's host generator
local KNOWN = {
  {0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
  {0, 1, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x844515e1},
  {1, 0, 0xe3e80670, 0xe50a0ebc, 0x95f222c0, 0xb615aa27},
  {42, 0, 0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7},
  {42, 5, 0x2051e913, 0x3b68b038, 0xb62c409c, 0x65fe70a6},
  {42, 262143, 0x6ff67ed4, 0xfcdb2127, 0x53ba6cfd, 0x838f5a6e},
  {42, 1048573, 0x819422ed, 0xe75da0ee, 0xf24af0c2, 0x539023bc},
  {0x123456789abcdef0, 1 << 34, 0x5eb697e9, 0x63c4d692, 0xd62c0010, 0x9bbb81c3},
  {-1, (1 << 40) + 3, 0xc3841f5a, 0xf8d858f4, 0x28645831, 0xc67b8b2c},
}
local KINDS = {
  rand = function(n) return luma.rand(n) end,
  rand64 = function(n) return luma.rand({n}, {dtype = "float64"}) end,
  rand16 = function(n) return luma.rand({n}, {dtype = "float16"}) end,
  randn = function(n) return luma.randn(n) end,
  randn64 = function(n) return luma.randn({n}, {dtype = "float64"}) end,
  randint = function(n) return luma.randint(-7, 1 << 62, n) end,
  randint8 = function(n) return luma.randint(0, 200, n, {dtype = "uint8"}) end,
  randint_float = function(n) return luma.randint(0, 200, n, {dtype = "float64"}) end,
}

-- The sum of (seen - expected)^2 / expected.
local function chi_squared(seen, expected)
  local sum = 0
  for i = 1, #expected do sum = sum + ((seen[i] or 0) - expected[i]) ^ 2 / expected[i] end
  return sum
end

describe("random words", function()
  it("are those of cuRAND, and the top bits make the number", function()
    for _, known in ipairs(KNOWN) do
      local state = {seed = known[1], offset = known[2]}
      for dtype, bits in pairs {float32 = 24, float16 = 11, bfloat16 = 8, float8_e4m3 = 4} do
        luma.set_rng_state(state)
        local x = luma.rand({4}, {dtype = dtype}):to("float64"):totable()
        for i = 1, 4 do assert.equal((known[i + 2] >> (32 - bits)) / 2.0 ^ bits, x[i]) end
      end
      luma.set_rng_state(state)
      local x = luma.rand({2}, {dtype = "float64"}):totable()
      for i = 1, 2 do
        local word = known[2 * i + 2] << 32 | known[2 * i + 1]
        assert.equal((word >> 11) / 2.0 ^ 53, x[i])
      end
    end
  end)

  it("belong to positions: one draw is what several in a row are, at any length", function()
    for name, f in pairs(KINDS) do
      for _, n in ipairs {1, 2, 3, 4, 5, 7, 9, 255, 256, 257, 1023, 1025, 9001} do
        luma.manual_seed(31)
        local first, second, third = f(1), f(n), f(2)
        luma.manual_seed(31)
        local whole = f(n + 3)
        assert.is_true(luma.cat {first, second, third}:equal(whole), name .. " " .. n)
      end
    end
  end)

  it("repeat from a seed and from a state, whatever number of threads", function()
    local threads = luma.config().threads
    for name, f in pairs(KINDS) do
      luma.manual_seed(5)
      f(3)
      local state = luma.get_rng_state()
      local one = f(50001)
      luma.set_num_threads(threads == 1 and 2 or 1)
      luma.set_rng_state(state)
      assert.is_true(f(50001):equal(one), name)
      luma.set_num_threads(threads)
    end
  end)

  it("go on from where a draw ended, and stay where one failed", function()
    luma.manual_seed(9)
    local uses = {
      {3, function() luma.rand(3) end},
      {6, function() luma.rand({3}, {dtype = "float64"}) end},
      {6, function() luma.randn(3) end},
      {12, function() luma.randn({3}, {dtype = "float64"}) end},
      {6, function() luma.randint(1, 6, 3) end},
      {10, function() luma.randperm(5) end},
      {4, function() T {0.5, 0.5}:bernoulli() end},
      {6, function() T {1, 1}:multinomial(3, {replacement = true}) end},
      {4, function() T {1, 1}:multinomial(1) end},
      {0, function() luma.rand(0) end},
      {0, function() check.raises("between", luma.bernoulli, T {2}) end},
      {0, function() check.raises("positive weights", luma.multinomial, T {1, 0}, 2) end},
    }
    for i, use in ipairs(uses) do
      local before = luma.get_rng_state().offset
      use[2]()
      assert.equal(use[1], luma.get_rng_state().offset - before, "use " .. i)
    end
  end)
end)

describe("random numbers", function()
  it("uniform ones are at least 0 and never 1", function()
    luma.manual_seed(2)
    local most = {float32 = 1 - 2 ^ -24, float64 = 1 - 2 ^ -53, float16 = 1 - 2 ^ -11,
                  bfloat16 = 1 - 2 ^ -8, float8_e4m3 = 1 - 2 ^ -4}
    for dtype, limit in pairs(most) do
      local x = luma.rand({300000}, {dtype = dtype}):to("float64")
      assert.is_true(x:min():item() >= 0 and x:max():item() <= limit, dtype)
      local step = dtype == "float8_e4m3" and 1 / 16 or dtype == "bfloat16" and 1 / 256 or 0
      check.near(0.5 - step / 2, x:mean():item(), 0.004)
      check.near(1 / 12, x:var():item(), 0.01)
    end
  end)

  it("normal ones have the moments and the tails of the bell", function()
    luma.manual_seed(3)
    for _, dtype in ipairs {"float32", "float64"} do
      local n = 400000
      local x = luma.randn({n}, {dtype = dtype})
      assert.is_true(x:isfinite():all())
      assert.is_true(math.abs(x:mean():item()) < 0.006)
      check.near(1, x:var():item(), 0.01)
      assert.is_true(math.abs((x * x * x):mean():item()) < 0.02)
      check.near(3, x:pow(4):mean():item(), 0.02)
      for z, share in pairs {[0] = 0.5, [1] = 0.158655, [2] = 0.0227501, [3] = 0.00134990} do
        check.near(share * n, x:gt(z):sum():item(), 0.15)
        check.near(share * n, x:lt(-z):sum():item(), 0.15)
      end
    end
  end)

  it("whole ones reach both ends and favour none", function()
    luma.manual_seed(4)
    local seen, expected = {}, {}
    local x = luma.randint(-3, 3, 70000):totable()
    for _, v in ipairs(x) do seen[v + 4] = (seen[v + 4] or 0) + 1 end
    for i = 1, 7 do expected[i] = 10000 end
    assert.is_true(chi_squared(seen, expected) < 28) -- 6 degrees of freedom: 1 in 10000
    -- a range of 3/4 of all words: without rejection the first third would come twice as often
    local low = luma.randint(math.mininteger, (1 << 62) - 1, 60000)
    check.near(20000, low:lt(math.mininteger + (1 << 62)):sum():item(), 0.03)
    check.near(20000, low:ge(0):sum():item(), 0.03)
    local all = luma.randint(math.mininteger, math.maxinteger, 40000)
    check.near(20000, all:lt(0):sum():item(), 0.03)
    check.near(20000, all:bitwise_and(1):sum():item(), 0.03)
    assert.is_true(luma.randint(5, 5, 100):eq(5):all())
  end)
end)

describe("draws", function()
  it("every order of randperm is as likely", function()
    luma.manual_seed(6)
    local seen, kinds, expected = {}, {}, {}
    for _ = 1, 12000 do
      local key = table.concat(luma.randperm(4):totable())
      if not kinds[key] then
        expected[#expected + 1] = 500
        kinds[key] = #expected
      end
      seen[kinds[key]] = (seen[kinds[key]] or 0) + 1
    end
    assert.equal(24, #expected)
    assert.is_true(chi_squared(seen, expected) < 58) -- 23 degrees of freedom: 1 in 10000
  end)

  it("randperm holds every position once, in any integer dtype", function()
    for _, n in ipairs {0, 1, 2, 100, 5000} do
      for _, dtype in ipairs {"int64", "int32", "int16"} do
        local p = luma.randperm(n, {dtype = dtype})
        assert.equal(dtype, p.dtype)
        assert.is_true((p:sort()):to("int64"):equal(luma.range(1, n)))
      end
    end
    check.raises("does not fit", luma.randperm, 300, {dtype = "uint8"})
    check.raises("integer dtype", luma.randperm, 3, {dtype = "float32"})
  end)

  it("bernoulli follows each chance, of any view and float dtype", function()
    luma.manual_seed(7)
    for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
      local p = T({{0, 0.25}, {1, 0.5}}, dtype):t()
      local sum = luma.zeros(2, 2, {dtype = "float64"})
      for _ = 1, 500 do
        local x = p:bernoulli()
        assert.equal(dtype, x.dtype)
        sum:add_(x:to("float64"))
      end
      local s = sum:totable()
      assert.same({0, 500}, s[1])
      check.near(125, s[2][1], 0.3)
      check.near(250, s[2][2], 0.2)
    end
    assert.same({0}, luma.bernoulli(luma.zeros(0)).shape)
    check.raises("between 0 and 1, got nan", luma.bernoulli, T {0.5, 0 / 0})
    check.raises("between 0 and 1, got -", luma.bernoulli, T {0.5, -1})
    check.raises("float dtype", luma.bernoulli, T({1}, "int64"))
  end)

  it("multinomial with replacement follows the weights of each row", function()
    luma.manual_seed(8)
    local w = T {{1, 0}, {2, 5}, {3, 0}, {4, 5}}:t()
    local x = w:multinomial(20000, {replacement = true})
    assert.same({2, 20000}, x.shape)
    for i = 1, 4 do check.near(2000 * i, x[1]:eq(i):sum():item(), 0.06) end
    for i = 1, 4 do
      local count = x[2]:eq(i):sum():item()
      if i % 2 == 1 then assert.equal(0, count) else check.near(10000, count, 0.04) end
    end
  end)

  it("multinomial without replacement takes each once, the heavy ones first", function()
    luma.manual_seed(10)
    local w = T({1, 2, 0, 3, 4}, "int32")
    local first = {}
    for _ = 1, 3000 do
      local x = w:multinomial(4):totable()
      first[x[1]] = (first[x[1]] or 0) + 1
      table.sort(x)
      assert.same({1, 2, 4, 5}, x)
    end
    assert.is_true(chi_squared({first[1], first[2], first[4], first[5]}, {300, 600, 900, 1200}) < 21)
    local x = luma.ones(3000):multinomial(3000)
    assert.is_true((x:sort()):equal(luma.range(1, 3000)))
  end)

  it("multinomial says what is wrong with weights and sizes", function()
    check.raises("finite and not negative, got inf", luma.multinomial, T {1, 1 / 0}, 1)
    check.raises("not negative, got nan", luma.multinomial, T {1, 0 / 0}, 1)
    check.raises("2 positive weights, where 3 are needed", luma.multinomial, T {1, 0, 1}, 3)
    check.raises("0 positive weights, where 1 are needed", luma.multinomial, T {{1, 1}, {0, 0}}, 5,
                 {replacement = true})
    check.raises("1 or 2 dims", luma.multinomial, luma.ones(1, 1, 1), 1)
    check.raises("#2 to 'multinomial'", luma.multinomial, T {1}, -1)
    assert.same({3, 0}, luma.multinomial(luma.zeros(3, 0), 0).shape)
    assert.same({0, 2}, luma.multinomial(luma.zeros(0, 4), 2).shape)
  end)
end)
