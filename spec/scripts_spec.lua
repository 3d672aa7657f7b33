-- The scripts that users run first: digits.lua on real data, intops.lua against the manual's rules.
local device = require "spec.support.device"
local program = require "spec.support.program"

describe("scripts/digits.lua", function()
    it("classifies as many digits right as NumPy does", function()
        local output, status = program.run{"scripts/digits.lua"}
        assert.equal(0, status, output)
        assert.matches("1797 digits of 8 x 8 pixels", output)
        assert.matches("labels: 0 1 2 3 4 5 6 7", output)
        assert.matches("1%-nearest neighbour: 344 of 360 right", output)
        assert.matches("softmax classifier: 321 of 360 right", output)
    end)
end)

describe("scripts/intops.lua", function()
    it("finds every value as the rules say", function()
        local output, status = program.run{"scripts/intops.lua", "--compare"}
        assert.equal(0, status, output)
        local good, all = output:match("(%d+) of (%d+) as the rules say")
        assert.equal(all, good)
        assert.is_true(tonumber(all) > 40)
    end)

    it("exits with 1 when one value differs", function()
        local output, status = program.run{"-e", "luma = require 'luma' luma.fmod = luma.remainder",
            "scripts/intops.lua", "--compare"}
        assert.equal(1, status)
        assert.matches("<%-%- expected", output)
        local good, all = output:match("(%d+) of (%d+) as the rules say")
        assert.equal(tonumber(all) - 1, tonumber(good))
    end)
end)

describe("scripts/intops.lua cuda", function()
    it("prints on a device what it prints on the CPU", function()
        if not device.cuda then pending("needs a device: " .. device.no_cuda) return end
        local expected, good = program.run{"scripts/intops.lua", "cpu"}
        local output, status = program.run{"scripts/intops.lua", device.cuda}
        assert.equal(0, good)
        assert.equal(0, status, output)
        assert.equal(expected, output)
        output, status = program.run{"scripts/intops.lua", "--compare", device.cuda}
        assert.equal(0, status, output)
    end)
end)

describe("scripts/lifecycle.lua", function()
    it("follows a tensor and says which way copies go", function()
        local output, status = program.run{"scripts/lifecycle.lua", "cpu"}
        assert.equal(0, status, output)
        assert.matches("the sum that came back is exact", output)
        for line in ([[
a:contiguous(), of a dense tensor            shared
a:force_contiguous()                         memcpy
rows 2 to 9                                  memcpy
columns 2 to 9                               copy2d
every second column                          strided
the transpose                                strided
of two dense tensors along dim 1             memcpy x 2
of two dense tensors along dim 2             copy2d x 2
of two transposes along dim 2                strided x 2
]]):gmatch("[^\n]+") do
            assert.is_truthy(output:find(line .. "\n", 1, true), line .. "\n" .. output)
        end
    end)

    it("to a device: a copy, a kernel, a wait", function()
        if not device.cuda then pending("needs a device: " .. device.no_cuda) return end
        local output, status = program.run{"scripts/lifecycle.lua", device.cuda}
        assert.equal(0, status, output)
        assert.matches("the sum that came back is exact", output)
        assert.matches("2%. to the device.-copies 1, launches 0, synchronisations 0", output)
        assert.matches("3%. an addition there.-copies 0, launches 1, synchronisations 0", output)
        assert.matches("4%. back to the host.-copies 1, launches 0, synchronisations 1", output)
        assert.matches("5%. released.-" .. device.cuda .. "%s+allocated%s+0,", output)
        -- the ways of copying are those of the CPU
        local here = program.run{"scripts/lifecycle.lua", "cpu"}
        local function traces(text)
            return text:match("contiguous on.*$"):gsub("on [%w:]+", "")
        end
        assert.equal(traces(here), traces(output))
    end)
end)
