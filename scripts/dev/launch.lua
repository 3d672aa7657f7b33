-- launch.lua -- what the host's side of a CUDA operation costs, from Lua to cuLaunchKernel, which
-- returns at once: on the emulated device with LUMA_EMU_STUB=1, as scripts/dev/bench runs it.
local luma = require "luma"

local device = {device = "cuda:0"}
local a, b = luma.zeros({4}, device), luma.zeros({4}, device)
local m, w = luma.zeros({2, 2}, device), luma.zeros({2, 2}, {device = "cuda:0", dtype = "int32"})
local out = {out = luma.zeros({4}, device)}
local tasks = {
  {"c = a + b, 4 float32", function() local _ = a + b end},
  {"luma.add(a, b, out)", function() luma.add(a, b, out) end},
  {"c = a * 2", function() local _ = a * 2 end},
  {"c = m + m:t(), 2 x 2", function() local _ = m + m:t() end},
  {"a:sum()", function() local _ = a:sum() end},
  {"a:fill_(1)", function() a:fill_(1) end},
  {"a:to float64", function() local _ = a:to("float64") end},
  {"m:matmul(m), cuBLAS", function() local _ = m:matmul(m) end},
  {"w:matmul(w), int32", function() local _ = w:matmul(w) end},
}

local GOAL, ROUNDS, TIMES = 2e-6, 7, 20000
print(("%-32s %10s %10s %8s %6s"):format("host cost, kernels stubbed", "luma", "goal", "launches", "waits"))
for _, task in ipairs(tasks) do
  local name, f, best = task[1], task[2], math.huge
  if pcall(f) then
    for _ = 1, 1000 do f() end
    local before = luma.cuda.stats()
    for _ = 1, ROUNDS do
      local start = luma.clock()
      for _ = 1, TIMES do f() end
      best = math.min(best, (luma.clock() - start) / TIMES)
    end
    local after = luma.cuda.stats()
    print(("%-32s %7.0f ns %7.0f ns %8.3g %6d"):format(name, best * 1e9, GOAL * 1e9,
      (after.launches - before.launches) / (ROUNDS * TIMES),
      after.synchronisations - before.synchronisations))
  end
end
