-- bytes.lua -- a number of bytes as text, in the units that messages of the core have. Layer: lua.
local UNITS = {"B", "KiB", "MiB", "GiB", "TiB"}

return function(n)
    local i = 1
    while n >= 1024 and i < #UNITS do n, i = n / 1024, i + 1 end
    return (i == 1 and "%d %s" or "%.1f %s"):format(n, UNITS[i])
end
