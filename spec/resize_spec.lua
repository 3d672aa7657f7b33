-- resize_spec.lua -- borders, interpolation and shuffled pixels against their definitions in plain Lua:
-- dtypes, shapes, views, modes, what is refused.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local model = require "model"
local reference = require "resize_reference"

local T = luma.tensor
local seeded = require "seed".seeded
local random = math.random

-- Small whole numbers in this shape, seen through a view every other time; and the same as a model.
local function make(shape, dtype)
  local m = model.make(shape, function() return random(0, 15) end)
  local x = luma.zeros(shape, {dtype = dtype})
  if #m > 0 then
    local list = {}
    for i, v in ipairs(m) do
      if dtype == "bool" then m[i] = v % 2 end
      list[i] = dtype == "bool" and v % 2 == 1 or dtype ~= "bool" and v
    end
    x = T(list, dtype):reshape(shape)
  end
  local last, how = #shape, random(1, 5)
  if how == 1 then x = x:flip(last):contiguous():flip(last) end
  if how == 2 then x = x:transpose(1, last):contiguous():transpose(1, last) end
  if how == 3 then x = luma.cat({x, x}, last):narrow(last, shape[last] + 1, shape[last]) end
  if how == 4 and last < 8 then x = luma.stack({x, x}, last + 1):select(last + 1, 1) end
  return x, m
end

local function flat(x) return x:to("float64"):reshape(-1):totable() end

local function same(m, x, dtype, tolerance)
  assert.equal(dtype, x.dtype)
  assert.same(m.shape, x.shape)
  local list = flat(x)
  for i, v in ipairs(m) do
    if math.abs(v - list[i]) > (tolerance or 0) then
      error(("place %d: %s expected, got %s"):format(i, v, list[i]), 0)
    end
  end
end

local function random_shape(least, most)
  local shape, sizes = {}, {1, 2, 3, 5, 7}
  local n = random(least, most)
  for d = 1, n do shape[d] = n > 5 and random(1, 2) or sizes[random(#sizes)] end
  return shape
end

-- Widths for some trailing dims that the mode takes.
local function random_widths(shape, mode)
  local widths = {}
  for k = 1, random(0, math.min(#shape, 4)) do
    local size = shape[#shape + 1 - k]
    local most = mode == "reflect" and size - 1 or mode == "circular" and size or 4
    local before, after = random(0, most), random(0, most)
    local cut = random(4) == 1 and random(0, size - 1) or 0
    if cut > 0 then
      if mode == "circular" then after = math.min(after, size - cut) end
      before = -cut
    end
    widths[2 * k - 1], widths[2 * k] = before, after
  end
  return widths
end

describe("pad", function()
  for _, mode in ipairs {"constant", "reflect", "replicate", "circular"} do
    it(mode, seeded(function()
      for _, dtype in ipairs(check.dtypes) do
        for _ = 1, 6 do
          local x, m = make(random_shape(1, 8), dtype)
          local widths = random_widths(m.shape, mode)
          local value = mode == "constant" and 1 or nil
          local expected = reference.pad(m, widths, mode, value)
          same(expected, x:pad(widths, {mode = mode, value = value}), dtype)
          local out = luma.zeros(expected.shape, {dtype = dtype})
          assert.is_true(rawequal(out, x:pad(widths, {mode = mode, value = value, out = out})))
          same(expected, out, dtype)
        end
      end
    end))
  end

  it("reads and writes one memory", function()
    local x = luma.range(1, 9)
    x:narrow(1, 4, 3):pad({3, 3}, {mode = "circular", out = x})
    check.tensor({4, 5, 6, 4, 5, 6, 4, 5, 6}, "int64", x)
  end)

  it("of no elements", function()
    assert.same({0, 5}, luma.zeros(0, 2):pad({1, 2}, {mode = "replicate"}).shape)
    assert.same({2, 0}, luma.zeros(2, 0):pad({0, 0, 0, 0}, {mode = "circular"}).shape)
    check.tensor(3, "int64", T(3, "int64"):pad({}, {mode = "reflect"}))
    check.raises("no element to repeat", luma.pad, luma.zeros(2, 0), {1, 0}, {mode = "replicate"})
    check.raises("no element to repeat", luma.pad, luma.zeros(2, 3), {-3, 1}, {mode = "replicate"})
  end)

  it("refuses what makes no sense", function()
    local x = luma.ones(2, 3)
    check.raises("bad argument #2 to 'pad' (width 3 reflects more than dim 2 of [2 x 3] holds: at most 2)",
      luma.pad, x, {3, 0}, {mode = "reflect"})
    check.raises("width 4 goes round dim 2 of [2 x 3] more than once: at most 3", luma.pad, x, {0, 4},
      {mode = "circular"})
    check.raises("cut more than dim 1", luma.pad, x, {0, 0, -2, -1}, {mode = "circular"})
    check.raises("3 widths for [2 x 3]", luma.pad, x, {1, 1, 1}, {mode = "reflect"})
    check.raises("6 widths for [2 x 3]", luma.pad, x, {0, 0, 0, 0, 0, 0}, {mode = "replicate"})
    check.raises("option 'value': a value is for mode 'constant'", luma.pad, x, {1, 1}, {mode = "reflect",
      value = 1})
    check.raises("option 'value'", luma.pad, T({1}, "uint8"), {1, 1}, {value = 300})
    check.raises("mode", luma.pad, x, {1, 1}, {mode = "edge"})
    for _, mode in ipairs {"reflect", "replicate", "circular"} do
      for _, width in ipairs {math.maxinteger, math.mininteger} do
        assert.is_false(pcall(luma.pad, x, {width, width}, {mode = mode}))
        assert.is_false(pcall(luma.pad, x, {0, width}, {mode = mode}))
      end
    end
  end)
end)

describe("pixels", function()
  it("shuffled and back", seeded(function()
    for _, dtype in ipairs(check.dtypes) do
      for _ = 1, 4 do
        local shape, r = random_shape(3, 7), random(1, 3)
        local n = #shape
        shape[n - 2] = random(0, 2) * r * r
        local x, m = make(shape, dtype)
        local expected = reference.pixel_shuffle(m, r)
        same(expected, x:pixel_shuffle(r), dtype)
        shape[n - 2], shape[n - 1], shape[n] = random(1, 3), shape[n - 1] * r, shape[n] * r
        x, m = make(shape, dtype)
        expected = reference.pixel_unshuffle(m, r)
        same(expected, x:pixel_unshuffle(r), dtype)
        local out = luma.zeros(expected.shape, {dtype = dtype}):transpose(1, n):contiguous():transpose(1, n)
        x:pixel_unshuffle(r, {out = out})
        same(expected, out, dtype)
        assert.is_true(out:pixel_shuffle(r) == x)
      end
    end
    assert.same({2, 0, 4, 6}, luma.zeros(2, 0, 2, 3):pixel_shuffle(2).shape)
    assert.same({4, 0, 1}, luma.zeros(1, 0, 2):pixel_unshuffle(2).shape)
  end))

  it("refuse what makes no sense", function()
    check.raises("3 channels: a multiple of 2 times 2 expected", luma.pixel_shuffle, luma.ones(3, 2, 2), 2)
    check.raises("height and width are no multiples of 2", luma.pixel_unshuffle, luma.ones(3, 2, 3), 2)
    check.raises("at least 3 dims", luma.pixel_shuffle, luma.ones(3, 2), 1)
    for _, f in ipairs {"pixel_shuffle", "pixel_unshuffle"} do
      check.raises("at least 1 expected", luma[f], luma.ones(4, 2, 2), 0)
      for _, r in ipairs {math.maxinteger, math.mininteger, 1 << 32, 1 << 31} do
        assert.is_false(pcall(luma[f], luma.ones(4, 2, 2), r))
      end
    end
  end)
end)

describe("interpolate", function()
  local modes = {"linear", "bilinear", "trilinear"}

  local function sizes_of(m, o)
    local sizes = {}
    for d = 3, #m.shape do
      sizes[d - 2] = o.scale and math.floor(m.shape[d] * o.scale) or random(1, 9)
    end
    return sizes
  end

  local function options(m, o)
    local sizes = sizes_of(m, o)
    local t = {align_corners = o.align, mode = o.linear and modes[#sizes] or nil}
    if o.scale then t.scale_factor = o.scale else t.size = sizes end
    return sizes, t
  end

  it("nearest", seeded(function()
    for _, dtype in ipairs(check.dtypes) do
      for _ = 1, 5 do
        local x, m = make(random_shape(3, 5), dtype)
        local o = {scale = random(2) == 1 and ({1, 2, 3, 1.5, 2.25})[random(5)] or nil}
        local sizes, t = options(m, o)
        local expected = reference.interpolate(m, sizes, o)
        same(expected, x:interpolate(t), dtype)
        t.out = luma.zeros(expected.shape, {dtype = dtype})
        x:upsample(t)
        same(expected, t.out, dtype)
      end
    end
    -- 49 * (1 / 49) is below 1
    check.tensor(1, "int64", luma.range(0, 1):reshape(1, 1, 2):interpolate{scale_factor = 49}[{1, 1,
      50}] + T(0, "int64"))
  end))

  it("linear", seeded(function()
    for _, dtype in ipairs(check.dtypes) do
      for _ = 1, 5 do
        local x, m = make(random_shape(3, 5), dtype)
        local o = {linear = true, align = random(2) == 1}
        if random(2) == 1 then o.scale = ({1, 2, 3, 1.5, 2.25, 0.7})[random(6)] end
        for d = 3, #m.shape do if o.scale == 0.7 and m.shape[d] == 1 then o.scale = nil end end
        local sizes, t = options(m, o)
        local result = dtype:find("float") and dtype or "float32"
        local expected = reference.interpolate(m, sizes, o)
        same(expected, x:interpolate(t), result, 16 * math.max(check.eps[result], 1e-6))
        if random(2) == 1 then t.mode = "linear" end
        t.out = luma.zeros(expected.shape, {dtype = result})
        x:interpolate(t)
        same(expected, t.out, result, 16 * math.max(check.eps[result], 1e-6))
      end
    end
  end))

  it("many planes as each alone", function()
    for _, shape in ipairs {{3, 5, 60, 70}, {2, 5, 100, 110}, {5, 2, 9, 500}, {2, 3, 150, 200}} do
      local x = luma.rand(shape)
      local turned = x:transpose(1, 2):contiguous():transpose(1, 2):flip {1, 4}
      for _, size in ipairs {{2 * shape[3], 2 * shape[4]}, {20, 300}} do
        for _, v in ipairs {x, turned} do
          local y = v:interpolate {size = size, mode = "bilinear"}
          for i = 1, shape[1] do
            for k = 1, shape[2] do
              local alone = v:narrow(1, i, 1):narrow(2, k, 1):interpolate {size = size, mode = "bilinear"}
              assert.is_true(y:narrow(1, i, 1):narrow(2, k, 1):equal(alone))
            end
          end
        end
      end
    end
  end)

  it("in its own size is a copy", function()
    local x = luma.randn(2, 3, 4)
    local y = x:interpolate{size = 4, mode = "linear"}
    assert.is_true(x == y)
    y:fill_(0)
    assert.is_false(x == y)
  end)

  it("of no elements", function()
    assert.same({0, 3, 4}, luma.zeros(0, 3, 2):interpolate{size = 4}.shape)
    assert.same({2, 0, 4, 4}, luma.zeros(2, 0, 3, 5):interpolate{size = 4, mode = "bilinear"}.shape)
    check.raises("[2 x 3 x 0] has no elements along dim 3", luma.interpolate, luma.zeros(2, 3, 0), {size = 2})
  end)

  it("refuses what makes no sense", function()
    local x = luma.ones(1, 1, 2, 3)
    local function bad(text, t) check.raises(text, luma.interpolate, x, t) end
    bad("size or scale_factor expected", {mode = "nearest"})
    bad("option 'scale_factor': size or scale_factor expected, both given", {size = 2, scale_factor = 2})
    bad("option 'size': 3 sizes for 2 spatial dims", {size = {1, 2, 3}})
    bad("option 'size': size 0: at least 1 expected", {size = 0})
    bad("option 'mode': 'trilinear' is for 3 spatial dims, x has 2", {size = 2, mode = "trilinear"})
    bad("option 'align_corners': true is for linear modes", {size = 2, align_corners = true})
    bad("option 'scale_factor': 0.1 times size 2 is below 1", {scale_factor = 0.1})
    for _, scale in ipairs {0, -1, 0 / 0, math.huge} do
      bad("a positive number expected", {scale_factor = scale})
    end
    bad("too large", {scale_factor = 1e300})
    assert.is_false(pcall(luma.interpolate, x, {size = math.maxinteger}))
    assert.is_false(pcall(luma.interpolate, x, {size = math.maxinteger, mode = "bilinear"}))
    check.raises("3 to 5 dims expected", luma.interpolate, luma.ones(2, 3), {size = 2})
  end)
end)
