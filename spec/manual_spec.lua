-- The examples of MANUAL.md and README.md: each ```lua block is run, and what follows --> in it is
-- what it prints. Positions before error messages are left out. A block without a language that begins
-- with "> " is what the prompt shows. In the tables of the guide for users of other libraries, the
-- luma column is run too.
local luma = require "luma"
local device = require "spec.support.device"
local program = require "spec.support.program"

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

-- ---- what the prompt shows ----

local function sessions_of(path)
    local file = assert(io.open(path))
    local list, block = {}, nil
    local number = 0
    for line in file:lines() do
        number = number + 1
        if line:find("^```") then
            if block and block.typed[1] then list[#list + 1] = block end
            block = not block and {line = number, typed = {}, shown = {}, language = line:sub(4)} or nil
        elseif block and block.language == "" then
            local typed = line:match("^>>? (.*)$")
            if typed then
                table.insert(block.typed, typed)
            elseif block.typed[1] then
                table.insert(block.shown, line)
            end
        end
    end
    file:close()
    return list
end

-- ---- the guide ----

-- Every piece of code in the last column of the guide's tables, with its line.
local function guide_code()
    local file = assert(io.open("MANUAL.md"))
    local list, number, inside = {}, 0, false
    for line in file:lines() do
        number = number + 1
        if line:find("^## ") then inside = line:find("^## Coming from") ~= nil end
        local cell = inside and line:match("^|.*|([^|]*)|$")
        for code in (cell or ""):gmatch("`([^`]*)`") do
            if code:find("[(%[.{]") and not code:find("cuda:0", 1, true) and not code:find("^%.npy") then
                list[#list + 1] = {line = number, text = code}
            end
        end
    end
    file:close()
    return list
end

local function run_guide_code(code)
    local path = os.tmpname()
    os.remove(path)
    local x = luma.rand(3, 4)
    local environment = {luma = luma, x = x, y = x:clone(), z = x:clone(), a = x, b = luma.rand(4, 2),
        v = luma.rand(3), m = x:gt(0.5), i = luma.range(1, 3), p = path .. ".npy"}
    luma.save(environment.p, x)
    local chunk = load("return " .. code, "=guide", "t", environment)
        or assert(load(code, "=guide", "t", environment))
    local good, message = pcall(chunk)
    os.remove(environment.p)
    return good, message
end

describe("the guide for users of other libraries", function()
    local list = guide_code()
    it("has code", function() assert.is_true(#list > 80) end)
    it("has a luma column that runs", function()
        local threads, print_before = luma.config().threads, luma.set_print{}
        for _, code in ipairs(list) do
            if not code.text:find("cuda.module", 1, true) then
                local good, message = run_guide_code(code.text)
                assert.is_true(good, ("MANUAL.md:%d: %s: %s"):format(code.line, code.text, message))
            end
        end
        luma.set_num_threads(threads)
        luma.set_print(print_before)
    end)
end)

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

        for _, session in ipairs(sessions_of(path)) do
            it("shows what the prompt does at line " .. session.line, function()
                if not program.is_luma then return pending("needs the luma program") end
                local output = program.run({"-i"}, table.concat(session.typed, "\n") .. "\n")
                assert.equal(table.concat(session.shown, "\n") .. "\n", output)
            end)
        end
    end)
end
