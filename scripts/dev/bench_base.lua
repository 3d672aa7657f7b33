-- bench_base.lua -- what every program does, against NumPy with one thread; two threads against one.
local luma = require "luma"
local task, figure = ...
local M = 1 << 20

local function numpy(name, goal, inputs, f, statement, env)
  task(name, goal, inputs, f, {numpy = statement, threads = 1, env = env})
end

numpy("c = a + b, 4 float32", 2, {{"rand", 4}, {"rand", 4}}, function(a, b) return a + b end, "a + b")
numpy("add 64K", 0.9, {{"rand", 1 << 16}, {"rand", 1 << 16}}, function(a, b) return a + b end, "a + b")
numpy("add 1M, out", 0.95, {{"rand", M}, {"rand", M}, {"out", M}}, luma.add, "np.add(a, b, out=c)")
numpy("add 64M, allocating", 2, {{"rand", M << 6}, {"rand", M << 6}}, function(a, b) return a + b end,
  "a + b")
for _, name in ipairs {"exp", "log"} do
  numpy(name .. " 1M", 1.1, {{"rand", M}, {"out", M}}, luma[name], ("np.%s(a, out=b)"):format(name))
end
numpy("where, random mask, 1M", 8, {{"mask", M}, {"rand", M}, {"rand", M}}, luma.where, "np.where(a, b, c)")
for _, n in ipairs {1024, 4096} do
  numpy(("transpose-copy %d x %d"):format(n, n), 5, {{"turned", n, n}}, luma.clone, "a.copy(order='C')")
end
for _, case in ipairs {{"all", 1.5, nil, "None"}, {"last dim", 1.5, 2, "1"}, {"first dim", 1.1, 1, "0"}} do
  local dim = case[3]
  numpy("sum " .. case[1] .. ", 1024 x 1024", case[2], {{"rand", 1024, 1024}},
    function(x) return x:sum(dim) end, "a.sum(axis=" .. case[4] .. ")")
end
numpy("sum last dim, 1M x 8", 2, {{"rand", M, 8}}, function(x) return x:sum(2) end, "a.sum(axis=1)")
numpy("softmax rows of 1024", 3, {{"randn", 1024, 1024}}, function(x) return x:softmax(2) end,
  "e = np.exp(a - a.max(axis=1, keepdims=True)); e /= e.sum(axis=1, keepdims=True)")
numpy("cumsum rows of 1024", 4, {{"rand", 1024, 1024}}, function(x) return x:cumsum(2) end,
  "a.cumsum(axis=1)")
numpy("argmax rows of 64", 3, {{"rand", 65536, 64}}, function(x) return x:argmax(2) end, "a.argmax(axis=1)")
numpy("argsort 1M", 4, {{"rand", M}}, luma.argsort, "a.argsort(kind='stable')")
for _, n in ipairs {256, 512, 1024, 2048} do
  local inputs = {{"rand", n, n}, {"rand", n, n}}
  numpy(("matmul %d, SkylakeX kernels"):format(n), 0.85, inputs, luma.matmul, "a @ b",
    "OPENBLAS_CORETYPE=SkylakeX")
  numpy(("matmul %d, as Debian chooses"):format(n), 0, inputs, luma.matmul, "a @ b", "-u OPENBLAS_CORETYPE")
end
numpy("matmul 1 x 4096 x 4096", 1.5, {{"rand", 1, 4096}, {"rand", 4096, 4096}}, luma.matmul, "a @ b",
  "OPENBLAS_CORETYPE=SkylakeX")
numpy("matmul, 256 of 16 x 16", 4, {{"rand", 256, 16, 16}, {"rand", 256, 16, 16}}, luma.matmul, "a @ b",
  "OPENBLAS_CORETYPE=SkylakeX")

local function scales(name, inputs, f)
  task("two threads over one: " .. name, 1.8, inputs, f, {scales = true, threads = 2})
end
scales("add 256K, out", {{"rand", 1 << 18}, {"rand", 1 << 18}, {"out", 1 << 18}}, luma.add)
scales("exp 1M, out", {{"rand", M}, {"out", M}}, luma.exp)
scales("sum 1M", {{"rand", M}}, luma.sum)
scales("softmax 1024 x 1024", {{"rand", 1024, 1024}}, function(x) return x:softmax(2) end)
scales("matmul 512", {{"rand", 512, 512}, {"rand", 512, 512}}, luma.matmul)

figure("launch", function()
  os.execute("LUMA_CUDA=emulate LUMA_EMU_STUB=1 " .. arg[-1] .. " scripts/dev/launch.lua")
end)
figure("error of sum", function()
  local x = luma.rand(M << 6)
  local exact = x:to("float64"):sum():item()
  print(("\nsum of 64M float32 in [0, 1): relative error %.1e (goal 1e-7)"):format(
    math.abs(x:sum():item() - exact) / exact))
end)
figure("start", function()
  local start = luma.clock()
  for _ = 1, 20 do os.execute(arg[-1] .. ' -e ""') end
  print(("luma -e \"\": %.1f ms, the shell that starts it included (goal 10)"):format(
    (luma.clock() - start) / 20 * 1e3))
end)
