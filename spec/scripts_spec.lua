-- The scripts that users run first: digits.lua on real data, intops.lua against the manual's rules.
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
