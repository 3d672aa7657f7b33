-- bench_pool.lua -- embedding rows, pooling, interpolation and losses against PyTorch: bench_torch.lua.
-- usage: scripts/luma scripts/dev/bench_pool.lua [pattern]
local luma = require "luma"

local tasks = {}
local function task(name, goal, setup, py, stmt)
  tasks[#tasks + 1] = {name = name, goal = goal, setup = setup, py = py, stmt = stmt}
end

for _, case in ipairs {{50000, 768, 4096}, {50000, 768, 32768}, {32000, 4096, 4096}, {10000, 64, 65536}} do
  local rows, n, count = table.unpack(case)
  task(("embedding %d of %d x %d"):format(count, rows, n), 1.5, function()
    local w, index = luma.rand(rows, n), luma.randint(1, rows, count)
    return function() local _ = index:embedding(w) end
  end, ("w = torch.rand(%d, %d); i = torch.randint(0, %d, (%d,))"):format(rows, n, rows, count),
    "F.embedding(i, w)")
end

local function pooled(name, shape, lua, py)
  task(name .. " " .. table.concat(shape, " x "), 0, function()
    local x = luma.rand(shape)
    return function() local _ = lua(x) end
  end, ("x = torch.rand(%s)"):format(table.concat(shape, ", ")), py)
end

local image, small = {16, 64, 112, 112}, {16, 512, 14, 14}
pooled("max_pool 3/2/1", image, function(x) return x:max_pool2d(3, {stride = 2, padding = 1}) end,
  "F.max_pool2d(x, 3, 2, 1)")
pooled("max_pool 2", image, function(x) return x:max_pool2d(2) end, "F.max_pool2d(x, 2)")
pooled("max_pool 2, no positions", image, function(x) return x:max_pool2d(2, {return_indices = false}) end,
  "F.max_pool2d(x, 2)")
pooled("max_pool 2", small, function(x) return x:max_pool2d(2) end, "F.max_pool2d(x, 2)")
pooled("avg_pool 2", image, function(x) return x:avg_pool2d(2) end, "F.avg_pool2d(x, 2)")
pooled("avg_pool 3/1/1", image, function(x) return x:avg_pool2d(3, {stride = 1, padding = 1}) end,
  "F.avg_pool2d(x, 3, 1, 1)")
pooled("adaptive_avg_pool 1", small, function(x) return x:adaptive_avg_pool2d(1) end,
  "F.adaptive_avg_pool2d(x, 1)")
pooled("adaptive_avg_pool 6", small, function(x) return x:adaptive_avg_pool2d(6) end,
  "F.adaptive_avg_pool2d(x, 6)")
local half = {8, 64, 56, 56}
pooled("nearest 2 x", half, function(x) return x:interpolate{scale_factor = 2} end,
  "F.interpolate(x, scale_factor=2)")
pooled("bilinear 2 x", half, function(x) return x:interpolate{scale_factor = 2, mode = "bilinear"} end,
  "F.interpolate(x, scale_factor=2, mode='bilinear')")
pooled("pad reflect 1", half, function(x) return x:pad({1, 1, 1, 1}, {mode = "reflect"}) end,
  "F.pad(x, (1, 1, 1, 1), mode='reflect')")
pooled("pixel_shuffle 2", half, function(x) return x:pixel_shuffle(2) end, "F.pixel_shuffle(x, 2)")

task("cross_entropy 4096 x 1000", 0, function()
  local x, t = luma.randn(4096, 1000), luma.randint(1, 1000, 4096)
  return function() local _ = x:cross_entropy(t) end
end, "x = torch.randn(4096, 1000); y = torch.randint(0, 1000, (4096,))", "F.cross_entropy(x, y)")
for _, name in ipairs {"mse_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"} do
  task(name .. " 1M", 0, function()
    local x, t = luma.randn(1 << 20), luma.rand(1 << 20)
    return function() local _ = x[name](x, t) end
  end, "x = torch.randn(1 << 20); y = torch.rand(1 << 20)", ("F.%s(x, y)"):format(name))
end

dofile "scripts/dev/bench_torch.lua"(tasks, arg[1] or "")
