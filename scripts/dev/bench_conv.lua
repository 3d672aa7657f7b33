-- bench_conv.lua -- convolutions against PyTorch; those of 1 x 1 against the products that they are.
local luma = require "luma"
local task = ...

-- x, w: shapes; options: of both, in Lua and in Python
local function conv(name, goal, op, x, w, lua, py)
  local filters = op == "conv2d" and w[1] or w[2]
  task(name, goal, {{"randn", table.unpack(x)}, {"randn", table.unpack(w)}, {"randn", filters}},
    function(a, k, b) return luma[op](a, k, b, lua) end, {torch = ("F.%s(a, b, c, %s)"):format(op, py)})
end

conv("conv2d 64 of 64 x 56 x 56, 3 x 3", 0.8, "conv2d", {1, 64, 56, 56}, {64, 64, 3, 3}, {padding = 1},
  "padding=1")
conv("the same, batch of 8", 0.8, "conv2d", {8, 64, 56, 56}, {64, 64, 3, 3}, {padding = 1}, "padding=1")
conv("depthwise 64 x 56 x 56, 3 x 3", 2, "conv2d", {1, 64, 56, 56}, {64, 1, 3, 3},
  {padding = 1, groups = 64}, "padding=1, groups=64")
conv("depthwise 4 x 256 x 56 x 56, 3 x 3", 2, "conv2d", {4, 256, 56, 56}, {256, 1, 3, 3},
  {padding = 1, groups = 256}, "padding=1, groups=256")
conv("depthwise 512 x 14 x 14, 3 x 3", 2, "conv2d", {1, 512, 14, 14}, {512, 1, 3, 3},
  {padding = 1, groups = 512}, "padding=1, groups=512")
conv("depthwise 64 x 112 x 112, by 2", 0, "conv2d", {1, 64, 112, 112}, {64, 1, 3, 3},
  {padding = 1, groups = 64, stride = 2}, "padding=1, groups=64, stride=2")
conv("conv2d 64 of 3 x 224 x 224, 7 x 7 by 2", 0, "conv2d", {1, 3, 224, 224}, {64, 3, 7, 7},
  {padding = 3, stride = 2}, "padding=3, stride=2")
conv("conv2d 128 of 128 x 28 x 28, by 2", 0, "conv2d", {1, 128, 28, 28}, {128, 128, 3, 3},
  {padding = 1, stride = 2}, "padding=1, stride=2")
conv("conv2d 512 of 512 x 7 x 7, 3 x 3", 0, "conv2d", {1, 512, 7, 7}, {512, 512, 3, 3}, {padding = 1},
  "padding=1")
conv("transposed 64 x 28 x 28, 4 x 4 by 2", 0, "conv_transpose2d", {1, 64, 28, 28}, {64, 64, 4, 4},
  {padding = 1, stride = 2}, "padding=1, stride=2")

for _, case in ipairs {{256, 256, 28}, {64, 256, 56}, {512, 128, 14}} do
  local c, f, n = table.unpack(case)
  task(("1 x 1, %d of %d x %d x %d"):format(f, c, n, n), 1, {{"randn", 1, c, n, n}, {"randn", f, c, 1, 1},
    function(x) return x:reshape(c, n * n) end, function(_, w) return w:reshape(f, c) end},
    function(x, w) return luma.conv2d(x, w) end,
    {plain = function(_, _, b, a) return a:matmul(b) end, threads = 1})
end
