-- loss_spec.lua -- losses against their definitions in plain Lua: dtypes, shapes, views, weights,
-- reductions, labels and probabilities, numbers that are large.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"
local reference = require "loss_reference"

local T = luma.tensor
local seeded = require "seed".seeded
local floats = {"float16", "bfloat16", "float32", "float64"}
local reductions = {"mean", "sum", "none"}

local function flat(x) return x:to("float64"):reshape(-1):totable() end

local function draw(n, lo, hi)
  local list = {}
  for i = 1, n do list[i] = lo + (hi - lo) * math.random() end
  return list
end

-- A tensor of random numbers in this shape; every other time the same numbers are seen through a view.
local function random(shape, lo, hi, dtype)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  local x = luma.zeros(shape, {dtype = dtype})
  if n > 0 then x = T(draw(n, lo, hi), dtype):reshape(shape) end
  local last = #shape
  local how = math.random(1, 5)
  if last < 1 then return x end
  if how == 1 then return x:flip(last):contiguous():flip(last) end
  if how == 2 and last > 1 then return x:transpose(1, last):contiguous():transpose(1, last) end
  if how == 3 then return luma.cat({x, x}, last):narrow(last, shape[last] + 1, shape[last]) end
  if how == 4 and last < 8 then return luma.stack({x, x}, last + 1):select(last + 1, 2) end
  return x
end

-- got is a tensor of the dtype that holds the number or list of numbers.
local function near(expected, got, dtype, scale)
  assert.equal(dtype, got.dtype)
  local list, want = flat(got), type(expected) == "table" and expected or {expected}
  assert.equal(#want, #list)
  for i, v in ipairs(want) do
    local allowed = 4 * math.max(check.eps[dtype], dtype == "float64" and 1e-14 or 4e-7)
      * (math.abs(v) + (scale or 1))
    local g = list[i]
    if not (v ~= v and g ~= g or v == g or math.abs(v - g) <= allowed) then
      error(("place %d: about %.9g expected, got %.9g"):format(i, v, g), 0)
    end
  end
end

local ranges = {bce = {0, 1}, kl_div = {0, 1}}

local function random_options(name)
  local o = {reduction = reductions[math.random(3)]}
  if name == "huber" and math.random(2) == 1 then o.delta = math.random() + 0.1 end
  if name == "smooth_l1" and math.random(2) == 1 then o.beta = math.random() + 0.1 end
  if name == "kl_div" and math.random(2) == 1 then o.log_target = true end
  return o
end

local shapes = {{}, {1}, {7}, {3, 5}, {0}, {2, 0}, {2, 3, 4}, {13, 1, 2}, {1, 2, 1, 2, 1, 2, 1, 2}}

describe("a loss of differences or probabilities", function()
  for name in pairs(reference.each) do
    it(name, seeded(function()
      for _, dtype in ipairs(floats) do
        for _, shape in ipairs(shapes) do
          local o = random_options(name)
          local range = ranges[name] or {-3, 3}
          local x = random(shape, range[1], range[2], dtype)
          local t = random(shape, o.log_target and -4 or 0, o.log_target and 0 or 1, dtype)
          local weight = name:find("bce") and math.random(2) == 1 and random(shape, 0, 2, dtype)
          local pos = name == "bce_with_logits" and math.random(2) == 1 and random(shape, 0, 2, dtype)
          local list = reference.pairs(name, flat(x), flat(t), o, weight and flat(weight), pos and flat(pos))
          o.weight, o.pos_weight = weight or nil, pos or nil
          local y = luma[name](x, t, o)
          local expected = reference.reduce(list, o.reduction)
          near(expected, y, dtype, math.max(1, o.reduction == "sum" and #list or 1))
          if o.reduction == "none" then assert.same(shape, y.shape) else assert.same({}, y.shape) end
          o.out = luma.empty_like(y)
          assert.is_true(rawequal(o.out, x[name](x, t, o)))
          near(expected, o.out, dtype, math.max(1, o.reduction == "sum" and #list or 1))
        end
      end
    end))
  end

  it("broadcasts its target", function()
    local x = T{{1, 2}, {3, 5}}
    check.tensor({{0, 0}, {4, 9}}, "float32", x:mse_loss(T{1, 2}, {reduction = "none"}))
    check.tensor({{0, 1}, {2, 4}}, "float32", x:l1_loss(T(1), {reduction = "none"}))
    check.raises("bad argument #2 to 'mse_loss' (the target is [2 x 1], which does not broadcast to "
      .. "[2], the input)",
      luma.mse_loss, T{1, 2}, T{{1}, {2}})
    check.raises("does not broadcast to [1 x 2], the input", luma.huber, T{{1, 2}}, x)
    check.raises("option 'weight': the weight is [3]", luma.bce, x:sigmoid(), x:sigmoid(),
      {weight = luma.ones(3)})
    check.raises("option 'pos_weight': pos_weight is [3]", x.bce_with_logits, x, x,
      {pos_weight = luma.ones(3)})
  end)

  it("of integers is a default float, of two dtypes the wider one", function()
    local x = T({1, 4}, "int32")
    check.tensor(6.5, "float32", x:mse_loss(T({3, 1}, "uint8")))
    check.tensor(6.5, "float64", x:mse_loss(T({3, 1}, "float64")))
    check.tensor(6.5, "float32", x:to("float16"):mse_loss(T({3, 1}, "float32")))
    check.tensor(2.5, "float32", x:l1_loss(T({3, 1}, "int64")))
    check.tensor(0.5, "float32", T({true, false}, "bool"):l1_loss(T{1, 1}))
  end)

  it("runs wider than float16", function()
    check.tensor(448.0, "float8_e4m3", T({16, 32}, "float8_e4m3"):mse_loss(T({0, 0}, "float8_e4m3")))
    check.tensor(24.0, "float8_e4m3", T({16, 32}, "float8_e4m3"):l1_loss(T({0, 0}, "float8_e4m3")))
    -- squares that float16 does not hold
    check.tensor(40000.0, "float16", luma.full({64}, 200, {dtype = "float16"}):mse_loss(luma.zeros(64,
      {dtype = "float16"})))
    check.tensor(2048.0, "float16", luma.full({8192}, 0.25, {dtype = "float16"})
      :l1_loss(luma.zeros(8192, {dtype = "float16"}), {reduction = "sum"}))
  end)

  it("stands large and small numbers", function()
    local inf = math.huge
    local x = T{1e4, -1e4, 0, 100}
    check.tensor({0, 1e4, math.log(2), 100}, "float64",
      x:to("float64"):bce_with_logits(T({1, 1, 1, 0}, "float64"), {reduction = "none"}))
    local small = T{20, -30, 17}:bce_with_logits(T{1, 0, 1}, {reduction = "none"}):totable()
    for i, v in ipairs {20, 30, 17} do check.near(1, small[i] / math.exp(-v)) end
    check.near(1, T{2 ^ -40}:bce(T{0}):item() * 2 ^ 40)
    check.tensor({0, 100, 100, 0}, "float32", T{1, 0, 1, 0}:bce(T{1, 1, 0, 0}, {reduction = "none"}))
    check.tensor({0, 0}, "float32", T{-inf, 1}:kl_div(T{0, 0}, {reduction = "none"}))
    check.tensor({0, inf}, "float32", T{-inf, -inf}:kl_div(T{-inf, 0}, {reduction = "none",
      log_target = true}))
    assert.is_true(T{0 / 0}:huber(T{1}):isnan():item())
    check.tensor(inf, "float32", T{inf}:huber(T{1}))
    assert.is_true(luma.zeros(0):mse_loss(luma.zeros(0)):isnan():item())
    check.tensor(0.0, "float32", luma.zeros(0):mse_loss(luma.zeros(0), {reduction = "sum"}))
  end)

  it("has PyTorch's names too", function()
    local x, t = T{0.25, 0.5}, T{1, 0}
    assert.is_true(x:huber(t, {delta = 0.5}) == x:huber_loss(t, {delta = 0.5}))
    assert.is_true(x:smooth_l1(t, {beta = 0.5}) == x:smooth_l1_loss(t, {beta = 0.5}))
    assert.is_true(x:bce(t) == x:binary_cross_entropy(t))
    assert.is_true(x:bce_with_logits(t) == x:binary_cross_entropy_with_logits(t))
  end)

  it("of divergence by the batch", function()
    local x, t = T{{-1, -2}, {-3, -1}}, T{{0.5, 0.5}, {0.25, 0.75}}
    check.near(x:kl_div(t, {reduction = "sum"}):item() / 2, x:kl_div(t, {reduction = "batchmean"}):item())
    check.raises("'batchmean' is by the size of the first dim", luma.kl_div, T(1), T(1),
      {reduction = "batchmean"})
  end)

  it("refuses what makes no sense", function()
    local x = T{1, 2}
    check.raises("option 'delta': 0: a positive number expected", x.huber, x, x, {delta = 0})
    check.raises("nan: a positive number expected", x.huber, x, x, {delta = 0 / 0})
    check.raises("option 'beta': -1: a number of at least 0 expected", x.smooth_l1, x, x, {beta = -1})
    assert.is_true(x:smooth_l1(x + 1, {beta = 0}) == x:l1_loss(x + 1))
    check.raises("reduction", x.mse_loss, x, x, {reduction = "all"})
    local out = luma.zeros(3)
    check.raises("out is [3], the result is []", x.mse_loss, x, x, {out = out})
    check.tensor({0, 0, 0}, "float32", out)
  end)
end)

-- ---- classes ----

local function label_list(n, c, ignore)
  local list = {}
  for i = 1, n do list[i] = math.random(4) == 1 and ignore or math.random(c) end
  return list
end

-- x of the shape for (n, c, m): sometimes (c), (n, c), or with m in two dims.
local class_shapes = {{1, 5, 1, {5}, {}}, {4, 3, 1, {4, 3}, {4}}, {2, 7, 6, {2, 7, 6}, {2, 6}},
  {3, 2, 4, {3, 2, 2, 2}, {3, 2, 2}}, {5, 1, 1, {5, 1}, {5}}, {0, 3, 1, {0, 3}, {0}}, {2, 3, 0, {2, 3, 0},
    {2, 0}},
  {2, 11, 1, {2, 11, 1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1, 1}}}

local function class_options(c, dtype, labels, name)
  local o = {reduction = reductions[math.random(3)]}
  local weight = math.random(2) == 1 and random({c}, 0.5, 2, dtype) or nil
  if labels and math.random(2) == 1 then o.ignore_index = ({0, -100, 1})[math.random(3)] end
  if name == "cross_entropy" and math.random(2) == 1 then o.label_smoothing = math.random() end
  return o, weight
end

local function check_classes(name, dtype, s, labels, integer)
  local n, c, m, shape, places = table.unpack(s)
  local o, weight = class_options(c, dtype, labels, name)
  if integer and integer:find("uint") and o.ignore_index == -100 then o.ignore_index = 0 end
  local x = random(shape, -5, 5, dtype)
  local target, list
  if labels then
    list = label_list(n * m, c, o.ignore_index)
    target = n * m == 0 and luma.zeros(places, {dtype = integer}) or T(list, integer):reshape(places)
  else
    target = random(shape, 0, 1, dtype)
    list = flat(target)
  end
  o.weight = weight and flat(weight)
  local each, count = reference.classes(flat(x), n, c, m, list, o, not labels, name == "nll_loss")
  local expected = reference.reduce(each, o.reduction, count)
  o.weight = weight
  local y = luma[name](x, target, o)
  near(expected, y, dtype, o.reduction == "sum" and 10 * #each + 10 or 10)
  assert.same(o.reduction == "none" and places or {}, y.shape)
end

describe("a loss of classes", function()
  for _, name in ipairs {"cross_entropy", "nll_loss"} do
    it(name .. " of labels", seeded(function()
      for _, dtype in ipairs(floats) do
        for i, s in ipairs(class_shapes) do
          check_classes(name, dtype, s, true, check.integers[(i + math.random(6)) % 6 + 1])
          check_classes(name, dtype, s, true, "int64")
        end
      end
    end))
  end

  it("cross_entropy of probabilities", seeded(function()
    for _, dtype in ipairs(floats) do
      for _, s in ipairs(class_shapes) do check_classes("cross_entropy", dtype, s, false) end
    end
  end))

  it("stands large logits", function()
    local x = T{{1e4, 0, -1e4}, {-1e4, 1e4, 1e4 - 1}}
    check.near({0, 2e4 + math.log(1 + math.exp(-1))}, x:cross_entropy({1, 1}, {reduction = "none"}))
    check.near({2e4, math.log(1 + math.exp(-1))}, x:cross_entropy({3, 2}, {reduction = "none"}))
    local h = x:clamp(-6e4, 6e4):to("float16")
    check.near({1e4, 2e4}, h:cross_entropy({2, 1}, {reduction = "none"}):to("float32"), 1e-3)
    -- a mean of many numbers in float16 is not summed there
    local many = luma.zeros(30000, 2, {dtype = "float16"})
    check.near(math.log(2), many:cross_entropy(luma.ones(30000, {dtype = "int64"})):item(), 1e-3)
  end)

  it("of integers is a default float", function()
    check.near(math.log(2), T({1, 1}, "int32"):cross_entropy(T(1, "int64")))
    assert.equal("float64", T{1, 1}:cross_entropy(T({0.5, 0.5}, "float64")).dtype)
  end)

  it("counts labels from 1 and leaves out those to be ignored", function()
    local x = luma.zeros(2, 4)
    local bad = device.is_cpu and "bad argument #2 to '%s' (%s" or "%.0s%s"
    check.raises(bad:format("cross_entropy", "index 0 at position [2] is out of range for size 4 "
      .. "(positions count from 1: add 1 to labels made by NumPy)"), luma.cross_entropy, x, {1, 0})
    check.raises(bad:format("nll_loss", "index 5 at position [1] is out of range for size 4"),
      luma.nll_loss, x, T({5, 1}, "int32"))
    check.raises("index -1 at position [1]", luma.nll_loss, x, T({-1, 1}, "int64"))
    check.raises("index 0 at position [1]", luma.nll_loss, x, T({0, -100}, "int64"), {ignore_index = -100})
    check.near(math.log(4), x:cross_entropy({1, 0}, {ignore_index = 0}))
    assert.is_true(x:cross_entropy({0, 0}, {ignore_index = 0}):isnan():item())
    check.tensor(0.0, "float32", x:cross_entropy({0, 0}, {ignore_index = 0, reduction = "sum"}))
    -- what is ignored may be anything
    local y = T{{0 / 0, 1}, {0, 0}}
    check.near({0, math.log(2)}, y:cross_entropy({-1, 2}, {ignore_index = -1, reduction = "none"}))
  end)

  it("refuses what makes no sense", function()
    local x = luma.zeros(2, 4)
    check.raises("labels of [3] for an input of [2 x 4]: [2] expected", luma.cross_entropy, x, {1, 2, 3})
    check.raises("float32 [2] for an input of [2 x 4]: probabilities of the same shape, or labels of an int",
      x.cross_entropy, x, luma.zeros(2))
    check.raises("the target is bool: labels of an integer dtype or float probabilities", x.cross_entropy,
      x, T{true, false})
    check.raises("the target is float32: labels of an integer dtype expected", x.nll_loss, x,
      luma.zeros(2, 4))
    check.raises("option 'ignore_index': labels are ignored", x.cross_entropy, x, luma.zeros(2, 4),
      {ignore_index = 1})
    check.raises("option 'weight': the weight is [3]: one number for each of 4 classes", x.cross_entropy,
      x, {1, 2}, {weight = luma.ones(3)})
    check.raises("option 'label_smoothing': 2: 0 to 1 expected", x.cross_entropy, x, {1, 2},
      {label_smoothing = 2})
    check.raises("a dim of classes expected", luma.cross_entropy, T(1), T(1, "int64"))
    local out = luma.full({2}, 7)
    check.raises("out is [2], the result is []", x.cross_entropy, x, {1, 2}, {out = out})
    check.tensor({7, 7}, "float32", out)
  end)
end)

describe("labels", function()
  it("one_hot", function()
    for _, dtype in ipairs(check.integers) do
      check.tensor({{0, 1, 0}, {1, 0, 0}}, "int64", T({2, 1}, dtype):one_hot(3))
      check.tensor({{{0, 1}}, {{1, 0}}}, "int64", T({{2}, {1}}, dtype):one_hot())
    end
    check.tensor({0, 0, 1}, "int64", T(3, "int64"):one_hot())
    check.tensor({{0, 1}, {1, 0}}, "int64", luma.one_hot({1, 2, 1}, 2)[{{2, 3}}])
    check.tensor({{1, 0}, {0, 1}, {1, 0}}, "int64", T({{1, 5}, {2, 5}, {1, 5}}, "int8"):select(2,
      1):one_hot())
    check.tensor({{0, 1}, {1, 0}}, "int64", luma.range(1, 2):flip(1):one_hot())
    assert.same({0, 4}, luma.zeros(0, {dtype = "int64"}):one_hot(4).shape)
    check.raises("no labels tell how many classes there are", luma.one_hot, luma.zeros(0, {dtype = "int64"}))
    check.raises("add 1 to labels made by NumPy", luma.one_hot, {0, 1})
    check.raises("index 3 at position [2] is out of range for size 2", luma.one_hot, {1, 3}, 2)
    check.raises("0 classes: at least 1 expected", luma.one_hot, {1}, 0)
    check.raises("the index is float32", luma.one_hot, T{1})
    local out = luma.full({2, 2}, 7, {dtype = "int64"})
    check.raises("out of range", luma.one_hot, T({1, 3}, "int64"), 2, {out = out})
    if device.is_cpu then check.tensor({{7, 7}, {7, 7}}, "int64", out) end
    check.tensor({{1, 0}, {0, 1}}, "int64", luma.one_hot({1, 2}, 2, {out = out}))
    check.tensor({{1, 0}, {0, 1}}, "int64", out)
  end)

  it("embedding", function()
    for _, dtype in ipairs(check.dtypes) do
      local w = luma.range(0, 11):reshape(4, 3):to(dtype)
      for _, view in ipairs {w, w:t():contiguous():t(), w:flip(2):contiguous():flip(2)} do
        local y = luma.embedding({{2, 4}, {1, 2}}, view)
        assert.same({2, 2, 3}, y.shape)
        assert.is_true(y == luma.stack{luma.stack{w[2], w[4]}, luma.stack{w[1], w[2]}})
        assert.is_true(T(3, "uint8"):embedding(view) == w[3])
      end
    end
    local w = luma.randn(50, 7)
    local index = luma.randint(1, 50, 3, 4, 5)
    assert.is_true(index:embedding(w) == w[index])
    assert.is_true(index:permute(3, 1, 2):embedding(w) == w[index:permute(3, 1, 2):contiguous()])
    local out = luma.zeros(7, 3):t()
    assert.is_true(luma.embedding({5, 6, 5}, w, {out = out}) == w[{{5, 6}}][{{1, 1}}]:expand(1,
      7):index_select(1, {1})
      :tile(3, 1):slice_set(w[{{6, 6}}], 1, 2))
    assert.same({0, 7}, luma.zeros(0, {dtype = "int64"}):embedding(w).shape)
    assert.same({2, 0}, luma.embedding({1, 2}, luma.zeros(3, 0)).shape)
    check.raises("bad argument #1 to 'embedding' (index 51", luma.embedding, {51}, w)
    check.raises("add 1 to labels made by NumPy", luma.embedding, {0}, w)
    check.raises("the weight is [3]: 2 dims expected", luma.embedding, {1}, luma.ones(3))
    check.raises("the index is float32", luma.embedding, T{1}, w)
    check.raises("at most 8", luma.embedding, luma.ones(1, 1, 1, 1, 1, 1, 1, 1, {dtype = "int64"}), w)
  end)
end)
