-- loss_reference.lua -- losses over flat row-major lists, by their definitions and in doubles. Knows
-- nothing of luma.
local M = {}

local huge = math.huge

local function softplus(v) return math.max(v, 0) + math.log(1 + math.exp(-math.abs(v))) end

-- By name: the loss of one element x at the target t, before weights.
M.each = {
  mse_loss = function(x, t) return (x - t) ^ 2 end,
  l1_loss = function(x, t) return math.abs(x - t) end,
  huber = function(x, t, o)
    local d, delta = math.abs(x - t), o.delta or 1
    return d <= delta and d * d / 2 or delta * (d - delta / 2)
  end,
  smooth_l1 = function(x, t, o)
    local d, beta = math.abs(x - t), o.beta or 1
    return d < beta and d * d / 2 / beta or d - beta / 2
  end,
  bce = function(x, t)
    local function log(v) return v == 0 and -100 or math.max(math.log(v), -100) end
    return -(t * log(x) + (1 - t) * log(1 - x))
  end,
  bce_with_logits = function(x, t, _, pos)
    return (pos or 1) * t * softplus(-x) + (1 - t) * softplus(x)
  end,
  kl_div = function(x, t, o)
    if o.log_target then return t == -huge and 0 or math.exp(t) * (t - x) end
    return t == 0 and 0 or t * (math.log(t) - x)
  end,
}

-- Of lists as long as x; weight and pos may be nil. Returns the loss of each.
function M.pairs(name, x, t, o, weight, pos)
  local list = {}
  for i, v in ipairs(x) do
    list[i] = M.each[name](v, t[i], o, pos and pos[i]) * (weight and weight[i] or 1)
  end
  return list
end

-- The number that a reduction makes of a list; count: what a mean divides by.
function M.reduce(list, reduction, count)
  if reduction == "none" then return list end
  local sum = 0.0
  for _, v in ipairs(list) do sum = sum + v end
  if reduction == "sum" then return sum end
  return sum / (count or #list)
end

-- x: shape (n, c, m) as a flat list of logits or, logs, of logarithms of probabilities; labels (n, m)
-- from 1, or probabilities (n, c, m). o: weight (a list), ignore_index, label_smoothing. Returns the
-- losses (n, m) and what their mean divides by.
function M.classes(x, n, c, m, target, o, probabilities, logs)
  local list, count, s = {}, 0, o.label_smoothing or 0
  local function at(i, k, j) return ((i - 1) * c + k - 1) * m + j end
  for i = 1, n do
    for j = 1, m do
      local greatest, sum = -huge, 0
      for k = 1, c do greatest = math.max(greatest, x[at(i, k, j)]) end
      for k = 1, c do sum = sum + math.exp(x[at(i, k, j)] - greatest) end
      local function log(k)
        local v = x[at(i, k, j)]
        return logs and v or v - greatest - math.log(sum)
      end
      local function weight(k) return o.weight and o.weight[k] or 1 end
      local loss, all = 0.0, 0.0
      if probabilities then
        for k = 1, c do
          loss = loss - weight(k) * ((1 - s) * target[at(i, k, j)] + s / c) * log(k)
        end
        count = count + 1
      else
        local label = target[(i - 1) * m + j]
        if label ~= o.ignore_index then
          for k = 1, c do all = all - weight(k) * log(k) end
          loss = -(1 - s) * weight(label) * log(label) + s / c * all
          count = count + weight(label)
        end
      end
      list[#list + 1] = loss
    end
  end
  return list, count
end

return M
