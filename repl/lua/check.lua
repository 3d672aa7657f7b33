-- check.lua -- luma --version and luma check: what this luma is, what it found on the machine, whether
-- its devices compute. Layer: repl.
local luma, host = ...
local paths, bytes_text = host.file("paths")(host), host.file("bytes")()

local M = {}

local function cpu_text()
    local config = luma.config()
    return ("%s (this machine runs %s), %d thread%s"):format(config.cpu, config.cpu_levels,
        config.threads, config.threads == 1 and "" or "s")
end

-- Nothing is started: a driver may take a second for that.
function M.version()
    print(host.version)
    print("CPU: " .. cpu_text())
    local there, why = luma.cuda.has_driver()
    local text = there and "a driver is there" or why
    if there and os.getenv("LUMA_CUDA") == "emulate" then text = "an emulated device" end
    print("CUDA: " .. text .. "; luma check tries it")
    return true
end

-- ---- the report ----

local problems

local function say(what, format, ...)
    print(("%-13s %s"):format(what, format:format(...)))
end

local function problem(what, text)
    problems = problems + 1
    say(what, "PROBLEM: %s", text)
end

local function memory_text(device)
    local info = luma.cache_info(device)
    if not info.device_total then return "memory unknown" end
    return ("%s of memory, %s free"):format(bytes_text(info.device_total), bytes_text(info.device_free))
end

-- A product, an elementwise operation, a sum, an order, indexing: exact in float32.
local function compute(device)
    local n = 33
    local x = luma.ones(n, n, {device = device})
    local sum = (x:matmul(x) + x):sum():item()
    if sum ~= n * n * (n + 1) then return false, ("the sum is %s, not %d"):format(sum, n * n * (n + 1)) end
    local order = luma.range(n, 1, -1, {device = device})
    order = order:index_select(1, order:argsort())
    if not order:equal(luma.range(1, n, {device = device})) then return false, "sorting goes wrong" end
    return true
end

local function try_device(device, text)
    local start = luma.clock()
    local good, right, why = pcall(compute, device)
    if not good then right, why = false, right end
    if right then
        say(device, "%s; computes (tried in %.1f ms)", text, (luma.clock() - start) * 1e3)
    else
        problem(device, ("%s; does not compute: %s"):format(text, why))
    end
end

local function cuda()
    local list = luma.cuda.libraries()
    for _, library in ipairs(list) do
        local why = library.why
        if why and library ~= list[1] and why == list[1].why then why = "not opened without a driver" end
        say(library.name, "%s%s", why or (library.emulated and "emulated") or library.file,
            library.cuda and (" (CUDA %s)"):format(library.cuda) or "")
    end
    say("emulator", "built in: LUMA_CUDA=emulate takes it in place of the driver")
    say("PTX", list.ptx and "built in" or "not built in: only the emulated device has kernels")
    local there, why = luma.cuda.is_available()
    if not there then
        local mode = os.getenv("LUMA_CUDA")
        if mode and mode ~= "" and mode ~= "off" and mode ~= "auto" then
            problem("CUDA", why)
        elseif why ~= list[1].why then
            say("CUDA", "%s", why)
        end
        return
    end
    for i = 0, luma.cuda.device_count() - 1 do
        local device = "cuda:" .. i
        local good, text = pcall(function()
            local major, minor = luma.cuda.capability(device)
            return ("%s, compute capability %d.%d, %s"):format(luma.cuda.name(device), major, minor,
                memory_text(device))
        end)
        if good then
            try_device(device, text)
        else
            problem(device, text)
        end
    end
end

local function files()
    local readline = host.readline()
    say("readline", "%s", readline or "not there: the prompt cannot edit lines and has no history")
    local _, why = pcall(luma.image.load, "/dev/null")
    why = tostring(why)
    say("libpng", "%s", why:find("libpng", 1, true) and why:gsub("^.-load: ", "") or "there")
    say("history", "%s", paths.history or "none: neither XDG_STATE_HOME nor HOME is set")
    local init = paths.init
    say("init.lua", "%s", init and (host.exists(init) and init or init .. " (not there)") or "none")
    say("package.path", "%s", package.path)
    say("package.cpath", "%s", package.cpath)
    for _, name in ipairs{"LUMA_CPU", "LUMA_THREADS", "LUMA_CUDA", "LUMA_SYNC", "LUMA_LOG", "LUMA_LIBCUDA",
        "LUMA_LIBCUBLAS", "LUMA_LIBCURAND", "LUMA_LIBNVRTC", "LUA_INIT_5_4", "LUA_INIT", "NO_COLOR"} do
        local value = os.getenv(name)
        if value then say(name, "%s", value) end
    end
end

-- The whole report; true: what is there works.
function M.check()
    problems = 0
    print(host.version .. ", " .. (host.program() or "program unknown"))
    say("CPU", "%s", cpu_text())
    try_device("cpu", memory_text("cpu"))
    cuda()
    files()
    print(problems == 0 and "what is there works"
        or ("%d problem%s"):format(problems, problems == 1 and "" or "s"))
    return problems == 0
end

return M
