-- bench_pool.lua -- embedding rows, pooling, interpolation and losses against PyTorch.
local luma = require "luma"
local task = ...

for _, case in ipairs {{50000, 768, 4096}, {50000, 768, 32768}, {32000, 4096, 4096}, {10000, 64, 65536}} do
  local rows, n, count = table.unpack(case)
  task(("embedding %d rows of %d x %d"):format(count, rows, n), 1.5,
    {{"int", rows, count}, {"rand", rows, n}}, luma.embedding, {torch = "F.embedding(a, b)"})
end

local function pooled(name, shape, f, torch)
  task(name .. " " .. table.concat(shape, " x "), 0, {{"rand", table.unpack(shape)}}, f, {torch = torch})
end

local image, small = {16, 64, 112, 112}, {16, 512, 14, 14}
pooled("max_pool 3/2/1", image, function(x) return x:max_pool2d(3, {stride = 2, padding = 1}) end,
  "F.max_pool2d(a, 3, 2, 1)")
pooled("max_pool 2", image, function(x) return x:max_pool2d(2) end, "F.max_pool2d(a, 2)")
pooled("max_pool 2, no positions", image, function(x) return x:max_pool2d(2, {return_indices = false}) end,
  "F.max_pool2d(a, 2)")
pooled("max_pool 2", small, function(x) return x:max_pool2d(2) end, "F.max_pool2d(a, 2)")
pooled("avg_pool 2", image, function(x) return x:avg_pool2d(2) end, "F.avg_pool2d(a, 2)")
pooled("avg_pool 3/1/1", image, function(x) return x:avg_pool2d(3, {stride = 1, padding = 1}) end,
  "F.avg_pool2d(a, 3, 1, 1)")
pooled("adaptive_avg_pool 1", small, function(x) return x:adaptive_avg_pool2d(1) end,
  "F.adaptive_avg_pool2d(a, 1)")
pooled("adaptive_avg_pool 6", small, function(x) return x:adaptive_avg_pool2d(6) end,
  "F.adaptive_avg_pool2d(a, 6)")
local half = {8, 64, 56, 56}
pooled("nearest 2 x", half, function(x) return x:interpolate{scale_factor = 2} end,
  "F.interpolate(a, scale_factor=2)")
pooled("bilinear 2 x", half, function(x) return x:interpolate{scale_factor = 2, mode = "bilinear"} end,
  "F.interpolate(a, scale_factor=2, mode='bilinear')")
pooled("pad reflect 1", half, function(x) return x:pad({1, 1, 1, 1}, {mode = "reflect"}) end,
  "F.pad(a, (1, 1, 1, 1), mode='reflect')")
pooled("pixel_shuffle 2", half, function(x) return x:pixel_shuffle(2) end, "F.pixel_shuffle(a, 2)")

task("cross_entropy 4096 x 1000", 0, {{"randn", 4096, 1000}, {"int", 1000, 4096}}, luma.cross_entropy,
  {torch = "F.cross_entropy(a, b)"})
for _, name in ipairs {"mse_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"} do
  task(name .. " 1M", 0, {{"randn", 1 << 20}, {"rand", 1 << 20}}, luma[name],
    {torch = ("F.%s(a, b)"):format(name)})
end
