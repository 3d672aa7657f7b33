-- busted_modules.lua -- what busted is made of, for gpu-check --pack: runs a spec, then prints a line
-- for each package that was loaded: the folder where it lies, a tab, its name.
--     luma scripts/dev/busted_modules.lua busted
local name = os.tmpname()
local spec = name .. ".lua"
local file = assert(io.open(spec, "w"))
assert(file:write [[
describe("what specs use", function()
    it("is loaded", function()
        assert.equal(1, 1)
        assert.same({}, {})
        assert.matches("a", "a")
    end)
end)
]])
file:close()
local busted = arg[1]
arg = {[0] = busted, "--output=plainTerminal", spec} -- luacheck: ignore
dofile(busted)
os.remove(spec)
os.remove(name)

local seen = {}
for module in pairs(package.loaded) do
    local path = package.searchpath(module, package.path) or package.searchpath(module, package.cpath)
    local at = path and path:find("/" .. module:gsub("%.", "/"), 1, true)
    local line = at and path:sub(1, at - 1) .. "\t" .. module:match("^[^.]*")
    if line and not seen[line] then print(line) end
    seen[line or ""] = true
end
