-- equation.lua -- einsum by its definition: one loop over all values of all letters. And random
-- equations with their tensors. Knows of luma only how tensors are made.
local luma = require "luma"
local M = {}

-- ---- reading ----

-- The terms and the result of an equation as lists of labels; dims of "..." are "1", "2", ... from the
-- last on. ranks: the number of dims of each tensor.
local function labels_of(text, rank)
  local letters, list = select(2, text:gsub("%a", "")), {}
  local at = 1
  while at <= #text do
    if text:sub(at, at + 2) == "..." then
      for k = rank - letters, 1, -1 do list[#list + 1] = tostring(k) end
      at = at + 3
    else
      list[#list + 1] = text:sub(at, at)
      at = at + 1
    end
  end
  return list
end

local function implied(terms)
  local count, wide, letters, out = {}, 0, {}, {}
  for _, term in ipairs(terms) do
    for _, l in ipairs(term) do
      count[l] = (count[l] or 0) + 1
      if tonumber(l) then wide = math.max(wide, tonumber(l)) end
    end
  end
  for k = wide, 1, -1 do out[#out + 1] = tostring(k) end
  for l, n in pairs(count) do
    if n == 1 and not tonumber(l) then letters[#letters + 1] = l end
  end
  table.sort(letters)
  table.move(letters, 1, #letters, #out + 1, out)
  return out
end

function M.read(equation, ranks)
  local left, arrow, right = equation:gsub(" ", ""):match("^([^-]*)(%-?>?)(.*)$")
  local terms, wide = {}, 0
  for text in (left .. ","):gmatch("(.-),") do
    local i = #terms + 1
    terms[i] = labels_of(text, ranks[i])
    if text:find("...", 1, true) then
      wide = math.max(wide, ranks[i] - select(2, text:gsub("%a", "")))
    end
  end
  if arrow == "" then return terms, implied(terms) end
  return terms, labels_of(right, wide + select(2, right:gsub("%a", "")))
end

-- ---- computing ----

-- xs: {shape =, values = flat list in row-major order} each. Returns the shape and the flat values.
function M.einsum(equation, xs)
  local ranks = {}
  for i, x in ipairs(xs) do ranks[i] = #x.shape end
  local terms, out = M.read(equation, ranks)
  local size, summed, in_result, order = {}, {}, {}, {}
  for i, term in ipairs(terms) do
    for d, l in ipairs(term) do
      local s = xs[i].shape[d]
      if not size[l] or size[l] == 1 then size[l] = s end
    end
  end
  for _, l in ipairs(out) do in_result[l] = true end
  for l in pairs(size) do
    if not in_result[l] then summed[#summed + 1] = l end
  end
  table.sort(summed)
  table.move(out, 1, #out, 1, order)
  table.move(summed, 1, #summed, #order + 1, order)
  local shape, total, result, at = {}, 1, {}, {}
  for i, l in ipairs(out) do shape[i] = size[l] end
  for _, s in ipairs(shape) do total = total * s end
  for i = 1, total do result[i] = 0 end
  for _, l in ipairs(order) do
    if size[l] == 0 then return shape, result end
    at[l] = 0
  end
  local inner = 1
  for _, l in ipairs(summed) do inner = inner * size[l] end
  for n = 0, total * inner - 1 do
    local rest = n
    for i = #order, 1, -1 do
      at[order[i]] = rest % size[order[i]]
      rest = rest // size[order[i]]
    end
    local product = 1
    for i, term in ipairs(terms) do
      local flat = 0
      for d, l in ipairs(term) do
        local s = xs[i].shape[d]
        flat = flat * s + (s == 1 and 0 or at[l])
      end
      product = product * xs[i].values[flat + 1]
    end
    result[n // inner + 1] = result[n // inner + 1] + product
  end
  return shape, result
end

-- ---- drawing ----

-- values in a shape and dtype, seen through one of several layouts.
function M.tensor(random, shape, values, dtype)
  local n = #shape
  local x = luma.tensor(#values > 0 and values or {0}, dtype)
  if #values == 0 then x = luma.zeros(0, {dtype = dtype}) end
  x = x:reshape(shape)
  if n == 0 then return x end
  local kind = random(0, 3)
  if kind == 0 then return x end
  local dims = {}
  for d = 1, n do dims[d] = d end
  if kind == 1 then -- any order of dims in memory
    for d = n, 2, -1 do
      local e = random(1, d)
      dims[d], dims[e] = dims[e], dims[d]
    end
    local back = {}
    for d = 1, n do back[dims[d]] = d end
    return x:permute(dims):force_contiguous():permute(back)
  end
  if kind == 2 then return x:flip(dims):force_contiguous():flip(dims) end
  local wide = {} -- every second element of a larger one
  for d = 1, n do wide[d] = 2 * shape[d] + 1 end
  local view = luma.zeros(wide, {dtype = dtype})
  for d = 1, n do
    view = view:narrow(d, 2, 2 * shape[d])
    if shape[d] > 0 then view = view:slice(d, 1, 2 * shape[d], 2) end
  end
  view:copy_(x)
  return view
end

-- An equation of at most `volume` products, and the shapes of its tensors.
function M.draw(random, volume)
  local letters, sizes = {"a", "b", "c", "i", "j", "Z"}, {1, 2, 3, 5, 7}
  local size, texts, shapes, used, many = {}, {}, {}, {}, random(1, 10)
  local left = volume
  for _, l in ipairs(letters) do
    local s = random(1, 40) == 1 and 0 or sizes[random(1, #sizes)]
    if s > left then s = 1 end
    size[l] = s
    left = left // math.max(s, 1)
  end
  local dots = random(1, 3) == 1
  local wide = {left >= 2 and 2 or 1, left >= 6 and 3 or 1}
  local n = many <= 2 and 1 or many <= 7 and 2 or many <= 9 and 3 or 5
  for i = 1, n do
    local text, shape = "", {}
    local before = dots and random(1, 3) < 3 and random(0, 2) or nil
    local count = random(0, n > 3 and 2 or 4)
    for d = 0, count do
      if d == before or (before and d == count and before > count) then
        text = text .. "..."
        for k = random(1, 3), 2 do shape[#shape + 1] = random(1, 4) == 1 and 1 or wide[k] end
      end
      if d < count then
        local l = letters[random(1, #letters)]
        local s = size[l]
        if not text:find(l, 1, true) and random(1, 8) == 1 then s = 1 end
        for e = 1, #text do -- a diagonal has one size
          if text:sub(e, e) == l then s = nil end
        end
        if s == nil then
          local terms = labels_of(text, #shape)
          for e, m in ipairs(terms) do if m == l then s = shape[e] end end
        end
        used[l] = true
        text = text .. l
        shape[#shape + 1] = s
      end
    end
    texts[i], shapes[i] = text, shape
  end
  local equation = table.concat(texts, random(1, 4) == 1 and " , " or ",")
  if random(1, 4) == 1 then return equation, shapes end
  local list, right = {}, ""
  for l in pairs(used) do list[#list + 1] = l end
  table.sort(list)
  local place = dots and random(0, 2) or nil
  for k = 0, random(0, math.min(#list, 4)) do
    if k == place then right = right .. "..." end
    if k > 0 then right = right .. table.remove(list, random(1, #list)) end
  end
  return equation .. "->" .. right, shapes
end

return M
