-- resize_reference.lua -- borders, interpolation and shuffled pixels over the arrays of model.lua, by
-- their definitions. Knows nothing of luma.
local model = require "model"
local M = {}

local function copy(list) return table.move(list, 1, #list, 1, {}) end

-- The position in 1..n that stands at i of a border, or nil: of a constant.
local places = {
  constant = function(i, n) return i >= 1 and i <= n and i or nil end,
  replicate = function(i, n) return math.max(1, math.min(n, i)) end,
  reflect = function(i, n) return i < 1 and 2 - i or i > n and 2 * n - i or i end,
}

-- widths: before and after of the last dim, then of the one before it.
function M.pad(m, widths, mode, value)
  local shape, cut = copy(m.shape), {}
  for k = 1, #widths // 2 do
    local d = #shape + 1 - k
    local before, after = widths[2 * k - 1], widths[2 * k]
    cut[d] = {before, m.shape[d] + math.min(before, 0) + math.min(after, 0)}
    shape[d] = shape[d] + before + after
  end
  return model.make(shape, function(index)
    local from = copy(index)
    for d, c in pairs(cut) do
      local i, n = index[d] - c[1], m.shape[d]
      if mode == "circular" then -- goes round what was not cut
        local first = math.max(-c[1], 0)
        i = (i - first - 1) % c[2] + first + 1
      else
        i = places[mode](i, n)
      end
      if not i then return value end
      from[d] = i
    end
    return model.at(m, from)
  end)
end

-- From (..., c r^2, h, w), and back.
function M.pixel_shuffle(m, r)
  local n, shape = #m.shape, copy(m.shape)
  shape[n - 2], shape[n - 1], shape[n] = shape[n - 2] // (r * r), shape[n - 1] * r, shape[n] * r
  return model.make(shape, function(index)
    local from = copy(index)
    local y, x = index[n - 1] - 1, index[n] - 1
    from[n - 2] = ((index[n - 2] - 1) * r + y % r) * r + x % r + 1
    from[n - 1], from[n] = y // r + 1, x // r + 1
    return model.at(m, from)
  end)
end

function M.pixel_unshuffle(m, r)
  local n, shape = #m.shape, copy(m.shape)
  shape[n - 2], shape[n - 1], shape[n] = shape[n - 2] * r * r, shape[n - 1] // r, shape[n] // r
  return model.make(shape, function(index)
    local from = copy(index)
    local c = index[n - 2] - 1
    from[n - 2] = c // (r * r) + 1
    from[n - 1] = (index[n - 1] - 1) * r + c // r % r + 1
    from[n] = (index[n] - 1) * r + c % r + 1
    return model.at(m, from)
  end)
end

-- Where i (from 0) of `out` lies among `n`: between two positions from 0, and how far from the first.
local function between(i, n, out, scale, align)
  local at
  if align then
    at = out > 1 and i * (n - 1) / (out - 1) or 0
  else
    at = math.max((i + 0.5) * (scale and 1 / scale or n / out) - 0.5, 0)
  end
  local first = math.min(math.floor(at), n - 1)
  return first, math.min(first + 1, n - 1), math.max(0, math.min(at - first, 1))
end

-- m (n, c, ...) to the sizes of its other dims. o: linear, align, scale.
function M.interpolate(m, sizes, o)
  local shape = {m.shape[1], m.shape[2], table.unpack(sizes)}
  return model.make(shape, function(index)
    local from = copy(index)
    local function along(d) -- the value at `from` with dims from d on interpolated
      if d > #shape then return model.at(m, from) end
      local i, n = index[d] - 1, m.shape[d]
      if not o.linear then
        local at = o.scale and i // o.scale or i * n // shape[d]
        from[d] = math.tointeger(math.min(at, n - 1)) + 1
        return along(d + 1)
      end
      local first, second, w = between(i, n, shape[d], o.scale, o.align)
      from[d] = first + 1
      local a = along(d + 1)
      from[d] = second + 1
      return (1 - w) * a + w * along(d + 1)
    end
    return along(3)
  end)
end

return M
