-- support.lua -- which dtypes an operation takes on a device: of elementwise rows the registry knows it,
-- of the others their examples are run with tensors of each dtype. Layer: lua.
local luma, part, tensor_meta = ...

local M = {}
local DTYPES = tensor_meta.dtypes

-- What an example has for luma: tensors are made on the device, those of the default dtype in `dtype`;
-- where `first`, the first one is, whatever it would be. state.cast: some tensor was.
local function stand_in(dtype, device, first, state)
    local own = {}
    for _, row in ipairs(luma.ops) do
        own[row.name] = row.row == "make" and function(...)
            local x = luma[row.name](...)
            if not luma.is_tensor(x) then return x end
            local cast = first and not state.cast or not first and x.dtype == luma.get_default_dtype()
            state.cast = state.cast or cast
            return x:to(cast and dtype or x.dtype, device)
        end or nil
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
    if row.takes == "floats" and dtype.kind ~= "float" then return luma.get_default_dtype() end
    if row.takes == "numbers" and dtype.kind == "bool" then return "int64" end
    return dtype.name
end

-- By dtype whether the example runs, where it makes tensors; chance stays as it was.
local function tried(row, device)
    local code = part("examples")[row.name]
    if not code or not load then return nil end
    local states = {[device] = luma.get_rng_state(device), cpu = luma.get_rng_state("cpu")}
    local taken, any = {}, false
    for _, first in ipairs{false, true} do
        for _, dtype in ipairs(DTYPES) do
            local good, cast = runs(code, dtype.name, device, first)
            taken[dtype.name], any = good, any or cast
        end
        if any then break end
    end
    for name, state in next, states do luma.set_rng_state(state, name) end
    return any and taken or nil
end

local known = {} -- by device and operation

-- By dtype whether a device takes it; nil where nobody knows.
function M.taken(row, device)
    if row.inputs == 0 then
        local key = device .. " " .. row.name
        if known[key] == nil then known[key] = tried(row, device) or false end
        return known[key] or nil
    end
    local taken = {}
    for _, dtype in ipairs(DTYPES) do
        taken[dtype.name] = luma.supports(row.name, computed_in(row, dtype), device)
    end
    return taken
end

return M
