-- nearest.lua -- the names that a misspelt or shortened one may have meant. Layer: lua.
local _, _, tensor_meta = ...
local cost = tensor_meta.name_cost -- of two names; nil: nobody means the one by the other

-- At most three of the list, the nearest first.
local function nearest(name, known)
    local list = {}
    for _, other in ipairs(known) do
        local far = cost(name, other)
        if far then list[#list + 1] = {far, other} end
    end
    table.sort(list, function(a, b)
        if a[1] == b[1] then return a[2] < b[2] end
        return a[1] < b[1]
    end)
    local names = {}
    for i = 1, math.min(3, #list) do names[i] = list[i][2] end
    return names
end

return nearest
