-- plot.lua -- luma.plot: lines, scatters, histograms, pictures and heat maps, in the terminal or as
-- PNG files. Layer: lua, on the public module.
local luma, part = ...
local Canvas, unknown = part("canvas"), part("options")

local COLOURS = {0x3b7dd8, 0xe0702c, 0x2f9e44, 0xc2255c, 0x845ef7, 0x0c8599, 0xa67c00, 0x868e96}
local LETTERS = {"*", "+", "o", "x", "#", "@", "%", "="}
local MAP = {0x440154, 0x3b528b, 0x21918c, 0x5ec962, 0xfde725} -- viridis, at fifths
local RAMP = " .:-=+*#%@"
local WHITE, BLACK, GRID = 0xffffff, 0x222222, 0xe6e6e6

local M = {}

-- ---- arguments ----

local OPTIONS = {width = "integer", height = "integer", title = "string", xlabel = "string",
    ylabel = "string", labels = "table", file = "string", style = "string", bins = "integer",
    channels = "string", layout = "string", xlim = "table", ylim = "table"}
local STYLES = {colour = true, blocks = true, ascii = true}

local function bad(name, argument, text, ...)
    local called = name == "line" and "plot" or "plot." .. name
    error(("bad argument #%d to '%s' (%s)"):format(argument, called, text:format(...)), 0)
end

local function check_limits(name, at, key, v)
    if #v ~= 2 or type(v[1]) ~= "number" or type(v[2]) ~= "number" or v[2] - v[1] ~= v[2] - v[1]
        or v[1] >= v[2] then
        bad(name, at, "option '%s': {least, greatest} expected", key)
    end
end

local function read_options(name, at, options)
    if options == nil then return {} end
    if type(options) ~= "table" then
        bad(name, at, "table of options expected, got %s", type(options))
    end
    for key, v in pairs(options) do
        local kind = OPTIONS[key]
        if not kind then bad(name, at, "%s", unknown(key, OPTIONS)) end
        if (math.type(v) ~= kind and type(v) ~= kind) then
            bad(name, at, "option '%s': %s expected, got %s", key, kind, type(v))
        end
        if kind == "integer" and (v < (key == "bins" and 1 or 2) or v > 10000) then
            bad(name, at, "option '%s': %d is out of range", key, v)
        end
    end
    if options.style and not STYLES[options.style] then
        bad(name, at, "option 'style': colour, blocks or ascii expected, got %s", options.style)
    end
    if options.xlim then check_limits(name, at, "xlim", options.xlim) end
    if options.ylim then check_limits(name, at, "ylim", options.ylim) end
    return options
end

local function is_options(v) return type(v) == "table" and #v == 0 and next(v) ~= nil end

local function tensor_of(name, at, v)
    if luma.is_tensor(v) then return v:to("cpu") end
    local good, x = pcall(luma.tensor, v, {device = "cpu", dtype = "float64"})
    if good then return x end
    bad(name, at, "tensor or list of numbers expected, got %s", type(v))
end

-- The numbers of a tensor with one dim as a list.
local function list_of(name, at, v)
    local x = tensor_of(name, at, v)
    if x.ndim ~= 1 then bad(name, at, "one dim expected, got %d", x.ndim) end
    return x:to("float64"):totable()
end

-- (y), (x, y), (x, {y, y...}) and options to series {x =, y =}.
local function read_series(name, ...)
    local args = {...}
    local n = select("#", ...)
    local options = {}
    if n > 1 and is_options(args[n]) then
        options = read_options(name, n, args[n])
        n = n - 1
    end
    if n < 1 or n > 2 then bad(name, 1, "y, or x and y expected") end
    local y = args[n]
    if y == nil then bad(name, n, "tensor or list of numbers expected, got nil") end
    local many = type(y) == "table" and (luma.is_tensor(y[1]) or type(y[1]) == "table")
    local x = n == 2 and list_of(name, 1, args[1])
    local series = {}
    for i, ys in ipairs(many and y or {y}) do
        ys = list_of(name, n, ys)
        if x and #x ~= #ys then bad(name, 2, "%d values of y for %d of x", #ys, #x) end
        local xs = x
        if not xs then
            xs = {}
            for k = 1, #ys do xs[k] = k end
        end
        series[i] = {x = xs, y = ys, colour = COLOURS[(i - 1) % #COLOURS + 1],
            label = options.labels and options.labels[i]}
    end
    return series, options
end

-- ---- scales ----

local function finite(v) return v - v == 0 end

local function range_of(series, key, limits)
    if limits then return limits[1], limits[2] end
    local lo, hi = math.huge, -math.huge
    for _, s in ipairs(series) do
        for i, v in ipairs(s[key]) do
            if finite(v) and finite(s.x[i]) and finite(s.y[i]) then
                lo, hi = math.min(lo, v), math.max(hi, v)
            end
        end
    end
    if lo > hi then return 0, 1 end
    if lo == hi then
        local room = lo == 0 and 1 or math.abs(lo) / 2
        return lo - room, hi + room
    end
    return lo, hi
end

-- Round places within lo .. hi, about n of them: steps of 1, 2 or 5 times a power of ten.
local function ticks(lo, hi, n)
    local raw = (hi - lo) / math.max(1, n)
    local power = 10.0 ^ math.floor(math.log(raw, 10))
    local step = power * 10
    for _, m in ipairs{1, 2, 5} do
        if m * power >= raw then
            step = m * power
            break
        end
    end
    if not (step > 0 and step < math.huge) then return {} end -- at the ends of what numbers can be
    local decimals = math.max(0, -math.floor(math.log(step, 10) + 1e-9))
    local format = "%." .. decimals .. "f"
    if decimals > 6 or math.max(math.abs(lo), math.abs(hi)) >= 1e7 then format = "%.3g" end
    local list = {}
    for k = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9) do
        list[#list + 1] = {value = k * step, text = format:format(k * step + 0.0)}
    end
    return list
end

local FAR = 1 << 30 -- dots: nothing is drawn there

local function scale(lo, hi, size)
    local factor = (size - 1) / (hi - lo)
    return function(v)
        return math.floor(math.max(-FAR, math.min(FAR, (v - lo) * factor + 0.5)))
    end
end

-- ---- what the terminal is ----

local function is_utf8()
    local locale = os.getenv("LC_ALL") or os.getenv("LC_CTYPE") or os.getenv("LANG") or ""
    return locale:lower():gsub("%-", ""):find("utf8") ~= nil
end

local function default_style()
    if not is_utf8() then return "ascii" end
    if luma.config().columns and not os.getenv("NO_COLOR") and os.getenv("TERM") ~= "dumb" then
        return "colour"
    end
    return "blocks"
end

local function default_width() return math.min(luma.config().columns or 80, 100) end

-- ---- drawing ----

-- draw(canvas, left, top, width, height, fx, fy) puts the dots of the series there.
local function draw_lines(c, series, place)
    for _, s in ipairs(series) do
        local last_x, last_y
        for i = 1, #s.x do
            local x, y
            if finite(s.x[i]) and finite(s.y[i]) then x, y = place(s.x[i], s.y[i]) end
            if x and last_x then c:line(last_x, last_y, x, y, s.colour) end
            if x and not last_x then c:dot(x, y, s.colour) end
            last_x, last_y = x, y
        end
    end
end

local function draw_points(c, series, place, size)
    for _, s in ipairs(series) do
        for i = 1, #s.x do
            if finite(s.x[i]) and finite(s.y[i]) then
                local x, y = place(s.x[i], s.y[i])
                c:box(x - size, y - size, x + size, y + size, s.colour)
            end
        end
    end
end

local function draw_bars(c, series, place)
    local s = series[1]
    for i = 1, #s.y do
        local left, top = place(s.edges[i], s.y[i])
        local right, bottom = place(s.edges[i + 1], 0)
        if s.y[i] > 0 then c:box(left, top, math.max(left, right - 1), bottom, s.colour) end
    end
end

-- ---- as text ----

local function utf8_length(text) return utf8.len(text) or #text end

local function centred(text, width)
    return (" "):rep(math.max(0, (width - utf8_length(text)) // 2)) .. text
end

local function legend(series, letters, style)
    local parts = {}
    for _, s in ipairs(series) do
        if s.label then
            local mark = letters[s.colour]
            if style == "colour" then
                mark = ("\27[38;2;%d;%d;%dm■\27[0m"):format(s.colour >> 16, s.colour >> 8 & 255,
                    s.colour & 255)
            elseif style == "blocks" then
                mark = "■"
            end
            parts[#parts + 1] = mark .. " " .. s.label
        end
    end
    return #parts > 0 and table.concat(parts, "  ") or nil
end

local function x_axis(xt, fx, width)
    local line, free = {}, 1
    for i = 1, width do line[i] = " " end
    for _, t in ipairs(xt) do
        local from = math.max(1, math.min(width - #t.text + 1, fx(t.value) + 1 - #t.text // 2))
        if from >= free then
            for i = 1, #t.text do line[from + i - 1] = t.text:sub(i, i) end
            free = from + #t.text + 2
        end
    end
    return (table.concat(line):gsub(" +$", ""))
end

local function as_text(series, options, draw)
    local style = options.style or default_style()
    local width, height = options.width or default_width(), options.height or 20
    local xlo, xhi = range_of(series, "x", options.xlim)
    local ylo, yhi = range_of(series, "y", options.ylim)
    local yt = ticks(ylo, yhi, math.max(2, height // 4))
    local margin = 1 -- there may be no tick
    for _, t in ipairs(yt) do margin = math.max(margin, #t.text) end
    local inner = math.max(10, width - margin - 2)
    local per_line = style == "ascii" and 1 or 2
    local c = Canvas.new(inner, height * per_line)
    local fx, fy = scale(xlo, xhi, inner), scale(ylo, yhi, height * per_line)
    draw(c, series, function(x, y) return fx(x), height * per_line - 1 - fy(y) end, 0)
    local letters = {}
    for i, s in ipairs(series) do letters[s.colour] = LETTERS[(i - 1) % #LETTERS + 1] end
    local lines = c:lines(style, letters)
    local at = {}
    for _, t in ipairs(yt) do
        at[(height * per_line - 1 - fy(t.value)) // per_line + 1] = t.text
    end
    local out = {}
    local function say(text) out[#out + 1] = text end
    if options.title then say(centred(options.title, width)) end
    if options.ylabel then say(options.ylabel) end
    local bar, tick, corner, dash = "│", "┤", "└", "─"
    if style == "ascii" then bar, tick, corner, dash = "|", "+", "+", "-" end
    for i, line in ipairs(lines) do
        say(("%" .. margin .. "s %s%s"):format(at[i] or "", at[i] and tick or bar, line))
    end
    say((" "):rep(margin + 1) .. corner .. dash:rep(inner))
    say((" "):rep(margin + 2) .. x_axis(ticks(xlo, xhi, math.max(2, inner // 12)), fx, inner))
    if options.xlabel then say(centred(options.xlabel, width)) end
    local names = legend(series, letters, style)
    if names then say((" "):rep(margin + 2) .. names) end
    return table.concat(out, "\n")
end

-- ---- as a picture ----

local LETTER = 6 -- dots from one letter to the next

local function x_ticks(c, xt, fx, box)
    for _, t in ipairs(xt) do
        local x = box.left + fx(t.value)
        c:line(x, box.top, x, box.bottom, GRID)
        c:line(x, box.bottom, x, box.bottom + 4, BLACK)
        c:text(x - #t.text * LETTER // 2, box.bottom + 8, t.text, BLACK, 1)
    end
end

local function y_ticks(c, yt, fy, box)
    for _, t in ipairs(yt) do
        local y = box.bottom - fy(t.value)
        c:line(box.left, y, box.right, y, GRID)
        c:line(box.left - 4, y, box.left, y, BLACK)
        c:text(box.left - 8 - #t.text * LETTER, y - 3, t.text, BLACK, 1)
    end
end

local function picture_labels(c, options, box)
    local middle = (box.left + box.right) // 2
    if options.title then
        c:text(middle - utf8_length(options.title) * LETTER, 8, options.title, BLACK, 2)
    end
    if options.xlabel then
        c:text(middle - utf8_length(options.xlabel) * LETTER // 2, box.bottom + 24, options.xlabel, BLACK, 1)
    end
    if options.ylabel then
        c:text(8, (box.top + box.bottom + utf8_length(options.ylabel) * LETTER) // 2, options.ylabel,
            BLACK, 1, true)
    end
end

local function picture_legend(c, series, box)
    local y = box.top + 8
    for _, s in ipairs(series) do
        if s.label then
            c:box(box.left + 8, y, box.left + 18, y + 6, s.colour)
            c:text(box.left + 24, y, s.label, BLACK, 1)
            y = y + 12
        end
    end
end

local function as_picture(series, options, draw)
    local width, height = options.width or 640, options.height or 480
    local c = Canvas.new(width, height)
    local xlo, xhi = range_of(series, "x", options.xlim)
    local ylo, yhi = range_of(series, "y", options.ylim)
    local yt = ticks(ylo, yhi, math.max(2, height // 60))
    local margin = 0
    for _, t in ipairs(yt) do margin = math.max(margin, #t.text * LETTER) end
    local box = {left = margin + 14 + (options.ylabel and 14 or 0), right = width - 12,
        top = options.title and 32 or 12, bottom = height - 24 - (options.xlabel and 16 or 0)}
    local fx = scale(xlo, xhi, box.right - box.left + 1)
    local fy = scale(ylo, yhi, box.bottom - box.top + 1)
    x_ticks(c, ticks(xlo, xhi, math.max(2, width // 80)), fx, box)
    y_ticks(c, yt, fy, box)
    local inner = Canvas.new(box.right - box.left + 1, box.bottom - box.top + 1)
    draw(inner, series, function(x, y) return fx(x), box.bottom - box.top - fy(y) end, 2)
    for y = 0, inner.height - 1 do
        for x, colour in pairs(inner.rows[y]) do c:dot(box.left + x, box.top + y, colour) end
    end
    c:line(box.left, box.top, box.left, box.bottom, BLACK)
    c:line(box.left, box.bottom, box.right, box.bottom, BLACK)
    picture_labels(c, options, box)
    picture_legend(c, series, box)
    luma.image.save(options.file, c:tensor(WHITE))
end

local function show(series, options, draw)
    if options.file then
        as_picture(series, options, draw)
    else
        print(as_text(series, options, draw))
    end
end

-- ---- pictures and heat maps ----

-- x (height, width[, channels]) seen at h by w places, the nearest element each.
local function resample(x, h, w)
    local function places(size, n)
        return ((luma.range(0, n - 1):to("float64") + 0.5) * (size / n)):floor():clamp(0, size - 1)
            :to("int64") + 1
    end
    local device = x.device
    return x:index_select(1, places(x:size(1), h):to(device))
        :index_select(2, places(x:size(2), w):to(device))
end

-- The size at which a picture is shown: its own, or what the terminal holds.
local function shown_size(x, options, style)
    local h, w = x:size(1), x:size(2)
    if options.file then return options.height or h, options.width or w end
    local width = options.width or math.min(default_width(), w)
    local rows = options.height or math.max(1, math.floor(width * h / w / 2 + 0.5))
    return style == "ascii" and rows or 2 * rows, width
end

local function put(c, rows, colour_of)
    for y, row in ipairs(rows) do
        for x, v in ipairs(row) do c:dot(x - 1, y - 1, colour_of(v)) end
    end
end

local function show_canvas(c, options, style, letters)
    if options.file then
        luma.image.save(options.file, c:tensor(WHITE))
        return
    end
    if options.title then print(centred(options.title, c.width)) end
    print(table.concat(c:lines(style, letters), "\n"))
end

-- A picture: (height, width) or (height, width, channels), uint8 or floats from 0 to 1; {layout =
-- "chw"} for channels first.
local function image(x, options)
    x = tensor_of("image", 1, x)
    options = read_options("image", 2, options)
    local style = options.style or default_style()
    if x.ndim == 3 and options.layout == "chw" then x = x:permute(2, 3, 1) end
    if x.ndim == 2 then x = x:unsqueeze(3) end
    if x.ndim ~= 3 or x:numel() == 0 or x:size(3) > 4 then
        bad("image", 1, "[height x width] or [height x width x 1 to 4] expected")
    end
    local h, w = shown_size(x, options, style)
    x = resample(x, h, w)
    if x.dtype:find("float") then x = (x:to("float32"):clamp(0, 1) * 255):round() end
    x = x:to("int64")
    if x:size(3) < 3 then x = x:narrow(3, 1, 1):expand(-1, -1, 3) end
    local rgb = x:select(3, 1) * 65536 + x:select(3, 2) * 256 + x:select(3, 3)
    local c, letters = Canvas.new(w, h), {}
    put(c, rgb:totable(), function(v)
        local light = ((v >> 16) * 3 + (v >> 8 & 255) * 6 + (v & 255)) / 10
        local at = math.floor(light / 256 * #RAMP) + 1
        letters[v] = RAMP:sub(at, at)
        if style == "blocks" and not options.file and light < 128 then return nil end
        return v
    end)
    show_canvas(c, options, style, letters)
end

local function map_colour(share)
    local at = math.min(share * (#MAP - 1), #MAP - 1.000001)
    local i = math.floor(at)
    local a, b, t = MAP[i + 1], MAP[i + 2], at - i
    local function mix(shift)
        local p, q = a >> shift & 255, b >> shift & 255
        return math.floor(p + (q - p) * t + 0.5) << shift
    end
    return mix(16) | mix(8) | mix(0)
end

-- Two dims as colours from the least to the greatest value; what is not finite stays empty.
local function heatmap(x, options)
    x = tensor_of("heatmap", 1, x)
    options = read_options("heatmap", 2, options)
    local style = options.style or default_style()
    if style == "blocks" and not options.file then style = "ascii" end -- shades need letters
    if x.ndim ~= 2 or x:numel() == 0 then bad("heatmap", 1, "a matrix with elements expected") end
    x = x:to("float64")
    local good = x:isfinite()
    local lo, hi = 0.0, 0.0
    if good:any() then
        local list = x:masked_select(good)
        lo, hi = list:amin():item(), list:amax():item()
    end
    local h, w = shown_size(x, options, style)
    local c, letters = Canvas.new(w, h), {}
    put(c, resample(x, h, w):totable(), function(v)
        if not finite(v) then return nil end
        local share = hi > lo and (v - lo) / (hi - lo) or 0.5
        local colour = map_colour(share)
        local at = math.min(#RAMP, math.floor(share * #RAMP) + 1)
        letters[colour] = RAMP:sub(at, at)
        return colour
    end)
    show_canvas(c, options, style, letters)
    if not options.file then print(("from %.4g to %.4g"):format(lo, hi)) end
end

-- ---- histograms ----

local function histogram(x, options)
    local values = list_of("hist", 1, tensor_of("hist", 1, x):flatten())
    options = read_options("hist", 2, options)
    local bins = options.bins or 20
    local s = {x = values, y = values}
    local lo, hi = range_of({s}, "x", options.xlim)
    local counts = {}
    for i = 1, bins do counts[i] = 0 end
    for _, v in ipairs(values) do
        if finite(v) and v >= lo and v <= hi then
            local i = math.min(bins, math.floor((v - lo) / (hi - lo) * bins) + 1)
            counts[i] = counts[i] + 1
        end
    end
    local edges, most = {}, 1
    for i = 1, bins + 1 do edges[i] = lo + (hi - lo) * (i - 1) / bins end
    for _, n in ipairs(counts) do most = math.max(most, n) end
    local series = {x = {table.unpack(edges, 1, bins)}, y = counts, edges = edges, colour = COLOURS[1]}
    local copy = {}
    for key, v in pairs(options) do copy[key] = v end
    copy.xlim, copy.ylim = {lo, hi}, options.ylim or {0, most}
    show({series}, copy, draw_bars)
end

-- ---- the module ----

-- Errors name the caller's line.
local function public(f)
    return function(...)
        local good, message = pcall(f, ...)
        if not good then error((tostring(message):gsub("^luma/plot%.lua:%d+: ", "")), 2) end
    end
end

M.line = public(function(...)
    local series, options = read_series("line", ...)
    show(series, options, draw_lines)
end)
M.scatter = public(function(...)
    local series, options = read_series("scatter", ...)
    show(series, options, draw_points)
end)
M.hist = public(histogram)
M.image = public(image)
M.heatmap = public(heatmap)

return setmetatable(M, {__call = function(_, ...) return M.line(...) end})
