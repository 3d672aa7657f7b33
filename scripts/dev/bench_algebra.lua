-- bench_algebra.lua -- einsum against the matrix product it equals in luma, and against PyTorch's and
-- NumPy's einsum; norms and scatters against PyTorch (Debian's python3-torch). Each line is measured in
-- turns in one run; times are the best of several batches, ratios medians of the rounds: of luma's own
-- product, PyTorch and NumPy over luma.
-- usage: scripts/luma scripts/dev/bench_algebra.lua [pattern]
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local rounds = 5

-- {name, f, own = luma another way or nil, py = setup code, torch = statement, numpy = statement or nil}
local tasks = {}
local function task(name, make, py, torch, numpy)
  tasks[#tasks + 1] = {name = name, make = make, py = py, torch = torch, numpy = numpy}
end

-- shapes: of the operands; own(...) is the product that the equation equals.
local function equation(text, shapes, own)
  local py, names = {}, {}
  for i, shape in ipairs(shapes) do
    local name = ("abcd"):sub(i, i)
    names[i] = name
    py[i] = ("%s = torch.rand(%s); %sn = %s.numpy()"):format(name, table.concat(shape, ", "), name, name)
  end
  local args, list = table.concat(names, ", "), {}
  for i, name in ipairs(names) do list[i] = name .. "n" end
  local sizes = {}
  for i, shape in ipairs(shapes) do sizes[i] = table.concat(shape, "x") end
  task(text .. " " .. table.concat(sizes, " "), function()
    local xs = {}
    for i, shape in ipairs(shapes) do xs[i] = luma.rand(shape) end
    return function() local _ = luma.einsum(text, table.unpack(xs)) end,
      function() local _ = own(table.unpack(xs)) end
  end,
    table.concat(py, "; "), ("torch.einsum('%s', %s)"):format(text, args),
    ("np.einsum('%s', %s, optimize=True)"):format(text, table.concat(list, ", ")))
end

equation("ij,jk->ik", {{8, 8}, {8, 8}}, function(a, b) return a:matmul(b) end)
equation("ij,jk->ik", {{512, 512}, {512, 512}}, function(a, b) return a:matmul(b) end)
equation("ij,kj->ik", {{512, 512}, {512, 512}}, function(a, b) return a:matmul(b:t()) end)
equation("ij,jk->ki", {{512, 512}, {512, 512}}, function(a, b) return a:matmul(b):t():contiguous() end)
equation("bti,io->bto", {{64, 64, 128}, {128, 256}}, function(a, b) return a:matmul(b) end)
equation("bqhd,bkhd->bhqk", {{4, 128, 12, 64}, {4, 128, 12, 64}}, function(a, b)
  return a:permute(1, 3, 2, 4):matmul(b:permute(1, 3, 4, 2))
end)
equation("bhqk,bkhd->bqhd", {{4, 12, 128, 128}, {4, 128, 12, 64}}, function(a, b)
  return a:matmul(b:permute(1, 3, 2, 4)):permute(1, 3, 2, 4):contiguous()
end)
equation("ij,jk,kl->il", {{256, 256}, {256, 256}, {256, 256}}, function(a, b, c)
  return a:matmul(b):matmul(c)
end)
equation("ij,ij->", {{1024, 1024}, {1024, 1024}}, function(a, b) return a:reshape(-1):dot(b:reshape(-1)) end)
equation("bi,bi->b", {{65536, 16}, {65536, 16}}, function(a, b) return (a * b):sum(2) end)
equation("ij,j->i", {{1024, 1024}, {1024}}, function(a, b) return a:mv(b) end)
equation("ij->j", {{1024, 1024}}, function(a) return a:sum(1) end)

-- f(x, index) of a million elements.
local function of_million(name, f, torch)
  task(name, function()
    local x, index = luma.rand(1 << 20), luma.randint(1, 1 << 16, {1 << 20})
    local to = luma.zeros(1 << 16)
    return function() f(x, index, to) end
  end,
    "a = torch.rand(1 << 20); i = torch.randint(0, 1 << 16, (1 << 20,)); t = torch.zeros(1 << 16)", torch)
end
of_million("norm 2, 1M", function(x) local _ = x:norm() end, "torch.norm(a)")
of_million("norm 1, 1M", function(x) local _ = x:norm(1) end, "torch.norm(a, 1)")
of_million("norm 3, 1M", function(x) local _ = x:norm(3) end, "torch.norm(a, 3)")
of_million("nansum, 1M", function(x) local _ = x:nansum() end, "torch.nansum(a)")
of_million("count_nonzero, 1M", function(x) local _ = x:count_nonzero() end, "torch.count_nonzero(a)")
of_million("var_mean, 1M", function(x) local _ = x:var_mean() end, "torch.var_mean(a)")
for _, reduce in ipairs {"sum", "prod", "mean", "amax"} do
  of_million("scatter_reduce " .. reduce .. ", 1M to 64K",
    function(x, i, to) local _ = to:scatter_reduce(1, i, x, {reduce = reduce}) end,
    ("t.scatter_reduce(0, i, a, '%s')"):format(reduce))
end
of_million("index_put accumulate, 1M to 64K",
  function(x, i, to) local _ = to:index_put({i}, x, {accumulate = true}) end,
  "t.index_put((i,), a, accumulate=True)")

-- ---- measuring ----

local server = [[
import time, sys, torch, numpy as np
torch.set_grad_enabled(False)
def measure(code):
    f = eval('lambda: ' + code)
    f(); n = 1
    while True:
        t = time.perf_counter()
        for _ in range(n): f()
        t = time.perf_counter() - t
        if t > 0.02: break
        n *= 2
    best = t / n
    for _ in range(5):
        t = time.perf_counter()
        for _ in range(n): f()
        best = min(best, (time.perf_counter() - t) / n)
    print(best, flush=True)
for line in sys.stdin: exec(line)
]]
local fifo, script = os.tmpname(), os.tmpname()
os.remove(fifo)
assert(os.execute("mkfifo " .. fifo))
local file = assert(io.open(script, "w"))
file:write(server)
file:close()
local pipe = assert(io.popen(("%s %s > %s"):format(python, script, fifo), "w"))
local answers = assert(io.open(fifo, "r"))

local function tell(code)
  pipe:write(code, "\n")
  pipe:flush()
end

local function measure_python(code)
  tell(("measure(%q)"):format(code))
  return assert(tonumber(answers:read "l"), "no answer: is python3-torch installed?")
end

local function batch(f, n)
  local start = luma.clock()
  for _ = 1, n do f() end
  return luma.clock() - start
end

local function measure(f)
  local n = 1
  f()
  while batch(f, n) < 0.02 do n = n * 2 end
  local best = math.huge
  for _ = 1, 6 do best = math.min(best, batch(f, n) / n) end
  return best
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function human(seconds)
  return seconds < 1e-3 and ("%.1f us"):format(seconds * 1e6) or ("%.2f ms"):format(seconds * 1e3)
end

local pattern = arg[1] or ""
for threads = 1, 2 do
  luma.set_num_threads(threads)
  tell("torch.set_num_threads(" .. threads .. ")")
  print(("%-44s %10s %9s %9s %9s"):format(threads .. " thread(s)", "luma", "own", "PyTorch", "NumPy"))
  for _, t in ipairs(tasks) do
    if t.name:find(pattern, 1, true) then
      local f, own = t.make()
      local mine, ratios = {}, {own = {}, torch = {}, numpy = {}}
      tell(t.py)
      for i = 1, rounds do
        mine[i] = measure(f)
        if own then ratios.own[i] = measure(own) / mine[i] end
        ratios.torch[i] = measure_python(t.torch) / mine[i]
        if t.numpy then ratios.numpy[i] = measure_python(t.numpy) / mine[i] end
      end
      local function ratio(list) return #list > 0 and ("%.2f"):format(median(list)) or "-" end
      print(("%-44s %10s %9s %9s %9s"):format(t.name, human(median(mine)), ratio(ratios.own),
        ratio(ratios.torch), ratio(ratios.numpy)))
    end
  end
end
pipe:close()
answers:close()
os.remove(fifo)
os.remove(script)
