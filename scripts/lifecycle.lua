-- lifecycle.lua: follows a float tensor from the host to a device, through an addition and back, and
-- says what each step did: the path it took, bytes, what the allocators say. Then the ways that
-- contiguous and cat go, by layout.
--     scripts/luma scripts/lifecycle.lua [device]
-- Without a device: the current CUDA device, or the CPU where there is none. LUMA_CUDA=emulate gives
-- an emulated one.
local luma = require "luma"

local device = arg[1] or (luma.cuda.is_available() and "cuda" or "cpu")
device = luma.zeros(1, {device = device}).device
local on_cuda = device ~= "cpu"
luma.manual_seed(1)

-- ---- what is counted ----

local PATHS = {"shared", "memcpy", "copy2d", "strided"}
local CALLS = {"copies", "launches", "synchronisations"}

local function counts()
    local c = luma.copy_counts()
    if on_cuda then
        local calls = luma.cuda.stats(device)
        for _, name in ipairs(CALLS) do c[name] = calls[name] end
    end
    return c
end

-- "memcpy" or "copy2d, strided x 2": the ways of copying taken since `before`.
local function path_text(before)
    local now, words = luma.copy_counts(), {}
    for _, name in ipairs(PATHS) do
        local n = now[name] - before[name]
        if n > 0 then words[#words + 1] = n == 1 and name or ("%s x %d"):format(name, n) end
    end
    return #words > 0 and table.concat(words, ", ") or "none"
end

local function calls_text(before)
    if not on_cuda then return "" end
    local now, words = counts(), {}
    for _, name in ipairs(CALLS) do
        words[#words + 1] = ("%s %d"):format(name, now[name] - before[name])
    end
    return "; driver: " .. table.concat(words, ", ")
end

local function memory_lines()
    for _, name in ipairs(on_cuda and {"cpu", device} or {"cpu"}) do
        local m = luma.memory(name)
        print(("    %-7s allocated %8d, reserved %9d, peak %8d bytes; %d storages, %d segments"):format(
            name, m.allocated, m.reserved, m.peak_allocated, m.storages, m.segments))
    end
end

-- Runs one step and tells of it; returns what it gives.
local function step(title, what, f)
    collectgarbage()
    local before = counts()
    local x = f()
    print(title)
    print(("    %s: %s"):format(what, x:is_contiguous() and "contiguous" or "a view"))
    print(("    %d bytes on %s, strides {%s}"):format(x:nbytes(), x.device,
        table.concat(x:stride(), ", ")))
    local path = path_text(before)
    if on_cuda and luma.cuda.stats(device).copies > before.copies then path = "transfer" end
    print(("    path: %s%s"):format(path, calls_text(before)))
    memory_lines()
    return x
end

-- ---- the life of a tensor ----

print(("a float32 tensor of 512 x 512: cpu -> %s -> cpu"):format(device))
local host = step("1. made on the host", "luma.rand", function()
    return luma.rand(512, 512, {device = "cpu"})
end)
local x = step("2. to the device", 'host:to("' .. device .. '")', function()
    return host:to(device, {copy = true}) -- a copy on the CPU too
end)
local sum = step("3. an addition there", "x + x", function() return x + x end)
local back = step("4. back to the host", "sum:cpu()", function()
    return sum:to("cpu", {copy = true})
end)
x:free()
sum:free()
print("5. released on the device")
memory_lines()
print(("the sum that came back is %s"):format(back == host * 2 and "exact" or "WRONG"))

-- ---- how copies go ----

local a = luma.rand(64, 64, {device = device})

local function trace(name, f)
    local before = counts()
    local y = f()
    print(("  %-44s %s"):format(name, path_text(before)))
    return y
end

print(("contiguous on %s, by layout"):format(device))
trace("a:contiguous(), of a dense tensor", function() return a:contiguous() end)
trace("a:force_contiguous()", function() return a:force_contiguous() end)
trace("rows 2 to 9", function() return a["2:9"]:force_contiguous() end)
trace("columns 2 to 9", function() return a[":, 2:9"]:contiguous() end)
trace("every second column", function() return a[":, ::2"]:contiguous() end)
trace("the transpose", function() return a:t():contiguous() end)
trace("a row expanded to 64", function() return a["1"]:expand(64, 64):contiguous() end)

print(("cat on %s"):format(device))
trace("of two dense tensors along dim 1", function() return luma.cat({a, a}, 1) end)
trace("of two dense tensors along dim 2", function() return luma.cat({a, a}, 2) end)
trace("of a transpose and a dense one along dim 1", function() return luma.cat({a:t(), a}, 1) end)
trace("of two transposes along dim 2", function() return luma.cat({a:t(), a:t()}, 2) end)

os.exit(back == host * 2, true)
