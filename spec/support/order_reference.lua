-- order_reference.lua -- running results, order statistics, searches and counts over flat lists, one
-- plain loop each. Positions count from 1; NaN is the greatest. Knows nothing of luma.
local reference = require "reference"
local M = {}

local huge, nan = math.huge, 0 / 0

-- ---- running results: f(list, real) -> values [, positions] ----

M.running = {}

function M.running.cumsum(list, real)
  local out, part = {}, {}
  local sum = 0
  for i, x in ipairs(list) do
    part[i] = x
    sum = sum + x
    out[i] = real and reference.total(part) or sum
  end
  return out
end

function M.running.cumprod(list, real)
  local out, product = {}, real and 1.0 or 1
  for i, x in ipairs(list) do
    product = product * x
    out[i] = product
  end
  return out
end

local function extremes(beats)
  return function(list)
    local out, places = {}, {}
    local best, at
    for i, x in ipairs(list) do
      if not at or (best == best and (x ~= x or beats(x, best))) then best, at = x, i end
      out[i], places[i] = best, at
    end
    return out, places
  end
end
M.running.cummax = extremes(function(a, b) return a > b end)
M.running.cummin = extremes(function(a, b) return a < b end)

function M.running.logcumsumexp(list)
  local out, part = {}, {}
  for i, x in ipairs(list) do
    part[i] = x + 0.0
    out[i] = reference.logsumexp(part)
  end
  return out
end

function M.diff(list, bool)
  local out = {}
  for i = 2, #list do
    if bool then
      out[i - 1] = list[i] ~= list[i - 1] and 1 or 0
    else
      out[i - 1] = list[i] - list[i - 1]
    end
  end
  return out
end

-- ---- order ----

function M.less(a, b) return a < b or (a == a and b ~= b) end

-- Positions of the list in order: stable.
function M.order(list)
  local p = {}
  for i = 1, #list do p[i] = i end
  table.sort(p, function(i, j)
    if M.less(list[i], list[j]) then return true end
    if M.less(list[j], list[i]) then return false end
    return i < j
  end)
  return p
end

function M.kthvalue(list, k)
  local p = M.order(list)
  return list[p[k]], p[k]
end

-- The lower of the two in the middle; NaN and its first place where there is one.
function M.median(list)
  for i, x in ipairs(list) do if x ~= x then return x, i end end
  return M.kthvalue(list, (#list + 1) // 2)
end

-- The same without NaN, where there is anything else.
function M.nanmedian(list)
  local count = 0
  for _, x in ipairs(list) do if x == x then count = count + 1 end end
  return M.kthvalue(list, math.max((count + 1) // 2, 1))
end

-- The least of the most frequent, and its first place. NaN is one value.
function M.mode(list)
  local p, best, most, run = M.order(list), nil, 0, 0
  for i = 1, #p do
    run = i > 1 and not M.less(list[p[i - 1]], list[p[i]]) and run + 1 or 1
    if run > most then best, most = p[i - run + 1], run end
  end
  return list[best], best
end

local between = {
  linear = function(a, b, t) return a + (b - a) * t end,
  lower = function(a) return a end,
  higher = function(_, b) return b end,
  midpoint = function(a, b) return a + (b - a) * 0.5 end,
  nearest = function(a, b, t, lower) -- halves to the even place
    if t == 0.5 then return lower % 2 == 0 and a or b end
    return t < 0.5 and a or b
  end,
}
-- ignore: without NaN.
function M.quantile(list, q, interpolation, ignore)
  local values = {}
  for _, x in ipairs(list) do
    if x == x then values[#values + 1] = x elseif not ignore then return nan end
  end
  if #values == 0 then return nan end
  table.sort(values)
  local place = q * (#values - 1)
  local lower = math.floor(place)
  local a, b = values[lower + 1], values[math.min(lower + 2, #values)]
  if place == lower or a == b then return a end
  return between[interpolation or "linear"](a, b, place - lower, lower)
end

-- ---- search and counts ----

-- 1 + how many are below v, or (right) not above it.
function M.search(sorted, v, right)
  local n = 0
  for _, e in ipairs(sorted) do
    if M.less(e, v) or (right and not M.less(v, e)) then n = n + 1 end
  end
  return n + 1
end

M.huge = huge
return M
