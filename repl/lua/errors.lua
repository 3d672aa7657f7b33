-- errors.lua -- what the prompt adds to a message: the line it speaks of, a caret under the argument
-- or the operator that is to blame where that is certain, and names that may have been meant.
-- Layer: repl.
local prompt = ...
local luma, G = prompt.luma, prompt.globals
local tensor_meta = prompt.debug_getmetatable(luma.zeros(0, {device = "cpu"}))
local nearest = prompt.host.file("nearest")(luma, nil, tensor_meta)
prompt.nearest = nearest

local M = {}

-- The operators that call an operation.
local OPERATORS = {add = "+", sub = "-", mul = "*", div = "/", floor_div = "//", remainder = "%",
    pow = "^", matmul = "@", bitwise_and = "&", bitwise_or = "|", bitwise_xor = "~", lshift = "<<",
    rshift = ">>", lt = "<", le = "<=", index = "[", newindex = "["}

local function line_of(text, number)
    local n = 0
    for line in (text .. "\n"):gmatch("(.-)\n") do
        n = n + 1
        if n == number then return line end
    end
end

-- The line with what stands in strings and comments made blank, so that it can be searched.
local function bare(line)
    return (line:gsub("%-%-.*$", function(s) return (" "):rep(#s) end)
        :gsub("(['\"])(.-)%1", function(q, s) return q .. ("_"):rep(#s) .. q end))
end

-- Where `what` stands in the line when it stands there once.
local function only_place(line, what)
    local from, to = line:find(what)
    if not from or line:find(what, to + 1) then return nil end
    return from, to
end

-- The column of argument n of the call whose "(" is at open.
local function argument_column(line, open, n)
    local depth, count, at = 0, 1, open + 1
    for i = open + 1, #line do
        local c = line:sub(i, i)
        if depth == 0 and (c == ")" or c == ",") then
            if count == n then break end
            if c == ")" then return nil end
            count, at = count + 1, i + 1
        elseif c:find("[%(%[{]") then
            depth = depth + 1
        elseif c:find("[%)%]}]") then
            depth = depth - 1
        end
    end
    if count ~= n then return nil end
    return line:find("%S", at)
end

local function caret_column(line, message)
    local argument, name = message:match("bad argument #(%d+) to '([%w_]+)'")
    if not name then
        local found = message:match("%(global '([%w_]+)'%)") or message:match("%(local '([%w_]+)'%)")
            or message:match("%(method '([%w_]+)'%)") or message:match("%(field '([%w_]+)'%)")
        return found and (only_place(line, "%f[%w_]" .. found .. "%f[^%w_]"))
    end
    local _, open = only_place(line, "%f[%w_]" .. name .. "%s*%(")
    if open then
        local method = line:find(":" .. name .. "%s*%(")
        return argument_column(line, open, tonumber(argument))
            or (method and method + 1)
    end
    local operator = OPERATORS[name]
    return operator and (only_place(line, "%f[%p]" .. operator:gsub("%p", "%%%0") .. "%f[^%p]")
        or only_place(line, operator:gsub("%p", "%%%0")))
end

-- ---- names that may have been meant ----

local function names_of(t)
    local names = {}
    while type(t) == "table" do
        for name in next, t do if type(name) == "string" then names[#names + 1] = name end end
        local meta = prompt.debug_getmetatable(t)
        t = type(meta) == "table" and rawget(meta, "__index")
    end
    return names
end

-- The table that the one path before ".name" or ":name" in the line stands for, and that path.
local function owner_of(line, name)
    local path, sign = line:match("([%a_][%w_.]*)([.:])" .. name .. "%f[^%w_]")
    local value = path and prompt.value_of(path)
    if type(value) == "string" then value = string end
    if type(value) == "table" then return value, path .. sign end
end

-- What other languages write: in the message, in the line, what to write here.
local HABITS = {
    {"near", "[%w_%])]%s*[-+*/%%]=", "write x = x + y, or x:add_(y)"},
    {"near '!'", "!=", "write x ~= y, or x:ne(y) for a mask"},
    {"near '!'", "!", "write not x, or ~x of a mask"},
    {"near '%*'", "%*%*", "write x ^ y"},
    {"near '@'", "@", "write x:matmul(y)"},
    {"near '&'", "&&", "write x and y, or x & y of masks"},
    {"near '|'", "||", "write x or y, or x | y of masks"},
    {"'%]' expected near ','", "[%w_%])]%[", "write x[{1, 2}], x(1, 2) or x[\"1, 2:3\"]"},
    {"near ':'", "[%w_%])]%[[^%]]*:", "write x[\"2:5\"]: text, from 1 on, both ends included"},
    {"near '='", "^%s*%l*if%f[%W]", "write x == y to compare"},
    {"near '='", "^%s*while%f[%W]", "write x == y to compare"},
    {"near '='", "%(.*[%a_][%w_]*%s*=", "options stand in a table: f(x, {name = value})"},
    {"near '%['", "%[", "lists are written {1, 2, 3}"},
    {"near 'repeat'", ":%s*repeat", "write x:tile(n, ...)"},
    {"near", "^%s*import%s", "write name = require \"name\""},
}

local function habit(message, line)
    for _, row in ipairs(HABITS) do
        if message:find(row[1]) and line:find(row[2]) then return row[3] end
    end
end

local function suggestion(message, line)
    local advice = line and habit(message, line)
    if advice then return advice end
    local op = message:match("bad argument #1 to '([%w_]+)' %(tensor expected")
    local object = op and line and line:match("([%a_][%w_]*)%s*%.%s*" .. op .. "%s*%(")
    if object and luma.is_tensor(prompt.value_of(object)) then
        return ("did you mean %s:%s(?"):format(object, op)
    end
    local name = message:match("a nil value %(global '([%w_]+)'%)")
    if name then
        for _, text in ipairs(prompt.inputs) do
            if text:find("%f[%w_]local%f[^%w_][^=]*%f[%w_]" .. name .. "%f[^%w_]") then
                return ("%s was local to its input: at the prompt, leave out 'local'"):format(name)
            end
        end
        if rawget(luma, name) ~= nil then return ("did you mean luma.%s?"):format(name) end
        local instead = tensor_meta.foreign(name)
        if instead then return ("luma has no '%s'; %s"):format(name, instead) end
        local near = #name > 1 and nearest(name, names_of(G))[1]
        return near and ("did you mean %s?"):format(near)
    end
    name = message:match("a nil value %(field '([%w_]+)'%)")
        or message:match("a nil value %(method '([%w_]+)'%)")
    if not name or not line then return nil end
    local owner, path = owner_of(line, name)
    local near = owner and nearest(name, names_of(owner))[1]
    return near and ("did you mean %s%s?"):format(path, near)
end

-- ---- the message ----

-- The traceback without the frames of the prompt and of luma's own files; nothing where it names no
-- function of the user's beside the input itself.
local function own_frames(trace)
    trace = trace:gsub("\n\t%(%.%.%.tail calls%.%.%.%)", "\1")
    trace = trace:gsub("\n\tluma/[%w_]+%.lua:[^\n\1]*\1?", ""):gsub("\1", "\n\t(...tail calls...)")
    local _, frames = trace:gsub("\n\t", "")
    local _, of_c = trace:gsub("\n\t%[C%]", "")
    return frames - of_c > 1 and trace or trace:gsub("\nstack traceback:.*$", "")
end

-- The message with the line of the input it speaks of under it, where that is not plain to see.
function M.explain(message, paint)
    message = tostring(message)
    local first, rest = message:match("^([^\n]*)(.*)$")
    local lines = {paint(first, "red")}
    local input, number = first:match("^input (%d+):(%d+):")
    local text = input and prompt.inputs[math.tointeger(tonumber(input))]
    local line = text and line_of(text, math.tointeger(tonumber(number)))
    if line and line:find("%S") then
        local column = caret_column(bare(line), first)
        if column or text ~= prompt.inputs[#prompt.inputs] or text:find("\n", 1, true) then
            lines[#lines + 1] = "  " .. line
            if column then
                lines[#lines + 1] = "  " .. line:sub(1, column - 1):gsub("[^\t]", " ")
                    .. paint("^", "green")
            end
        end
    end
    lines[#lines + 1] = suggestion(first, line and bare(line))
    return table.concat(lines, "\n") .. own_frames(rest)
end

return M
