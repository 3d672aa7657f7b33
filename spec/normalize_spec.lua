-- normalize_spec.lua -- layer_norm, rms_norm, group_norm, batch_norm, instance_norm against a plain
-- reference: every dtype and layout, rows of 0, 1 and many elements, random shapes, running
-- statistics, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local reference = require "reference"
local lines = require "lines"
local layouts = require "layouts"
local check = require "check"
local device = require "spec.support.device"

local seed = require "seed".value
local random = function(lo, hi) return math.random(lo, hi) end
-- relative to the size of the terms
local tolerance = {float8_e4m3 = 2 ^ -3.9, float16 = 2 ^ -10.5, bfloat16 = 2 ^ -7.5, float32 = 2 ^ -21,
                   float64 = 2 ^ -48}

local function numel(shape) return reference.numel(shape) end

local function draw(shape, dtype, mean, width)
  local list = {}
  for i = 1, numel(shape) do list[i] = (mean or 0) + (math.random() - 0.5) * (width or 4) end
  if #list == 0 then return luma.zeros(shape, {dtype = dtype}) end
  return luma.tensor(list, dtype:find "float" and "float64" or "float32"):reshape(shape):to(dtype)
end

local function flat(x) return x:reshape(-1):to("float64"):totable() end

-- The same elements in other layouts.
local views = {
  contiguous = function(x) return x end,
  transposed = layouts.turned,
  stepped = layouts.stepped,
  reversed = layouts.reversed,
  offset = function(x)
    local shape = table.move(x.shape, 1, x.ndim, 1, {})
    shape[1] = shape[1] + 3
    return luma.zeros(shape, {dtype = x.dtype}):narrow(1, 3, x.shape[1]):copy_(x)
  end,
}

-- y is v * w + b to the dtype's tolerance. w, b: lists, or nil. far: what float64, in which statistics are
-- computed too, loses of the mean.
local function compare(expected, w, b, y, dtype, what, far)
  local got = flat(y)
  local room = tolerance[dtype]
  assert.equal(#expected, #got)
  for i, v in ipairs(expected) do
    local ws, bs = w and w[i] or 1, b and b[i] or 0
    local e = v * ws + bs
    local lost = far and dtype == "float64" and far[i] or 0
    local allowed = room * ((math.abs(v) + 1 + lost) * math.abs(ws) + math.abs(bs))
    if dtype == "float8_e4m3" then allowed = allowed + 2 ^ -10 end
    if not (math.abs(got[i] - e) <= allowed or e ~= e and got[i] ~= got[i]) then
      error(("%s, seed %d: element %d is %.17g, not %.17g"):format(what, seed, i, got[i], e), 0)
    end
  end
end

local function repeated(list, n, at)
  local out = {}
  for i = 1, n do out[i] = list[at(i - 1) + 1] end
  return out
end

-- One call of layer_norm or rms_norm on x, whose last k dims are the line.
local function check_rows(x, k, w, b, eps, rms, what)
  local shape, line, dims = x.shape, {}, {}
  for d = #shape - k + 1, #shape do
    line[#line + 1] = shape[d]
    dims[d] = true
  end
  local n, real = numel(line), x.dtype:find "float" and x.dtype or luma.get_default_dtype()
  local y
  if rms then
    y = luma.rms_norm(x, line, w, {eps = eps})
  else
    y = luma.layer_norm(x, line, w, b, {eps = eps})
  end
  assert.equal(real, y.dtype)
  assert.same(shape, y.shape)
  local along = function(i) return i % n end
  local expected, far = lines.normalize(flat(x), reference.groups(shape, dims), eps, rms)
  compare(expected, w and repeated(flat(w), #expected, along), b and repeated(flat(b), #expected, along), y,
    real, what, far)
end

local function check_channels(x, groups, w, b, eps, y, what)
  local n, c, rest = x.shape[1], x.shape[2], 1
  for d = 3, x.ndim do rest = rest * x.shape[d] end
  local sets = reference.groups({n, groups, c // groups, rest}, {[3] = true, [4] = true})
  local at = function(i) return i // rest % c end
  local expected, far = lines.normalize(flat(x), sets, eps, false)
  compare(expected, w and repeated(flat(w), #expected, at), b and repeated(flat(b), #expected, at), y,
    x.dtype, what, far)
end

describe("layer_norm and rms_norm", function()
  setup(function() math.randomseed(seed) end)

  for _, dtype in ipairs(check.floats) do
    it("are right in every layout: " .. dtype, function()
      for _, shape in ipairs {{3, 5}, {2, 3, 7}, {4, 1}, {1, 33}, {70, 9}} do
        local x = draw(shape, dtype)
        local w, b = draw({shape[#shape]}, dtype, 1), draw({shape[#shape]}, "float32")
        for name, view in pairs(views) do
          check_rows(view(x), 1, w, b, 1e-5, false, "layer_norm " .. name)
          check_rows(view(x), 1, w, nil, 1e-5, true, "rms_norm " .. name)
        end
        check_rows(x, #shape, nil, nil, 0.5, false, "all dims")
        check_rows(x, #shape, nil, nil, 0.5, true, "all dims, rms")
      end
    end)
    it("take rows of every length: " .. dtype, function()
      for _, n in ipairs {1, 2, 15, 16, 17, 511, 513, 1024, 4095, 4096, 4097} do
        local x = draw({3, n}, dtype)
        check_rows(x, 1, draw({n}, "float32", 1), draw({n}, "float64"), 1e-5, false, "rows of " .. n)
        check_rows(views.transposed(x), 1, nil, draw({n}, dtype), 1e-5, false, "columns of " .. n)
        check_rows(x, 1, nil, nil, 1e-3, true, "rms rows of " .. n)
      end
    end)
  end

  it("are right for random shapes and layouts", function()
    local names = {"contiguous", "transposed", "stepped", "reversed", "offset"}
    for _ = 1, 30 do
      local shape, line = {}, {}
      for d = 1, random(1, 5) do shape[d] = random(1, 7) end
      local k = random(1, #shape)
      for d = #shape - k + 1, #shape do line[#line + 1] = shape[d] end
      local dtype = ({"float32", "float64", "float16"})[random(1, 3)]
      local x = views[names[random(1, #names)]](draw(shape, dtype, random(-3, 3)))
      local w = random(1, 2) == 1 and views[names[random(1, #names)]](draw(line, "float32", 1)) or nil
      local b = random(1, 2) == 1 and views[names[random(1, #names)]](draw(line, "float32")) or nil
      check_rows(x, k, w, b, 1e-5, false, "layer_norm")
      check_rows(x, k, w, nil, 1e-5, true, "rms_norm")
    end
  end)

  it("take views of 8 dims, expanded ones, and slices of rows", function()
    local x = draw({2, 1, 2, 1, 3, 1, 2, 5}, "float32")
    for k = 1, 8 do check_rows(x, k, nil, nil, 1e-5, false, "8 dims") end
    check_rows(x:permute(3, 2, 1, 4, 7, 6, 5, 8), 1, draw({5}, "float32"), nil, 1e-5, false,
      "8 dims, permuted")
    check_rows(draw({1, 6}, "float32"):expand(4, 6), 1, nil, draw({6}, "float32"), 1e-5, false, "expanded")
    check_rows(draw({4, 1}, "float32"):expand(4, 6), 1, nil, draw({6}, "float32"), 1e-5, false,
      "constant rows")
    check_rows(draw({5, 40}, "float32"):narrow(2, 7, 21), 1, draw({1}, "float32"):expand(21), nil, 1e-5,
      true, "slice")
  end)

  it("keep small differences of large values", function()
    local x = draw({4, 300}, "float32", 1e4, 2)
    check_rows(x, 1, nil, nil, 1e-5, false, "mean 1e4")
    check_rows(draw({2, 5000}, "float32", -3e6, 64), 1, nil, nil, 1e-5, false, "mean -3e6")
    check_rows(draw({3, 40}, "float32", 0, 1e30), 1, nil, nil, 1e-5, false, "1e30")
    check_rows(draw({3, 40}, "float32", 0, 1e30), 1, nil, nil, 1e-5, true, "rms 1e30")
    check_rows(draw({2, 4097}, "float64", 0, 1e150), 1, nil, nil, 0, false, "float64, 1e150")
  end)

  it("take few and very long rows", function()
    local x = draw({2, 140001}, "float32", 3)
    check_rows(x, 1, nil, nil, 1e-5, false, "long rows")
    check_rows(x:to("float16"), 1, nil, nil, 1e-5, true, "long rows of float16")
  end)

  it("give the same bits from one thread and two", function()
    local threads = luma.config().threads
    for _, shape in ipairs {{700, 90}, {1, 300000}} do
      local x = luma.rand(shape)
      luma.set_num_threads(1)
      local a = x:layer_norm(shape[2])
      luma.set_num_threads(2)
      assert.is_true(a == x:layer_norm(shape[2]))
    end
    luma.set_num_threads(threads)
  end)

  it("make floats of integers and bool", function()
    for _, dtype in ipairs {"int64", "uint8", "int32", "bool"} do
      local x = luma.randint(0, 9, 4, 6):to(dtype)
      check_rows(x, 1, nil, nil, 1e-5, false, dtype)
      check_rows(x, 1, luma.range(1, 6), nil, 1e-5, true, dtype)
    end
  end)

  it("take tensors without elements", function()
    assert.same({0, 3}, luma.zeros(0, 3):layer_norm(3).shape)
    assert.same({2, 0}, luma.zeros(2, 0):layer_norm(0, luma.zeros(0)).shape)
    assert.same({0}, luma.zeros(0):rms_norm(0).shape)
    assert.equal("float16", luma.zeros(0, 3, {dtype = "float16"}):rms_norm(3).dtype)
  end)

  it("propagate NaN and infinities within their rows", function()
    local x = luma.tensor {{1, 0 / 0, 2}, {1, 2, 3}, {1, math.huge, 2}}
    local y = x:layer_norm(3)
    assert.is_true(y[1]:isnan():all())
    assert.is_true(y[2]:isfinite():all())
    assert.is_true(y[3]:isnan():all())
  end)

  it("have PyTorch's defaults", function()
    check.near({{-1.2247356, 0, 1.2247356}}, luma.tensor {{1, 2, 3}}:layer_norm(3), 1e-5)
    local tiny = luma.tensor {{3e-4, 4e-4}}
    check.near({{0.60707, 0.80943}}, tiny:rms_norm(2), 1e-4) -- eps 2^-23
    local wide = tiny:to("float64"):rms_norm(2)
    check.near({{0.84852814, 1.1313708}}, wide, 1e-6)
  end)

  it("write into out, which may be an input", function()
    local x = luma.rand(3, 4)
    local y, out = x:layer_norm(4), luma.zeros(4, 3):t()
    assert.is_true(luma.layer_norm(x, 4, nil, nil, {out = out}) == y)
    assert.is_true(out == y)
    assert.is_true(rawequal(x, luma.layer_norm(x, 4, nil, nil, {out = x})))
    assert.is_true(x == y)
    local whole = luma.zeros(2, 2)
    luma.layer_norm(luma.tensor({{1, 3}, {5, 9}}, "int64"), 2, nil, nil, {out = whole})
    check.near({{-1, 1}, {-1, 1}}, whole, 1e-4)
  end)

  it("name what is wrong", function()
    local x = luma.zeros(2, 3)
    local raises = check.raises
    raises("bad argument #2 to 'layer_norm' ([4] are not the last dims of x, which is [2 x 3])",
      luma.layer_norm, x, 4)
    raises("[5 x 2 x 3] are not the last dims", luma.layer_norm, x, {5, 2, 3})
    raises("bad argument #2 to 'rms_norm' (the shape of a line has at least 1 dim)", luma.rms_norm, x, {})
    raises("bad argument #3 to 'layer_norm' ([2], where [3] is expected)", luma.layer_norm, x, 3,
      luma.zeros(2))
    raises("bad argument #4 to 'layer_norm' ([1 x 3], where [3] is expected)", luma.layer_norm, x, 3, nil,
      luma.zeros(1, 3))
    raises("eps is -1", luma.layer_norm, x, 3, nil, nil, {eps = -1})
    raises("0 or a positive number expected", function() return x:rms_norm(3, nil, {eps = 0 / 0}) end)
    raises("are not the last dims", luma.layer_norm, luma.tensor(5), 1)
    raises("are not the last dims", luma.layer_norm, x, math.maxinteger)
    raises("are not the last dims", luma.layer_norm, x, {-3})
    local out = luma.zeros(3, 2)
    raises("out is [3 x 2], the result is [2 x 3]", luma.layer_norm, x, 3, nil, nil, {out = out})
    raises("out is float64", luma.layer_norm, x, 3, nil, nil, {out = luma.zeros(2, 3, {dtype = "float64"})})
    if not device.is_cpu then
      raises("where x is on " .. device.name, luma.layer_norm, x, 3, luma.ones(3, {device = "cpu"}))
    end
  end)
end)

describe("group_norm and instance_norm", function()
  setup(function() math.randomseed(seed + 1) end)

  for _, dtype in ipairs(check.floats) do
    it("are right in every layout: " .. dtype, function()
      for _, case in ipairs {{{2, 6, 5}, 3}, {{3, 4}, 2}, {{2, 6, 3, 2}, 2}, {{1, 8, 4, 1, 3}, 8}, {{2, 5,
        9}, 1}} do
        local shape, groups = case[1], case[2]
        local x, w, b = draw(shape, dtype), draw({shape[2]}, "float32", 1), draw({shape[2]}, dtype)
        for name, view in pairs(views) do
          check_channels(x, groups, w, b, 1e-5, view(x):group_norm(groups, w, b), "group_norm " .. name)
        end
        check_channels(x, groups, nil, nil, 0.25, x:group_norm(groups, nil, nil, {eps = 0.25}), "group_norm")
        check_channels(x, groups, nil, b, 1e-5, x:group_norm(groups, nil, b), "group_norm, bias")
        if #shape > 2 then
          check_channels(x, shape[2], w, b, 1e-5, x:instance_norm(nil, nil, w, b), "instance_norm")
          check_channels(x, shape[2], w, nil, 1e-5, views.transposed(x):instance_norm(nil, nil, w),
            "instance_norm")
        end
      end
    end)
  end

  it("take long lines", function()
    local x = draw({1, 4, 70001}, "float32")
    local w, b = draw({4}, "float32"), draw({4}, "float32")
    check_channels(x, 2, w, b, 1e-5, x:group_norm(2, w, b), "long group")
  end)

  it("take tensors without elements", function()
    assert.same({0, 4, 3}, luma.zeros(0, 4, 3):group_norm(2).shape)
    assert.same({2, 4, 0}, luma.zeros(2, 4, 0):group_norm(2).shape)
    assert.same({0, 4, 3}, luma.zeros(0, 4, 3):instance_norm(luma.zeros(4), luma.ones(4)).shape)
  end)

  it("move running statistics by their mean over the batch", function()
    local x = draw({3, 2, 5}, "float32", 1)
    local mean, var = luma.zeros(2), luma.ones(2)
    x:instance_norm(mean, var, nil, nil, {momentum = 0.25})
    local each = x:mean(3):mean(1)
    check.near((each * 0.25):totable(), mean, 1e-6)
    check.near((x:var(3):mean(1) * 0.25 + 0.75):totable(), var, 1e-6)
    local y = x:instance_norm(mean, var, nil, nil, {use_input_stats = false})
    assert.is_true(y == x:batch_norm(mean, var))
  end)

  it("name what is wrong", function()
    local x = luma.zeros(2, 6, 3)
    local raises = check.raises
    raises("bad argument #2 to 'group_norm' (4 groups: the 6 channels of x do not divide into them)",
      luma.group_norm,
      x, 4)
    raises("0 groups", luma.group_norm, x, 0)
    raises("groups: the 6 channels", luma.group_norm, x, math.mininteger)
    raises("bad argument #1 to 'group_norm' ([3]: at least 2 dims", luma.group_norm, luma.zeros(3), 1)
    raises("bad argument #3 to 'group_norm' ([3], where [6] is expected)", luma.group_norm, x, 2,
      luma.zeros(3))
    raises("bad argument #1 to 'instance_norm' ([2 x 6] has 1 value for each statistic", luma.instance_norm,
      luma.zeros(2, 6))
  end)
end)

describe("batch_norm", function()
  setup(function() math.randomseed(seed + 2) end)

  -- x, statistics (lists per channel) and how they are applied
  local function expect(x, means, vars, eps)
    local rest, c, y = 1, x.shape[2], {}
    for d = 3, x.ndim do rest = rest * x.shape[d] end
    for i, v in ipairs(flat(x)) do
      local k = (i - 1) // rest % c + 1
      y[i] = (v - means[k]) / math.sqrt(vars[k] + eps)
    end
    return y, function(i) return i // rest % c end
  end

  for _, dtype in ipairs(check.floats) do
    it("normalises by running statistics and by the batch's: " .. dtype, function()
      for _, shape in ipairs {{4, 3}, {2, 3, 5}, {3, 2, 2, 3}, {5, 1, 1, 1, 2}} do
        local c, rest = shape[2], 1
        for d = 3, #shape do rest = rest * shape[d] end
        local x, w, b = draw(shape, dtype, 0.5), draw({c}, "float32", 1), draw({c}, dtype)
        local sets = reference.groups({shape[1], c, rest}, {[1] = true, [3] = true})
        for name, view in pairs(views) do
          local mean, var = draw({c}, "float32"), draw({c}, "float64", 1, 0.5)
          local y, at = expect(x, flat(mean), flat(var), 1e-5)
          local wide = #y
          local room = dtype == "float32" and "float32" or dtype
          compare(y, repeated(flat(w), wide, at), repeated(flat(b), wide, at), view(x):batch_norm(mean, var,
            w, b), room,
            "running " .. name)
          local means, vars = lines.moments(flat(x), sets, 0)
          local _, unbiased = lines.moments(flat(x), sets, 1)
          local old_mean, old_var = flat(mean), flat(var)
          y = expect(x, means, vars, 1e-3)
          compare(y, repeated(flat(w), wide, at), repeated(flat(b), wide, at),
            view(x):batch_norm(mean, var, w, b, {training = true, momentum = 0.3, eps = 1e-3}), room,
              "batch " .. name)
          for k = 1, c do
            check.near(old_mean[k] * 0.7 + means[k] * 0.3, mean[k], 1e-6)
            check.near(old_var[k] * 0.7 + unbiased[k] * 0.3, var[k], 1e-6)
          end
        end
        compare(expect(x, lines.moments(flat(x), sets, 0), select(2, lines.moments(flat(x), sets, 0)),
          1e-5), nil, nil,
          x:batch_norm(nil, nil, nil, nil, {training = true}), dtype, "no statistics")
      end
    end)
  end

  it("updates statistics in any view, momentum 0.1 unless given", function()
    local store = luma.zeros(3, 2)
    local mean, var = store:select(2, 1), store:select(2, 2)
    local x = luma.tensor {{1, 2, 3}, {3, 6, 9}}
    x:batch_norm(mean, var, nil, nil, {training = true})
    check.near({{0.2, 0.2}, {0.4, 0.8}, {0.6, 1.8}}, store, 1e-6)
    x:batch_norm(mean, var, nil, nil)
    check.near({{0.2, 0.2}, {0.4, 0.8}, {0.6, 1.8}}, store, 1e-6)
  end)

  it("takes integers and tensors without elements", function()
    local y = luma.tensor({{1, 2}, {3, 6}}, "int32"):batch_norm(luma.zeros(2), luma.ones(2))
    assert.equal("float32", y.dtype)
    check.near({{1, 2}, {3, 6}}, y, 1e-4)
    assert.same({0, 3, 2}, luma.zeros(0, 3, 2):batch_norm(luma.zeros(3), luma.ones(3)).shape)
    assert.same({4, 0}, luma.zeros(4, 0):batch_norm(luma.zeros(0), luma.ones(0), nil, nil,
      {training = true}).shape)
  end)

  it("leaves everything as it was after an error", function()
    local x, mean, var = luma.rand(4, 3), luma.zeros(3), luma.ones(3)
    local raises = check.raises
    local train = {training = true}
    raises("bad argument #2 to 'batch_norm' (running statistics expected, or {training = true})",
      luma.batch_norm, x)
    raises("bad argument #3 to 'batch_norm' (running_mean and running_var go together)", luma.batch_norm, x,
      mean)
    raises("bad argument #2 to 'batch_norm' (running_mean and running_var go together)", luma.batch_norm, x,
      nil, var)
    raises("bad argument #2 to 'batch_norm' ([4], where [3] is expected)", luma.batch_norm, x,
      luma.zeros(4), var)
    raises("bad argument #3 to 'batch_norm' (int64: statistics are floats)", luma.batch_norm, x, mean,
      luma.ones(3, {dtype = "int64"}))
    raises("bad argument #4 to 'batch_norm' ([2], where [3] is expected)", luma.batch_norm, x, mean, var,
      luma.ones(2), nil,
      train)
    raises("momentum is 2", luma.batch_norm, x, mean, var, nil, nil, {training = true, momentum = 2})
    raises("eps is inf", luma.batch_norm, x, mean, var, nil, nil, {training = true, eps = math.huge})
    raises("[1 x 3] has 1 value for each statistic: 2 or more expected", luma.batch_norm, luma.rand(1, 3),
      mean, var, nil,
      nil, train)
    raises("overlaps itself", luma.batch_norm, x, luma.zeros(1):expand(3), var, nil, nil, train)
    raises("out is [2 x 2]", luma.batch_norm, x, mean, var, nil, nil, {training = true, out = luma.zeros(2,
      2)})
    assert.same({0, 0, 0}, mean:totable())
    assert.same({1, 1, 1}, var:totable())
  end)
end)
