-- canvas.lua -- a grid of dots with colours that becomes text of a terminal or a picture. Colours are
-- 0xRRGGBB; nil is the ground. Layer: lua, on the public module.
local luma, part = ...

local Canvas = {}
Canvas.__index = Canvas

-- width by height dots, the origin at the top left.
function Canvas.new(width, height)
    local rows = {}
    for y = 0, height - 1 do rows[y] = {} end
    return setmetatable({width = width, height = height, rows = rows}, Canvas)
end

function Canvas:dot(x, y, colour)
    if x >= 0 and x < self.width and y >= 0 and y < self.height then self.rows[y][x] = colour end
end

-- The ends of what lies inside of a line; nothing where none of it does (Liang and Barsky).
local function clip(self, x0, y0, x1, y1)
    local dx, dy, from, to = x1 - x0, y1 - y0, 0, 1
    local function cut(step, room) -- keeps the shares t of the way with step * t <= room
        if step > 0 then to = math.min(to, room / step) end
        if step < 0 then from = math.max(from, room / step) end
        return from <= to and (step ~= 0 or room >= 0)
    end
    if not (cut(-dx, x0) and cut(dx, self.width - 1 - x0) and cut(-dy, y0)
        and cut(dy, self.height - 1 - y0)) then return nil end
    local function at(start, way, share) return math.floor(start + way * share + 0.5) end
    return at(x0, dx, from), at(y0, dy, from), at(x0, dx, to), at(y0, dy, to)
end

-- A line of dots from one place to the other (Bresenham); both may lie far outside.
function Canvas:line(x0, y0, x1, y1, colour)
    x0, y0, x1, y1 = clip(self, x0, y0, x1, y1)
    if not x0 then return end
    local dx, dy = math.abs(x1 - x0), -math.abs(y1 - y0)
    local sx, sy = x0 < x1 and 1 or -1, y0 < y1 and 1 or -1
    local miss = dx + dy
    while true do
        self:dot(x0, y0, colour)
        if x0 == x1 and y0 == y1 then return end
        local twice = 2 * miss
        if twice >= dy then miss, x0 = miss + dy, x0 + sx end
        if twice <= dx then miss, y0 = miss + dx, y0 + sy end
    end
end

function Canvas:box(x0, y0, x1, y1, colour)
    for y = math.max(y0, 0), math.min(y1, self.height - 1) do
        for x = math.max(x0, 0), math.min(x1, self.width - 1) do self.rows[y][x] = colour end
    end
end

-- Text with its top left at the place; turned: upward.
function Canvas:text(x, y, text, colour, scale, turned)
    local font = part("font")
    for letter in text:gmatch(utf8.charpattern) do
        font.dots(letter, function(column, row)
            local across, down = column * scale, row * scale
            local left, top = x + across, y + down
            if turned then left, top = x + down, y - across - scale + 1 end
            self:box(left, top, left + scale - 1, top + scale - 1, colour)
        end)
        if turned then y = y - (font.width + 1) * scale else x = x + (font.width + 1) * scale end
    end
end

local function code(colour, layer) -- layer: 3 letters, 4 ground
    return ("\27[%d8;2;%d;%d;%dm"):format(layer, colour >> 16, colour >> 8 & 255, colour & 255)
end

-- Two rows of dots as one line of half blocks with 24-bit colours.
local function colour_line(top, bottom, width)
    local out, last = {}, ""
    for x = 0, width - 1 do
        local a, b = top[x], bottom[x]
        local codes, letter = "\27[0m", " "
        if a and b then
            codes, letter = code(a, 3) .. code(b, 4), "▀"
        elseif a then
            codes, letter = "\27[0m" .. code(a, 3), "▀"
        elseif b then
            codes, letter = "\27[0m" .. code(b, 3), "▄"
        end
        if codes ~= last then out[#out + 1], last = codes, codes end
        out[#out + 1] = letter
    end
    return table.concat(out) .. "\27[0m"
end

local HALVES = {[0] = " ", "▀", "▄", "█"}

local function plain_line(top, bottom, width)
    local out = {}
    for x = 0, width - 1 do
        out[x + 1] = HALVES[(top[x] and 1 or 0) + (bottom[x] and 2 or 0)]
    end
    return (table.concat(out):gsub(" +$", ""))
end

-- letters[colour]: what stands for it; one row of dots a line.
local function letter_line(row, width, letters)
    local out = {}
    for x = 0, width - 1 do out[x + 1] = row[x] and (letters[row[x]] or "*") or " " end
    return (table.concat(out):gsub(" +$", ""))
end

-- The lines of text. style: "colour", "blocks" or "ascii", which has a line for every row of dots.
function Canvas:lines(style, letters)
    local lines = {}
    for y = 0, self.height - 1, style == "ascii" and 1 or 2 do
        local top, bottom = self.rows[y], self.rows[y + 1] or {}
        if style == "colour" then
            lines[#lines + 1] = colour_line(top, bottom, self.width)
        elseif style == "blocks" then
            lines[#lines + 1] = plain_line(top, bottom, self.width)
        else
            lines[#lines + 1] = letter_line(top, self.width, letters)
        end
    end
    return lines
end

-- The picture as a uint8 tensor (height, width, 3) on the ground's colour.
function Canvas:tensor(ground)
    local known = {}
    local function bytes(colour)
        local text = known[colour]
        if not text then
            text = string.char(colour >> 16, colour >> 8 & 255, colour & 255)
            known[colour] = text
        end
        return text
    end
    local rows = {}
    for y = 0, self.height - 1 do
        local row, out = self.rows[y], {}
        for x = 0, self.width - 1 do out[x + 1] = bytes(row[x] or ground) end
        rows[y + 1] = table.concat(out)
    end
    return luma.frombytes(table.concat(rows), "uint8", {self.height, self.width, 3})
end

return Canvas
