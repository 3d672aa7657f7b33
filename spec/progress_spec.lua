-- luma.progress: loops as without it; what it writes.
local luma = require "luma"
local program = require "spec.support.program"

describe("luma.progress", function()
    it("loops over counts, lists, tensors and iterators as without it", function()
        local sum = 0
        for i in luma.progress(4) do sum = sum + i end
        assert.equal(10, sum)
        for _ in luma.progress(0) do error("no element") end
        local seen = {}
        for i, v in luma.progress({"a", "b"}) do seen[i] = v end
        assert.same({"a", "b"}, seen)
        for i, row in luma.progress(luma.tensor{{1, 2}, {3, 4}}) do seen[i] = row:sum():item() end
        assert.same({3.0, 7.0}, seen)
        local keys = 0
        for k, v in luma.progress(pairs{x = 1, y = 2}) do keys = keys + #k + v end
        assert.equal(5, keys)
    end)

    it("refuses anything else, by name", function()
        assert.error_matches(function() luma.progress("x") end, "iterator expected, got string")
        assert.error_matches(function() luma.progress(luma.tensor(5)) end, "got a 0%-d one")
        assert.error_matches(function() luma.progress(3, {lable = "x"}) end, "option 'lable'")
        assert.error_matches(function() luma.progress(3, 4) end, "table of options expected")
    end)

    if not program.is_luma then return end

    it("writes a line at the end of a loop, a break and an error in a log", function()
        local output = program.script([[
            for _ in luma.progress(3, {label = "all"}) do end
            for i in luma.progress(4, {label = "part"}) do if i == 3 then break end end
            pcall(function() for _ in luma.progress(4) do error "x" end end)
            for _ in luma.progress(string.gmatch("a b", "%a")) do end]])
        local lines = {}
        for line in output:gmatch("[^\n]+") do lines[#lines + 1] = line end
        assert.equal(4, #lines)
        assert.matches("^all 100%% 3/3", lines[1])
        assert.matches("^part  50%% 2/4", lines[2])
        assert.matches("^  0%% 0/4", lines[3])
        assert.matches("^2 ", lines[4])
    end)
end)
