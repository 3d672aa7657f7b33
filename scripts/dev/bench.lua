-- bench.lua -- luma against NumPy (Debian's python3-numpy), each task measured in turns in one run, one
-- thread. A figure is the best of several batches; the ratio is NumPy's time over luma's, the median
-- of the rounds. usage: scripts/dev/bench [pattern]
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local rounds = 3

-- {name, goal, setup = function() return f end, py = setup code, stmt = code that is timed, env =}
-- goal: the ratio asked for. f and stmt do the same work.
local tasks = {}
local function task(name, goal, setup, py, stmt, env)
  tasks[#tasks + 1] = {name = name, goal = goal, setup = setup, py = py, stmt = stmt, env = env or ""}
end

local function pair(n)
  return function() return luma.rand(n), luma.rand(n) end
end
local function py_pair(n)
  return ("a = r(%d); b = r(%d)"):format(n, n)
end

task("c = a + b, 4 float32", 2, function()
  local a, b = pair(4)()
  return function() local _ = a + b end
end, py_pair(4), "a + b")
task("add 64K", 0.9, function()
  local a, b = pair(65536)()
  return function() local _ = a + b end
end, py_pair(65536), "a + b")
task("add 1M, out", 0.95, function()
  local a, b = pair(1 << 20)()
  local o = {out = luma.empty(1 << 20)}
  return function() luma.add(a, b, o) end
end, py_pair(1 << 20) .. "; o = r(1 << 20)", "np.add(a, b, out=o)")
task("add 64M, allocating", 2, function()
  local a, b = pair(1 << 26)()
  return function() local _ = a + b end
end, py_pair(1 << 26), "a + b")
for name in pairs {exp = 1, log = 1} do
  task(name .. " 1M", 1.1, function()
    local x = luma.rand(1 << 20)
    local o = {out = luma.empty(1 << 20)}
    return function() luma[name](x, o) end
  end, "x = r(1 << 20); o = r(1 << 20)", "np." .. name .. "(x, out=o)")
end
task("where, random mask, 1M", 8, function()
  local m, a, b = luma.rand(1 << 20):lt(0.5), luma.rand(1 << 20), luma.rand(1 << 20)
  return function() local _ = luma.where(m, a, b) end
end, "m = r(1 << 20) < 0.5; a = r(1 << 20); b = r(1 << 20)", "np.where(m, a, b)")
for _, n in ipairs {1024, 4096} do
  task(("transpose-copy %d x %d"):format(n, n), 5, function()
    local x = luma.rand(n, n):t()
    return function() local _ = x:clone() end
  end, ("x = r(%d, %d).T"):format(n, n), "x.copy(order='C')")
end
for _, case in ipairs {{"all", 1.5, "", "None"}, {"last dim", 1.5, 2, "1"}, {"first dim", 1.1, 1, "0"}} do
  task("sum " .. case[1] .. ", 1024 x 1024", case[2], function()
    local x, dim = luma.rand(1024, 1024), math.tointeger(case[3])
    return function() local _ = x:sum(dim) end
  end, "x = r(1024, 1024)", "x.sum(axis=" .. case[4] .. ")")
end
task("sum last dim, 1M x 8", 2, function()
  local x = luma.rand(1 << 20, 8)
  return function() local _ = x:sum(2) end
end, "x = r(1 << 20, 8)", "x.sum(axis=1)")
task("softmax rows of 1024", 3, function()
  local x = luma.randn(1024, 1024)
  return function() local _ = x:softmax(2) end
end, "x = r(1024, 1024)",
  "e = np.exp(x - x.max(axis=1, keepdims=True)); e /= e.sum(axis=1, keepdims=True)")
task("cumsum rows of 1024", 4, function()
  local x = luma.rand(1024, 1024)
  return function() local _ = x:cumsum(2) end
end, "x = r(1024, 1024)", "x.cumsum(axis=1)")
task("argmax rows of 64", 3, function()
  local x = luma.rand(65536, 64)
  return function() local _ = x:argmax(2) end
end, "x = r(65536, 64)", "x.argmax(axis=1)")
task("argsort 1M", 4, function()
  local x = luma.rand(1 << 20)
  return function() local _ = x:argsort() end
end, "x = r(1 << 20)", "x.argsort(kind='stable')")
for _, n in ipairs {256, 512, 1024, 2048} do
  local function setup()
    local a, b = luma.rand(n, n), luma.rand(n, n)
    return function() local _ = a:matmul(b) end
  end
  local py = ("a = r(%d, %d); b = r(%d, %d)"):format(n, n, n, n)
  task(("matmul %d, SkylakeX kernels"):format(n), 0.85, setup, py, "a @ b", "OPENBLAS_CORETYPE=SkylakeX")
  task(("matmul %d, as Debian chooses"):format(n), 0, setup, py, "a @ b", "-u OPENBLAS_CORETYPE")
end
task("matmul 1 x 4096 x 4096", 1.5, function()
  local a, b = luma.rand(1, 4096), luma.rand(4096, 4096)
  return function() local _ = a:matmul(b) end
end, "a = r(1, 4096); b = r(4096, 4096)", "a @ b", "OPENBLAS_CORETYPE=SkylakeX")
task("matmul, 256 of 16 x 16", 4, function()
  local a, b = luma.rand(256, 16, 16), luma.rand(256, 16, 16)
  return function() local _ = a:matmul(b) end
end, "a = r(256, 16, 16); b = r(256, 16, 16)", "a @ b", "OPENBLAS_CORETYPE=SkylakeX")

-- ---- measuring ----

-- Seconds of one call: the best of 5 batches of about 40 ms.
local function measure(f)
  f()
  local n = 1
  while true do
    local start = luma.clock()
    for _ = 1, n do f() end
    local seconds = luma.clock() - start
    if seconds > 0.02 then
      n = math.max(1, n * 0.04 // seconds)
      break
    end
    n = n * 4
  end
  local best = math.huge
  for _ = 1, 5 do
    local start = luma.clock()
    for _ = 1, n do f() end
    best = math.min(best, (luma.clock() - start) / n)
  end
  return best
end

local harness = [[
import time, numpy as np
rng = np.random.default_rng(1)
def r(*shape): return rng.random(shape, dtype=np.float32)
%s
def f():
    %s
f(); n = 1
while True:
    t = time.perf_counter()
    for _ in range(n): f()
    t = time.perf_counter() - t
    if t > 0.02:
        n = max(1, int(n * 0.04 / t)); break
    n *= 4
best = 1e9
for _ in range(5):
    t = time.perf_counter()
    for _ in range(n): f()
    best = min(best, (time.perf_counter() - t) / n)
print(best)
]]

local function numpy(t)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(harness:format(t.py, t.stmt))
  file:close()
  local pipe = io.popen(("env %s OPENBLAS_NUM_THREADS=1 %s %s"):format(t.env, python, name))
  local seconds = tonumber(pipe:read "a")
  pipe:close()
  os.remove(name)
  return assert(seconds, "NumPy did not run: is python3-numpy installed?")
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function human(seconds)
  if seconds < 1e-6 then return ("%.0f ns"):format(seconds * 1e9) end
  if seconds < 1e-3 then return ("%.1f us"):format(seconds * 1e6) end
  return ("%.2f ms"):format(seconds * 1e3)
end

local pattern = arg[1] or ""
luma.set_num_threads(1)
print(("%-32s %10s %10s %7s %6s"):format("one thread", "luma", "NumPy", "ratio", "goal"))
for _, t in ipairs(tasks) do
  if t.name:find(pattern, 1, true) then
    local ratios, mine, theirs = {}, {}, {}
    local f = t.setup()
    for i = 1, rounds do
      mine[i], theirs[i] = measure(f), numpy(t)
      ratios[i] = theirs[i] / mine[i]
    end
    print(("%-32s %10s %10s %7.2f %6s"):format(t.name, human(median(mine)), human(median(theirs)),
                                               median(ratios), t.goal > 0 and tostring(t.goal) or "-"))
    f = nil -- luacheck: ignore
    collectgarbage()
    luma.empty_cache()
  end
end

-- ---- two threads against one ----

local threaded = {
  {"add 256K, out", function()
    local a, b, o = luma.rand(1 << 18), luma.rand(1 << 18), {out = luma.empty(1 << 18)}
    return function() luma.add(a, b, o) end
  end},
  {"exp 1M, out", function()
    local a, o = luma.rand(1 << 20), {out = luma.empty(1 << 20)}
    return function() luma.exp(a, o) end
  end},
  {"sum 1M", function()
    local a = luma.rand(1 << 20)
    return function() local _ = a:sum() end
  end},
  {"softmax 1024 x 1024", function()
    local a = luma.rand(1024, 1024)
    return function() local _ = a:softmax(2) end
  end},
  {"matmul 512", function()
    local a, b = luma.rand(512, 512), luma.rand(512, 512)
    return function() local _ = a:matmul(b) end
  end},
}
if ("two threads"):find(pattern, 1, true) or pattern == "" then
  print(("\n%-32s %10s %10s %7s %6s"):format("two threads", "two", "one", "ratio", "goal"))
  for _, case in ipairs(threaded) do
    local f, ratios, one, two = case[2](), {}, {}, {}
    for i = 1, rounds do
      luma.set_num_threads(1)
      one[i] = measure(f)
      luma.set_num_threads(2)
      two[i] = measure(f)
      ratios[i] = one[i] / two[i]
    end
    print(("%-32s %10s %10s %7.2f %6s"):format(case[1], human(median(two)), human(median(one)),
                                               median(ratios), "1.8"))
  end
  luma.set_num_threads(1)
end

-- ---- the host's side of CUDA operations ----

if ("launch"):find(pattern, 1, true) then
  if pattern == "" then print() end
  io.stdout:flush()
  os.execute("LUMA_CUDA=emulate LUMA_EMU_STUB=1 " .. arg[-1] .. " scripts/dev/launch.lua")
end

-- ---- figures that are not ratios ----

if pattern == "" then
  local x = luma.rand(1 << 26)
  local exact = x:to("float64"):sum():item()
  print(("\nsum of 64M float32 in [0, 1): relative error %.1e (goal 1e-7)"):format(
    math.abs(x:sum():item() - exact) / exact))
  local start = luma.clock()
  for _ = 1, 20 do os.execute(arg[-1] .. ' -e ""') end
  print(("luma -e \"\": %.1f ms, the shell that starts it included (goal 10)"):format(
    (luma.clock() - start) / 20 * 1e3))
end
