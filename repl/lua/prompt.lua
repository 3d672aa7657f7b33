-- prompt.lua -- the prompt: reads chunks, runs them, shows values and errors. host is what prompt.c
-- gives. Returns step(), which handles one chunk and says whether there will be another, and the
-- completer. Layer: repl.
local luma, host = ...

-- Scripts may replace any global.
local load, loadfile, print, tostring, type, ipairs, getmetatable, select, rawget, rawset =
    load, loadfile, print, tostring, type, ipairs, getmetatable, select, rawget, rawset
local stderr, stdout, getenv, open, table, G = io.stderr, io.stdout, os.getenv, io.open, table, _G

local M = {luma = luma, host = host, globals = G, debug_getmetatable = debug.getmetatable}

local commands = host.file("commands")(M)
local complete = host.file("complete")(M)
local errors = host.file("errors")(M)
local paths = host.file("paths")(host)

-- ---- colour ----

local function has_colour()
    if not host.terminal or getenv("NO_COLOR") or getenv("TERM") == "dumb" then return false end
    return luma.config().columns ~= nil -- stdout is a terminal
end

local CODES = {dim = "2", red = "31", green = "32", bold = "1"}
local colours = has_colour()

local function paint(text, name)
    if not colours then return text end
    return ("\27[%sm%s\27[0m"):format(CODES[name], text)
end
M.paint = paint

-- ---- history ----

-- One line an entry; a newline is written as \n, a backslash as \\.
local function escape(text) return (text:gsub("\\", "\\\\"):gsub("\n", "\\n")) end
local function unescape(line)
    return (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
end

local KEEP = 5000 -- entries in the file
local history_file

-- Writes the newest entries, each once.
local function compact_history(lines)
    local file = open(history_file, "w")
    if not file then return end
    local seen, kept = {}, {}
    for i = #lines, 1, -1 do
        if not seen[lines[i]] and #kept < KEEP then kept[#kept + 1] = lines[i] end
        seen[lines[i]] = true
    end
    for i = #kept, 1, -1 do file:write(kept[i], "\n") end
    file:close()
end

local function load_history()
    if not paths.history or not host.make_folder(paths.state_folder) then return end
    history_file = paths.history
    local file = open(history_file)
    if not file then return end
    local lines = {}
    for line in file:lines() do lines[#lines + 1] = line end
    file:close()
    if #lines > 2 * KEEP then compact_history(lines) end
    for _, line in ipairs(lines) do host.remember(unescape(line)) end
end

local last_line
local inputs = {} -- of this session, for :save
M.inputs = inputs

local function remember(text)
    if text:find("^%s*$") then return end
    inputs[#inputs + 1] = text
    if not host.terminal then return end
    host.remember(text)
    if not history_file or text == last_line then return end
    last_line = text
    local file = open(history_file, "a")
    if not file then return end
    file:write(escape(text), "\n")
    file:close()
end

-- ---- reading ----

local function prompt_text(first)
    local text = rawget(G, first and "_PROMPT" or "_PROMPT2")
    if text ~= nil then return tostring(text) end
    return first and "> " or ">> "
end

local function is_incomplete(message)
    return message:sub(-5) == "<eof>"
end

-- What makes an expression a chunk. Where something is to be closed, "return f()" is no tail call:
-- errors find the line of the input.
local AS_VALUES = "local _INPUT <close> = nil return "

-- A chunk of the text, which is the number-th input or a part of it, its values those of an
-- expression where it is one; or nil, a message, and whether more text could still make it whole.
local function compile(text, number)
    local name = "=input " .. number
    local f, message = load(AS_VALUES .. text, name, "t")
    if f then return f end
    local unfinished = is_incomplete(message)
    f, message = load(text, name, "t")
    if f then return f end
    local before, after = text:gsub(";%s*$", ""):match("^(.*;)(.*)$") -- "x = 1; x" shows x
    local shown = after and after:find("%S") and load(before .. AS_VALUES .. after, name, "t")
    if shown then return shown end
    return nil, message, unfinished or is_incomplete(message)
end
M.compile = compile

-- Reads lines until they are a chunk. Returns text, chunk or nil and message; nothing when the
-- chunk was given up; false at the end of input.
local function read_chunk()
    local text, given_up = host.read(prompt_text(true))
    if not text and not given_up then return false end
    if not text then return nil end
    text = text:gsub("^=", "return ", 1)
    if text:find("^%s*[?:]") and not text:find("^%s*::") then return text end
    while true do
        local f, message, incomplete = compile(text, #inputs + 1)
        if not incomplete then return text, f, message end
        local line, stopped = host.read(prompt_text(false))
        if stopped then return nil end
        if not line then return text, nil, message end -- the end of the input says what is missing
        if line == "" and host.terminal then return nil end
        text = text .. "\n" .. line
    end
end

-- ---- showing ----

local function tensor_text(v)
    local text = tostring(v)
    if not colours then return text end
    return (text:gsub("\n(%[[^\n]*%])$", function(tail) return "\n" .. paint(tail, "dim") end))
end

local function text_of(v)
    if luma.is_tensor(v) then return tensor_text(v) end
    if type(v) == "function" then -- one of luma's has its call behind it
        local good, text = pcall(luma.help, v)
        return good and tostring(v) .. "  " .. text:match("^[^\n]*") or v
    end
    if type(v) == "table" then
        local meta = getmetatable(v)
        if not (type(meta) == "table" and meta.__tostring) then return luma.show(v) end
    end
    return v
end

-- The last results: _ the newest one, then __ and ___.
local function keep(v)
    if v == nil then return end
    rawset(G, "___", rawget(G, "__"))
    rawset(G, "__", rawget(G, "_"))
    rawset(G, "_", v)
end

local function show_results(...)
    local n = select("#", ...)
    if n == 0 then return end
    local texts = {...}
    local lines = false -- several values, one of them in several lines: each begins a line
    for i = 1, n do
        texts[i] = text_of(texts[i])
        lines = lines or n > 1 and type(texts[i]) == "string" and texts[i]:find("\n", 1, true)
    end
    if not lines then return G.print(table.unpack(texts, 1, n)) end
    for i = 1, n do G.print(texts[i]) end
end

local function report(message)
    stdout:flush()
    stderr:write(errors.explain(message, paint), "\n")
end

local function finish(silent, good, ...)
    if not good then return report((...)) end
    keep((...))
    if silent then return end
    local shown, message = host.call(show_results, ...)
    if not shown then report(message) end
end

-- Runs a compiled chunk and shows its values, unless the text ends in a semicolon.
local function run(text, f, ...)
    finish(text:find(";%s*$") ~= nil, host.call(f, ...))
end
M.run = run

-- ---- the loop ----

-- The text with its long lines broken between words where the terminal ends.
local function wrapped(text)
    local width = luma.config().columns
    if not width or width < 20 then return text end
    return (text:gsub("[^\n]+", function(line)
        local rest, parts, indent = line, {}, line:match("^ *") .. "  "
        while #rest > width do
            local cut = rest:sub(1, width + 1):match(".*%S() +%S") or rest:find(" ", width, true)
            if not cut or cut <= #indent then break end
            parts[#parts + 1] = rest:sub(1, cut - 1)
            rest = indent .. rest:sub(cut):gsub("^ +", "")
        end
        parts[#parts + 1] = rest
        return table.concat(parts, "\n")
    end))
end

local function help(text)
    local words = text:match("^%s*%?%?%s*(.-)%s*$")
    if words then return run(";", function() print(wrapped(luma.help_search(words))) end) end
    local name = text:match("^%s*%?%s*([^%s()]*)")
    run(";", function() print(wrapped(luma.help(name ~= "" and name or nil))) end)
end

-- The user's own file, which may set globals, _PROMPT or luma.set_print.
local function run_config()
    local name = paths.init
    if not name or not host.exists(name) then return end
    local f, message = loadfile(name, "t")
    if f then run(";", f) else report(message) end
end

local function start()
    if G.help == nil then rawset(G, "help", luma.help) end
    if not host.terminal then return end
    print(host.version .. "   ?name explains, :help lists commands, Ctrl-D ends")
    if host.environment then run_config() end
    load_history()
end

local started

local function step()
    if not started then
        started = true
        start()
        return true
    end
    local text, f, message = read_chunk()
    if text == false then
        if host.terminal then print() end
        return false
    end
    if not text then return true end
    remember(text)
    if f then
        run(text, f)
    elseif message then
        report(message)
    elseif text:find("^%s*%?") then
        help(text)
    else
        return not commands.run(text:match("^%s*:(.*)$"))
    end
    return true
end

return step, complete.complete
