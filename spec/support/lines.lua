-- lines.lua -- normalisation and attention in plain Lua over flat row-major lists, written for
-- clearness. Knows nothing of luma.
local reference = require "reference"
local M = {}

-- y of the lines that `groups` (lists of flat positions) make: (x - mean) / sqrt(var + eps), or of
-- rms x / sqrt(mean square + eps).
function M.normalize(x, groups, eps, rms)
  local y = {}
  for _, group in ipairs(groups) do
    local list, squares = {}, {}
    for i, at in ipairs(group) do list[i] = x[at] end
    local mean = rms and 0 or reference.total(list) / #list
    for i, v in ipairs(list) do squares[i] = (v - mean) * (v - mean) end
    local root = math.sqrt(reference.total(squares) / #list + eps)
    for i, at in ipairs(group) do y[at] = (list[i] - mean) / root end
  end
  return y
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

return M
