-- kernel.lua -- luma.kernel: functions of several elementwise operations that are written as an
-- expression, and luma.fuse, which makes them of Lua functions. Layer: lua, on bindings/fused.c.
local luma, part, tensor_meta = ...
local unknown_option = part("options")
local nearest = part("nearest")
local methods, fuse = tensor_meta.methods, tensor_meta.fuse

local LONGEST, DEEPEST = 20000, 100 -- characters; parentheses in parentheses

-- ---- reading expressions ----

-- Higher binds tighter, as in Lua; unary operators stand between % and ^.
local LEVEL = {
    ["<"] = 3, [">"] = 3, ["<="] = 3, [">="] = 3, ["~="] = 3, ["=="] = 3, ["|"] = 4, ["~"] = 5,
    ["&"] = 6, ["+"] = 9, ["-"] = 9, ["*"] = 10, ["/"] = 10, ["//"] = 10, ["%"] = 10, ["^"] = 12,
}
local UNARY_LEVEL = 11
local INSTEAD = {
    ["and"] = "& of masks, or where(mask, a, b)", ["or"] = "| of masks, or where(mask, a, b)",
    ["not"] = "logical_not(x)", ["<<"] = "lshift(x, y)", [">>"] = "rshift(x, y)",
    [".."] = "+", ["#"] = "a number", ["="] = "==", ["!="] = "~=", ["&&"] = "&", ["||"] = "|",
}
local SYMBOLS = {"//", "<=", ">=", "~=", "==", "<<", ">>", "..", "!=", "&&", "||"}
local CONSTANTS = {["math.pi"] = math.pi, ["math.huge"] = math.huge}

local function fail(r, format, ...)
    error({r.text, format:format(...)}, 0)
end

local NUMBERS = {"^0[xX][%x.]+[pP][+-]?%d+", "^0[xX][%x.]+", "^[%d.]+[eE][+-]?%d+", "^[%d.]+"}

-- The next word of the text: its kind ("name", "number", "symbol", "end") and what it is.
local function advance(r)
    local at = r.text:find("%S", r.at)
    r.from = at or #r.text + 1
    if not at then
        r.kind, r.word = "end", "the end"
        return
    end
    local word = r.text:match("^[%a_][%w_.]*", at)
    if word then
        r.kind = INSTEAD[word] and "symbol" or "name"
    elseif r.text:find("^%.?%d", at) then
        for _, pattern in ipairs(NUMBERS) do
            word = word or r.text:match(pattern, at)
        end
        r.kind, r.value = "number", tonumber(word)
        if not r.value or r.text:find("^[%w_.]", at + #word) then
            fail(r, "malformed number near '%s'", r.text:sub(at, at + 15))
        end
    else
        word = r.text:sub(at, at)
        for _, symbol in ipairs(SYMBOLS) do
            if r.text:sub(at, at + 1) == symbol then word = symbol end
        end
        r.kind = "symbol"
    end
    r.word, r.at = word, at + #word
end

local function is_symbol(r, word)
    return r.kind == "symbol" and r.word == word
end

local function expect(r, word)
    if not is_symbol(r, word) then
        fail(r, "'%s' expected near '%s'", word, r.word)
    end
    advance(r)
end

local expression

-- What follows a name: a call, or nothing.
local function named(r, name)
    if not is_symbol(r, "(") then
        if CONSTANTS[name] then return {kind = "number", value = CONSTANTS[name]} end
        if name:find(".", 1, true) then fail(r, "'%s' is no name of a parameter", name) end
        if not r.known[name] then
            if r.closed then fail(r, "'%s' is not among the parameters", name) end
            r.known[name] = true
            r.params[#r.params + 1] = name
        end
        return {kind = "name", name = name}
    end
    name = name:gsub("^luma%.", "")
    if not r.functions[name] then
        local near = nearest(name, r.names)[1]
        local no_row = methods[name] and "'%s' is not elementwise" or "there is no function '%s'"
        fail(r, no_row .. "%s", name, near and not methods[name] and "; near it: " .. near or "")
    end
    advance(r)
    local args = {}
    while not is_symbol(r, ")") do
        if #args > 0 then expect(r, ",") end
        args[#args + 1] = expression(r, 0)
    end
    advance(r)
    return {kind = "call", name = name, args = args}
end

local function operand(r)
    local kind, word, value = r.kind, r.word, r.value
    if kind == "symbol" and (word == "-" or word == "~") then
        advance(r)
        return {kind = word == "-" and "neg" or "bitwise_not", expression(r, UNARY_LEVEL)}
    end
    if INSTEAD[word] then fail(r, "'%s' is not here: use %s", word, INSTEAD[word]) end
    if kind == "end" or (kind == "symbol" and word ~= "(") then
        fail(r, "unexpected %s", kind == "end" and word or "'" .. word .. "'")
    end
    advance(r)
    if kind == "number" then return {kind = "number", value = value} end
    if kind == "name" then return named(r, word) end
    local inner = expression(r, 0)
    expect(r, ")")
    return inner
end

-- Operators that bind tighter than `level`.
function expression(r, level)
    r.depth = r.depth + 1
    if r.depth > DEEPEST then fail(r, "the expression is nested too deeply") end
    local left = operand(r)
    while r.kind == "symbol" and LEVEL[r.word] and LEVEL[r.word] > level do
        local operator = r.word
        advance(r)
        -- ^ binds to the right
        local right = expression(r, operator == "^" and LEVEL["^"] - 1 or LEVEL[operator])
        left = {kind = operator, left, right}
    end
    if r.kind == "symbol" and INSTEAD[r.word] then
        fail(r, "'%s' is not here: use %s", r.word, INSTEAD[r.word])
    end
    r.depth = r.depth - 1
    return left
end

-- The elementwise rows, and what luma.define has added.
local function functions()
    local known, names = {}, {}
    for _, row in ipairs(luma.ops) do
        if (row.inputs > 0 or row.row == "defined") and methods[row.name] then
            known[row.name] = true
            names[#names + 1] = row.name
        end
    end
    return known, names
end

-- The tree of an expression and its parameters in order; those given are all there may be.
local function parse(text, given)
    local r = {text = text, at = 1, depth = 0, known = {}, params = {}, closed = given ~= nil}
    r.functions, r.names = functions()
    for _, name in ipairs(given or {}) do
        r.known[name] = true
        r.params[#r.params + 1] = name
    end
    advance(r)
    local tree = expression(r, 0)
    if r.kind ~= "end" then fail(r, "unexpected '%s'", r.word) end
    return tree, r.params
end

-- ---- what expressions mean ----

local function both_numbers(a, b)
    return type(a) == "number" and type(b) == "number"
end

local OPERATORS = {
    ["+"] = function(a, b) return a + b end,
    ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end,
    ["//"] = function(a, b) return a // b end,
    ["%"] = function(a, b) return a % b end,
    ["^"] = function(a, b) return a ^ b end,
    ["&"] = function(a, b) return a & b end,
    ["|"] = function(a, b) return a | b end,
    ["~"] = function(a, b) return a ~ b end,
    neg = function(a) return -a end,
    bitwise_not = function(a) return ~a end,
    ["<"] = function(a, b) if both_numbers(a, b) then return a < b end return methods.lt(a, b) end,
    ["<="] = function(a, b) if both_numbers(a, b) then return a <= b end return methods.le(a, b) end,
    [">"] = function(a, b) if both_numbers(a, b) then return a > b end return methods.gt(a, b) end,
    [">="] = function(a, b) if both_numbers(a, b) then return a >= b end return methods.ge(a, b) end,
    ["=="] = function(a, b) if both_numbers(a, b) then return a == b end return methods.eq(a, b) end,
    ["~="] = function(a, b) if both_numbers(a, b) then return a ~= b end return methods.ne(a, b) end,
}

local function evaluate(node, values)
    if node.kind == "number" then return node.value end
    if node.kind == "name" then return values[node.name] end
    if node.kind ~= "call" then
        local a = evaluate(node[1], values)
        return OPERATORS[node.kind](a, node[2] and evaluate(node[2], values))
    end
    local args = {}
    for i, arg in ipairs(node.args) do args[i] = evaluate(arg, values) end
    return methods[node.name](table.unpack(args, 1, #node.args))
end

-- ---- the functions ----

local function bad(level, position, name, format, ...)
    error(("bad argument #%d to '%s' (%s)"):format(position, name, format:format(...)), level + 1)
end

local function read_options(options, position, name)
    if options == nil then return {} end
    if type(options) ~= "table" then
        bad(3, position, name, "options expected, got %s", type(options))
    end
    for key in next, options do
        if key ~= "name" then bad(3, position, name, "%s", unknown_option(key, {name = true})) end
    end
    if options.name ~= nil and type(options.name) ~= "string" then
        bad(3, position, name, "option 'name': string expected, got %s", type(options.name))
    end
    return options
end

local function check_parameters(params)
    local seen = {}
    for i, name in ipairs(params) do
        if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") or INSTEAD[name] then
            bad(3, 1, "kernel", "[%d]: a name expected, got %s", i, luma.show(name))
        end
        if seen[name] then bad(3, 1, "kernel", "[%d]: '%s' stands there twice", i, name) end
        seen[name] = true
    end
end

local M = {}

function M.kernel(params, text, options)
    local at = 2
    if type(params) ~= "table" then
        params, text, options, at = nil, params, text, 1
    else
        check_parameters(params)
    end
    if type(text) ~= "string" then bad(2, at, "kernel", "an expression expected, got %s", type(text)) end
    if #text > LONGEST then bad(2, at, "kernel", "at most %d characters can be", LONGEST) end
    options = read_options(options, at + 1, "kernel")
    local name = options.name or "kernel"
    local parsed, tree, names = pcall(parse, text, params)
    if not parsed then
        if type(tree) ~= "table" then error(tree, 0) end
        bad(2, at, "kernel", "\"%s\": %s", tree[1]:sub(1, 60), tree[2])
    end
    local function run(...)
        local values = {}
        for i, parameter in ipairs(names) do values[parameter] = (select(i, ...)) end
        return (evaluate(tree, values))
    end
    local made, kernel = pcall(fuse, run, name, {name = name, text = text, params = names}, #names)
    if not made then
        if type(kernel) ~= "string" then error(kernel, 0) end
        bad(2, at, "kernel", "\"%s\": %s", text:sub(1, 60), kernel:gsub("^[^:]*%.lua:%d+: ", ""))
    end
    return kernel
end

function M.fuse(f, options)
    if type(f) ~= "function" then
        bad(2, 1, "fuse", "function expected, got %s", type(f))
    end
    options = read_options(options, 2, "fuse")
    local name = options.name or "fused"
    return fuse(f, name, {name = name})
end

-- ---- what fused functions say of themselves ----

local function call_text(about)
    return ("%s(%s)"):format(about.name, about.params and table.concat(about.params, ", ") or "...")
end

function M.text(about)
    if about.text then return ("luma.kernel: %s = %s"):format(call_text(about), about.text) end
    return "luma.fuse: " .. call_text(about)
end

function M.help(about)
    local lines = {call_text(about)}
    if about.text then
        lines[2] = "    = " .. about.text
        lines[3] = "    elementwise, of tensors that broadcast or of numbers; one pass over memory."
    else
        lines[2] = "    a function of elementwise operations, traced once for the dtypes and ranks of"
        lines[3] = "    its arguments; one pass over memory for each result."
    end
    lines[#lines + 1] = "    options: {out =}"
    return table.concat(lines, "\n")
end

return M
