-- bench_torch.lua -- for the bench_*.lua: tasks against PyTorch (Debian's python3-torch), each measured in
-- turns in one run, on one thread and on two. A figure is the best of several batches; the ratio is
-- PyTorch's time over luma's, the median of the rounds.
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local rounds = 5

local server = [[
import sys, time, torch
import torch.nn.functional as F
torch.set_grad_enabled(False)
for line in sys.stdin:
    exec(line.rstrip().replace('\\n', '\n'))
]]
local timing = [[
def f():
    %s
f()
n = 1
while True:
    t = time.perf_counter()
    for _ in range(n): f()
    t = time.perf_counter() - t
    if t > 0.02: break
    n *= 2
best = t / n
for _ in range(7):
    t = time.perf_counter()
    for _ in range(n): f()
    best = min(best, (time.perf_counter() - t) / n)
print(best, flush=True)]]

local pipe, answers

local function tell(code)
  pipe:write(code, "\n")
  pipe:flush()
end

local function measure_torch(t)
  tell((timing:format(t.stmt):gsub("\n", "\\n")))
  return assert(tonumber(answers:read "l"), "PyTorch did not run: is python3-torch installed?")
end

local function measure(f)
  f()
  local n, seconds = 1
  while true do
    local start = luma.clock()
    for _ = 1, n do f() end
    seconds = luma.clock() - start
    if seconds > 0.02 then break end
    n = n * 2
  end
  local best = seconds / n
  for _ = 1, 7 do
    local start = luma.clock()
    for _ = 1, n do f() end
    best = math.min(best, (luma.clock() - start) / n)
  end
  return best
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function human(seconds)
  if seconds < 1e-3 then return ("%.1f us"):format(seconds * 1e6) end
  return ("%.2f ms"):format(seconds * 1e3)
end

-- tasks: {name, goal, setup = function() return f end, py = setup code, stmt = code that is timed}; those
-- whose name holds the pattern run. goal: the ratio asked for, 0: none. f and stmt do the same work.
return function(tasks, pattern)
  local fifo, script = os.tmpname(), os.tmpname()
  os.remove(fifo)
  assert(os.execute("mkfifo " .. fifo))
  local file = assert(io.open(script, "w"))
  file:write(server)
  file:close()
  pipe = assert(io.popen(("%s %s > %s"):format(python, script, fifo), "w"))
  answers = assert(io.open(fifo, "r"))
  for threads = 1, 2 do
    luma.set_num_threads(threads)
    tell("torch.set_num_threads(" .. threads .. ")")
    print(("%-36s %10s %10s %7s %6s"):format(threads == 1 and "one thread" or "\ntwo threads", "luma",
      "PyTorch", "ratio",
      "goal"))
    for _, t in ipairs(tasks) do
      if t.name:find(pattern, 1, true) then
        local ratios, mine, theirs = {}, {}, {}
        local f = t.setup()
        tell(t.py)
        for i = 1, rounds do
          mine[i], theirs[i] = measure(f), measure_torch(t)
          ratios[i] = theirs[i] / mine[i]
        end
        print(("%-36s %10s %10s %7.2f %6s"):format(t.name, human(median(mine)), human(median(theirs)),
          median(ratios),
          t.goal > 0 and tostring(t.goal) or "-"))
        f = nil -- luacheck: ignore
        collectgarbage()
        luma.empty_cache()
      end
    end
  end
  pipe:close()
  answers:close()
  os.remove(fifo)
  os.remove(script)
end
