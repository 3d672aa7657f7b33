-- lines.lua -- normalisation and attention in plain Lua over flat row-major lists, written for
-- clearness. Knows nothing of luma.
local reference = require "reference"
local M = {}

-- y of the lines that `groups` (lists of flat positions) make: (x - mean) / sqrt(var + eps), or of
-- rms x / sqrt(mean square + eps); and |mean| / sqrt(var + eps), by which the mean's rounding grows.
function M.normalize(x, groups, eps, rms)
  local y, far = {}, {}
  for _, group in ipairs(groups) do
    local list, squares = {}, {}
    for i, at in ipairs(group) do list[i] = x[at] end
    local mean = rms and 0 or reference.total(list) / #list
    for i, v in ipairs(list) do squares[i] = (v - mean) * (v - mean) end
    local root = math.sqrt(reference.total(squares) / #list + eps)
    for i, at in ipairs(group) do y[at], far[at] = (list[i] - mean) / root, math.abs(mean) / root end
  end
  return y, far
end

-- Mean and variance (divided by n - correction) of every group.
function M.moments(x, groups, correction)
  local means, vars = {}, {}
  for g, group in ipairs(groups) do
    local list, squares = {}, {}
    for i, at in ipairs(group) do list[i] = x[at] end
    means[g] = reference.total(list) / #list
    for i, v in ipairs(list) do squares[i] = (v - means[g]) * (v - means[g]) end
    vars[g] = reference.total(squares) / (#list - correction)
  end
  return means, vars
end

-- out (l, ev) of one head: q (l, e), k (s, e), v (s, ev) as flat lists; bias(i, j) is added to the score
-- of query i and key j (-inf: not seen).
function M.attention(q, k, v, l, s, e, ev, scale, bias)
  local out = {}
  for i = 1, l do
    local scores, greatest, sum = {}, -math.huge, 0
    for j = 1, s do
      local dot = 0
      for c = 1, e do dot = dot + q[(i - 1) * e + c] * k[(j - 1) * e + c] end
      scores[j] = dot * scale + bias(i, j)
      greatest = math.max(greatest, scores[j])
    end
    for j = 1, s do
      scores[j] = math.exp(scores[j] - greatest)
      sum = sum + scores[j]
    end
    for c = 1, ev do
      local y = 0
      for j = 1, s do y = y + scores[j] * v[(j - 1) * ev + c] end
      out[#out + 1] = s == 0 and 0 or y / sum
    end
  end
  return out
end

-- The last dim of rows of n turned pair by pair: halves or neighbours; angle(row, i) of pair i.
function M.rope(x, n, interleaved, angle)
  local y = {}
  for row = 0, #x // n - 1 do
    for i = 1, n // 2 do
      local a, b = row * n + i, row * n + i + n // 2
      if interleaved then a, b = row * n + 2 * i - 1, row * n + 2 * i end
      local c, s = angle(row, i)
      y[a] = x[a] * c - x[b] * s
      y[b] = x[a] * s + x[b] * c
    end
  end
  return y
end

return M
