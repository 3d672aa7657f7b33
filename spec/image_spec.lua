-- luma.image: PNG files.
local luma = require "luma"

describe("luma.image", function()
    local path = os.tmpname()
    local has_png = pcall(luma.image.save, path, luma.zeros(1, 1))
    teardown(function() os.remove(path) end)

    it("says what it needs when libpng is missing, and reads nothing else", function()
        local good, message = pcall(luma.image.load, "spec/image_spec.lua")
        assert.is_false(good)
        assert.matches(has_png and "no PNG file" or "libpng", message)
    end)

    if not has_png then
        pending("needs libpng")
        return
    end

    local function picture(h, w, c)
        return ((luma.range(0, h * w * c - 1) * 37) % 256):reshape(h, w, c):to("uint8")
    end

    it("gives back what was saved, for 1 to 4 channels", function()
        for c = 1, 4 do
            local x = picture(5, 7, c)
            luma.image.save(path, x)
            local y = luma.image.load(path)
            assert.same({5, 7, c}, y.shape)
            assert.equal("uint8", y.dtype)
            assert.is_true(luma.equal(x, y))
        end
    end)

    it("takes views, two dims, and channels first", function()
        local x = picture(6, 4, 3)
        luma.image.save(path, x:permute(3, 1, 2), {layout = "chw"})
        assert.is_true(luma.equal(x, luma.image.load(path)))
        assert.is_true(luma.equal(x:permute(3, 1, 2), luma.image.load(path, {layout = "chw"})))
        luma.image.save(path, x:select(3, 2):t())
        assert.is_true(luma.equal(x:select(3, 2):t(), luma.image.load(path, {layout = "hw"})))
    end)

    it("turns the order of channels round, and adds or drops them", function()
        local x = picture(3, 3, 3)
        luma.image.save(path, x, {channels = "bgr"})
        assert.is_true(luma.equal(x:flip(3), luma.image.load(path)))
        assert.is_true(luma.equal(x, luma.image.load(path, {channels = "bgr"})))
        local rgba = luma.image.load(path, {channels = "rgba"})
        assert.is_true(luma.equal(x:flip(3), rgba:narrow(3, 1, 3)))
        assert.is_true((rgba:select(3, 4):eq(255)):all())
        luma.image.save(path, luma.zeros(2, 2, 4))
        assert.equal(255, luma.image.load(path, {channels = "rgb"})[{1, 1, 1}]) -- on white
    end)

    it("maps floats from 0 .. 1, clamped, and bool to black and white", function()
        luma.image.save(path, luma.tensor{{-1, 0, 0.5, 1, 7}})
        assert.same({{0, 0, 128, 255, 255}}, luma.image.load(path, {layout = "hw"}):totable())
        local y = luma.image.load(path, {layout = "hw", dtype = "float32"})
        assert.same({0.0, 0.0, luma.tensor(128 / 255):item(), 1.0, 1.0}, y[1]:totable())
        luma.image.save(path, luma.tensor{{true, false}})
        assert.same({{255, 0}}, luma.image.load(path, {layout = "hw"}):totable())
    end)

    it("refuses what is no picture, by name", function()
        local function fails(pattern, f, ...)
            local good, message = pcall(f, ...)
            assert.is_false(good)
            assert.matches(pattern, message)
        end
        fails("2 or 3 dims expected, got 1", luma.image.save, path, luma.zeros(3))
        fails("PNG is written, not .jpg", luma.image.save, path .. ".JPG", luma.zeros(3, 3))
        fails("5 channels", luma.image.save, path, luma.zeros(2, 2, 5))
        fails("3 channels for gray", luma.image.save, path, luma.zeros(2, 2, 3), {channels = "gray"})
        fails("uint8, bool or float expected, got int64", luma.image.save, path,
            luma.zeros({2, 2}, {dtype = "int64"}))
        fails("tensor expected, got string", luma.image.save, path, "x")
        fails("unknown option 'colour'; there are channels, device, dtype, layout", luma.image.load, path,
            {colour = 1})
        fails("#2 to 'load' %(option 'dtype': unknown dtype 'nope'", luma.image.load, path, {dtype = "nope"})
        fails("#2 to 'load' %(no device 'float32'", luma.image.load, path, {device = "float32"})
        fails("channels: .* got red", luma.image.load, path, {channels = "red"})
        fails("cannot be a PNG file", luma.image.save, path, luma.zeros(0, 2))
        fails("No such file", luma.image.load, path .. ".none")
    end)

    it("survives files that are cut or changed", function()
        luma.image.save(path, picture(16, 16, 3))
        local file = assert(io.open(path, "rb"))
        local bytes = file:read("a")
        file:close()
        for i = 1, #bytes, 7 do
            for _, changed in ipairs{bytes:sub(1, i), bytes:sub(1, i - 1)
                .. string.char(bytes:byte(i) ~ 0x55) .. bytes:sub(i + 1)} do
                file = assert(io.open(path, "wb"))
                file:write(changed)
                file:close()
                local good, result = pcall(luma.image.load, path)
                assert.is_true(not good and type(result) == "string" or luma.is_tensor(result))
            end
        end
    end)
end)
