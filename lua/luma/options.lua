-- options.lua -- what is said of an option that a function of lua/luma does not know. Layer: lua.
local _, part = ...
local nearest = part("nearest")

-- known: a table whose keys are the options there are.
return function(key, known)
    local names = {}
    for name in pairs(known) do names[#names + 1] = name end
    table.sort(names)
    local near = type(key) == "string" and nearest(key, names)[1]
    if near then return ("unknown option '%s'; did you mean '%s'?"):format(key, near) end
    return ("unknown option '%s'; there are %s"):format(tostring(key), table.concat(names, ", "))
end
