-- nearest.lua -- the names that a misspelt one may have meant. Layer: lua.

-- How many letters must change, be added, be left out or change places with their neighbour to turn
-- a into b (optimal string alignment).
local function distance(a, b)
    local row, last, before = {}
    for j = 0, #b do row[j] = j end
    for i = 1, #a do
        before, last, row = last, row, {[0] = i}
        for j = 1, #b do
            local change = last[j - 1] + (a:byte(i) == b:byte(j) and 0 or 1)
            row[j] = math.min(change, last[j] + 1, row[j - 1] + 1)
            if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
                row[j] = math.min(row[j], before[j - 2] + 1)
            end
        end
    end
    return row[#b]
end

-- At most three of the list, the nearest first; names that contain it count too.
local function nearest(name, known)
    local list = {}
    for _, other in ipairs(known) do
        local d = distance(name, other)
        local part = #name > 2 and other:find(name, 1, true)
        if part or d <= math.max(1, #name // 3) then list[#list + 1] = {d, other} end
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
