-- bench_quant.lua -- products of quantised weights against those of float32, in turns in one run; a
-- figure is the best of several. What memory bounds is faster by the bytes that are saved: q8_0 3.8 times,
-- q4_0 7.1 times. usage: build/luma scripts/dev/bench_quant.lua [threads [device]]
local luma = require "luma"

luma.set_num_threads(tonumber(arg[1] or 1))
luma.set_default_device(arg[2] or "cpu")
local N = 4096
local ROUNDS = 25

local function synchronize()
  if luma.get_default_device() ~= "cpu" then luma.cuda.synchronize() end
end

-- Seconds of each task: the best of all rounds.
local function best_of(tasks)
  local best = {}
  for round = 0, ROUNDS do
    for name, task in pairs(tasks) do
      synchronize()
      local start = luma.clock()
      task()
      synchronize()
      local took = luma.clock() - start
      if round > 0 then best[name] = math.min(best[name] or took, took) end
    end
  end
  return best
end

local w = luma.randn(N, N)
local turned, q8_0, q4_0 = w:t(), w:quantize("q8_0"), w:quantize("q4_0")
print(("%d x %d, %s, %s threads"):format(N, N, luma.get_default_device(), arg[1] or 1))
print("                    float32       q8_0              q4_0")
for _, m in ipairs {1, 4, 16, 64, 256} do
  local x = luma.randn(m, N)
  local best = best_of {
    float32 = function() return x:matmul(turned) end,
    q8_0 = function() return luma.quantized_matmul(x, q8_0) end,
    q4_0 = function() return luma.quantized_matmul(x, q4_0) end,
  }
  local line = ("%4d rows of x   %8.3f ms"):format(m, best.float32 * 1e3)
  for _, format in ipairs {"q8_0", "q4_0"} do
    line = line .. ("  %8.3f ms %4.2f x"):format(best[format] * 1e3, best.float32 / best[format])
  end
  print(line)
end
local made = best_of {
  q8_0 = function() return w:quantize("q8_0") end,
  q4_0 = function() return w:quantize("q4_0") end,
  ["read q8_0"] = function() return q8_0:dequantize() end,
  ["read q4_0"] = function() return q4_0:dequantize() end,
}
print(("making it                     %8.3f ms         %8.3f ms"):format(made.q8_0 * 1e3, made.q4_0 * 1e3))
print(("reading it                    %8.3f ms         %8.3f ms"):format(
  made["read q8_0"] * 1e3, made["read q4_0"] * 1e3))
