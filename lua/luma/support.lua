-- support.lua -- which dtypes an operation takes on a device: of elementwise rows the registry knows it,
-- of the others their examples are run with tensors of each dtype. Layer: lua.
local luma, part = ...

local M = {}

M.DTYPES = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3", "float16",
    "bfloat16", "float32", "float64"}
local ELEMENTWISE = {unary = true, unary_p = true, test = true, binary = true, compare = true, ternary = true}
local MAKERS = {"tensor", "zeros", "ones", "full", "eye", "range", "linspace", "rand", "randn", "randint"}
local FLOATS = {float8_e4m3 = true, float16 = true, bfloat16 = true, float32 = true, float64 = true}

-- What an example has for luma: tensors are made on the device, those of the default dtype in `dtype`;
-- where `first`, the first one is, whatever it would be. state.cast: some tensor was.
local function stand_in(dtype, device, first, state)
    local own = {}
    for _, name in ipairs(MAKERS) do
        own[name] = function(...)
            local x = luma[name](...)
            if not luma.is_tensor(x) then return x end
            local cast = first and not state.cast or not first and x.dtype == luma.get_default_dtype()
            state.cast = state.cast or cast
            return x:to(cast and dtype or x.dtype, device)
        end
    end
    return setmetatable(own, {__index = luma})
end

local function runs(code, dtype, device, first)
    local state = {}
    local f = load("return " .. code, "=example", "t", {luma = stand_in(dtype, device, first, state)})
    if not f then return nil end
    return pcall(f), state.cast
end

-- The dtype whose kernel serves an argument of dtype; itself where the operation refuses it.
local function computed_in(row, dtype)
    if row.takes == "floats" and not FLOATS[dtype] then return luma.get_default_dtype() end
    if row.takes == "numbers" and dtype == "bool" then return "int64" end
    return dtype
end

-- By dtype whether the example runs, where it makes tensors; chance stays as it was.
local function tried(row, device)
    local code = part("examples")[row.name]
    if not code or not load then return nil end
    local states = {[device] = luma.get_rng_state(device), cpu = luma.get_rng_state("cpu")}
    local taken, any = {}, false
    for _, first in ipairs{false, true} do
        for _, dtype in ipairs(M.DTYPES) do
            local good, cast = runs(code, dtype, device, first)
            taken[dtype], any = good, any or cast
        end
        if any then break end
    end
    for name, state in next, states do luma.set_rng_state(state, name) end
    return any and taken or nil
end

local known = {} -- by device and operation

-- By dtype whether a device takes it; nil where nobody knows.
function M.taken(row, device)
    if not ELEMENTWISE[row.row] then
        local key = device .. " " .. row.name
        if known[key] == nil then known[key] = tried(row, device) or false end
        return known[key] or nil
    end
    local taken = {}
    for _, dtype in ipairs(M.DTYPES) do
        taken[dtype] = luma.supports(row.name, computed_in(row, dtype), device)
    end
    return taken
end

return M
