-- gpu-check.lua -- what gpu-check measures: every row of the registry on the device against the CPU,
-- then speeds as shares of what the device itself does, beside PyTorch where its Python is there.
--     luma scripts/dev/gpu-check.lua device program [tiny]
-- program: luma_gpu_bench, which asks the device directly. tiny: sizes for the emulated device.
-- The exit status is 1 when a result differs from the CPU's more than it may.
local luma = require "luma"
local device, program, tiny = arg[1], arg[2], arg[3] == "tiny"

-- ---- results ----

local EPS = {float8_e4m3 = 2 ^ -3, float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float32 = 2 ^ -23,
    float64 = 2 ^ -52}
local INTEGERS = {"uint8", "int8", "int16", "int32", "uint32", "int64"}
local DTYPES = {"bool", table.unpack(INTEGERS)}
for _, dtype in ipairs{"float8_e4m3", "float16", "bfloat16", "float32", "float64"} do
    DTYPES[#DTYPES + 1] = dtype
end
local ROWS, COLUMNS = tiny and 9 or 301, tiny and 11 or 257
local ULP = 64 -- what sums and products may differ by, of the largest element

local SPECIAL = {0.0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1e-40, -1e-40, 1e30, 3.4e38, 0.5, 1.5, 2.5, -0.5}
local LEAST = {uint8 = 0, int8 = -128, int16 = -32768, int32 = -1 << 31, uint32 = 0, int64 = 1 << 63}
local MOST = {uint8 = 255, int8 = 127, int16 = 32767, int32 = (1 << 31) - 1, uint32 = (1 << 32) - 1,
    int64 = ~(1 << 63)}

-- A matrix of a dtype on the CPU: what rows are about, and what is special to the dtype.
local function draw(dtype, careful)
    local n = ROWS * COLUMNS
    local cpu = {device = "cpu"}
    if dtype == "bool" then return luma.rand(ROWS, COLUMNS, cpu):gt(0.5) end
    if LEAST[dtype] then
        if careful then return luma.randint(1, 7, ROWS, COLUMNS, {dtype = dtype, device = "cpu"}) end
        local x = luma.randint(LEAST[dtype], MOST[dtype], n, {dtype = dtype, device = "cpu"})
        x["1:4"] = luma.tensor({LEAST[dtype], MOST[dtype], 0, 1}, {dtype = dtype, device = "cpu"})
        return x:reshape(ROWS, COLUMNS)
    end
    local x = luma.randn(n, {dtype = "float64", device = "cpu"}) * 3
    if not careful then
        x[("1:%d"):format(#SPECIAL)] = luma.tensor(SPECIAL, {dtype = "float64", device = "cpu"})
    end
    return x:to(dtype):reshape(ROWS, COLUMNS)
end

-- "same", or the difference in ulp of the largest element.
local function compare(cpu, gpu)
    if not luma.is_tensor(cpu) then return cpu == gpu and "same" or math.huge end
    local back = gpu:cpu()
    if back.dtype ~= cpu.dtype or back:tobytes() == cpu:tobytes() then
        return back.dtype == cpu.dtype and "same" or math.huge
    end
    if not EPS[cpu.dtype] then return math.huge end
    local a, b = cpu:to("float64"), back:to("float64")
    if not luma.equal(a:isnan(), b:isnan()) then return math.huge end
    a, b = a:masked_fill(a:isnan(), 0), b:masked_fill(b:isnan(), 0)
    if luma.equal(a, b) then return "same" end -- NaN of other bits, which CPUs differ in too
    local away = a:isinf():logical_or(b:isinf())
    if not luma.equal(a:masked_fill(away:logical_not(), 0), b:masked_fill(away:logical_not(), 0)) then
        return math.huge
    end
    a, b = a:masked_fill(away, 0), b:masked_fill(away, 0)
    local largest = math.max(a:abs():amax():item(), 1e-300)
    return (a - b):abs():amax():item() / (largest * EPS[cpu.dtype])
end

-- groups[name] = {cases =, same =, worst =, at =, wrong = {texts}}
local groups, order = {}, {}
local function note(group, what, exact, f, ...)
    local g = groups[group]
    if not g then
        g = {cases = 0, same = 0, worst = 0, at = "", wrong = {}}
        groups[group], order[#order + 1] = g, group
    end
    local inputs, moved = {...}, {}
    for i, x in ipairs(inputs) do moved[i] = luma.is_tensor(x) and x:to(device) or x end
    local on_cpu, result = pcall(f, table.unpack(inputs))
    local on_gpu, other = pcall(function()
        local r = f(table.unpack(moved))
        luma.cuda.synchronize(device)
        return r
    end)
    if not on_cpu and not on_gpu then return end -- a dtype that the row does not take
    g.cases = g.cases + 1
    local off = math.huge
    if on_cpu == on_gpu then off = compare(result, other) end
    if off == "same" then
        g.same = g.same + 1
        return
    end
    if off > g.worst then g.worst, g.at = off, what end
    if exact or off > ULP then
        g.wrong[#g.wrong + 1] = on_gpu and ("%s: %g ulp"):format(what, off) or what .. ": " .. other
    end
end

local CAREFUL = {floor_div = 1, trunc_div = 1, remainder = 1, fmod = 1, lshift = 1, rshift = 1, pow = 1}

local function arguments(op, x, y)
    if op.row == "ternary" then return x:ne(0), x, y end
    if op.row == "unary_p" then return x, 2, 3 end
    if op.inputs == 1 then return x end
    return x, y
end

local function check_rows()
    for _, op in ipairs(luma.ops) do
        for _, dtype in ipairs(op.inputs > 0 and DTYPES or {}) do
            local what = ("%s of %s"):format(op.name, dtype)
            local x, y = draw(dtype), draw(dtype, CAREFUL[op.name])
            note("elementwise", what, true, luma[op.name], arguments(op, x, y))
            note("elementwise, views", what .. ", transposed and stepped", true, luma[op.name],
                arguments(op, x:t()["::2"], y:t()["::2"]))
        end
        for _, dtype in ipairs(op.row == "reduce" and DTYPES or {}) do
            local x = draw(dtype, true)
            local exact = not EPS[dtype]
            for dim = 1, 2 do
                note("reductions", ("%s of %s, dim %d"):format(op.name, dtype, dim),
                    exact and op.name ~= "mean" and op.name ~= "var" and op.name ~= "std" and
                    op.name ~= "logsumexp", luma[op.name], x, dim)
            end
        end
    end
end

local function check_others()
    local index = luma.randint(1, ROWS, 50, {device = "cpu"})
    for _, from in ipairs(DTYPES) do
        local x = draw(from)
        for _, to in ipairs(DTYPES) do
            note("casts", from .. " to " .. to, true, x.to, x, to)
        end
        note("order", "sort of " .. from, true, function(v) return (v:sort(2)) end, x)
        note("order", "argsort of " .. from, true, function(v) return v:argsort(1) end, x)
        note("order", "topk of " .. from, true, function(v) return (v:topk(5, 2)) end, x)
        note("indexing", "index_select of " .. from, true, luma.index_select, x, 1, index)
        note("indexing", "cat of " .. from, true, function(v) return luma.cat({v, v:flip{1}}, 2) end, x)
        note("indexing", "nonzero of " .. from, true, luma.nonzero, x)
        local y = draw(from, true)
        note("scans", "cumsum of " .. from, not EPS[from], luma.cumsum, y, 2)
        note("scans", "softmax of " .. from, false, luma.softmax, y, 2)
        note("scans", "log_softmax of " .. from, false, luma.log_softmax, y, 1)
        local n, table_of = y.shape[2], luma.ones(y.shape[1], y.shape[2] // 2, {device = "cpu"})
        note("normalisation", "layer_norm of " .. from, false, luma.layer_norm, y, n)
        note("normalisation", "rms_norm of columns of " .. from, false, function(v)
            return v:t():rms_norm(v.shape[1])
        end, y)
        note("normalisation", "group_norm of " .. from, false, luma.group_norm, y, 1)
        if EPS[from] then
            note("attention", "attention of " .. from, false, function(v)
                return luma.scaled_dot_product_attention(v, v, v, {is_causal = true})
            end, y)
            note("attention", "rope of " .. from, false, function(v, c)
                return v:narrow(2, 1, 2 * c.shape[2]):rope(c * 0.6, c * 0.8)
            end, y, table_of)
        end
        note("products", "matmul of " .. from, not EPS[from], function(v) return v:matmul(v:t()) end, y)
        local list = y:reshape(-1)
        local image, kernel = list:narrow(1, 1, 75):view(3, 5, 5), list:narrow(1, 1, 81):view(3, 3, 3, 3)
        note("products", "conv2d of " .. from, not EPS[from], luma.conv2d, image, kernel)
        note("products", "depthwise conv2d of " .. from, not EPS[from], function(v, w)
            return luma.conv2d(v, w, {groups = 3, padding = 1, stride = 2})
        end, image, kernel:narrow(2, 1, 1))
    end
    for _, dtype in ipairs{"float32", "float64", "float16"} do
        for _, name in ipairs{"rand", "randn"} do
            note("random numbers", name .. " of " .. dtype, true, function(x)
                luma.manual_seed(7)
                return luma[name](1000, {dtype = dtype, device = x.device})
            end, luma.zeros(1, {device = "cpu"}))
        end
    end
end

local function report()
    local wrong = 0
    print(("%-22s %8s %8s %10s"):format("against the CPU", "cases", "same", "worst ulp"))
    for _, name in ipairs(order) do
        local g = groups[name]
        print(("%-22s %8d %8d %10.3g  %s"):format(name, g.cases, g.same, g.worst, g.at))
        for i, text in ipairs(g.wrong) do
            wrong = wrong + 1
            if i <= 10 then print("    WRONG " .. text) end
        end
    end
    return wrong
end

-- ---- speeds ----

-- Seconds of one call: the best of five batches that take some 20 ms each.
local function measure(f)
    local function batch(n)
        local start = luma.clock()
        for _ = 1, n do f() end
        luma.cuda.synchronize(device)
        return (luma.clock() - start) / n
    end
    batch(1)
    local once = batch(1)
    if tiny then return once end
    local n = math.max(1, math.min(500, math.floor(0.02 / once)))
    local best = once
    for _ = 1, 5 do best = math.min(best, batch(n)) end
    return best
end

-- Far more than caches hold; the tensors measured, and PyTorch's beside them, leave room.
local N = tiny and 1 << 10 or 1 << 26
while 200 * N > select(2, luma.cuda.memory(device)) do N = N // 4 end
local SIDE = math.tointeger(math.sqrt(N))

-- {name, f, bytes that must move, PyTorch's statement after `setup`}
local function moves()
    local function new(...) return luma.rand(..., {device = device}) end
    local a, b, m = new{N}, new{N}, new{SIDE, SIDE}
    local o, om = {out = luma.empty(N, {device = device})}, {out = luma.empty(SIDE, SIDE, {device = device})}
    local row, column, mask = new{SIDE}, new{SIDE, 1}, a:gt(0.5)
    local index = luma.randint(1, SIDE, SIDE, {device = device})
    local half = a:to("float16")
    return {
        {"add, contiguous", function() luma.add(a, b, o) end, 12 * N, "torch.add(a, b, out=o)"},
        {"add of float16", function() return half + half end, 6 * N, "h + h"},
        {"exp", function() luma.exp(a, o) end, 8 * N, "torch.exp(a, out=o)"},
        {"where", function() luma.where(mask, a, b, o) end, 13 * N, "torch.where(k, a, b)"},
        {"add, one transposed", function() luma.add(m, m:t(), om) end, 12 * N,
            "torch.add(m, m.t(), out=om)"},
        {"every second row, added", function() return m["::2"] + m["::2"] end, 4 * N,
            "m[::2] + m[::2]"},
        {"add of a row", function() luma.add(m, row, om) end, 8 * N, "torch.add(m, r, out=om)"},
        {"add of a column", function() luma.add(m, column, om) end, 8 * N,
            "torch.add(m, c, out=om)"},
        {"transposed copy", function() return m:t():clone() end, 8 * N, "m.t().contiguous()"},
        {"cast to float16", function() return a:to("float16") end, 6 * N, "a.half()"},
        {"fill", function() o.out:fill_(1) end, 4 * N, "o.fill_(1)"},
        {"sum, all", function() return a:sum() end, 4 * N, "a.sum()"},
        {"sum, last dim", function() return m:sum(2) end, 4 * N, "m.sum(1)"},
        {"sum, first dim", function() return m:sum(1) end, 4 * N, "m.sum(0)"},
        {"argmax, last dim", function() return m:argmax(2) end, 4 * N, "m.argmax(1)"},
        {"var, last dim", function() return m:var(2) end, 4 * N, "m.var(1)"},
        {"softmax, last dim", function() return m:softmax(2) end, 8 * N, "m.softmax(1)"},
        {"layer_norm, last dim", function() return m:layer_norm(m.shape[2]) end, 8 * N,
            "torch.nn.functional.layer_norm(m, m.shape[1:])"},
        {"cumsum, last dim", function() return m:cumsum(2) end, 8 * N, "m.cumsum(1)"},
        {"index_select of rows", function() return m:index_select(1, index) end, 8 * N,
            "m.index_select(0, i)"},
        {"rand", function() return luma.rand(N, {device = device}) end, 4 * N,
            "torch.rand(N, device='cuda')"},
        {"sort of 1/16", function() return (a[("1:%d"):format(N // 16)]:sort()) end, N,
            "a[:N // 16].sort()"},
    }
end

local PYTHON = [[
import time, sys
try:
    import torch
    assert torch.cuda.is_available()
except Exception:
    sys.exit(0)
def new(*s): return torch.rand(*s, device='cuda')
N, SIDE = %d, %d
a, b, m, o, om = new(N), new(N), new(SIDE, SIDE), new(N), new(SIDE, SIDE)
r, c, k, h = new(SIDE), new(SIDE, 1), a > 0.5, a.half()
i = torch.randint(0, SIDE, (SIDE,), device='cuda')
small = new(4)
p = {}
for d in ('float32', 'float16', 'bfloat16', 'float64'):
    for n in (%s):
        p[d, n] = new(n, n).to(getattr(torch, d))
def measure(f):
    def batch(n):
        s = time.perf_counter()
        for _ in range(n): f()
        torch.cuda.synchronize()
        return (time.perf_counter() - s) / n
    batch(1)
    once = batch(1)
    n = max(1, min(500, int(0.02 / once)))
    return min([once] + [batch(n) for _ in range(5)])
def show(name, f):
    try:
        print('%%s\t%%.9f' %% (name, measure(f)), flush=True)
    except Exception as problem:
        print(name, problem, file=sys.stderr)
]]

-- PyTorch's seconds by name; empty where there is no PyTorch with CUDA.
local function torch_seconds(list, sizes)
    local found, path = {}, os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(PYTHON:format(N, SIDE, table.concat(sizes, ", ") .. ","))
    for _, t in ipairs(list) do
        file:write(("show('%s', lambda: %s)\n"):format(t[1], t[4]))
    end
    file:close()
    local python = "LD_LIBRARY_PATH=$LIBRARIES_OF_PYTHON timeout 120 python3 "
    local pipe = io.popen(python .. path .. " 2>/dev/null")
    for line in pipe:lines() do
        local name, seconds = line:match("^(.*)\t([%d.]+)$")
        if name then found[name] = tonumber(seconds) end
    end
    pipe:close()
    os.remove(path)
    return found
end

-- What luma_gpu_bench says, by name, in seconds.
local function ask_device()
    local found = {}
    local pipe = assert(io.popen(("'%s' %s"):format(program, tiny and "tiny" or "")))
    for line in pipe:lines() do
        local name, value = line:match("^(%S+) (%S+)$")
        if name then found[name] = tonumber(value) end
    end
    if not pipe:close() then print "\nluma_gpu_bench failed: what it had is shown" end
    return found
end

local function beside(seconds, torch)
    return torch and ("%6.2f x PyTorch"):format(torch / seconds) or ""
end

local function show_moves(direct, list, torch)
    if not direct.download then
        print "\nno copies to compare with"
        return false
    end
    local copy = 2 * direct.copy_bytes / direct.copy
    print(("\ncopy on the device %.1f GB/s (read and written), up %.1f, down %.1f GB/s"):format(
        copy / 1e9, direct.copy_bytes / direct.upload / 1e9, direct.copy_bytes / direct.download / 1e9))
    print(("%-26s %10s %10s %8s"):format(("%d elements of float32"):format(N), "us", "GB/s", "of copy"))
    for _, t in ipairs(list) do
        local seconds = measure(t[2])
        print(("%-26s %10.1f %10.1f %7.0f%%  %s"):format(t[1], seconds * 1e6, t[3] / seconds / 1e9,
            100 * t[3] / seconds / copy, beside(seconds, torch[t[1]])))
    end
    return true
end

-- Rows for the products too, so that PyTorch is asked once.
local function products(sizes)
    local list = {}
    for _, dtype in ipairs{"float32", "float16", "bfloat16", "float64"} do
        for _, n in ipairs(sizes) do
            list[#list + 1] = {("matmul_%s_%d"):format(dtype, n), function()
                local a = luma.rand(n, n, {device = device}):to(dtype)
                local o = {out = luma.empty(n, n, {dtype = dtype, device = device})}
                return measure(function() luma.matmul(a, a, o) end)
            end, n, ("p['%s', %d] @ p['%s', %d]"):format(dtype, n, dtype, n)}
        end
    end
    return list
end

local function show_products(direct, list, torch)
    print(("\n%-26s %10s %10s %8s"):format("products, square", "us", "TFLOP/s", "of cuBLAS"))
    for _, t in ipairs(list) do
        local seconds, blas = t[2](), direct[t[1]]
        print(("%-26s %10.1f %10.2f %8s  %s"):format(t[1], seconds * 1e6, 2 * t[3] ^ 3 / seconds / 1e12,
            blas and ("%.0f%%"):format(100 * blas / seconds) or "none", beside(seconds, torch[t[1]])))
    end
end

-- Seconds of the host alone, queue empty at first and never full.
local function host_cost(f)
    local best = math.huge
    for _ = 1, 5 do
        luma.cuda.synchronize(device)
        local start = luma.clock()
        for _ = 1, 200 do f() end
        best = math.min(best, (luma.clock() - start) / 200)
    end
    luma.cuda.synchronize(device)
    return best
end

local function show_costs(direct, torch)
    local x, o = luma.ones(4, {device = device}), {out = luma.empty(4, {device = device})}
    local opts = {device = device}
    print "\ncosts                              us"
    local function line(name, seconds, key)
        local text = key and beside(seconds, torch[key]) or ""
        print(("%-26s %10.2f  %s"):format(name, (seconds or 0 / 0) * 1e6, text))
    end
    line("add_ of 4, host", host_cost(function() luma.add(x, x, o) end))
    line("add of 4, new result, host", host_cost(function() local _ = x + x end))
    line("add of 4, through the queue", measure(function() luma.add(x, x, o) end), "small")
    line("kernel of luma, from C", direct.launch)
    line("empty and free, cached", host_cost(function() luma.empty(2 << 20, opts):free() end))
    line("cuMemAlloc and cuMemFree", direct.allocate)
    line("item, waits", measure(function() return o.out[1] end))
end

-- In a process of its own, where nothing is loaded and the driver's cache is off.
local function show_first_use()
    print "\nfirst use, driver's cache off      ms"
    for _, text in ipairs{"x + x", "x:exp()", "x:sum()", "x:softmax(1)", "x:sort()", "x:to('float16')",
                          "luma.matmul(x:view(32, 32), x:view(32, 32))"} do
        local code = ("local x = luma.zeros(1024, {device = '%s'}) luma.cuda.synchronize() " ..
            "local s = luma.clock() local _ = %s luma.cuda.synchronize() print(luma.clock() - s)")
            :format(device, text)
        local i = 0
        while arg[i - 1] do i = i - 1 end
        local pipe = io.popen(("CUDA_CACHE_DISABLE=1 '%s' -e \"%s\""):format(arg[i], code))
        local seconds = tonumber(pipe:read("l"))
        pipe:close()
        print(("%-26s %10.1f"):format(text:sub(1, 26), (seconds or 0 / 0) * 1e3))
    end
end

luma.manual_seed(1)
print(("%s: %s, capability %d.%d"):format(device, luma.cuda.name(device), luma.cuda.capability(device)))
check_rows()
check_others()
local wrong = report()
local direct = ask_device()
local sizes = tiny and {32} or {1024, 4096, 8192}
local list, more = moves(), products(sizes)
local asked = table.move(more, 1, #more, #list + 1, table.move(list, 1, #list, 1, {}))
asked[#asked + 1] = {"small", nil, nil, "torch.add(small, small, out=small)"}
local torch = torch_seconds(asked, sizes)
if not next(torch) then print "\nno PyTorch with CUDA in python3: nothing beside" end
if not show_moves(direct, list, torch) then wrong = wrong + 1 end
show_products(direct, more, torch)
show_costs(direct, torch)
show_first_use()
if wrong > 0 then
    print(("\n%d results differ from the CPU's"):format(wrong))
    os.exit(1)
end
