-- conv_spec.lua -- convolutions against plain loops: every dtype, views, random sizes, strides, paddings,
-- dilations and groups, errors, out, threads.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local convolution = require "convolution"

local seed = require "seed".value
print("conv_spec: LUMA_SPEC_SEED=" .. seed)
math.randomseed(seed)
local random = math.random

local function pick(list) return list[random(#list)] end

-- Values whose sums of products are exact in float32, and that each dtype holds.
local function values(dtype, n)
  local list = {}
  for i = 1, n do
    if dtype:find "float" then
      list[i] = random(-8, 8) / 4
    elseif dtype:find "^u" then
      list[i] = random(0, 255)
    else
      list[i] = random(-128, 127)
    end
  end
  return list
end

-- The same elements in another layout.
local layouts = {
  plain = function(x) return x end,
  reversed = function(x)
    local dims, back = {}, {}
    for d = 1, x.ndim do
      dims[d] = x.ndim + 1 - d
      back[dims[d]] = d
    end
    return x:permute(dims):clone():permute(back)
  end,
  flipped = function(x)
    local dims = {}
    for d = 1, x.ndim do dims[d] = d end
    return x:flip(dims):clone():flip(dims)
  end,
  stepped = function(x)
    local shape = {}
    for d, s in ipairs(x.shape) do shape[d] = s end
    shape[#shape] = 3 * shape[#shape] + 1
    local y = luma.zeros(shape, {dtype = x.dtype})
    local view = y:slice(-1, 2, -1, 3)
    view:copy_(x)
    return view
  end,
}
local names = {"plain", "reversed", "flipped", "stepped"}

local function tensor(list, dtype, shape, layout)
  if #list == 0 then return luma.zeros(shape, {dtype = dtype}) end
  return layouts[layout or "plain"](luma.tensor(list, dtype):reshape(shape))
end

-- The expected elements as dtype holds them: integers wrap.
local function expected(list, dtype, shape)
  if #list == 0 then return luma.zeros(shape, {dtype = dtype}) end
  if dtype:find "float" then return luma.tensor(list, "float64"):reshape(shape) end
  return luma.tensor(list, "int64"):to(dtype):reshape(shape)
end

-- Exact but for the small floats, which round once, or twice where bias is added afterwards.
local function compare(y, list, magnitude, dtype, shape, what)
  assert(y.dtype == dtype, what .. ": " .. y.dtype)
  assert(table.concat(y.shape, " ") == table.concat(shape, " "),
    ("%s: [%s] expected, got [%s]"):format(what, table.concat(shape, " "), table.concat(y.shape, " ")))
  local want = expected(list, dtype, shape)
  if check.eps[dtype] and check.eps[dtype] > check.eps.float32 then
    local worst = (y:to("float64") - want):abs() - want:abs() * check.eps[dtype]
    if dtype == "float8_e4m3" then worst = luma.where(want:abs():gt(400), 0, worst) - 2 ^ -9 end
    if #list > 0 then
      local slack = math.max(table.unpack(magnitude)) * check.eps[dtype] / 4
      assert(worst:amax():item() <= slack, what)
    end
    return
  end
  assert(y:equal(want:to(dtype)), ("%s: %s expected, got %s"):format(what, want, y))
end

local function tell(p)
  local text = {("seed %d: %d groups, %d to %d channels, batch %d"):format(
    seed, p.groups, p.channels, p.filters, p.batch)}
  for _, name in ipairs {"size", "kernel", "stride", "dilation", "before", "after", "more"} do
    text[#text + 1] = name .. " " .. table.concat(p[name], ",")
  end
  return table.concat(text, "; ")
end

-- A random case of n dims whose result has elements.
local function draw(n, transposed)
  while true do
    local p = {n = n, transposed = transposed, batch = random(0, 3), groups = pick {1, 1, 2, 3},
      size = {}, kernel = {}, stride = {}, dilation = {}, before = {}, after = {}, more = {}}
    p.channels = p.groups * pick {1, 1, 2, 3, 5}
    p.filters = p.groups * pick {1, 2, 3, 7}
    local most = n == 3 and 5 or n == 2 and 9 or 40
    for d = 1, n do
      p.size[d] = pick {1, 2, 3, most, random(1, most)}
      p.kernel[d] = random(1, n == 3 and 3 or 4)
      p.stride[d], p.dilation[d] = pick {1, 1, 2, 3}, pick {1, 1, 2, 3}
      p.before[d], p.after[d] = random(0, 3), random(0, 3)
      p.more[d] = transposed and random(0, math.max(p.stride[d], p.dilation[d]) - 1) or 0
    end
    local fits, total = true, p.batch * p.channels * p.filters * convolution.product(p.kernel)
    for _, s in ipairs(convolution.sizes(p)) do
      fits = fits and s > 0
      total = total * s
    end
    for d = 1, n do
      local reach = p.dilation[d] * (p.kernel[d] - 1)
      fits = fits and (transposed or p.size[d] + p.before[d] + p.after[d] > reach)
    end
    if fits and total < 40000 then return p end
  end
end

local function options(p)
  local padding = {}
  for d = 1, p.n do
    padding[2 * d - 1], padding[2 * d] = p.before[d], p.after[d]
  end
  local o = {stride = p.stride, padding = padding, dilation = p.dilation, groups = p.groups}
  if p.transposed then o.output_padding = p.more end
  return o
end

local function shapes(p)
  local x, w, y = {p.batch, p.channels}, {p.filters, p.channels // p.groups}, {p.batch, p.filters}
  if p.transposed then w = {p.channels, p.filters // p.groups} end
  local out = convolution.sizes(p)
  for d = 1, p.n do
    x[d + 2], w[d + 2], y[d + 2] = p.size[d], p.kernel[d], out[d]
  end
  return x, w, y
end

local function try(p, dtype)
  local xs, ws, ys = shapes(p)
  local float = dtype:find "float"
  local x = values(dtype, convolution.product(xs))
  local w = values(dtype, convolution.product(ws))
  local bias = random(2) == 1 and values(dtype, p.filters) or nil
  local y, magnitude = convolution.conv(p, x, w, bias, float and 0.0 or 0)
  local name = ("conv%s%dd"):format(p.transposed and "_transpose" or "", p.n)
  local lx, lw = pick(names), pick(names)
  local what = ("%s of %s, x %s, w %s; %s"):format(name, dtype, lx, lw, tell(p))
  local tx, tw = tensor(x, dtype, xs, lx), tensor(w, dtype, ws, lw)
  local tb = bias and tensor(bias, dtype, {p.filters}, pick {"plain", "flipped", "stepped"})
  local o = options(p)
  if p.batch == 1 and random(2) == 1 then -- without a batch
    tx = tx:select(1, 1)
    table.remove(ys, 1)
  end
  if random(3) == 1 then
    o.out = layouts[pick(names)](luma.ones(ys, {dtype = dtype}))
  end
  local args = {tx, tw, tb or o, tb and o}
  local r = luma[name](table.unpack(args, 1, tb and 4 or 3))
  if o.out then assert(rawequal(r, o.out), what) end
  compare(r, y, magnitude, dtype, ys, what)
end

describe("convolution", function()
  for n = 1, 3 do
    for _, transposed in ipairs {false, true} do
      it(("%d dims%s: random cases"):format(n, transposed and ", transposed" or ""), function()
        for _ = 1, 25 do try(draw(n, transposed), pick {"float32", "float64", "int32"}) end
        for _, dtype in ipairs(check.integers) do try(draw(n, transposed), dtype) end
        for _, dtype in ipairs(check.floats) do try(draw(n, transposed), dtype) end
      end)
    end
  end

  local plain = {n = 2, batch = 2, groups = 1, channels = 3, filters = 4, size = {6, 7}, kernel = {3, 2},
    stride = {1, 1}, dilation = {1, 1}, before = {0, 0}, after = {0, 0}, more = {0, 0}}
  local function case(changes)
    local p = {}
    for k, v in pairs(plain) do p[k] = v end
    for k, v in pairs(changes) do p[k] = v end
    return p
  end

  it("sizes around tiles and blocks", function()
    for _, c in ipairs {
      {channels = 130, filters = 17, size = {5, 9}, kernel = {3, 3}, batch = 1},
      {channels = 1, filters = 1, size = {3, 600}, kernel = {2, 3}, batch = 1},
      {channels = 5, filters = 29, size = {1, 1}, kernel = {1, 1}, batch = 7},
      {channels = 3, filters = 2, size = {31, 33}, kernel = {31, 30}, batch = 1},
      {channels = 4, filters = 3, size = {40, 37}, kernel = {7, 5}, stride = {2, 3}, before = {3, 2}},
      {channels = 6, filters = 6, groups = 6, size = {19, 23}, kernel = {3, 3},
        before = {1, 1}, after = {1, 1}},
      {channels = 4, filters = 24, groups = 2, size = {9, 11}, kernel = {3, 3}, batch = 3},
      {channels = 6, filters = 12, groups = 6, size = {9, 17}, kernel = {5, 4}, stride = {2, 1}},
      {channels = 2, filters = 3, size = {50, 50}, kernel = {3, 3}, dilation = {20, 24}, batch = 1},
    } do try(case(c), "float32") end
  end)

  it("depthwise, 3 by 3", function()
    for i = 1, 60 do
      local groups = random(1, 3)
      local p = case {batch = random(1, 2), groups = groups, channels = groups, kernel = {3, 3},
        filters = groups * random(1, 2), size = {random(1, 33), random(1, 70)},
        stride = pick {{1, 1}, {2, 2}, {2, 2}, {1, 2}},
        before = {random(0, 4), random(0, 4)}, after = {random(0, 4), random(0, 4)}}
      if p.size[1] + p.before[1] + p.after[1] > 2 and p.size[2] + p.before[2] + p.after[2] > 2 then
        try(p, i % 4 == 0 and pick(check.integers) or pick {"float32", "float32", "float64"})
      end
    end
    local x, w = luma.randn(1, 1, 3000, 60), luma.randn(1, 1, 3, 3) -- in pieces
    local halves, y = luma.conv2d(x, w, {padding = 1, stride = 2}), luma.conv2d(x, w, {padding = 1})
    assert.is_true(halves:equal(y:slice(3, 1, -1, 2):slice(4, 1, -1, 2)))
    for _, row in ipairs {1, 1093, 1120, 2185, 2999} do
      local some = luma.conv2d(x:narrow(3, row, 2), w, {padding = 1})
      if row == 1 then assert.is_true(y:narrow(3, 1, 1):equal(some:narrow(3, 1, 1))) end
      local three = luma.conv2d(x:narrow(3, math.max(row - 1, 1), 3), w, {padding = {0, 0, 1, 1}})
      assert.is_true(y:narrow(3, math.max(row, 2), 1):equal(three))
    end
  end)

  it("padding as a number, per dim, per side, as a word", function()
    local x, w = luma.randn(1, 2, 8, 9), luma.randn(3, 2, 3, 4)
    local function shape(o) return table.concat(luma.conv2d(x, w, o).shape, " ") end
    assert.equal("1 3 6 6", shape {})
    assert.equal("1 3 6 6", shape {padding = "valid"})
    assert.equal("1 3 8 9", shape {padding = "same"})
    assert.equal("1 3 8 9", shape {padding = "same", dilation = {2, 3}})
    assert.equal("1 3 10 10", shape {padding = 2})
    assert.equal("1 3 8 10", shape {padding = {1, 2}})
    assert.equal("1 3 9 10", shape {padding = {1, 2, 3, 1}})
    assert.equal("1 3 4 3", shape {padding = 1, stride = {2, 3}})
    -- what is left over of "same" goes to the end
    local same = luma.conv2d(x, w, {padding = "same"})
    assert.is_true(same:equal(luma.conv2d(x, w, {padding = {1, 1, 1, 2}})))
    local y = luma.conv1d(luma.tensor{{1, 2, 3}}, luma.tensor{{{1, 10}}}, {padding = {0, 1}})
    check.tensor({{21, 32, 3}}, "float32", y)
  end)

  it("1 by 1", function()
    for _ = 1, 30 do
      local groups = random(1, 2)
      try(case {batch = random(1, 3), groups = groups, channels = groups * random(1, 9), kernel = {1, 1},
        filters = groups * random(1, 9), size = {random(1, 9), random(1, 20)},
        stride = pick {{1, 1}, {1, 1}, {2, 1}}}, pick {"float32", "float16", "int8", "int64"})
    end
  end)

  it("memory stays near what there is", function()
    if luma.ones(1).device ~= "cpu" then return end
    local x, w = luma.randn(1, 16, 128, 128), luma.randn(16, 16, 3, 3)
    for _, op in ipairs {"conv2d", "conv_transpose2d"} do
      collectgarbage()
      luma.reset_peak()
      local before = luma.memory("cpu").allocated
      local y = luma[op](x, w, {padding = 1})
      local more = luma.memory("cpu").peak_allocated - before - y:numel() * 4
      assert(more < 1000000, ("%s took %d bytes beside its result"):format(op, more)) -- columns: 9 MB
    end
  end)

  it("dtypes promote", function()
    local x, w = luma.tensor({{1, 2, 3}}, "int32"), luma.tensor({{{1, 1}}}, "int8")
    check.tensor({{3, 5}}, "int32", luma.conv1d(x, w))
    check.tensor({{3, 5}}, "float32", luma.conv1d(x, w:to("float32")))
    check.tensor({{3.5, 5.5}}, "float32", luma.conv1d(x, w, luma.tensor{0.5}))
    check.tensor({{3, 5}}, "float64", luma.conv1d(x:to("float16"), w:to("float64")))
    check.tensor({{1, 3, 5, 3}}, "int32", luma.conv_transpose1d(x, w))
  end)

  it("sum and bias are rounded once", function()
    for dtype, between in pairs {float16 = 2049, bfloat16 = 257, float8_e4m3 = 17} do
      for _, filters in ipairs {1, 4, 40} do
        local x = luma.tensor({{between - 1, 1, 0, 0}}, dtype)
        local w, bias = luma.ones(filters, 1, 2, {dtype = dtype}), luma.ones(filters, {dtype = dtype})
        local y = luma.conv1d(x, w, bias)
        assert.equal(between + 1, y[1][1], dtype)
        assert.is_true(y:equal(y[1]:expand(filters, 3)), dtype)
        local turned = luma.conv_transpose1d(x, w:transpose(1, 2), bias)
        assert.equal(between + 1, turned[filters][2], dtype)
      end
    end
  end)

  it("no channels, no filters, an empty batch", function()
    local y = luma.conv2d(luma.zeros(2, 0, 4, 4), luma.zeros(3, 0, 2, 2), luma.tensor{1, 2, 3})
    assert.equal("2 3 3 3", table.concat(y.shape, " "))
    assert.equal(2 * 9 * 6, y:sum():item())
    assert.equal(0, luma.conv2d(luma.zeros(2, 3, 4, 4), luma.zeros(0, 3, 2, 2)):numel())
    assert.equal(0, luma.conv2d(luma.zeros(0, 3, 4, 4), luma.zeros(5, 3, 2, 2)):numel())
    local padded = luma.conv1d(luma.zeros(1, 0), luma.ones(1, 1, 2), luma.tensor{4}, {padding = 1})
    check.tensor({{4}}, "float32", padded)
  end)

  it("x expanded and overlapping", function()
    local row, w = luma.randn(9), luma.randn(2, 3, 3, 3)
    local x = row:expand(2, 3, 5, 9)
    assert.is_true(luma.conv2d(x, w):equal(luma.conv2d(x:clone(), w)))
    local over = luma.randn(40):unfold(1, 9, 3):unsqueeze(1) -- (1, 11, 9)
    local v = luma.randn(1, 1, 3, 3)
    assert.is_true(luma.conv2d(over, v):equal(luma.conv2d(over:clone(), v)))
    local wide = luma.randn(2, 1, 1, 1):expand(2, 3, 3, 3)
    assert.is_true(luma.conv2d(x, wide):equal(luma.conv2d(x, wide:clone())))
  end)

  it("out that is x", function()
    local x, w = luma.randn(1, 2, 6, 6), luma.randn(2, 2, 3, 3)
    local want = luma.conv2d(x, w, {padding = 1})
    luma.conv2d(x, w, {padding = 1, out = x})
    assert.is_true(x:equal(want))
  end)

  it("NaN and infinity stay where they are", function()
    local x = luma.zeros(1, 1, 5, 5)
    x[{1, 1, 3, 3}] = 0 / 0
    local nan = luma.conv2d(x, luma.ones(1, 1, 3, 3)):isnan()
    assert.is_true(nan:all())
    local y = luma.conv2d(x, luma.ones(1, 1, 1, 1), {padding = 1})
    assert.equal(1, y:isnan():sum():item())
  end)

  it("padding is zeros, which an infinite weight makes NaN, however many filters", function()
    local weight = luma.tensor {{{math.huge, 1, 2}}}
    for _, c in ipairs {1, 3, 20} do
      local x, w = luma.ones(c, 4), weight:expand(c, c, 3)
      for _, dtype in ipairs {"float16", "float32", "float64"} do
        local nan = luma.conv1d(x:to(dtype), w:to(dtype), {padding = 2}):isnan()
        assert.is_true(nan[1] == luma.tensor {true, true, false, false, false, false})
        nan = luma.conv1d(x:to(dtype), weight:to(dtype):expand(c, 1, 3), {padding = 2, groups = c}):isnan()
        assert.is_true(nan[1] == luma.tensor {true, true, false, false, false, false})
        nan = luma.conv_transpose1d(x:to(dtype), w:to(dtype), {stride = 2}):isnan()
        assert.equal(c, nan:sum():item())
      end
    end
  end)

  it("the same bits with any number of threads", function()
    local x, w, b = luma.randn(3, 24, 30, 31), luma.randn(40, 24, 3, 3), luma.randn(40)
    local d, g = luma.randn(24, 1, 5, 5), luma.randn(48, 4, 3, 3)
    local threads, first = luma.config().threads, nil
    for _, n in ipairs {1, 2, 3} do
      luma.set_num_threads(n)
      local all = {luma.conv2d(x, w, b, {padding = 1}), luma.conv2d(x, d, {groups = 24}),
        luma.conv2d(x, g, {groups = 6, stride = 2}),
        luma.conv_transpose2d(x, w:transpose(1, 2), {stride = 2})}
      for i, y in ipairs(first or {}) do assert.is_true(y:equal(all[i])) end
      first = first or all
    end
    luma.set_num_threads(threads)
  end)

  it("im2col and col2im: random cases", function()
    for i = 1, 60 do
      local p = draw(i % 3 == 0 and 3 or 2)
      local dtype = pick(check.dtypes)
      local out, nk = convolution.sizes(p), convolution.product(p.kernel)
      local length, rows = convolution.product(out), p.channels * nk
      local o, xs, what = options(p), {(shapes(p))}, dtype .. " " .. tell(p)
      xs = xs[1]
      o.groups = nil
      local v = dtype == "bool" and "uint8" or dtype
      local zero = dtype:find "float" and 0.0 or 0
      local list = values(v, convolution.product(xs))
      local x = tensor(list, v, xs, pick(names)):to(dtype)
      local y = luma.im2col(x, p.kernel, o)
      local ys = {p.batch, rows, length}
      assert.equal(table.concat(ys, " "), table.concat(y.shape, " "), what)
      local want = tensor(convolution.im2col(p, list, zero), v, ys):to(dtype)
      assert(y:equal(want), what)
      if p.batch == 1 then assert(luma.im2col(x[1], p.kernel, o):equal(want[1]), what) end
      if dtype ~= "bool" then
        list = values(dtype, p.batch * rows * length)
        local columns = tensor(list, dtype, ys, pick(names))
        local back = luma.col2im(columns, p.size, p.kernel, o)
        local sums = convolution.col2im(p, list, zero)
        if dtype:find "float" then
          want = #sums == 0 and back or luma.tensor(sums, "float32"):to(dtype):reshape(xs)
        else
          want = expected(sums, dtype, xs)
        end
        assert(back:equal(want), what)
        o.out = layouts[pick(names)](luma.ones(xs, {dtype = dtype}))
        assert(luma.fold(columns, p.size, p.kernel, o):equal(want), what)
      end
    end
  end)

  it("im2col and col2im: errors", function()
    local x = luma.zeros(2, 3, 4)
    check.raises("#1 to 'im2col' ([4]: 3 dims (channels first) or 4 (a batch) expected)", luma.im2col,
      luma.zeros(4), 2)
    check.raises("#2 to 'im2col' (kernel_size is 0: at least 1 expected)", luma.im2col, x, {2, 0})
    check.raises("#2 to 'im2col' (the kernel covers 5 positions of dim 3", luma.im2col, x, {1, 5})
    check.raises("#1 to 'col2im' ([4 x 5]: 6 columns expected, one for each window)", luma.col2im,
      luma.zeros(4, 5), {3, 4}, 2)
    check.raises("#1 to 'col2im' ([5 x 6]: the rows are no multiple of the 4 positions of a window)",
      luma.col2im, luma.zeros(5, 6), {3, 4}, 2)
    check.raises("#3 to 'col2im' (the kernel covers 4 positions of dim 2, which has 3 with padding)",
      luma.col2im, luma.zeros(4, 6), {3, 4}, 4)
    check.raises("bool has no sums", luma.col2im, luma.zeros({4, 6}, {dtype = "bool"}), {3, 4}, 2)
    for _, n in ipairs {math.maxinteger, 1 << 40, 1 << 31} do
      assert.is_false(pcall(luma.im2col, x, n))
      assert.is_false(pcall(luma.im2col, x, 2, {padding = n}))
      assert.is_false(pcall(luma.im2col, x, 2, {dilation = n}))
      assert.is_false(pcall(luma.col2im, luma.zeros(4, 1), n, 2, {stride = n}))
      assert.is_false(pcall(luma.col2im, luma.zeros(4, 1), n, {n, n}))
    end
  end)

  describe("errors name", function()
    local x, w = luma.zeros(2, 4, 6, 6), luma.zeros(8, 2, 3, 3)
    local function fails(text, o, bias, a, b)
      o = o or {}
      o.groups = o.groups or 2
      local args = {a or x, b or w, bias or o, bias and o}
      check.raises(text, luma.conv2d, table.unpack(args, 1, bias and 4 or 3))
    end
    it("x, w and bias", function()
      fails("bad argument #1 to 'conv2d' ([6 x 6]: 3 dims (channels first) or 4 (a batch) expected)", nil,
        nil, luma.zeros(6, 6))
      fails("bad argument #2 to 'conv2d' ([2 x 3 x 3]: 4 dims expected)", nil, nil, nil, luma.zeros(2, 3, 3))
      fails("#2 to 'conv2d' ([8 x 3 x 3 x 3]: size 2 of dim 2 expected, for 4 channels in 2 groups)", nil,
        nil, nil, luma.zeros(8, 3, 3, 3))
      fails("#1 to 'conv2d' (4 channels do not divide into 3 groups)", {groups = 3})
      fails("#2 to 'conv2d' ([7 x 2 x 3 x 3]: 7 filters do not divide into 2 groups)", nil, nil, nil,
        luma.zeros(7, 2, 3, 3))
      fails("#3 to 'conv2d' ([2]: [8] expected, a number for each filter)", nil, luma.zeros(2))
      fails("#1 to 'conv2d' (bool has no convolution", nil, nil, luma.zeros({2, 4, 6, 6}, {dtype = "bool"}))
      fails("#2 to 'conv2d' (size 0 of dim 3: the kernel is empty)", nil, nil, nil, luma.zeros(8, 2, 0, 3))
      fails("#2 to 'conv2d' (the kernel covers 9 positions of dim 3, which has 6 with padding)",
        {dilation = 4})
    end)
    it("options", function()
      fails("option 'stride': stride is 0: at least 1 expected", {stride = {1, 0}})
      fails("option 'stride': stride has 3 entries: 1 or 2 expected", {stride = {1, 1, 1}})
      fails("option 'dilation': dilation is -1", {dilation = -1})
      fails("option 'padding': padding is -1: at least 0 expected", {padding = -1})
      fails("option 'padding': padding has 3 entries: 1, 2 or 4", {padding = {1, 1, 1}})
      fails("option 'padding': padding \"same\" goes with stride 1, got 2", {padding = "same", stride = 2})
      fails("\"same\", \"valid\", an integer or a list expected", {padding = "full"})
      fails("option 'groups': groups is -2", {groups = -2})
      check.raises("option 'output_padding': output_padding is 2: less than stride or dilation",
        luma.conv_transpose1d, luma.zeros(1, 3), luma.zeros(1, 1, 2), {output_padding = 2, stride = 2})
      check.raises("option 'padding': nothing is left of dim 2 of the result",
        luma.conv_transpose1d, luma.zeros(1, 3), luma.zeros(1, 1, 2), {padding = 2})
    end)
    it("sizes that nothing holds", function()
      local most = math.maxinteger
      for _, o in ipairs {{padding = most}, {padding = most // 2}, {padding = {0, most, 0, 0}},
        {dilation = most}, {dilation = most // 2}, {groups = most}, {padding = 1 << 40}} do
        assert.is_false(pcall(luma.conv2d, x, w, o))
        o.stride = o.padding or o.dilation
        assert.is_false(pcall(luma.conv_transpose2d, x, w, o))
      end
      check.raises("dim 3 of the result would be too big", luma.conv2d, luma.zeros(1, 1, 4, 4),
        luma.zeros(1, 1, 2, 2), {dilation = most})
      local far = luma.conv2d(x, w, {stride = most, groups = 2})
      assert.equal("2 8 1 1", table.concat(far.shape, " "))
    end)
  end)
end)
