-- bench_fuse.lua -- functions that run in one pass against the same operations of luma one by one and
-- of PyTorch (Debian's python3-torch), measured in turns in one run. A figure is the best of several
-- batches, the median of the rounds; the goal is for the ratio of PyTorch to luma. With one thread it
-- is the time of the processor, which other work on the machine disturbs less.
-- usage: build/luma scripts/dev/bench_fuse.lua [pattern] [threads] [rounds]
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local pattern, threads, rounds = arg[1] or "", tonumber(arg[2] or 1), tonumber(arg[3] or 3)

-- {expression, goal, the same of PyTorch}
local programs = {
  {"relu(a * b + 1)", 2, "torch.relu(a * b + 1)"},
  {"a * sigmoid(b)", 1, "a * torch.sigmoid(b)"},
  {"where(a > b, a - b, 0)", 1, "torch.where(a > b, a - b, torch.zeros(()))"},
  {"a - 0.01 * b / (sqrt(b * b) + 1e-8)", 2, "a - 0.01 * b / (torch.sqrt(b * b) + 1e-8)"},
}
local sizes = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26}

local clock = threads == 1 and os.clock or luma.clock
local function best_of(f)
  f()
  local start = clock()
  f()
  local n = math.max(1, math.floor(0.03 / (clock() - start)))
  local best = math.huge
  for _ = 1, 10 do
    start = clock()
    for _ = 1, n do f() end
    best = math.min(best, (clock() - start) / n)
  end
  return best
end

local PYTHON = [[
import time, torch
torch.set_num_threads(%d)
clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
torch.set_grad_enabled(False)
a, b = torch.randn(%d), torch.randn(%d)
def best(f):
  f(); s = clock(); f(); n = max(1, int(0.03 / (clock() - s))); b = 1e9
  for _ in range(10):
    s = clock()
    for _ in range(n): f()
    b = min(b, (clock() - s) / n)
  return b
print(best(lambda: %s))
]]

local function torch_time(n, expression)
  local script = os.tmpname()
  local file = assert(io.open(script, "w"))
  file:write(PYTHON:format(threads, n, n, expression))
  file:close()
  local pipe = assert(io.popen(python .. " " .. script .. " 2>/dev/null"))
  local seconds = tonumber(pipe:read("a"))
  pipe:close()
  os.remove(script)
  return seconds
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

luma.set_num_threads(threads)
local function say(seconds) return seconds and ("%.4f"):format(seconds * 1e3) or "-" end
print(("%-38s %9s %10s %10s %10s %7s %5s   %d thread%s, ms"):format("", "elements", "one pass", "eager",
  "PyTorch", "ratio", "goal", threads, threads > 1 and "s" or ""))
for _, program in ipairs(programs) do
  local kernel = luma.kernel({"a", "b"}, program[1])
  local eager = assert(load("local luma = ...; local relu, sigmoid, where, sqrt = luma.relu, luma.sigmoid, "
    .. "luma.where, luma.sqrt; return function(a, b) return "
    .. program[1]:gsub("a > b", "a:gt(b)") .. " end"))(luma)
  for _, n in ipairs(program[1]:find(pattern, 1, true) and sizes or {}) do
    local a, b = luma.randn(n), luma.randn(n)
    local fused, plain, torch, ratios = {}, {}, {}, {}
    for round = 1, rounds do
      fused[round] = best_of(function() local _ = kernel(a, b) end)
      plain[round] = best_of(function() local _ = eager(a, b) end)
      torch[round] = torch_time(n, program[3])
      ratios[round] = torch[round] and torch[round] / fused[round]
    end
    print(("%-38s %9d %10s %10s %10s %7.2f %5s"):format(program[1], n, say(median(fused)),
      say(median(plain)), say(median(torch)), median(ratios) or 0 / 0, program[2]))
  end
end
