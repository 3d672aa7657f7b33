-- progress.lua -- luma.progress: how far a loop is. Layer: lua, on the public module.
local luma, part = ...

local REDRAW, LOG = 0.1, 10 -- seconds between two bars, between two lines in a log

local function time_text(s)
    s = math.floor(s + 0.5)
    if s < 3600 then return ("%d:%02d"):format(s // 60, s % 60) end
    return ("%d:%02d:%02d"):format(s // 3600, s // 60 % 60, s % 60)
end

local function rate_text(rate)
    if rate >= 1 then return (rate < 100 and "%.1f/s" or "%.0f/s"):format(rate) end
    return ("%.1f s each"):format(1 / rate)
end

-- What there is to say: before the bar, how full it is (nil: not known), behind it.
local function figures(p, now)
    local took = now - p.start
    local rate = took > 0 and p.done / took or 0
    local label = p.label and p.label .. " " or ""
    local speed = p.done > 0 and rate > 0 and "  " .. rate_text(rate) or ""
    if not p.total then return ("%s%d"):format(label, p.done), nil, speed .. "  " .. time_text(took) end
    local share = p.total > 0 and math.min(1, p.done / p.total) or 1
    local left = ""
    if p.done >= p.total then
        left = "  " .. time_text(took)
    elseif rate > 0 then
        left = ("  %s left"):format(time_text((p.total - p.done) / rate))
    end
    return ("%s%3d%%"):format(label, share * 100 // 1), share,
        ("%d/%d%s%s"):format(p.done, p.total, speed, left)
end

local function draw(p, now)
    local columns = luma.config().columns
    local before, share, behind = figures(p, now)
    if not columns then
        io.stderr:write(before, " ", behind, "\n")
        return
    end
    local room = columns - #before - #behind - 5
    local bar = " "
    if share and room >= 5 then
        local full = share * room // 1
        bar = (" |%s%s| "):format(("#"):rep(full), (" "):rep(room - full))
    end
    io.stderr:write("\r\27[K", (before .. bar .. behind):sub(1, columns - 1))
end

local function advance(p)
    p.done = p.done + 1
    local now = luma.clock()
    if now < p.due then return end
    p.due = now + (p.terminal and REDRAW or LOG)
    draw(p, now)
end

-- Closed at the end of the loop, by a break and by an error too.
local function finish(p)
    if p.finished then return end
    p.finished = true
    draw(p, luma.clock())
    if p.terminal then io.stderr:write("\n") end
end
local closing = {__close = finish}

local OPTIONS = {label = true, total = true}

local function read_options(options, level)
    if options == nil then return {} end
    if type(options) ~= "table" then
        error(("bad argument #2 to 'progress' (table of options expected, got %s)")
            :format(type(options)), level + 1)
    end
    for key, value in pairs(options) do
        if not OPTIONS[key] then
            error(("bad argument #2 to 'progress' (%s)"):format(part("options")(key, OPTIONS)), level + 1)
        end
        local good = key == "label" and type(value) == "string"
            or key == "total" and math.type(value) == "integer" and value >= 0
        if not good then
            error(("bad argument #2 to 'progress' (option '%s' = %s: label, a string, and total, a "
                .. "count, are known)"):format(tostring(key), tostring(value)), level + 1)
        end
    end
    return options
end

local function count_to(n)
    return function(_, i) if i < n then return i + 1 end end, nil, 0
end

-- for i in luma.progress(n), for i, v in luma.progress(list or tensor), for ... in
-- luma.progress(iterator, state, first): loops as without it, and says on stderr how far it is.
-- The last argument of the first two forms may be {label =, total =}.
local function progress(what, a, b)
    local f, state, control, total
    local options = {}
    if math.type(what) == "integer" then
        options = read_options(a, 2)
        f, state, control = count_to(what)
        total = math.max(0, what)
    elseif luma.is_tensor(what) and what.ndim > 0 then
        options = read_options(a, 2)
        f, state, control = pairs(what)
        total = what:size(1)
    elseif type(what) == "table" and not (getmetatable(what) or {}).__call then
        options = read_options(a, 2)
        f, state, control = ipairs(what)
        total = #what
    elseif type(what) == "function" or type(what) == "table" then
        f, state, control = what, a, b
    else
        error(("bad argument #1 to 'progress' (count, list, tensor with dims or iterator expected, got %s)")
            :format(luma.is_tensor(what) and "a 0-d one" or type(what)), 2)
    end
    local p = setmetatable({done = 0, start = luma.clock(), due = 0, label = options.label,
        total = options.total or total, terminal = luma.config().columns ~= nil}, closing)
    p.due = p.start + (p.terminal and REDRAW or LOG)
    local function ended(first, ...)
        if first == nil then finish(p) end
        return first, ...
    end
    local begun
    -- an element is done when the next one is asked for
    local function step(s, c)
        if begun then advance(p) end
        begun = true
        return ended(f(s, c))
    end
    return step, state, control, p
end

return progress
