-- commands.lua -- what begins with a colon at the prompt. Layer: repl.
local prompt = ...
local luma, G = prompt.luma, prompt.globals
local bytes_text = prompt.host.file("bytes")()
local print, open, stderr = print, io.open, io.stderr

local M = {}

-- ---- figures ----

local function seconds_text(s)
    if s < 1e-6 then return ("%.0f ns"):format(s * 1e9) end
    if s < 1e-3 then return ("%.3g us"):format(s * 1e6) end
    if s < 1 then return ("%.3g ms"):format(s * 1e3) end
    return ("%.3g s"):format(s)
end

-- ---- the commands ----

local WARM, ENOUGH, MOST = 1, 0.3, 1000 -- runs not counted, seconds, runs

local function synchronize()
    for i = 2, #luma.config().devices do luma.cuda.synchronize(luma.config().devices[i]) end
end

-- Bytes of all tensors that were ever allocated, on every device.
local function allocated()
    local bytes = 0
    for _, device in ipairs(luma.config().devices) do
        bytes = bytes + luma.memory_stats(device).all.requested_bytes.allocated
    end
    return bytes
end

local function time(text)
    if text == "" then error("an expression is missing: :time x + y", 0) end
    local f, message = prompt.compile(text, #prompt.inputs)
    if not f then error(message, 0) end
    local times, total = {}, 0
    local good, failure = prompt.host.call(function() for _ = 1, WARM do f() end end)
    if not good then error(failure, 0) end
    synchronize()
    local before = allocated()
    f()
    local bytes = allocated() - before
    while total < ENOUGH and #times < MOST do
        local start = luma.clock()
        f()
        synchronize()
        local took = luma.clock() - start
        times[#times + 1] = took
        total = total + took
    end
    table.sort(times)
    print(("%s, median of %d; %s of tensors each"):format(seconds_text(times[(#times + 1) // 2]),
        #times, bytes_text(bytes)))
end

-- The tensors that globals hold, those in tables one level deep too.
local function named_tensors()
    local list = {}
    local function add(name, x)
        if luma.is_tensor(x) then list[#list + 1] = {name, x} end
    end
    for name, value in pairs(G) do
        if type(name) == "string" then
            add(name, value)
            if type(value) == "table" and value ~= G and value ~= luma then
                for key, inner in next, value do
                    add(("%s[%s]"):format(name, type(key) == "string" and '"' .. key .. '"'
                        or tostring(key)), inner)
                end
            end
        end
    end
    table.sort(list, function(a, b) return a[1] < b[1] end)
    return list
end

local function who()
    collectgarbage()
    for _, entry in ipairs(named_tensors()) do
        local good, bytes = pcall(function() return entry[2]:nbytes() end)
        print(("%-12s %s  %s"):format(entry[1], luma.show({entry[2]}):sub(2, -2),
            good and bytes_text(bytes) or ""))
    end
    for _, device in ipairs(luma.config().devices) do
        local m = luma.memory(device)
        print(("%s: %d storage%s alive, %s"):format(device, m.storages, m.storages == 1 and "" or "s",
            bytes_text(m.requested)))
    end
end

local function mem()
    print(("Lua: %s"):format(bytes_text(collectgarbage("count") * 1024)))
    for _, device in ipairs(luma.config().devices) do
        local m = luma.memory(device)
        print(("%s: allocated %s (peak %s), reserved %s (peak %s), limit %s"):format(device,
            bytes_text(m.allocated), bytes_text(m.peak_allocated), bytes_text(m.reserved),
            bytes_text(m.peak_reserved), m.limit > 0 and bytes_text(m.limit) or "none"))
    end
end

local function load_file(name)
    local f, message = loadfile(name, "t")
    if not f then error(message, 0) end
    return f()
end

local function save_file(name)
    if name == "" then error("a file name is missing: :save name.lua", 0) end
    local file, message = open(name, "w")
    if not file then error(message, 0) end
    local n = 0
    for _, text in ipairs(prompt.inputs) do
        if not text:find("^%s*[?:]") then
            file:write(text, "\n")
            n = n + 1
        end
    end
    local good, why = file:close()
    if not good then error(why, 0) end
    print(("%d inputs written to %s"):format(n, name))
end

local LIST -- name, what follows, sentence, function

local function help()
    for _, c in ipairs(LIST) do print((":%-18s %s"):format(c[1] .. " " .. c[2], c[3])) end
    print("?name              explains an operation; ??word searches; a final ; silences a value")
    print("_ __ ___           the last three results")
end

LIST = {
    {"time", "expression", "Median time of repeated runs.", time},
    {"who", "", "Named tensors with their bytes.", who},
    {"mem", "", "Memory of Lua and of every device.", mem},
    {"load", "file", "Runs a file.", load_file},
    {"save", "file", "Writes what was typed in this session.", save_file},
    {"help", "", "This list.", help},
    {"quit", "", "Ends, as Ctrl-D does.", function() end},
}

function prompt.command_names(typed, indent)
    local names = {}
    for _, c in ipairs(LIST) do
        if c[1]:sub(1, #typed) == typed then names[#names + 1] = indent .. ":" .. c[1] end
    end
    return names
end

-- The command of that name, or the only one that begins so.
local function find(name)
    local found
    for _, c in ipairs(LIST) do
        if c[1] == name then return c end
        if name ~= "" and c[1]:sub(1, #name) == name then
            if found then return nil end
            found = c
        end
    end
    return found
end

-- Runs "name rest". True: the prompt ends.
function M.run(text)
    local name, rest = text:match("^%s*(%S*)%s*(.-)%s*$")
    local c = find(name)
    if c then
        if c[1] == "quit" then return true end
        prompt.run(";", c[4], rest)
        return false
    end
    local names = {}
    for _, other in ipairs(LIST) do names[#names + 1] = other[1] end
    local near = prompt.nearest(name, names)[1]
    stderr:write(near and ("no command ':%s'; did you mean :%s?\n"):format(name, near)
        or ("no command ':%s'; :help lists them\n"):format(name))
    return false
end

return M
