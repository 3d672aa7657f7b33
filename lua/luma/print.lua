-- print.lua -- tensors as text: braces that paste back into luma.tensor, aligned columns, then
-- dtype, shape and device. Layer: lua, on the public module.
local luma, part = ...

local settings = {
    precision = 4,     -- significant digits to which every float can be read back
    threshold = 1000,  -- elements above which the middle is left out
    edge = 3,          -- positions shown at either end of a dim whose middle is left out
    width = "auto",    -- columns of a line; "auto": the terminal's
}

local GAP = "..."
local BIGGEST_EXPONENT = 7 -- of numbers written without one

local function line_width()
    if settings.width ~= "auto" then return settings.width end
    return luma.config().columns or 80
end

local function shape_text(x)
    return table.concat(x.shape, "x")
end

-- ---- numbers ----

-- Digits after the point that v needs: of its mantissa, and written without an exponent.
local function digits_needed(v)
    local mantissa, exponent = ("%." .. settings.precision - 1 .. "e"):format(v)
        :match("^-?(.-)0*e(.*)$")
    local digits = math.max(0, #mantissa - 2)
    exponent = tonumber(exponent)
    return digits, math.max(0, digits - exponent), exponent
end

-- Values that would overflow when their text, rounded up, is read as the dtype.
local GREATEST = {float32 = 0x1.fffffep127, float64 = 0x1.fffffffffffffp1023}

-- The format in which each of the finite values can be read back.
local function float_format(values, dtype)
    local mantissa, decimals, biggest, greatest = 0, 1, 0, 0
    for _, v in ipairs(values) do
        if v - v == 0 and v ~= 0 then
            greatest = math.max(greatest, math.abs(v))
            local m, d, e = digits_needed(v)
            mantissa = math.max(mantissa, m)
            decimals = math.max(decimals, d)
            biggest = math.max(biggest, e)
        end
    end
    if biggest > BIGGEST_EXPONENT or decimals > settings.precision + 3 then
        local limit = GREATEST[dtype] or math.huge
        while tonumber(("%." .. mantissa .. "e"):format(greatest)) > limit do
            mantissa = mantissa + 1
        end
        return "%." .. mantissa .. "e"
    end
    return "%." .. decimals .. "f"
end

local function float_text(format, v)
    if v ~= v then return "nan" end
    if v - v ~= 0 then return v > 0 and "inf" or "-inf" end
    return format:format(v)
end

-- The shortest text that gives v when it is read as dtype.
local function exact_text(v, dtype)
    if math.type(v) ~= "float" then return tostring(v) end
    if v - v ~= 0 then return float_text("", v) end
    local text
    for digits = 1, 17 do
        text = ("%." .. digits .. "g"):format(v)
        local read = luma.tensor(tonumber(text) + 0.0, {dtype = dtype, device = "cpu"})
        if read:item() == v then break end
    end
    return text:find("[.e]") and text or text .. ".0"
end

local function collect(values, list, depth)
    for _, v in ipairs(list) do
        if depth > 1 then collect(values, v, depth - 1) else values[#values + 1] = v end
    end
    return values
end

-- A function from a value to its text.
local function value_writer(values, dtype)
    if math.type(values[1]) == "float" then
        local format = float_format(values, dtype)
        return function(v) return float_text(format, v) end
    end
    return tostring
end

-- ---- what is shown ----

-- The greatest number of positions at either end with which no more than the threshold is shown.
local function edge_of(x)
    local edge = settings.edge
    while edge > 1 do
        local shown = 1
        for _, size in ipairs(x.shape) do shown = shown * math.min(size, 2 * edge) end
        if shown <= settings.threshold then break end
        edge = edge - 1
    end
    return edge
end

-- x without the middle of its dims from dim on: only the corners are read.
local function corners(x, edge, dim)
    if dim > x.ndim then return x end
    local size = x:size(dim)
    if size <= 2 * edge then return corners(x, edge, dim + 1) end
    return luma.cat({corners(x:narrow(dim, 1, edge), edge, dim + 1),
        corners(x:narrow(dim, size - edge + 1, edge), edge, dim + 1)}, dim)
end

-- ---- braces ----

-- Joins the texts of one innermost list, broken into lines; room for `closing` braces after the last.
local function join(texts, indent, width, closing)
    local lines, line = {}, ""
    for i, text in ipairs(texts) do
        if i < #texts then text = text .. "," end
        if line == "" then
            line = text
        elseif indent + #line + 1 + #text > width - (i == #texts and closing or 0) then
            lines[#lines + 1] = line
            line = text
        else
            line = line .. " " .. text
        end
    end
    lines[#lines + 1] = line
    return table.concat(lines, "\n" .. (" "):rep(indent))
end

local function braces(list, depth, page)
    local gap = page.gap[depth]
    local texts = {}
    for i, item in ipairs(list) do
        if gap and i == gap + 1 then texts[#texts + 1] = GAP end
        if depth < page.ndim then
            texts[#texts + 1] = braces(item, depth + 1, page)
        else
            texts[#texts + 1] = page.text(item)
        end
    end
    if depth == page.ndim then
        return "{" .. join(texts, depth, page.width, page.ndim) .. "}"
    end
    local between = ",\n" .. (depth + 1 < page.ndim and "\n" or "") .. (" "):rep(depth)
    return "{" .. table.concat(texts, between) .. "}"
end

local function pad_left(text, values)
    local width = 0
    for _, v in ipairs(values) do width = math.max(width, #text(v)) end
    local format = "%" .. width .. "s"
    return function(v) return format:format(text(v)) end
end

-- A released tensor has no fields: it is shown, not raised.
local function is_released(x) return not pcall(function() return x.ndim end) end

local RELEASED = "Tensor[released]"

-- Whether x has more places than are shown; a table of empty ones too has many.
local function is_long(x)
    local n = 1
    for _, size in ipairs(x.shape) do
        if size == 0 then break end
        n = n * size
        if n > settings.threshold then return true end
    end
    return false
end

local function tensor_text(x)
    if is_released(x) then return RELEASED end
    if x.ndim == 0 then return exact_text(x:item(), x.dtype) end
    local page = {ndim = x.ndim, width = line_width(), gap = {}}
    local shown = x
    if is_long(x) then
        local edge = edge_of(x)
        for dim, size in ipairs(x.shape) do page.gap[dim] = size > 2 * edge and edge or nil end
        shown = corners(x, edge, 1)
    end
    local list = shown:totable()
    local values = collect({}, list, x.ndim)
    page.text = value_writer(values, x.dtype)
    local text
    if x.ndim == 1 then text = braces(list, 1, page) end
    if not text or text:find("\n", 1, true) then
        page.text = pad_left(page.text, values)
        text = braces(list, 1, page)
    end
    return ("%s\n[%s %s %s]"):format(text, x.dtype, shape_text(x), x.device)
end

local function tensor_line(x)
    if is_released(x) then return RELEASED end
    local shape = x.ndim == 0 and "0-d" or shape_text(x)
    return ("Tensor[%s %s %s]"):format(x.dtype, shape, x.device)
end

-- ---- other values: what the prompt shows ----

local show

local function key_text(k)
    if type(k) == "string" and k:find("^[%a_][%w_]*$") then return k end
    return "[" .. show(k, {}, "") .. "]"
end

local function sorted_keys(t)
    local keys = {}
    for k in next, t do
        if not (math.type(k) == "integer" and k >= 1 and k <= rawlen(t)) then keys[#keys + 1] = k end
    end
    table.sort(keys, function(a, b)
        if type(a) ~= type(b) then return type(a) < type(b) end
        if type(a) == "number" or type(a) == "string" then return a < b end
        return tostring(a) < tostring(b)
    end)
    return keys
end

local MOST_ITEMS = 60 -- of a table

local function show_table(t, seen, indent)
    if seen[t] or #indent > 12 then return tostring(t) end
    seen[t] = true
    local inner = indent .. "  "
    local items, keys = {}, sorted_keys(t)
    local total = rawlen(t) + #keys
    for i = 1, math.min(rawlen(t), MOST_ITEMS) do items[i] = show(rawget(t, i), seen, inner) end
    for i = 1, math.min(#keys, MOST_ITEMS - #items) do
        items[#items + 1] = key_text(keys[i]) .. " = " .. show(rawget(t, keys[i]), seen, inner)
    end
    if #items < total then items[#items + 1] = ("... %d more"):format(total - #items) end
    seen[t] = nil
    local line = "{" .. table.concat(items, ", ") .. "}"
    if #indent + #line <= line_width() and not line:find("\n", 1, true) then return line end
    return "{\n" .. inner .. table.concat(items, ",\n" .. inner) .. "\n" .. indent .. "}"
end

function show(v, seen, indent)
    if luma.is_tensor(v) then return tensor_line(v) end
    if type(v) == "string" then return ("%q"):format(v) end
    local meta = getmetatable(v)
    if type(v) ~= "table" or type(meta) == "table" and meta.__tostring then return tostring(v) end
    return show_table(v, seen, indent)
end

-- ---- the module ----

local M = {}

-- What a device finds when it is waited for belongs to the line that shows the tensor.
function M.tostring(x)
    local good, text = pcall(tensor_text, x)
    if good then return text end
    local reason = type(text) == "string" and text:match("^luma/print%.lua:%d+: (.*)$")
    if not reason then error(text, 0) end
    error((reason:gsub("^%l+: ", "tostring: ")), 3)
end

-- Text of any value: tables with what is in them, tensors in them on one line.
function M.show(v)
    if type(v) == "table" then return show(v, {}, "") end
    return tostring(v)
end

local function bad(text)
    error("bad argument #1 to 'set_print' (" .. text .. ")", 3)
end

local LOWEST = {precision = 1, threshold = 0, edge = 1, width = 20}
local HIGHEST = {precision = 17, threshold = math.maxinteger, edge = 1000, width = 10000}

-- Changes the given settings and returns the old ones, all of them.
function M.set_print(options)
    if type(options) ~= "table" then bad("table expected, got " .. type(options)) end
    local old, new = {}, {}
    for name, value in pairs(settings) do old[name], new[name] = value, value end
    for name, value in pairs(options) do
        if not LOWEST[name] then
            bad(part("options")(name, LOWEST))
        elseif name == "width" and value == "auto" then
            new.width = value
        else
            local n = math.tointeger(value)
            if not n or type(value) ~= "number" or n < LOWEST[name] or n > HIGHEST[name] then
                bad(("%s must be a whole number from %d to %d"):format(name, LOWEST[name],
                    HIGHEST[name]))
            end
            new[name] = n
        end
    end
    settings = new
    return old
end

return M
