-- The examples of MANUAL.md and README.md: each ```lua block is run, and what follows --> in it is
-- what it prints. Positions before error messages are left out.
local luma = require "luma"
local device = require "spec.support.device"

local function blocks_of(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    local blocks = {}
    for before, block in text:gmatch("()```lua\n(.-)\n```") do
        local _, line = text:sub(1, before):gsub("\n", "")
        blocks[#blocks + 1] = {line = line + 1, text = block}
    end
    return blocks
end

local function expected_of(block)
    local lines = {}
    for line in (block .. "\n"):gmatch("(.-)\n") do
        local shown = line:match("%-%-> (.*)$")
        if shown then lines[#lines + 1] = shown end
    end
    return device.text(table.concat(lines, "\n"))
end

local function output_of(block, name)
    local lines = {}
    local environment = setmetatable({
        luma = luma,
        print = function(...)
            local texts = table.pack(...)
            for i = 1, texts.n do
                texts[i] = tostring(texts[i]):gsub("^" .. name:gsub("%p", "%%%0") .. ":%d+: ", "")
            end
            lines[#lines + 1] = table.concat(texts, "\t")
        end,
    }, {__index = _G})
    local chunk = assert(load(block, "=" .. name, "t", environment))
    chunk()
    return table.concat(lines, "\n")
end

for _, path in ipairs{"MANUAL.md", "README.md"} do
    describe(path, function()
        local before
        before_each(function() before = luma.set_print{width = 80} end)
        after_each(function() luma.set_print(before) end)

        local blocks = blocks_of(path)
        it("has examples", function() assert.is_true(#blocks > 0) end)
        for _, block in ipairs(blocks) do
            local name = ("%s:%d"):format(path, block.line)
            it("shows what the example at line " .. block.line .. " prints", function()
                assert.equal(expected_of(block.text), output_of(block.text, name))
            end)
        end
    end)
end
