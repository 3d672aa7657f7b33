-- define.lua -- luma.define: operations of the script's own in the registry. Layer: lua, on
-- bindings/ops.c, which checks their arguments.
local luma, part, tensor_meta = ...
local unknown_option = part("options")
local methods, define = tensor_meta.methods, tensor_meta.define

local OPTIONS = {name = "string", forward = "function", doc = "string", signature = "string"}
local TYPES, ROOM = tensor_meta.types, tensor_meta.room
local RESERVED = {} -- fields of tensors, and words that no name may be
for _, field in ipairs(tensor_meta.fields) do RESERVED[field] = true end
for word in ("and break do else elseif end false for function goto if in local nil not or repeat return"
             .. " then true until while"):gmatch("%a+") do
    RESERVED[word] = true
end
local own = {} -- rows by name, of this state

local function bad(format, ...)
    error(("bad argument #1 to 'define' (%s)"):format(format:format(...)), 3)
end

-- What is wrong with a signature by the grammar of core/op.h: "x, y:operand, dim:dim?, {keepdim:bool}".
local function signature_fault(text)
    if #text > ROOM.signature then return ("at most %d characters can be"):format(ROOM.signature) end
    local plain, options = text:match("^([^{}]*)(.*)$")
    local inner = options:match("^{([^{}]*)}$")
    if options ~= "" and not inner then return "options stand in one pair of braces at the end" end
    local seen, count, optional = {}, 0, false
    local function fault(list, in_options)
        for word in (list .. ","):gmatch("%s*([^,]-)%s*,") do
            local name, type, mark = word:match("^([%a_][%w_]*):?([%w_|]*)(%??)$")
            if word ~= "" then
                if not name or #name > ROOM.parameter then
                    return ("'%s' is no parameter: name, name:type or name:type?"):format(word)
                end
                if type ~= "" and not TYPES[type] and not type:find("|", 1, true) then
                    return ("'%s' is no type of a parameter"):format(type)
                end
                if seen[name] then return ("'%s' stands there twice"):format(name) end
                if optional and mark == "" and not in_options then
                    return ("'%s' follows one that may be absent"):format(name)
                end
                seen[name], count, optional = true, count + 1, optional or mark == "?"
            end
        end
    end
    local wrong = fault(plain, false) or inner and fault(inner, true)
    if wrong or count <= ROOM.parameters then return wrong end
    return ("%d parameters, at most %d can be"):format(count, ROOM.parameters)
end

local M = {}

function M.define(options)
    if type(options) ~= "table" then bad("options expected, got %s", type(options)) end
    for key, value in next, options do
        if key == "backward" then
            bad("option 'backward': there are no gradients yet, they come with the tape")
        end
        if not OPTIONS[key] then bad("%s", unknown_option(key, OPTIONS)) end
        local callable = OPTIONS[key] == "function" and tensor_meta.fused_about(value)
        if type(value) ~= OPTIONS[key] and not callable then
            bad("option '%s': %s expected, got %s", key, OPTIONS[key], type(value))
        end
    end
    local name, forward, signature = options.name, options.forward, options.signature
    if not name then bad("option 'name': string expected, got nil") end
    if not forward then bad("option 'forward': function expected, got nil") end
    if not name:find("^%a[%w_]*$") or #name > ROOM.name then
        bad("option 'name': '%s' is no name of at most %d letters, digits and _", name:sub(1, 40), ROOM.name)
    end
    if name:find("_$") then
        bad("option 'name': '%s' ends in _, as the names of what writes in place do", name)
    end
    local row = own[name]
    if not row and (luma[name] ~= nil or methods[name] ~= nil or RESERVED[name]) then
        bad("option 'name': '%s' is luma's own", name)
    end
    local wrong = signature and signature_fault(signature)
    if wrong then bad("option 'signature': %s", wrong) end
    local f = define(name, forward, signature)
    if not row then
        row = {name = name, row = "defined", takes = "none", gives = "tensor", inplace = false, inputs = 0,
            lo = 0, hi = 0, ulp = 0, formula = ""}
        own[name] = row
        table.insert(luma.ops, row)
    end
    row.signature, row.doc = signature or "...", options.doc or "Defined by the script."
    luma[name], methods[name] = f, f
    part("help").add(row)
    return f
end

return M
