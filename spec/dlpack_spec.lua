-- x:dlpack() and luma.from_dlpack among luma's own tensors; spec/install/numpy_exchange.py is about
-- those of others, spec/c/dlpack_test.c about what only C sees.
local luma = require "luma"
local layouts = {
    {"contiguous", function(x) return x end},
    {"transposed", function(x) return x:t() end},
    {"reversed", function(x) return x:flip({1}) end},
    {"stepped", function(x) return x["::2, 2:"] end},
    {"0-d", function(x) return x:narrow(1, 2, 1):narrow(2, 3, 1):squeeze() end},
    {"empty", function(x) return x:narrow(1, 1, 0) end},
    {"expanded", function(x) return x[1]:expand(4, 5) end},
}
local DTYPES = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3",
    "float16", "bfloat16", "float32", "float64"}

describe("DLPack", function()
    it("hands every dtype and layout over without a copy", function()
        for _, dtype in ipairs(DTYPES) do
            local base = luma.range(1, 20):reshape(4, 5):to(dtype)
            for _, entry in ipairs(layouts) do
                local x = entry[2](base)
                for _, options in ipairs{{}, {versioned = true}} do
                    local handle = x:dlpack(options)
                    assert.equal("userdata", type(handle))
                    local y = luma.from_dlpack(handle)
                    assert.equal(dtype, y.dtype)
                    assert.equal(x.device, y.device)
                    assert.same(x.shape, y.shape)
                    assert.is_true(y:equal(x), dtype .. " " .. entry[1])
                    assert.is_true(y:shares_storage(x))
                end
            end
        end
    end)

    it("keeps the memory until the last tensor over it is gone", function()
        local x = luma.full({3}, 7)
        local handle = x:dlpack()
        x:free()
        local y = luma.from_dlpack(handle)
        assert.same({7, 7, 7}, y:totable())
        y[1] = 8
        assert.same({8, 7, 7}, y:totable())
    end)

    it("knows a handle that was taken", function()
        local x = luma.zeros(2)
        for _ = 1, 3 do
            local handle = x:dlpack()
            local y = luma.from_dlpack(handle)
            assert.error_matches(function() luma.from_dlpack(handle) end, "taken already")
            y:free()
            assert.error_matches(function() luma.from_dlpack(handle) end, "taken already")
        end
    end)

    it("knows what its own handles are", function()
        local handle = luma.zeros(2):dlpack{versioned = true}
        assert.error_matches(function() luma.from_dlpack(handle, {versioned = false}) end,
            "the handle was made with versions")
        assert.same({0, 0}, luma.from_dlpack(handle, {versioned = true}):totable())
        handle = luma.zeros(2):dlpack()
        assert.error_matches(function() luma.from_dlpack(handle, {versioned = true}) end,
            "the handle was made without versions")
        luma.from_dlpack(handle)
    end)

    it("refuses what is no handle", function()
        for _, value in ipairs{1, "x", {}, luma.zeros(1), io.stdout} do
            assert.error_matches(function() luma.from_dlpack(value) end, "light userdata expected")
        end
        local x = luma.zeros(2)
        x:free()
        assert.error_matches(function() x:dlpack() end, "released")
        assert.error_matches(function() luma.zeros(1):dlpack{version = 1} end,
            "unknown option 'version'")
    end)
end)
