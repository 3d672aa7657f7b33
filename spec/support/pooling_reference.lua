-- pooling_reference.lua -- pooling over the arrays of model.lua, window by window and element by
-- element. Knows nothing of luma.
local model = require "model"
local M = {}

local function of(option, d, otherwise)
  if type(option) == "table" then return option[d] end
  return option or otherwise
end

-- How many windows there are along dim d of `size` elements; nil where none fits.
function M.count(size, d, o)
  local k, p = of(o.kernel, d), of(o.padding, d, 0)
  local s, dilation = of(o.stride, d, k), of(o.dilation, d, 1)
  local room = (size + 2 * p - dilation * (k - 1) - 1) / s
  local out = (o.ceil_mode and math.ceil(room) or math.floor(room)) + 1
  if o.ceil_mode and (out - 1) * s >= size + p then out = out - 1 end
  return out >= 1 and out or nil
end

-- The elements (from 1) of window i (from 1), and how many there are with those of the padding.
local function window(i, size, d, o)
  local list = {}
  if o.output then
    local out = of(o.output, d)
    for e = (i - 1) * size // out + 1, -(-i * size // out) do list[#list + 1] = e end
    return list, #list
  end
  local k, p = of(o.kernel, d), of(o.padding, d, 0)
  local s, dilation = of(o.stride, d, k), of(o.dilation, d, 1)
  local padded = 0
  for j = 0, k - 1 do
    local e = (i - 1) * s - p + j * dilation + 1
    if e >= 1 and e <= size then list[#list + 1] = e end
    if e <= size + p then padded = padded + 1 end
  end
  return list, padded
end

-- m (..., d1, ...) with `dims` spatial dims. Returns values and, of max, positions. o: kernel, stride,
-- padding, dilation, ceil_mode, or output; exclude, divisor. A window without elements: nil.
function M.pool(m, dims, o, is_max)
  local n, shape, empty = #m.shape, table.move(m.shape, 1, #m.shape, 1, {}), false
  for d = 1, dims do
    local at = n - dims + d
    shape[at] = o.output and of(o.output, d) or M.count(m.shape[at], d, o)
    if not shape[at] then return nil end
  end
  local positions = {shape = shape}
  local values = model.make(shape, function(index)
    local from, best, place = table.move(index, 1, n, 1, {})
    local sum, count, padded = 0.0, 0, 1
    local lists = {}
    for d = 1, dims do
      local at, p = n - dims + d
      lists[d], p = window(index[at], m.shape[at], d, o)
      padded = padded * p
    end
    local function walk(d, flat)
      if d > dims then
        local v = model.at(m, from)
        sum, count = sum + v, count + 1
        if not best or v > best or v ~= v and best == best then best, place = v, flat + 1 end
        return
      end
      local at = n - dims + d
      for _, e in ipairs(lists[d]) do
        from[at] = e
        walk(d + 1, flat * m.shape[at] + e - 1)
      end
    end
    walk(1, 0)
    if count == 0 then empty = true end
    positions[#positions + 1] = place
    if is_max then return best or 0 end
    return sum / (o.divisor or (o.exclude or o.output) and count or padded)
  end)
  if empty then return nil end
  return values, positions
end

return M
