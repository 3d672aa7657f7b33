-- errors.lua -- what the prompt adds to a message: the line it speaks of, a caret under the argument
-- or the operator that is to blame where that is certain, and names that may have been meant.
-- Layer: repl.
local prompt = ...
local luma, G = prompt.luma, prompt.globals
local nearest = prompt.host.file("nearest")()

local M = {}

-- The operators that call an operation.
local OPERATORS = {add = "+", sub = "-", mul = "*", div = "/", floor_div = "//", remainder = "%",
    pow = "^", matmul = "@", bitwise_and = "&", bitwise_or = "|", bitwise_xor = "~", lshift = "<<",
    rshift = ">>", lt = "<", le = "<="}

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

local function suggestion(message)
    local name = message:match("a nil value %(global '([%w_]+)'%)")
    if not name then return nil end
    if luma[name] ~= nil then return ("did you mean luma.%s?"):format(name) end
    local names = {}
    for other in pairs(G) do if type(other) == "string" then names[#names + 1] = other end end
    local near = nearest(name, names)[1]
    return near and ("did you mean %s?"):format(near)
end

-- ---- the message ----

-- The message with the line of the text it speaks of under it.
function M.explain(text, message, paint)
    message = tostring(message)
    local first, rest = message:match("^([^\n]*)(.*)$")
    local lines = {paint(first, "red")}
    local number = math.tointeger(tonumber(first:match("^stdin:(%d+):")))
    local line = number and line_of(text, number)
    if line and line:find("%S") then
        local column = caret_column(bare(line), first)
        if column or text:find("\n", 1, true) then
            lines[#lines + 1] = "  " .. line
            if column then
                lines[#lines + 1] = "  " .. line:sub(1, column - 1):gsub("[^\t]", " ")
                    .. paint("^", "green")
            end
        end
    end
    lines[#lines + 1] = suggestion(first)
    return table.concat(lines, "\n") .. rest
end

return M
