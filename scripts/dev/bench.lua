-- bench.lua -- luma against NumPy and PyTorch (Debian's python3-numpy and python3-torch) and against
-- itself, measured in turns in one run, with one thread and with two. A figure is the best of several
-- batches, the median of the rounds; a ratio is the other's time over luma's. With one thread time is
-- that of the processor, which other work on the machine disturbs less.
-- usage: scripts/dev/bench [family [pattern]]; a family's tasks are in bench_FAMILY.lua, base is what runs
-- without arguments, all is all. LUMA_BENCH_PYTHON, LUMA_BENCH_ROUNDS, LUMA_BENCH_DEVICE: luma's, "cuda:0".
local luma = require "luma"
local python = os.getenv "LUMA_BENCH_PYTHON" or "/usr/bin/python3"
local rounds = tonumber(os.getenv "LUMA_BENCH_ROUNDS" or 5)
local device = os.getenv "LUMA_BENCH_DEVICE" or "cpu"

local NOISE = 0.05 -- two measurements of the same code may differ by so much

-- ---- tasks ----

-- Inputs by kind: of a shape in luma, and in Python, where S is the shape and N the first number of "int".
local KINDS = {
  rand = {luma.rand, "rng.random(S, dtype='f4')"},
  randn = {luma.randn, "rng.standard_normal(S, dtype='f4')"},
  zeros = {luma.zeros, "np.zeros(S, 'f4')"},
  mask = {function(shape) return luma.rand(shape):lt(0.5) end, "rng.random(S) < 0.5"},
  turned = {function(shape) return luma.rand(shape):t() end, "rng.random(S, dtype='f4').T"},
  sorted = {function(shape) return (luma.rand(shape):sort()) end, "np.sort(rng.random(S, dtype='f4'))"},
  out = {function(shape) return {out = luma.empty(shape)} end, "np.empty(S, 'f4')"},
  int = {function(shape, n) return luma.randint(1, n, shape) end, "rng.integers(0, N, S)"},
}
local tasks, figures

-- What a family adds. goal: the ratio asked for, 0: none. inputs: {kind, sizes...}, for "int" {"int", n,
-- sizes...}, or functions of those before, for luma only; f gets them, Python has them as a, b, c, ...
-- others: numpy, torch = statements; plain = a function for another way in luma, or scales = true for the
-- same with one thread; against = "plain": the goal is for that, not for the faster of NumPy and PyTorch;
-- threads = the only number of threads to run with; env = arguments of env that starts Python.
local function task(name, goal, inputs, f, others)
  tasks[#tasks + 1] = {name = name, goal = goal, inputs = inputs, f = f, by = others or {}}
end

-- What a family prints after its tables: figures that are not ratios.
local function figure(name, print_it)
  figures[#figures + 1] = {name = name, print_it = print_it}
end

local function make_inputs(t)
  local values, code = {}, {}
  for i, input in ipairs(t.inputs) do
    if type(input) == "function" then
      values[i] = input(table.unpack(values))
    else
      local kind, n = KINDS[input[1]], input[1] == "int" and input[2] or nil
      local shape = {table.unpack(input, n and 3 or 2)}
      values[i] = kind[1](shape, n)
      code[#code + 1] = ("%s = %s"):format(("abcdef"):sub(i, i), kind[2]:gsub("%f[%u]%u%f[%U]", {
        S = "(" .. table.concat(shape, ", ") .. ",)", N = tostring(n)}))
    end
  end
  return values, table.concat(code, "; ")
end

-- ---- Python ----

-- Answers every line, an expression, with a line. A statement for PyTorch has the arrays as tensors. The
-- block that it frees first lets malloc keep up to 64 MB, as in a program that has run for a while: or else
-- a task's time depends on the tasks before it.
local SERVER = [[
import sys, time
threads = int(sys.argv[1])
clock = time.process_time if threads == 1 else time.perf_counter
common, inputs = {}, {}
LOAD = {"numpy": "import numpy as np; rng = np.random.default_rng(1)",
  "torch": "import torch, torch.nn.functional as F; torch.set_num_threads(%d); "
           "torch.set_grad_enabled(False)" % threads}
def load(name): exec(LOAD[name], common)
def setup(code):
  inputs.clear(); inputs.update(common); exec(code, inputs)
def fast_products():
  with open("/proc/self/maps") as maps: text = maps.read()
  return "openblas" in text or "mkl" in text
def batch(f, n):
  start = clock()
  for _ in range(n): f()
  return clock() - start
def measure(name, code):
  space = dict(inputs)
  if name == "torch":
    for key, value in inputs.items():
      if isinstance(value, space["np"].ndarray): space[key] = space["torch"].from_numpy(value)
  exec("def f():\n  " + code, space)
  f = space["f"]; f(); n = 1
  while batch(f, n) < 0.02: n *= 2
  return min(batch(f, n) for _ in range(6)) / n
bytearray(31 << 20)
print("ready", flush=True)
for line in sys.stdin:
  try: print(eval(line), flush=True)
  except Exception as e: print(repr(e).replace("\n", " "), flush=True)
]]
local servers = {}

-- The Python that runs with so many threads and in that environment: started once.
local function server(threads, env)
  local key = ("env %s OPENBLAS_NUM_THREADS=%d OMP_NUM_THREADS=%d"):format(env or "", threads, threads)
  if servers[key] then return servers[key] end
  local fifo, script = os.tmpname(), os.tmpname()
  os.remove(fifo)
  assert(os.execute("mkfifo " .. fifo))
  local file = assert(io.open(script, "w"))
  file:write(SERVER)
  file:close()
  local pipe = assert(io.popen(("%s %s %s %d > %s"):format(key, python, script, threads, fifo), "w"))
  local made = {pipe = pipe, answers = assert(io.open(fifo, "r"))}
  made.runs = made.answers:read "l" == "ready"
  os.remove(fifo)
  os.remove(script)
  servers[key] = made
  return made
end

-- Calls one of the server's functions: its result as text.
local function ask(to, call, ...)
  if not to.runs then return "no Python" end
  to.pipe:write(call:format(...), "\n")
  to.pipe:flush()
  local answer = to.answers:read "l"
  to.runs = answer ~= nil
  return answer or "Python ended"
end

local function measure_python(t, name, to)
  local answer = ask(to, "measure('%s', %q)", name, t.by[name])
  if not tonumber(answer) then io.stderr:write(("%s, %s: %s\n"):format(t.name, name, answer)) end
  return tonumber(answer)
end

-- ---- measuring ----

local function batch(clock, f, n, ...)
  local start = clock()
  for _ = 1, n do f(...) end
  if device ~= "cpu" then luma.cuda.synchronize() end
  return clock() - start
end

-- Seconds of one call.
local function measure(threads, f, ...)
  local clock = threads == 1 and device == "cpu" and os.clock or luma.clock
  f(...)
  local n, best = 1, math.huge
  while batch(clock, f, n, ...) < 0.02 do n = n * 2 end
  for _ = 1, 6 do best = math.min(best, batch(clock, f, n, ...)) end
  return best / n
end

local function measure_plain(t, threads, ...)
  if not t.by.scales then return measure(threads, t.by.plain, ...) end
  luma.set_num_threads(1)
  local seconds = measure(threads, t.f, ...)
  luma.set_num_threads(threads)
  return seconds
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function human(seconds)
  if not seconds then return "-" end
  if seconds < 1e-6 then return ("%.0f ns"):format(seconds * 1e9) end
  if seconds < 1e-3 then return ("%.1f us"):format(seconds * 1e6) end
  return ("%.2f ms"):format(seconds * 1e3)
end

-- ---- tables ----

local COLUMNS = {{"plain", "plain luma"}, {"numpy", "NumPy"}, {"torch", "PyTorch"}}

local function has(t, column) return t.by[column] or column == "plain" and t.by.scales end

-- Those columns that a task has and that can be measured; which are missing is said once.
local said = {}
local function columns_of(chosen, threads)
  local columns = {}
  for _, column in ipairs(COLUMNS) do
    local name, title, used, answer = column[1], column[2], false, "None"
    for _, t in ipairs(chosen) do used = used or has(t, name) end
    if used and name ~= "plain" then
      answer = ask(server(threads), "load('numpy')")
      if name == "torch" and answer == "None" then answer = ask(server(threads), "load('torch')") end
    end
    if used and answer == "None" then
      columns[#columns + 1] = column
    elseif used and not said[name] then
      print(("%s's column is left out: %s; is python3-%s installed?"):format(title, answer, name))
      said[name] = true
    end
    if answer == "None" and name ~= "plain" and used and not said.products then
      if ask(server(threads), "fast_products()") ~= "True" then
        print "Python's products are slow here, without OpenBLAS or MKL: their ratios flatter luma"
      end
      said.products = true
    end
  end
  return columns
end

local function show_line(t, columns, threads, width)
  local by_itself = t.by.against or not (t.by.numpy or t.by.torch)
  local values, setup = make_inputs(t)
  local mine, times, ratios = {}, {plain = {}, numpy = {}, torch = {}}, {}
  local to = (t.by.numpy or t.by.torch) and server(threads, t.by.env)
  if to then
    ask(to, "load('numpy')")
    ask(to, "setup(%q)", setup)
  end
  for _ = 1, rounds do
    mine[#mine + 1] = measure(threads, t.f, table.unpack(values))
    local this = {}
    for _, column in ipairs(columns) do
      local name = column[1]
      if name == "plain" and has(t, name) then
        this.plain = measure_plain(t, threads, table.unpack(values))
      elseif t.by[name] then
        this[name] = measure_python(t, name, to)
      end
      table.insert(times[name], this[name])
    end
    local other = math.min(this.numpy or math.huge, this.torch or math.huge)
    if by_itself then other = this.plain or math.huge end
    if other < math.huge then ratios[#ratios + 1] = other / mine[#mine] end
  end
  local line = ("%-" .. width .. "s %10s"):format(t.name, human(median(mine)))
  for _, column in ipairs(columns) do line = line .. (" %10s"):format(human(median(times[column[1]]))) end
  local ratio = #ratios > 0 and ("%.2f"):format(median(ratios)) or "-"
  local least = by_itself and t.goal == 1 and 1 - NOISE or t.goal
  local missed = (tonumber(ratio) or math.huge) < least
  print(("%s %7s %6s%s"):format(line, ratio, t.goal > 0 and t.goal or "-", missed and "  missed" or ""))
end

local function show_table(family, chosen, threads)
  if #chosen == 0 then return end
  local columns, width = columns_of(chosen, threads), 28
  for _, t in ipairs(chosen) do width = math.max(width, #t.name) end
  local title = ("%s, %s"):format(family, threads == 1 and "one thread" or "two threads")
  local line = ("%-" .. width .. "s %10s"):format(title, "luma")
  for _, column in ipairs(columns) do line = line .. (" %10s"):format(column[2]) end
  print(("%s %7s %6s"):format(line, "ratio", "goal"))
  luma.set_num_threads(threads)
  for _, t in ipairs(chosen) do
    show_line(t, columns, threads, width)
    collectgarbage()
    luma.empty_cache()
  end
  print()
end

local function run(family, pattern)
  tasks, figures = {}, {}
  assert(loadfile(("scripts/dev/bench_%s.lua"):format(family)))(task, figure)
  for threads = 1, 2 do
    local chosen = {}
    for _, t in ipairs(tasks) do
      local fits = (t.by.threads or threads) == threads and t.name:find(pattern, 1, true)
      if fits then chosen[#chosen + 1] = t end
    end
    show_table(family, chosen, threads)
  end
  luma.set_num_threads(1)
  for _, f in ipairs(figures) do
    if f.name:find(pattern, 1, true) then f.print_it() end
  end
end

local families, known = {}, {all = true}
for path in assert(io.popen "ls scripts/dev/bench_*.lua"):lines() do
  families[#families + 1] = path:match "bench_(.*)%.lua$"
  known[families[#families]] = true
end
local wanted = arg[1] or "base"
if not known[wanted] then
  io.stderr:write(("bench: no family %q; there are all, %s\n"):format(wanted, table.concat(families, ", ")))
  os.exit(1)
end
io.stdout:setvbuf "line"
luma.set_default_device(device)
for _, family in ipairs(wanted == "all" and families or {wanted}) do run(family, arg[2] or "") end
for _, s in pairs(servers) do
  s.pipe:close()
  s.answers:close()
end
