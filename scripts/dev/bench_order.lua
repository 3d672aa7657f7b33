-- bench_order.lua -- running results and order against NumPy and PyTorch (Debian's python3-torch), all
-- measured in turns in one run. A figure is the best of several batches; a ratio is the better of the
-- two over luma's time, the median of the rounds.
-- usage: build/luma scripts/dev/bench_order.lua [pattern] [threads] [rounds]
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local pattern, threads, rounds = arg[1] or "", tonumber(arg[2] or 1), tonumber(arg[3] or 3)

-- {name, goal, setup = function() return f end, py = setup code, numpy, torch = statements or nil}
local tasks = {}
local function task(name, goal, setup, py, numpy, torch)
  if not name:find(pattern, 1, true) then return end
  tasks[#tasks + 1] = {name = name, goal = goal, f = setup(), py = py, numpy = numpy, torch = torch}
end

local function along(op, goal, numpy, torch, shape, dim, dtype)
  dtype = dtype or "float32"
  local text = table.concat(shape, ", ")
  task(("%s dim %d of %s %s"):format(op, dim, text, dtype), goal, function()
    local x = luma.rand(shape):mul(100):to(dtype)
    return function() local _ = x[op](x, dim) end
  end, ("a = (r(%s) * 100).astype('%s'); x = torch.from_numpy(a); d = %d"):format(text, dtype, dim - 1),
    numpy, torch)
end

for _, case in ipairs {{{1024, 1024}, 2}, {{1024, 1024}, 1}, {{64, 256, 64}, 2}, {{65536, 16}, 1},
                       {{65536, 16}, 2}, {{1 << 20}, 1}, {{1 << 24}, 1}} do
  along("cumsum", 1.4, "np.cumsum(a, axis=d)", "torch.cumsum(x, d)", case[1], case[2])
end
along("cumsum", 1.4, "np.cumsum(a, axis=d)", "torch.cumsum(x, d)", {1024, 1024}, 2, "int64")
along("cumsum", 1.4, "np.cumsum(a, axis=d)", "torch.cumsum(x, d)", {1024, 1024}, 1, "int64")
for _, case in ipairs {{{1024, 1024}, 2}, {{1024, 1024}, 1}, {{1 << 20}, 1}} do
  along("cumprod", 1, "np.cumprod(a, axis=d)", "torch.cumprod(x, d)", case[1], case[2])
  along("cummax", 1, "np.maximum.accumulate(a, axis=d)", "torch.cummax(x, d)", case[1], case[2])
  along("logcumsumexp", 1, "np.logaddexp.accumulate(a, axis=d)", "torch.logcumsumexp(x, d)", case[1],
    case[2])
  along("diff", 1, "np.diff(a, axis=d)", "torch.diff(x, dim=d)", case[1], case[2])
end
local million = "a = r(1 << 20); x = torch.from_numpy(a); i = (a * 1000).astype('int64'); "
  .. "xi = torch.from_numpy(i)"
local function of_million(name, goal, f, numpy, torch)
  task(name .. ", 1M", goal, function()
    local x = luma.rand(1 << 20)
    local i = x:mul(1000):to("int64"):add(1)
    return function() f(x, i) end
  end, million, numpy, torch)
end
of_million("argsort", 4, function(x) local _ = x:argsort() end, "np.argsort(a, kind='stable')",
  "torch.argsort(x)")
of_million("sort", 1, function(x) local _ = x:sort() end, nil, "torch.sort(x)")
of_million("median", 1, function(x) local _ = x:median() end, nil, "torch.median(x)")
of_million("kthvalue 1000", 1, function(x) local _ = x:kthvalue(1000) end, "np.partition(a, 999)[999]",
  "torch.kthvalue(x, 1000)")
of_million("quantile 0.3", 1, function(x) local _ = x:quantile(0.3) end, "np.quantile(a, 0.3)",
  "torch.quantile(x, 0.3)")
of_million("unique of 1000 int64", 1, function(_, i) local _ = i:unique() end, "np.unique(i)",
  "torch.unique(xi)")
of_million("unique of floats, inverse, counts", 1, function(x)
  local _ = x:unique {return_inverse = true, return_counts = true}
end, "np.unique(a, return_inverse=True, return_counts=True)",
  "torch.unique(x, return_inverse=True, return_counts=True)")
of_million("bincount", 1, function(_, i) local _ = i:bincount() end, "np.bincount(i)", "torch.bincount(xi)")
of_million("histc", 1, function(x) local _ = x:histc() end, "np.histogram(a, 100)", "torch.histc(x)")
task("searchsorted, 1M in 64K", 1, function()
  local s, v = luma.rand(65536):sort(), luma.rand(1 << 20)
  return function() local _ = s:searchsorted(v) end
end, "a = np.sort(r(65536)); b = r(1 << 20); x = torch.from_numpy(a); y = torch.from_numpy(b)",
  "np.searchsorted(a, b)", "torch.searchsorted(x, y)")
task("mode rows of 1024", 1, function()
  local x = luma.rand(256, 1024):mul(50):to("int64")
  return function() local _ = x:mode() end
end, "x = torch.from_numpy((r(256, 1024) * 50).astype('int64'))", nil, "torch.mode(x)")
task("median rows of 1024", 1, function()
  local x = luma.rand(1024, 1024)
  return function() local _ = x:median(2) end
end, "a = r(1024, 1024); x = torch.from_numpy(a)", nil, "torch.median(x, 1)")

local function best_of(f)
  f()
  local start = luma.clock()
  f()
  local n = math.max(1, math.floor(0.02 / (luma.clock() - start)))
  local best = math.huge
  for _ = 1, 5 do
    start = luma.clock()
    for _ = 1, n do f() end
    best = math.min(best, (luma.clock() - start) / n)
  end
  return best
end

local lines = {[[
import time, numpy as np, torch
torch.set_num_threads(%d)
r = lambda *s: np.random.rand(*s).astype('float32')
def best(f):
  f(); s = time.perf_counter(); f(); n = max(1, int(0.02 / (time.perf_counter() - s))); b = 1e9
  for _ in range(5):
    s = time.perf_counter()
    for _ in range(n): f()
    b = min(b, (time.perf_counter() - s) / n)
  return b
]]}
lines[1] = lines[1]:format(threads)
for i, t in ipairs(tasks) do
  lines[#lines + 1] = t.py
  for _, by in ipairs {"numpy", "torch"} do
    if t[by] then
      lines[#lines + 1] = ("print(%d, '%s', best(lambda: %s), flush=True)"):format(i, by, t[by])
    end
  end
end
local script = os.tmpname()
local file = assert(io.open(script, "w"))
file:write(table.concat(lines, "\n"))
file:close()

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end
luma.set_num_threads(threads)
for _, t in ipairs(tasks) do t.own, t.ratios, t.times = {}, {}, {numpy = {}, torch = {}} end
for round = 1, rounds do
  for _, t in ipairs(tasks) do t.own[round] = best_of(t.f) end
  for line in assert(io.popen(python .. " " .. script)):lines() do
    local i, by, seconds = line:match "(%d+) (%a+) (%S+)"
    local t = tasks[tonumber(i)]
    t.times[by][round] = tonumber(seconds)
  end
  for _, t in ipairs(tasks) do
    local other = math.min(t.times.numpy[round] or math.huge, t.times.torch[round] or math.huge)
    t.ratios[round] = other / t.own[round]
  end
end
os.remove(script)
local function ms(list) return #list > 0 and ("%.3f"):format(median(list) * 1e3) or "-" end
print(("%-46s %9s %9s %9s %7s %5s   %d thread%s, ms"):format("", "luma", "NumPy", "PyTorch", "ratio", "goal",
  threads, threads > 1 and "s" or ""))
for _, t in ipairs(tasks) do
  print(("%-46s %9s %9s %9s %7.2f %5s"):format(t.name, ms(t.own), ms(t.times.numpy), ms(t.times.torch),
    median(t.ratios), t.goal))
end
