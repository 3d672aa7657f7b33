-- image.lua -- luma.image: pictures as tensors, PNG files. Layer: lua, on the public module.
local luma, part, png = ...
local unknown = part("options")

local M = {}

-- How a name of channels stands in libpng's simplified interface.
local FORMATS = {gray = 0, gray_alpha = 1, rgb = 2, rgba = 3, bgr = 0x12, bgra = 0x13}
local COUNTS = {gray = 1, gray_alpha = 2, rgb = 3, rgba = 4, bgr = 3, bgra = 4}
local NAMES = {"gray", "gray_alpha", "rgb", "rgba"} -- by the number of channels
local AS_STORED = 0x80

local OTHER_FORMATS = {jpg = true, jpeg = true, bmp = true, gif = true, tif = true, tiff = true,
    webp = true, ppm = true, pgm = true}

local LAYOUTS = {hwc = true, chw = true, hw = true}

local function bad(level, argument, name, text, ...)
    error(("bad argument #%d to '%s' (%s)"):format(argument, name, text:format(...)), level + 1)
end

-- Calls a function of C; its errors are of the line that called us.
local function call(f, ...)
    local good, result = pcall(f, ...)
    if not good then error((tostring(result):gsub("^luma/image%.lua:%d+: ", "")), 3) end
    return result
end

local function read_options(options, argument, name, allowed)
    if options == nil then return {} end
    if type(options) ~= "table" then
        bad(3, argument, name, "table of options expected, got %s", type(options))
    end
    for key in pairs(options) do
        if not allowed[key] then bad(3, argument, name, "%s", unknown(key, allowed)) end
    end
    if options.channels ~= nil and not FORMATS[options.channels] then
        bad(3, argument, name, "channels: gray, gray_alpha, rgb, rgba, bgr or bgra expected, got %s",
            tostring(options.channels))
    end
    if options.layout ~= nil and not LAYOUTS[options.layout] then
        bad(3, argument, name, "layout: hwc, chw or hw expected, got %s", tostring(options.layout))
    end
    if options.dtype ~= nil or options.device ~= nil then
        local good, why = pcall(luma.zeros, 0, {dtype = options.dtype, device = options.device})
        if not good then
            bad(3, argument, name, "%s", why:match("%((option .*)%)$") or why:gsub("^zeros: ", ""))
        end
    end
    return options
end

local LOAD_OPTIONS = {channels = true, layout = true, dtype = true, device = true}

-- luma.image.load(path, {channels =, layout =, dtype =, device =}) reads a PNG file.
-- channels: gray, gray_alpha, rgb, rgba, bgr, bgra; as the file has them unless said.
-- layout: "hwc" (height, width, channels), "chw", or "hw" for one channel; "hwc" unless said.
-- dtype: "uint8" (0 to 255) unless said; float dtypes run from 0 to 1.
function M.load(path, options)
    options = read_options(options, 2, "load", LOAD_OPTIONS)
    local layout = options.layout or "hwc"
    local channels = options.channels or layout == "hw" and "gray"
    local x = call(png.read_png, path, FORMATS[channels] or AS_STORED)
    if layout == "hw" then
        if x:size(3) ~= 1 then bad(2, 2, "load", "layout hw takes one channel, not %s", channels) end
        x = x:select(3, 1)
    elseif layout == "chw" then
        x = x:permute(3, 1, 2):contiguous()
    end
    x = x:to(options.device or luma.get_default_device())
    if options.dtype and options.dtype ~= "uint8" then
        x = x:to(options.dtype)
        if x.dtype:find("float") then x = x / 255 end
    end
    return x
end

local SAVE_OPTIONS = {channels = true, layout = true}

-- luma.image.save(path, x, {channels =, layout =}) writes a PNG file. x: uint8, bool, or float from
-- 0 to 1 (what is outside is clamped); two dims, or three in the layout said ("hwc"). channels
-- follow from their number unless said.
function M.save(path, x, options)
    options = read_options(options, 3, "save", SAVE_OPTIONS)
    if not luma.is_tensor(x) then bad(2, 2, "save", "tensor expected, got %s", type(x)) end
    local ending = type(path) == "string" and (path:lower():match("%.(%a+)$"))
    if OTHER_FORMATS[ending] then bad(2, 1, "save", "%s: PNG is written, not .%s", path, ending) end
    if x.ndim == 2 then
        x = x:unsqueeze(3)
    elseif x.ndim ~= 3 then
        bad(2, 2, "save", "2 or 3 dims expected, got %d", x.ndim)
    elseif options.layout == "chw" then
        x = x:permute(2, 3, 1)
    end
    local channels = options.channels or NAMES[x:size(3)]
    if COUNTS[channels] ~= x:size(3) then
        bad(2, 2, "save", "%d channels%s: 1 to 4 are a picture", x:size(3),
            channels and " for " .. channels or "")
    end
    if x.dtype == "bool" then
        x = x:to("uint8") * 255
    elseif x.dtype:find("float") then
        x = (x:to("float32"):clamp(0, 1) * 255):round():to("uint8")
    elseif x.dtype ~= "uint8" then
        bad(2, 2, "save", "uint8, bool or float expected, got %s", x.dtype)
    end
    call(png.write_png, path, x:cpu():contiguous(), FORMATS[channels])
end

return M
