-- pooling_spec.lua -- pooling against a plain reference: dtypes, windows of every kind, views, positions,
-- NaN and ties, what is refused.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local model = require "model"
local reference = require "pooling_reference"

local T = luma.tensor
local seeded = require "seed".seeded
local random = math.random
local nan, inf = 0 / 0, math.huge

-- Numbers with many ties in this shape, seen through a view every other time; and the same as a model.
local function make(shape, dtype)
  local special = dtype:find("float") and random(3) == 1
  local m = model.make(shape, function()
    if special and random(9) == 1 then return ({nan, inf, -inf, -0.0})[random(4)] end
    return random(dtype:find("u?int") and not dtype:find("uint") and -9 or 0, 9)
  end)
  local x = luma.zeros(shape, {dtype = dtype})
  if #m > 0 then
    local list = {}
    for i, v in ipairs(m) do
      if dtype == "bool" then m[i] = v % 2 end
      if dtype == "bool" then list[i] = v % 2 == 1 else list[i] = v end
    end
    x = T(list, dtype):reshape(shape)
    if special and dtype == "float8_e4m3" then -- which has no infinity
      for i, v in ipairs(m) do if v == v then m[i] = math.max(-448, math.min(448, v)) end end
    end
  end
  local last, how = #shape, random(1, 6)
  if how == 1 then x = x:flip(last):contiguous():flip(last) end
  if how == 2 then x = x:transpose(1, last):contiguous():transpose(1, last) end
  if how == 3 then x = luma.cat({x, x}, last):narrow(last, shape[last] + 1, shape[last]) end
  if how == 4 then x = luma.stack({x, x}, last + 1):select(last + 1, 1) end
  return x, m
end

local function same(m, x, dtype, tolerance)
  assert.equal(dtype, x.dtype)
  assert.same(m.shape, x.shape)
  local list = x:to(dtype == "int64" and dtype or "float64"):reshape(-1):totable()
  for i, v in ipairs(m) do
    local got = list[i]
    local near = v == got or v ~= v and got ~= got or math.abs(v - got) <= (tolerance or 0) * math.abs(v)
    if not near then error(("place %d: %s expected, got %s"):format(i, v, got), 0) end
  end
end

local function one_or_all(dims, f)
  if random(2) == 1 then return f() end
  local list = {}
  for d = 1, dims do list[d] = f() end
  return list
end

local function of(option, d) return type(option) == "table" and option[d] or option end

local function random_options(dims, is_max)
  local o = {kernel = one_or_all(dims, function() return random(1, 4) end)}
  if random(3) > 1 then o.stride = one_or_all(dims, function() return random(1, 4) end) end
  if random(2) == 1 then
    o.padding = {}
    for d = 1, dims do o.padding[d] = random(0, of(o.kernel, d) // 2) end
  end
  if is_max and random(3) == 1 then o.dilation = one_or_all(dims, function() return random(1, 3) end) end
  o.ceil_mode = random(2) == 1 or nil
  if not is_max then
    o.exclude = random(3) == 1 or nil
    o.divisor = random(4) == 1 and random(2, 9) or nil
  end
  return o
end

local function random_shape(dims)
  local shape, sizes = {}, {1, 2, 3, 5, 7, 8, 11}
  for d = 1, dims + random(1, 2) do shape[d] = random(1, 3) end
  for d = #shape - dims + 1, #shape do shape[d] = sizes[random(#sizes)] end
  if random(2) == 1 then shape[#shape] = random(8, dims == 1 and 90 or 30) end
  return shape
end

local function options_of(o)
  local t = {stride = o.stride, padding = o.padding, dilation = o.dilation, ceil_mode = o.ceil_mode,
    divisor_override = o.divisor}
  if o.exclude then t.count_include_pad = false end
  return t
end

local function check_max(name, x, m, dims, o, dtype, argument, t)
  local values, positions = reference.pool(m, dims, o, true)
  if not values then
    assert.is_false(pcall(luma[name], x, argument, t))
    return
  end
  local v, p = luma[name](x, argument, t)
  same(values, v, dtype)
  same(positions, p, "int64")
  -- what it writes into, in steps
  local wide = luma.zeros(2 * #values + 1, {dtype = dtype})
  local places = luma.zeros(2 * #values + 1, {dtype = "int64"})
  local function view(y) return y:slice(1, 2, 2 * #values, 2):view(values.shape) end
  t = t or {}
  t.out = {view(wide), view(places)}
  luma[name](x, argument, t)
  same(values, t.out[1], dtype)
  same(positions, t.out[2], "int64")
  t.out = nil
  t.return_indices = false
  local one, none = luma[name](x, argument, t)
  same(values, one, dtype)
  assert.is_nil(none)
end

local function check_avg(name, x, m, dims, o, dtype, argument, t)
  local values = reference.pool(m, dims, o, false)
  if not values then
    assert.is_false(pcall(luma[name], x, argument, t))
    return
  end
  local result = dtype:find("float") and dtype or "float32"
  if result == "float8_e4m3" then -- saturates
    for i, v in ipairs(values) do if v == v then values[i] = math.max(-448, math.min(448, v)) end end
  end
  local tolerance = math.max(check.eps[result], 1e-7)
  same(values, luma[name](x, argument, t), result, tolerance)
  local out = luma.zeros(2 * #values + 1, {dtype = result}):slice(1, 2, 2 * #values, 2):view(values.shape)
  t = t or {}
  t.out = out
  x[name](x, argument, t)
  same(values, out, result, tolerance)
end

for dims = 1, 3 do
  describe(dims .. "d", function()
    local rounds = dims == 3 and 5 or 9

    it("max_pool", seeded(function()
      for _, dtype in ipairs(check.dtypes) do
        for _ = 1, rounds do
          local x, m = make(random_shape(dims), dtype)
          local o = random_options(dims, true)
          check_max("max_pool" .. dims .. "d", x, m, dims, o, dtype, o.kernel, options_of(o))
        end
      end
    end))

    it("avg_pool", seeded(function()
      for _, dtype in ipairs(check.dtypes) do
        for _ = 1, rounds do
          local x, m = make(random_shape(dims), dtype)
          local o = random_options(dims, false)
          check_avg("avg_pool" .. dims .. "d", x, m, dims, o, dtype, o.kernel, options_of(o))
        end
      end
    end))

    it("adaptive pools", seeded(function()
      for _, dtype in ipairs(check.dtypes) do
        for _ = 1, rounds do
          local x, m = make(random_shape(dims), dtype)
          local o = {output = one_or_all(dims, function() return random(1, 9) end)}
          if random(3) == 1 then o.output = 1 end
          check_max(("adaptive_max_pool%dd"):format(dims), x, m, dims, o, dtype, o.output)
          check_avg(("adaptive_avg_pool%dd"):format(dims), x, m, dims, o, dtype, o.output)
        end
      end
    end))
  end)
end

describe("pooling", function()
  it("goes over long rows", seeded(function()
    for _, dtype in ipairs {"float32", "float16", "uint8", "float64", "int64"} do
      local x, m = make({1, 2, 2500}, dtype)
      for _, o in ipairs {{kernel = 3, padding = 1, stride = 1}, {kernel = 400, stride = 7}, {kernel = 3,
        stride = 2},
        {kernel = 1200, stride = 100}, {kernel = 2, stride = 900}} do
        check_max("max_pool1d", x, m, 1, o, dtype, o.kernel, options_of(o))
        check_avg("avg_pool1d", x, m, 1, o, dtype, o.kernel, options_of(o))
      end
      x, m = make({1, 40, 60}, dtype)
      local o = {kernel = {40, 5}, stride = 1}
      check_max("max_pool2d", x, m, 2, o, dtype, o.kernel, options_of(o))
      o = {kernel = {33, 40}, stride = {4, 1}, padding = {3, 20}}
      check_max("max_pool2d", x, m, 2, o, dtype, o.kernel, options_of(o))
    end
  end))

  it("takes the first of equals, and NaN before all", function()
    local x = T{{{1, 3, 3}, {3, nan, 2}, {nan, 0, 1}}}
    local v, p = x:max_pool2d(3)
    assert.is_true(v:isnan():item())
    check.tensor({{{5}}}, "int64", p)
    v, p = x:max_pool2d(2, {stride = 1})
    check.tensor({{{nan, nan}, {nan, nan}}}, "float32", v)
    check.tensor({{{5, 5}, {5, 5}}}, "int64", p)
    p = select(2, T{{1, 3, 3, 3, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf}}:max_pool1d(4, {stride = 1}))
    check.tensor({{2, 2, 3, 4, 5, 6, 7, 8, 9}}, "int64", p)
  end)

  it("has padding that never wins", function()
    local v, p = luma.full({1, 2, 2}, -7):max_pool2d(3, {padding = 1, stride = 1})
    check.tensor({{{-7, -7}, {-7, -7}}}, "float32", v)
    check.tensor({{{1, 1}, {1, 1}}}, "int64", p)
    v = T({{-128, -128}}, "int8"):max_pool1d(2, {padding = 1})
    check.tensor({{-128, -128}}, "int8", v)
  end)

  it("adds wider than float16", function()
    check.tensor({{1000}}, "float16", luma.full({1, 4096}, 1000, {dtype = "float16"}):avg_pool1d(4096))
    check.tensor({{1000, 1000}}, "float16", luma.full({1, 8192}, 1000,
      {dtype = "float16"}):adaptive_avg_pool1d(2))
    check.tensor({{1, 1}}, "float32", luma.ones(1, 1 << 17):avg_pool1d(1 << 16))
    check.tensor({{2 ^ 24 + 1}}, "float64", T({{2 ^ 24 + 2, 2 ^ 24}}, "float64"):avg_pool1d(2))
  end)

  it("of no elements", function()
    assert.same({0, 3, 2}, luma.zeros(0, 3, 4):max_pool1d(2).shape)
    assert.same({2, 0, 2, 3}, luma.zeros(2, 0, 4, 6):avg_pool2d(2).shape)
    assert.same({0, 2, 2, 2}, luma.zeros(0, 3, 4, 5):adaptive_avg_pool3d(2).shape)
    local v, p = luma.zeros(2, 0, 4):adaptive_max_pool1d(1)
    assert.same({2, 0, 1}, v.shape)
    assert.same({2, 0, 1}, p.shape)
    check.raises("[2 x 3 x 0] has no elements along dim 3", luma.max_pool1d, luma.zeros(2, 3, 0), 1)
  end)

  it("reads and writes one memory", function()
    local x = luma.range(1, 9):to("float32"):reshape(1, 9)
    x:avg_pool1d(3, {stride = 1, padding = 1, count_include_pad = false, out = x})
    check.tensor({{1.5, 2, 3, 4, 5, 6, 7, 8, 8.5}}, "float32", x)
  end)

  it("refuses what makes no sense", function()
    local x = luma.ones(2, 4, 6)
    local function bad(text, name, ...)
      local f, args = luma[name], table.pack(...)
      check.raises(text, function() f(x, table.unpack(args, 1, args.n)) end)
    end
    bad("a kernel of 0: 1 to 2147483647 expected", "max_pool2d", 0)
    bad("a kernel of 2147483648", "max_pool2d", 1 << 31)
    bad("3 numbers for 2 dims", "avg_pool2d", {1, 2, 3})
    bad("option 'stride': a stride of 0", "avg_pool2d", 2, {stride = 0})
    bad("option 'padding': a padding of 2 for a kernel of 3: at most half of it", "max_pool2d", 3,
      {padding = 2})
    bad("option 'padding': a padding of -1", "max_pool2d", 3, {padding = -1})
    bad("option 'dilation': a dilation of 0", "max_pool2d", 3, {dilation = 0})
    bad("option 'divisor_override': division by 0", "avg_pool2d", 2, {divisor_override = 0})
    bad("a kernel of 5, dilated by 1, does not fit into dim 2 of [2 x 4 x 6]", "max_pool2d", 5)
    bad("a kernel of 4, dilated by 2, does not fit into dim 3", "max_pool1d", 4, {dilation = 2})
    bad("[2 x 4 x 6]: 4 or 5 dims expected", "max_pool3d", 2)
    bad("a size of 0", "adaptive_avg_pool2d", 0)
    check.raises("window 1 along dim 2 holds nothing but padding", luma.max_pool1d, luma.ones(1, 2), 2,
      {padding = 1, dilation = 3, stride = 1})
    for _, n in ipairs {math.maxinteger, math.mininteger, (1 << 31) - 1} do
      for _, name in ipairs {"max_pool2d", "avg_pool2d"} do
        assert.is_false(pcall(luma[name], x, n))
        assert.is_false(pcall(luma[name], x, 2, {padding = n}))
        pcall(luma[name], x, 2, {stride = n, ceil_mode = true})
      end
      assert.is_false(pcall(luma.max_pool2d, x, 2, {dilation = n}))
      assert.is_false(pcall(luma.adaptive_max_pool2d, x, n))
    end
    local huge = (1 << 31) - 1 -- a kernel that is nearly all padding
    check.tensor({{3, 3, 3}}, "float32", T{{1, 2, 3}}:max_pool1d(huge, {padding = (1 << 30) - 1, stride = 1}))
    local out = {luma.zeros(1), luma.zeros(1, {dtype = "int64"})}
    bad("out is [1], the result is [2 x 2 x 3]", "max_pool2d", 2, {out = out})
    out = luma.zeros(2, 2, 3, {dtype = "int64"})
    bad("overlap", "max_pool2d", 2, {out = {out, out}})
  end)
end)
