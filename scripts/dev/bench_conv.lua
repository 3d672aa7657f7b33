-- bench_conv.lua -- convolutions against PyTorch: bench_torch.lua; then those of 1 x 1 against the matrix
-- products that they are. usage: scripts/luma scripts/dev/bench_conv.lua [pattern]
local luma = require "luma"

local tasks = {}
-- x, w: shapes; options: of both, in Lua and in Python
local function task(name, goal, op, x, w, lua, py)
  local filters = op == "conv2d" and w[1] or w[2]
  tasks[#tasks + 1] = {
    name = name,
    goal = goal,
    setup = function()
      local a, k, b = luma.randn(x), luma.randn(w), luma.randn(filters)
      return function() local _ = luma[op](a, k, b, lua) end
    end,
    py = ("x = torch.randn(%s); w = torch.randn(%s); b = torch.randn(%d)"):format(
      table.concat(x, ", "), table.concat(w, ", "), filters),
    stmt = ("F.%s(x, w, b, %s)"):format(op, py)}
end

task("conv 64 of 64 x 56 x 56, 3 x 3", 0.8, "conv2d", {1, 64, 56, 56}, {64, 64, 3, 3}, {padding = 1},
  "padding=1")
task("the same, batch of 8", 0.8, "conv2d", {8, 64, 56, 56}, {64, 64, 3, 3}, {padding = 1},
  "padding=1")
task("depthwise 64 x 56 x 56, 3 x 3", 2, "conv2d", {1, 64, 56, 56}, {64, 1, 3, 3},
  {padding = 1, groups = 64}, "padding=1, groups=64")
task("depthwise 4 x 256 x 56 x 56, 3 x 3", 2, "conv2d", {4, 256, 56, 56}, {256, 1, 3, 3},
  {padding = 1, groups = 256}, "padding=1, groups=256")
task("depthwise 512 x 14 x 14, 3 x 3", 2, "conv2d", {1, 512, 14, 14}, {512, 1, 3, 3},
  {padding = 1, groups = 512}, "padding=1, groups=512")
task("depthwise 64 x 112 x 112, by 2", 0, "conv2d", {1, 64, 112, 112}, {64, 1, 3, 3},
  {padding = 1, groups = 64, stride = 2}, "padding=1, groups=64, stride=2")
task("conv 64 of 3 x 224 x 224, 7 x 7 by 2", 0, "conv2d", {1, 3, 224, 224}, {64, 3, 7, 7},
  {padding = 3, stride = 2}, "padding=3, stride=2")
task("conv 128 of 128 x 28 x 28, by 2", 0, "conv2d", {1, 128, 28, 28}, {128, 128, 3, 3},
  {padding = 1, stride = 2}, "padding=1, stride=2")
task("conv 512 of 512 x 7 x 7, 3 x 3", 0, "conv2d", {1, 512, 7, 7}, {512, 512, 3, 3}, {padding = 1},
  "padding=1")
task("transposed 64 x 28 x 28, 4 x 4 by 2", 0, "conv_transpose2d", {1, 64, 28, 28}, {64, 64, 4, 4},
  {padding = 1, stride = 2}, "padding=1, stride=2")

dofile "scripts/dev/bench_torch.lua"(tasks, arg[1] or "")

-- ---- 1 x 1 ----

local function best(f)
  local least = math.huge
  for _ = 1, 40 do
    local start = luma.clock()
    for _ = 1, 5 do f() end
    least = math.min(least, (luma.clock() - start) / 5)
  end
  return least * 1e6
end

luma.set_num_threads(1)
print "\none thread, the product over the convolution: at least 1 is wanted"
for _, case in ipairs {{256, 256, 28}, {64, 256, 56}, {512, 128, 14}} do
  local c, f, n = table.unpack(case)
  local x, w = luma.randn(1, c, n, n), luma.randn(f, c, 1, 1)
  local a, b = w:reshape(f, c), x:reshape(c, n * n)
  local product = best(function() local _ = a:matmul(b) end)
  local conv = best(function() local _ = luma.conv2d(x, w) end)
  print(("1 x 1, %d of %d x %d x %d: %.1f us and %.1f us, %.2f"):format(
    f, c, n, n, product, conv, product / conv))
end
