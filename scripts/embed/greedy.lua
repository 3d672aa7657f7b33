-- greedy.lua -- takes memory until there is no more.
local kept = {}
function draw()
    while true do kept[#kept + 1] = luma.ones(100, 100) end
end
