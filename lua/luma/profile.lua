-- profile.lua -- luma.profile, luma.set_op_callback and the log of operations: who hears of them, sums
-- by operation and line, tables of them. Layer: lua, on the hook of bindings/watch.c.
local luma, part, tensor_meta = ...
local bytes_text = part("bytes")
local watch, clock = tensor_meta.watch, luma.clock
local co = coroutine or {} -- a host may not have opened it
local running_now, status_of = co.running, co.status

local M = {}

-- Functions of the module that are operations beside its rows and the methods.
local OTHERS = {load = true, save = true, from_dlpack = true}
-- Methods that are none.
local QUIET = {}
for name in ([[numel size stride is_contiguous storage_offset itemsize nbytes shares_storage free is_tensor
    len close pairs tostring gc concat]]):gmatch("%S+") do
    QUIET[name] = true
end

-- Operators whose event is not called as their operation.
local EVENTS = {idiv = "floor_div", mod = "remainder", unm = "neg", band = "bitwise_and", bor = "bitwise_or",
    bxor = "bitwise_xor", bnot = "bitwise_not", eq = "equal"}

-- Every function of the module with its name; false for those that are not told of.
local function names_of_functions()
    local names, rows = {}, {}
    for _, row in ipairs(luma.ops) do rows[row.name] = true end
    local function add(t, pattern, known, events)
        for key, value in next, t do
            local name = type(key) == "string" and key:match(pattern)
            if name and type(value) == "function" then
                names[value] = known(name) and not QUIET[name] and (events and EVENTS[name] or name) or false
            end
        end
    end
    local function all() return true end
    for _, t in next, luma do
        if type(t) == "table" and t ~= luma.ops then add(t, "^.*$", function() return false end) end
    end
    add(luma, "^.*$", function(name) return rows[name] or OTHERS[name] end)
    add(tensor_meta, "^.*$", function() return false end)
    add(tensor_meta, "^__(.*)$", all, true)
    add(tensor_meta.methods, "^.*$", all)
    return names
end

-- ---- who hears of operations ----

-- Held weakly: one whose coroutine was given up before its end goes with it.
local listeners = setmetatable({}, {__mode = "v"})
local lasting = {} -- the log and the callback, so that they stay
local running = 0 -- listeners that were ever added, their keys

-- One that a suspended coroutine has added hears nothing meanwhile.
local function tell(...)
    for _, listener in next, listeners do
        if not listener.owner or status_of(listener.owner) ~= "suspended" then
            listener.hear(...)
        end
    end
    if not next(listeners) then watch() end
end

local names

local function add(listener)
    names = names or names_of_functions()
    watch(tell, names)
    running = running + 1
    listeners[running] = listener
    return running
end

local function remove(key)
    watch(tell, names) -- what has failed before is told of
    listeners[key] = nil
    if not next(listeners) then watch() end
end

-- ---- figures as text ----

local function seconds_text(s)
    if s < 1e-3 then return ("%.1f us"):format(s * 1e6) end
    if s < 1 then return ("%.2f ms"):format(s * 1e3) end
    return ("%.2f s"):format(s)
end

-- ---- the profile ----

local COLUMNS = {
    {"calls", function(op) return tostring(op.calls) end},
    {"time", function(op) return seconds_text(op.time) end},
    {"each", function(op) return seconds_text(op.time / op.calls) end},
    {"bytes", function(op) return bytes_text(op.bytes) end},
    {"operation", function(op) return op.operation end, true},
    {"path", function(op) return op.failed and "failed" or op.path end, true},
    {"shapes", function(op) return op.shapes end, true},
    {"dtypes", function(op) return op.dtypes end, true},
    {"line", function(op) return op.line end, true},
}

local MOST = 40 -- rows that are shown

local function report_text(report)
    local rows, widths, lines = {}, {}, {}
    for i = 0, math.min(#report.operations, MOST) do
        local row = {}
        for k, column in ipairs(COLUMNS) do
            row[k] = i == 0 and column[1] or column[2](report.operations[i])
            widths[k] = math.max(widths[k] or 0, #row[k])
        end
        rows[#rows + 1] = row
    end
    for _, row in ipairs(rows) do
        for k, text in ipairs(row) do
            local room = (" "):rep(widths[k] - #text)
            row[k] = COLUMNS[k][3] and text .. room or room .. text
        end
        lines[#lines + 1] = (table.concat(row, "  "):gsub("%s+$", ""))
    end
    if #report.operations > MOST then
        lines[#lines + 1] = ("and %d more"):format(#report.operations - MOST)
    end
    lines[#lines + 1] = ("%d calls, %s of %s in operations"):format(report.calls,
        seconds_text(report.time), seconds_text(report.total))
    return table.concat(lines, "\n")
end

local report_meta = {__tostring = report_text, __name = "profile"}

local FIELDS = {"operation", "path", "shapes", "dtypes", "device"}

-- A collector: what it hears, summed over calls that agree in all but time.
local function collector()
    local rows, list = {}, {}
    local function hear(operation, path, shapes, dtypes, device, bytes, seconds, line, failed)
        local key = table.concat({operation, path, shapes, dtypes, device, line, tostring(failed)}, "\0")
        local row = rows[key]
        if not row then
            row = {operation = operation, path = path, shapes = shapes, dtypes = dtypes,
                device = device, line = line, bytes = 0, calls = 0, time = 0.0,
                failed = failed or nil}
            rows[key] = row
            list[#list + 1] = row
        end
        row.calls = row.calls + 1
        row.bytes = row.bytes + bytes
        row.time = row.time + seconds
    end
    return {hear = hear, list = list, owner = running_now and running_now()}
end

local function report_of(list, total)
    local calls, time = 0, 0.0
    for _, row in ipairs(list) do calls, time = calls + row.calls, time + row.time end
    table.sort(list, function(a, b)
        if a.time ~= b.time then return a.time > b.time end
        for _, field in ipairs(FIELDS) do
            if a[field] ~= b[field] then return a[field] < b[field] end
        end
        return a.line < b.line
    end)
    return setmetatable({operations = list, calls = calls, time = time, total = total}, report_meta)
end

-- luma.profile(f, ...): what f(...) runs, as a table that prints itself, and the results of f.
function M.profile(f, ...)
    if type(f) ~= "function" then
        error(("bad argument #1 to 'profile' (function expected, got %s)"):format(type(f)), 2)
    end
    local c = collector()
    local key = add(c)
    local _ <close> = setmetatable({}, {__close = function() remove(key) end})
    local start = clock()
    local results = table.pack(f(...))
    local total = clock() - start
    remove(key)
    return report_of(c.list, total), table.unpack(results, 1, results.n)
end

-- ---- the callback and the log ----

local function last(name, hear)
    local there = lasting[name]
    lasting[name] = nil
    if there then remove(there.key) end
    if not hear then return end
    local listener = {hear = hear}
    listener.key = add(listener)
    lasting[name] = listener
end

-- luma.set_op_callback(f): f(record) after every operation; nil: no more. An error in f ends it and
-- is raised by the operation.
function M.set_callback(f)
    if f ~= nil and type(f) ~= "function" then
        error(("bad argument #1 to 'set_op_callback' (function expected, got %s)"):format(type(f)), 2)
    end
    last("callback", f and function(operation, path, shapes, dtypes, device, bytes, seconds, line, failed)
        local good, message = pcall(f, {operation = operation, path = path, shapes = shapes,
            dtypes = dtypes, device = device, bytes = bytes, time = seconds, line = line,
            failed = failed or nil})
        if good then return end
        last("callback", nil)
        error(message, 0)
    end)
end

-- LUMA_LOG=ops: a line for each operation.
function M.log(file)
    last("log", function(operation, path, shapes, dtypes, device, bytes, seconds, line, failed)
        file:write(("luma: %s %s %s %s %s, %s, %s%s\n"):format(operation, failed and "failed" or path,
            shapes, dtypes, device, bytes_text(bytes), seconds_text(seconds),
            line ~= "" and ", " .. line or ""))
    end)
end

return M
