-- layouts.lua -- the same values in every layout a tensor can have. make(values, dtype) -> tensor is
-- contiguous; the others hold the same logical list, seen through another view.
local luma = require "luma"
local layouts = {}

local function contiguous(values, dtype)
  if dtype == "bool" then
    local list = {}
    for i, v in ipairs(values) do list[i] = v ~= 0 end
    values = list
  end
  if #values == 0 then return luma.zeros(0, {dtype = dtype}) end
  return luma.tensor(values, dtype)
end
layouts.make = contiguous

-- Each returns a tensor of #values elements in logical order, or nil when the length does not fit.
layouts.list = {
  {"contiguous", contiguous},
  {"stepped", function(values, dtype)
    local x = luma.zeros(2 * #values + 1, {dtype = dtype})
    local view = x:slice(1, 2, 2 * #values + 1, 2)
    view:copy_(contiguous(values, dtype))
    return view
  end},
  {"reversed", function(values, dtype)
    local n, list = #values, {}
    for i = 1, n do list[i] = values[n + 1 - i] end
    return contiguous(list, dtype):flip(1)
  end},
  {"offset", function(values, dtype)
    local x = luma.zeros(#values + 3, {dtype = dtype})
    local view = x:narrow(1, 3, #values)
    view:copy_(contiguous(values, dtype))
    return view
  end},
  {"transposed", function(values, dtype)
    local n = #values
    local rows = n % 3 == 0 and 3 or n % 2 == 0 and 2 or 1
    if n == 0 then return luma.zeros({0, 2}, {dtype = dtype}):t() end
    local columns, list = n // rows, {}
    for r = 1, rows do
      for c = 1, columns do list[(c - 1) * rows + r] = values[(r - 1) * columns + c] end
    end
    return contiguous(list, dtype):reshape(columns, rows):t()
  end},
  {"expanded", function(values, dtype) -- every element is the last value
    if #values == 0 then return nil end
    local last = values[#values]
    for i = 1, #values do values[i] = last end
    return contiguous({last}, dtype):expand(#values)
  end},
}

-- ---- a tensor of any shape as another view ----

function layouts.turned(x) -- dims the other way round in memory
  local dims = {}
  for d = 1, x.ndim do dims[d] = x.ndim + 1 - d end
  return x:permute(dims):force_contiguous():permute(dims)
end

function layouts.reversed(x)
  local dims = {}
  for d = 1, x.ndim do dims[d] = d end
  return x:flip(dims):force_contiguous():flip(dims)
end

function layouts.stepped(x) -- every second element along each dim
  local shape = {}
  for d, s in ipairs(x.shape) do shape[d] = 2 * s end
  local view = luma.zeros(shape, {dtype = x.dtype})
  for d, s in ipairs(x.shape) do
    if s > 0 then view = view:slice(d, 2, 2 * s, 2) end
  end
  return view:copy_(x)
end

function layouts.offset(x) -- in the middle of a larger one
  local shape = {}
  for d, s in ipairs(x.shape) do shape[d] = s + 3 end
  local view = luma.zeros(shape, {dtype = x.dtype})
  for d, s in ipairs(x.shape) do view = view:narrow(d, 2, s) end
  return view:copy_(x)
end

layouts.views = {
  {"contiguous", function(x) return x end},
  {"permuted", layouts.turned},
  {"stepped", layouts.stepped},
  {"offset", layouts.offset},
  {"reversed", layouts.reversed},
}

-- f(view, name) of the values as a tensor of that shape in all of these.
function layouts.each_view(values, shape, dtype, f)
  local x = contiguous(values, dtype):reshape(shape)
  for _, v in ipairs(layouts.views) do f(v[2](x), v[1]) end
end

-- All elements as one list, booleans as 0 and 1.
function layouts.flat(x)
  local list = x:reshape(-1):totable()
  if x.dtype == "bool" then
    for i, v in ipairs(list) do list[i] = v and 1 or 0 end
  end
  return list
end

return layouts
