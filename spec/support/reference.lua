-- reference.lua -- reductions and scans over flat lists in row-major order, written for clearness:
-- one pass per result, sums with their rounding errors carried along. Knows nothing of luma.
local oracle = require "oracle"
local M = {}

local huge, nan = math.huge, 0 / 0

-- ---- walking ----

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end
M.numel = numel

-- The groups that a reduction over dims (a set: dims[d] = true) makes: for every result the list of
-- flat positions behind it, in order.
function M.groups(shape, dims)
  local groups, count = {}, 1
  for d, s in ipairs(shape) do
    if not dims[d] then count = count * s end
  end
  for g = 1, count do groups[g] = {} end
  local index = {}
  for d = 1, #shape do index[d] = 0 end
  for flat = 1, numel(shape) do
    local g = 0
    for d, s in ipairs(shape) do
      if not dims[d] then g = g * s + index[d] end
    end
    local list = groups[g + 1]
    list[#list + 1] = flat
    local d = #shape
    while d > 0 do
      index[d] = index[d] + 1
      if index[d] < shape[d] then break end
      index[d] = 0
      d = d - 1
    end
  end
  return groups
end

-- Those values of a list, as a list.
function M.pick(values, positions)
  local list = {}
  for i, p in ipairs(positions) do list[i] = values[p] end
  return list
end

-- The shape of a result.
function M.reduced_shape(shape, dims, keepdim)
  local out = {}
  for d, s in ipairs(shape) do
    if not dims[d] then out[#out + 1] = s elseif keepdim then out[#out + 1] = 1 end
  end
  return out
end

-- ---- sums ----

-- Sum of doubles, rounded about once: what each addition loses adds up beside it.
local function total(list)
  local sum, lost = 0.0, 0.0
  for _, x in ipairs(list) do
    local t = sum + x
    if math.abs(sum) >= math.abs(x) then
      lost = lost + ((sum - t) + x)
    else
      lost = lost + ((x - t) + sum)
    end
    sum = t
  end
  if sum ~= sum or math.abs(sum) == huge then return sum end
  return sum + lost
end
M.total = total

local function mean(list) return #list == 0 and nan or total(list) / #list end

local function variance(list, correction)
  local m, squares = mean(list), {}
  for i, x in ipairs(list) do squares[i] = (x - m) * (x - m) end
  local freedom = math.max(#list - (correction or 1), 0)
  return (#list == 0 and 0.0 or total(squares)) / freedom
end
M.variance = variance

-- ---- greatest and least: NaN beyond everything, the first of equals ----

local function first_extreme(list, beats)
  local best, at
  for i, x in ipairs(list) do
    if not at or (best == best and (x ~= x or beats(x, best))) then best, at = x, i end
  end
  return best, at
end
local function greater(a, b) return a > b end
local function lesser(a, b) return a < b end
function M.greatest(list) return first_extreme(list, greater) end
function M.least(list) return first_extreme(list, lesser) end

local function exps(list, greatest)
  local e = {}
  for i, x in ipairs(list) do e[i] = math.exp(x - greatest) end
  return e
end

function M.logsumexp(list)
  local m = #list > 0 and M.greatest(list) or -huge
  if math.abs(m) == huge or m ~= m then return m end
  return m + math.log(total(exps(list, m)))
end

function M.softmax(list)
  local m = M.greatest(list)
  local e = exps(list, m)
  local s = total(e)
  for i = 1, #e do e[i] = e[i] / s end
  return e
end

function M.log_softmax(list)
  local m = M.greatest(list)
  local s = math.log(total(exps(list, m)))
  local out = {}
  for i, x in ipairs(list) do out[i] = x - m - s end
  return out
end

local function numbers(list)
  local kept = {}
  for _, x in ipairs(list) do
    if x == x then kept[#kept + 1] = x end
  end
  return kept
end

-- (sum of |x|^p)^(1 / p), and its limits.
function M.norm(list, p)
  local powers = {}
  for i, x in ipairs(list) do
    local m = math.abs(x + 0.0)
    powers[i] = math.abs(p) == huge and m or p == 0 and (x ~= 0 and 1.0 or 0.0) or m ^ p
  end
  if p == huge then return (M.greatest(powers)) end
  if p == -huge then return (M.least(powers)) end
  local sum = #list == 0 and 0.0 or total(powers)
  return p == 0 and sum or sum ^ (1 / p)
end

-- ---- the rows by name: f(list, kind) of one group of values (integers for int dtypes and bool) ----

local function fold(list, start, f)
  local acc = start
  for _, x in ipairs(list) do acc = f(acc, x) end
  return acc
end

M.rows = {
  sum = function(list, real)
    return real and total(list) or fold(list, 0, function(a, x) return a + x end)
  end,
  prod = function(list, real)
    return fold(list, real and 1.0 or 1, function(a, x) return a * x end)
  end,
  mean = mean,
  var = function(list) return variance(list) end,
  std = function(list) return math.sqrt(variance(list)) end,
  amax = function(list) return (M.greatest(list)) end,
  amin = function(list) return (M.least(list)) end,
  argmax = function(list) return (select(2, M.greatest(list))) end,
  argmin = function(list) return (select(2, M.least(list))) end,
  all = function(list)
    return fold(list, true, function(a, x) return a and x ~= 0 end)
  end,
  any = function(list)
    return fold(list, false, function(a, x) return a or x ~= 0 end)
  end,
  logsumexp = M.logsumexp,
  count_nonzero = function(list)
    return fold(list, 0, function(a, x) return a + (x ~= 0 and 1 or 0) end)
  end,
  nansum = function(list, real)
    return M.rows.sum(numbers(list), real)
  end,
  nanmean = function(list) return mean(numbers(list)) end,
  norm = function(list) return M.norm(list, 2) end,
}

-- The dtype of a row's result.
function M.result_dtype(name, dtype)
  local real = oracle.dtypes[dtype].kind == "float"
  if name == "sum" or name == "prod" or name == "cumsum" or name == "nansum" then
    return real and dtype or "int64"
  end
  if name == "amax" or name == "amin" then return dtype end
  if name == "argmax" or name == "argmin" or name == "count_nonzero" then return "int64" end
  if name == "all" or name == "any" then return "bool" end
  return real and dtype or "float32"
end

-- Sum of magnitudes: what the error of a sum is measured by.
function M.magnitude(list)
  return fold(list, 0.0, function(a, x) return a + math.abs(x) end)
end

return M
