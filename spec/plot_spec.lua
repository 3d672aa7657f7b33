-- luma.plot: text of the terminal and PNG files.
local luma = require "luma"

describe("luma.plot", function()
    local path = os.tmpname()
    teardown(function() os.remove(path) end)

    -- What f prints.
    local function printed(f, ...)
        local lines, before = {}, print
        _G.print = function(text) lines[#lines + 1] = text end
        local good, message = pcall(f, ...)
        _G.print = before
        if not good then error(message, 2) end
        return table.concat(lines, "\n")
    end

    local function lines_of(text)
        local list = {}
        for line in (text .. "\n"):gmatch("(.-)\n") do list[#list + 1] = line end
        return list
    end

    it("draws a line from corner to corner, with axes and labels", function()
        local text = printed(luma.plot, luma.range(0, 10), luma.range(0, 10),
            {style = "ascii", width = 24, height = 11, title = "up", labels = {"y"}})
        local lines = lines_of(text)
        assert.matches("^ +up$", lines[1])
        assert.matches("^10 %+ *%*+$", lines[2])
        assert.matches("^ 0 %+%*", lines[12])
        assert.matches("^   %+%-+$", lines[13])
        assert.matches("^ +0 +5 +10$", lines[14])
        assert.matches("%* y$", lines[15])
    end)

    it("draws several series, and leaves gaps at what is not finite", function()
        local text = printed(luma.plot.line, {1, 2, 3, 4, 5}, {{0, 0, 0 / 0, 0, 0}, {1, 1, 1, 1, 1}},
            {style = "ascii", width = 30, height = 5})
        assert.matches("\n0.0 %+%*+ +%*+\n", text)
        assert.matches("^1.0 %+%++\n", text)
    end)

    it("scatters points and counts them in bins", function()
        local text = printed(luma.plot.scatter, {0, 1}, {0, 1}, {style = "ascii", width = 20, height = 4})
        local _, points = text:gsub("%*", "")
        assert.equal(2, points)
        text = printed(luma.plot.hist, {1, 1, 1, 2}, {style = "ascii", bins = 2, height = 3, width = 20})
        assert.matches("^  |%*+\n2 %+%*+\n0 %+%*+\n", text)
    end)

    it("shows pictures and heat maps of any size", function()
        local text = printed(luma.plot.heatmap, luma.range(0, 99):reshape(10, 10), {style = "ascii"})
        local lines = lines_of(text)
        assert.equal("@@@@@@@@@@", lines[5])
        assert.equal("from 0 to 99", lines[6])
        text = printed(luma.plot.image, luma.ones(4, 4), {style = "blocks"})
        assert.equal("████\n████", text)
        text = printed(luma.plot.image, luma.ones(3, 2, 2), {layout = "chw", style = "colour"})
        assert.matches("38;2;255;255;255", text)
        assert.is_string(printed(luma.plot.heatmap, luma.full({3, 3}, 0 / 0), {style = "ascii"}))
    end)

    it("writes PNG files of the size asked for", function()
        if not pcall(luma.image.save, path, luma.zeros(1, 1)) then
            pending("needs libpng")
            return
        end
        luma.plot(luma.rand(10), {file = path, width = 200, height = 100, title = "t", xlabel = "x",
            ylabel = "y", labels = {"a"}})
        local x = luma.image.load(path)
        assert.same({100, 200, 3}, x.shape)
        assert.is_true(x:lt(255):sum():item() > 200)
        luma.plot.hist(luma.rand(10), {file = path})
        assert.same({480, 640, 3}, luma.image.load(path).shape)
        luma.plot.heatmap(luma.range(1, 4):reshape(2, 2), {file = path})
        assert.same({0x44, 0x01, 0x54}, luma.image.load(path)[{1, 1}]:totable())
        local picture = luma.range(0, 11):reshape(2, 2, 3):to("uint8")
        luma.plot.image(picture, {file = path})
        assert.is_true(luma.equal(picture, luma.image.load(path)))
    end)

    it("takes constants, one value and none", function()
        for _, y in ipairs{{5, 5, 5}, {7}, {}, {0}, {1e300, -1e300}, {1e-300, 2e-300}} do
            assert.is_string(printed(luma.plot, luma.tensor(y, "float64"), {style = "ascii"}))
        end
    end)

    it("draws what is within the limits of lines that leave them, however far", function()
        local options = {style = "ascii", ylim = {0, 1}, width = 30, height = 5}
        local near, far = printed(luma.plot, {0, 2}, options), printed(luma.plot, {0, 1e9}, options)
        assert.matches("^1.0 %+ +%*%*\n", near)
        for _, line in ipairs(lines_of(far)) do assert.is_falsy(line:find("%*.*%*")) end
        assert.matches("\n0.0 %+%*\n", far)
        for _, y in ipairs{{1e300, 0, -1e300}, {-1e308, 1e308}, {5e-324, 1e-323}, {1e16, 1e16 + 2}} do
            assert.is_string(printed(luma.plot, y, options))
            assert.is_string(printed(luma.plot, y, {style = "ascii", xlim = {2, 2.5}}))
        end
    end)

    it("needs no tick, and takes integers of any size", function()
        assert.matches("^  |", printed(luma.plot, {6, 9}, {style = "ascii", ylim = {5.1, 9.8}, height = 8}))
        assert.matches("\n1e%+16 %+%*", printed(luma.plot, {10000000000000000, 10000000000000002},
            {style = "ascii", height = 8}))
    end)

    it("refuses what it cannot draw, by name", function()
        local function fails(pattern, f, ...)
            local good, message = pcall(f, ...)
            assert.is_false(good)
            assert.matches(pattern, message)
        end
        fails("#1 to 'plot' %(tensor or list of numbers expected, got string%)", luma.plot, "x")
        fails("#2 to 'plot' %(3 values of y for 2 of x%)", luma.plot, {1, 2}, {1, 2, 3})
        fails("unknown option 'colour'", luma.plot, {1}, {colour = 1})
        fails("unknown option 'titel'; did you mean 'title'%?", luma.plot, {1}, {titel = "t"})
        fails("#1 to 'plot' %(tensor or list of numbers expected, got nil%)", luma.plot, nil)
        fails("option 'width': integer expected", luma.plot, {1}, {width = "wide"})
        fails("one dim expected, got 2", luma.plot, luma.ones(2, 2))
        fails("colour, blocks or ascii", luma.plot, {1}, {style = "oil"})
        fails("a matrix with elements", luma.plot.heatmap, luma.ones(3))
        fails("#2 to 'plot.hist' %(table of options expected, got number%)", luma.plot.hist, {1}, 5)
        fails("^spec/plot_spec.lua:%d+: save: /nowhere/", function()
            luma.plot({1}, {file = "/nowhere/x.png"})
        end)
        fails("least, greatest", luma.plot, {1}, {xlim = {2, 1}})
    end)
end)
