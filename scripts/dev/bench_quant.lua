-- bench_quant.lua -- products of quantised weights against those of float32. What memory bounds is faster by
-- the bytes that are saved: q8_0 3.8 times, q4_0 7.1 times.
local luma = require "luma"
local task = ...
local N = 4096
local w = {"randn", N, N}

for _, format in ipairs {"q8_0", "q4_0"} do
  for _, m in ipairs {1, 4, 16, 64, 256} do
    task(("%s %d x %d, %d rows of x"):format(format, N, N, m), 0,
      {{"randn", m, N}, function() return luma.randn(N, N):quantize(format) end, w},
      function(x, q) return luma.quantized_matmul(x, q) end,
      {plain = function(x, _, float) return x:matmul(float:t()) end})
  end
  task("making " .. format, 0, {w}, function(float) return float:quantize(format) end)
  task("reading " .. format, 0, {function() return luma.randn(N, N):quantize(format) end},
    function(q) return q:dequantize() end)
end
