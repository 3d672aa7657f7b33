-- crooked.lua -- looks for a way out.
function draw()
    assert(not (io or debug or package or dofile or os.execute))
    assert(not pcall(luma.load, "/etc/passwd"))
    assert(not pcall(setmetatable, {}, {__gc = print}))
    luma.zeros(1):expand(1 << 40):clone()
end
