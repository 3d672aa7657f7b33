-- endless.lua -- never comes back, and catches what it can.
function draw()
    while true do
        pcall(function() local s = ("a"):rep(1000) s:find((".-"):rep(20) .. "b") end)
    end
end
