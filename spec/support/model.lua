-- model.lua -- views, joins and assignment in plain Lua: an array is {shape = {...}, v1, v2, ...}
-- in row-major order, without strides, so it can be wrong in no way that strides can be wrong.
local model = {}

function model.numel(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

-- Calls f with every index of the shape, in row-major order; the list is reused.
function model.walk(shape, f)
  local n, index = model.numel(shape), {}
  for d = 1, #shape do index[d] = 1 end
  for _ = 1, n do
    f(index)
    for d = #shape, 1, -1 do
      index[d] = index[d] + 1
      if index[d] <= shape[d] then break end
      index[d] = 1
    end
  end
end

function model.position(shape, index)
  local at = 0
  for d = 1, #shape do at = at * shape[d] + index[d] - 1 end
  return at + 1
end

function model.at(m, index) return m[model.position(m.shape, index)] end

-- The array of `shape` whose element at index is f(index).
function model.make(shape, f)
  local m = {shape = shape}
  model.walk(shape, function(index) m[#m + 1] = f(index) end)
  return m
end

-- 1, 2, 3, ...
function model.count(shape)
  local n = 0
  return model.make(shape, function()
    n = n + 1
    return n
  end)
end

local function copy(list) return table.move(list, 1, #list, 1, {}) end

-- m in another shape, each index mapped back to one of m by f.
local function remap(m, shape, f)
  return model.make(shape, function(index) return model.at(m, f(copy(index))) end)
end

function model.reshape(m, shape)
  local out = copy(m)
  out.shape = shape
  return out
end

function model.permute(m, dims)
  local shape = {}
  for d, from in ipairs(dims) do shape[d] = m.shape[from] end
  return remap(m, shape, function(index)
    local back = {}
    for d, from in ipairs(dims) do back[from] = index[d] end
    return back
  end)
end

function model.transpose(m, a, b)
  local dims = {}
  for d = 1, #m.shape do dims[d] = d end
  dims[a], dims[b] = b, a
  return model.permute(m, dims)
end

-- The elements first, first + step, ... along dim, n of them.
function model.slice(m, dim, first, n, step)
  local shape = copy(m.shape)
  shape[dim] = n
  return remap(m, shape, function(index)
    index[dim] = first + (index[dim] - 1) * step
    return index
  end)
end

function model.flip(m, dim) return model.slice(m, dim, m.shape[dim], m.shape[dim], -1) end

function model.select(m, dim, i)
  local shape = copy(m.shape)
  table.remove(shape, dim)
  return remap(m, shape, function(index)
    table.insert(index, dim, i)
    return index
  end)
end

function model.unsqueeze(m, dim)
  local shape = copy(m.shape)
  table.insert(shape, dim, 1)
  return model.reshape(m, shape)
end

function model.expand(m, shape)
  local added = #shape - #m.shape
  return remap(m, shape, function(index)
    local back = {}
    for d = 1, #m.shape do back[d] = m.shape[d] == 1 and 1 or index[d + added] end
    return back
  end)
end

function model.diagonal(m, offset, a, b)
  local down, across = math.max(-offset, 0), math.max(offset, 0)
  local n = math.max(0, math.min(m.shape[a] - down, m.shape[b] - across))
  local shape = {}
  for d = 1, #m.shape do
    if d ~= a and d ~= b then shape[#shape + 1] = m.shape[d] end
  end
  shape[#shape + 1] = n
  return remap(m, shape, function(index)
    local k, back, at = index[#index], {}, 0
    for d = 1, #m.shape do
      if d == a then
        back[d] = k + down
      elseif d == b then
        back[d] = k + across
      else
        at = at + 1
        back[d] = index[at]
      end
    end
    return back
  end)
end

function model.unfold(m, dim, size, step)
  local shape = copy(m.shape)
  shape[dim] = (shape[dim] - size) // step + 1
  shape[#shape + 1] = size
  return remap(m, shape, function(index)
    local within = table.remove(index)
    index[dim] = (index[dim] - 1) * step + within
    return index
  end)
end

function model.cat(list, dim)
  local shape, owner = copy(list[1].shape), {}
  shape[dim] = 0
  for _, m in ipairs(list) do
    for i = 1, m.shape[dim] do owner[shape[dim] + i] = {m, i} end
    shape[dim] = shape[dim] + m.shape[dim]
  end
  return model.make(shape, function(index)
    local from = owner[index[dim]]
    local back = copy(index)
    back[dim] = from[2]
    return model.at(from[1], back)
  end)
end

-- Of a tensor, element by element.
function model.of(x)
  local m = {shape = x.shape}
  if x.ndim == 0 then return {shape = {}, x:item()} end
  model.walk(m.shape, function(index) m[#m + 1] = x(table.unpack(index)) end)
  return m
end

-- A generator of whole numbers lo..hi: the same ones every time for a seed.
function model.random(seed)
  local state = seed * 2654435761 + 1
  return function(lo, hi)
    state = state * 6364136223846793005 + 1442695040888963407
    return lo + (state >> 33) % (hi - lo + 1)
  end
end

-- ---- random views: one step on a tensor and on its model alike ----

local steps = {}

function steps.transpose(x, m, random)
  local a, b = random(1, #m.shape), random(1, #m.shape)
  return x:transpose(a, b), model.transpose(m, a, b)
end

function steps.slice(x, m, random)
  local d = random(1, #m.shape)
  local size, step = m.shape[d], random(1, 3)
  if size == 0 then return x, m end
  local first = random(1, size)
  local last = random(first, size)
  if random(0, 1) == 1 then first, last, step = last, first, -step end
  return x:slice(d, first, last, step), model.slice(m, d, first, (last - first) // step + 1, step)
end

function steps.narrow(x, m, random)
  local d = random(1, #m.shape)
  local start = random(1, m.shape[d] + 1)
  local n = random(0, m.shape[d] - start + 1)
  if n == 0 and random(1, 6) > 1 then return x, m end
  return x:narrow(d, start, n), model.slice(m, d, start, n, 1)
end

function steps.flip(x, m, random)
  local d = random(1, #m.shape)
  return x:flip(d), model.flip(m, d)
end

function steps.select(x, m, random)
  local d = random(1, #m.shape)
  if m.shape[d] == 0 then return x, m end
  local i = random(1, m.shape[d])
  return x:select(d, i), model.select(m, d, i)
end

function steps.unsqueeze(x, m, random)
  if #m.shape > 5 then return x, m end
  local d = random(1, #m.shape + 1)
  return x:unsqueeze(d), model.unsqueeze(m, d)
end

function steps.diagonal(x, m, random)
  if #m.shape < 2 then return x, m end
  local a, b = random(1, #m.shape), random(1, #m.shape)
  local offset = random(-2, 2)
  if a == b then return x, m end
  return x:diagonal{offset = offset, dim1 = a, dim2 = b}, model.diagonal(m, offset, a, b)
end

-- These make views whose elements overlap.
function steps.expand(x, m, random)
  local shape, any = copy(m.shape), false
  for d, size in ipairs(shape) do
    if size == 1 then shape[d], any = random(1, 3), true end
  end
  if not any and #shape < 6 then table.insert(shape, 1, random(1, 2)) end
  return x:expand(shape), model.expand(m, shape)
end

function steps.unfold(x, m, random)
  local d = random(1, #m.shape)
  if #m.shape > 5 or m.shape[d] == 0 then return x, m end
  local size, step = random(1, math.min(3, m.shape[d])), random(1, 2)
  return x:unfold(d, size, step), model.unfold(m, d, size, step)
end

local apart = {"transpose", "slice", "narrow", "flip", "select", "unsqueeze", "diagonal"}
local all = {"expand", "unfold", table.unpack(apart)}

-- n random steps; overlap: whether elements may come up twice.
function model.random_view(x, m, random, n, overlap)
  local names, trail = overlap and all or apart, {}
  for _ = 1, n do
    if #m.shape == 0 then break end
    local name = names[random(1, #names)]
    trail[#trail + 1] = name
    x, m = steps[name](x, m, random)
  end
  return x, m, table.concat(trail, " ")
end

return model
