-- complete.lua -- what the word before the cursor could become: names and fields, methods of tensors
-- and strings, options of the operation being called, modules to require, files in strings.
-- Nothing of the user's runs. Layer: repl.
local prompt = ...
local luma, host, G, raw_meta = prompt.luma, prompt.host, prompt.globals, prompt.debug_getmetatable
local package = package

local M = {}

local KEYWORDS = {"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto",
    "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while"}

local function starts(text, with) return text:sub(1, #with) == with end

-- Adds before .. name of every name that goes on from `typed`, functions with "(" behind.
local function add_names(list, t, before, typed, only_functions)
    for name, value in next, t do
        if type(name) == "string" and starts(name, typed) and name:find("^[%a_][%w_]*$") then
            local callable = type(value) == "function"
            if callable or not only_functions then
                list[#list + 1] = before .. name .. (callable and "(" or "")
            end
        end
    end
end

-- The field of a value without running anything; strings and tensors have their methods.
local function raw_field(value, name)
    if type(value) == "table" then
        local found = rawget(value, name)
        if found ~= nil then return found end
    end
    local meta = raw_meta(value)
    local index = type(meta) == "table" and rawget(meta, "__index")
    if type(index) == "table" then return rawget(index, name) end
    return nil
end

-- The value of a path such as a.b.c or x[1].y; nil when it cannot be known without a call.
local function value_of(path)
    local name, rest = path:match("^([%a_][%w_]*)(.*)$")
    if not name then return nil end
    local value = rawget(G, name)
    while rest ~= "" and value ~= nil do
        local key, after = rest:match("^%.([%a_][%w_]*)(.*)$")
        if key then
            value = raw_field(value, key)
        else
            key, after = rest:match("^%[(%d+)%](.*)$")
            if not key or type(value) ~= "table" then return nil end
            value = rawget(value, math.tointeger(tonumber(key)))
        end
        rest = after
    end
    return value
end

prompt.value_of = value_of

-- Where __index is a function, as luma's are, the metatable lists what it finds.
local function add_fields(list, value, before, typed, methods)
    if type(value) == "table" then add_names(list, value, before, typed, methods) end
    local meta = raw_meta(value)
    local index = type(meta) == "table" and rawget(meta, "__index")
    if type(index) == "table" then return add_names(list, index, before, typed, methods) end
    local named, fields = index and rawget(meta, "methods"), index and rawget(meta, "fields")
    if type(named) == "table" then add_names(list, named, before, typed, methods) end
    for _, name in next, not methods and type(fields) == "table" and fields or {} do
        if type(name) == "string" and starts(name, typed) then list[#list + 1] = before .. name end
    end
end

local function names(word)
    local list = {}
    local path, sign, typed = word:match("^(.-)([.:])([%w_]*)$")
    if not path then
        add_names(list, G, "", word)
        for _, keyword in ipairs(KEYWORDS) do
            if word ~= "" and starts(keyword, word) then list[#list + 1] = keyword end
        end
        return list
    end
    add_fields(list, value_of(path), path .. sign, typed, sign == ":")
    return list
end

-- ---- options ----

-- The path of the function around the end of the text whose table of options is open there.
local function open_call(text)
    local depth = 0
    for i = #text, 1, -1 do
        local c = text:sub(i, i)
        if c:find("[%)%]}]") then
            depth = depth + 1
        elseif c:find("[%(%[{]") then
            depth = depth - 1
            if depth == -1 and c ~= "{" then return nil end
            if depth == -2 or (depth == -1 and text:sub(1, i - 1):find("[%w_]%s*$")) then
                return text:sub(1, i - 1):match("([%a_][%w_.:]*)%s*$")
            end
        end
    end
end

local MAKE_OPTIONS = {"device", "dtype"}

-- The options that luma.help names: "{title =, labels =}".
local function helped_options(path)
    local list = {}
    local name = path:gsub("^luma%.", ""):gsub("^.*:", "")
    local call = luma.help(name):match("^[^\n]*")
    for option in (call:match("^luma%..*{(.*)}") or ""):gmatch("([%w_]+) =") do
        list[#list + 1] = option
    end
    return list
end

local function options_of(path)
    if not path then return nil end
    local name = path:match("[%w_]+$")
    local row
    for _, r in ipairs(luma.ops) do
        if r.name == name or r.name .. "_" == name then row = r end
    end
    if not row or path:find("^luma%.%w+%.") then return helped_options(path) end
    local list = {}
    if row.row == "make" then
        for option in row.signature:gmatch("([%w_]+) =") do list[#list + 1] = option end
        return #list > 0 and list or MAKE_OPTIONS
    end
    for option in (row.signature:match("{(.*)}") or ""):gmatch("([%w_]+):") do
        list[#list + 1] = option
    end
    if row.row ~= "view" then list[#list + 1] = "out" end
    return list
end

-- ---- strings ----

local function module_names(typed)
    local list, seen = {}, {}
    local function add(name)
        if starts(name, typed) and not seen[name] then
            seen[name] = true
            list[#list + 1] = name
        end
    end
    for name in next, package.loaded do if type(name) == "string" then add(name) end end
    for name in next, package.preload do if type(name) == "string" then add(name) end end
    for pattern in package.path:gmatch("[^;]+") do
        local folder, tail = pattern:match("^(.-)%?(.*)$")
        for _, entry in ipairs(folder and host.names(folder ~= "" and folder or ".") or {}) do
            if #entry > #tail and entry:sub(-#tail) == tail then add(entry:sub(1, -#tail - 1)) end
        end
    end
    return list
end

-- Files whose path goes on from what is typed; `skip` letters of it are before the word.
local function file_names(typed, skip)
    local folder, start = typed:match("^(.*/)([^/]*)$")
    folder, start = folder or "", start or typed
    local list = {}
    for _, entry in ipairs(host.names(folder == "" and "." or folder) or {}) do
        if starts(entry, start) and (start ~= "" or not starts(entry, ".")) then
            local slash = host.exists(folder .. entry) == "folder" and "/" or ""
            list[#list + 1] = (folder .. entry .. slash):sub(skip + 1)
        end
    end
    return list
end

-- What a string may name where the text before it asks for a dtype or a device; nil elsewhere.
local function named_in_string(before, typed)
    local moves = before:find("[.:]to%s*%(%s*$")
    local dtype = moves or before:find("dtype%s*=%s*$") or before:find("_dtype%s*%(?%s*$")
    local device = moves or before:find("device%s*=%s*$") or before:find("_device%s*%(?%s*$")
    if not dtype and not device then return nil end
    local list = {}
    for name, value in next, dtype and luma or {} do
        if name == value and starts(name, typed) then list[#list + 1] = name end
    end
    if device then
        local devices = luma.config().devices
        devices[#devices + 1] = "cuda"
        for _, name in ipairs(devices) do
            if starts(name, typed) then list[#list + 1] = name end
        end
    end
    return list
end

-- The quote that is open at the end of the text, and where its string begins.
local function open_string(text)
    local quote, from
    local i = 1
    while i <= #text do
        local c = text:sub(i, i)
        if quote then
            if c == "\\" then i = i + 1 elseif c == quote then quote = nil end
        elseif c == '"' or c == "'" then
            quote, from = c, i + 1
        elseif text:sub(i, i + 1) == "--" then
            return nil
        end
        i = i + 1
    end
    return quote, from
end

-- ---- the completer ----

local function sorted(list)
    table.sort(list)
    return list
end

-- line: up to the cursor; start: bytes of it before the word.
function M.complete(line, start)
    local word, before = line:sub(start + 1), line:sub(1, start)
    local quote, from = open_string(line)
    if quote then
        local typed = line:sub(from)
        if before:sub(1, from - 2):find("require%s*%(?%s*$") then
            return sorted(module_names(typed)), quote
        end
        local named = named_in_string(line:sub(1, from - 2), typed)
        if named then return sorted(named), quote end
        local list = sorted(file_names(typed, start + 1 - from))
        if #list == 1 and list[1]:sub(-1) == "/" then return list, "\0" end
        return list, quote
    end
    local command = line:match("^%s*:(%w*)$")
    if command then
        return sorted(prompt.command_names(command, line:match("^%s*"))), " "
    end
    local file = line:match("^%s*:load%s+(.*)$") or line:match("^%s*:save%s+(.*)$")
    if file then return sorted(file_names(file, #file - #word)), "\0" end
    local inside, typed = line:match("^%s*%?%s*([%w_.]-%.?)([%w_]*)$")
    if inside then
        local list = {}
        local owner = inside == "" and luma or value_of("luma." .. inside:sub(1, -2))
        inside = word:sub(1, #word - #inside - #typed) .. inside
        if type(owner) == "table" then add_names(list, owner, inside, typed) end
        for i, name in ipairs(list) do list[i] = name:gsub("%($", "") end
        return sorted(list), "\0"
    end
    if before:find("[{,]%s*$") and word:find("^[%w_]*$") then
        local options = options_of(open_call(before))
        local list = {}
        for _, name in ipairs(options or {}) do
            if starts(name, word) then list[#list + 1] = name .. " = " end
        end
        if #list > 0 then return sorted(list), "\0" end
    end
    return sorted(names(word)), "\0"
end

return M
