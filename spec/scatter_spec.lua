-- scatter_spec.lua -- scatter_reduce, index_reduce, index_fill, index_put, masked_scatter and
-- take_along_dim against plain loops in source order: drawn cases over every dtype and layout, NaN,
-- rounding, in place, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"
local equation = require "equation"
local layouts = require "layouts"
local model = require "model"
local oracle = require "oracle"

local nan, huge = 0 / 0, math.huge
local seed = tonumber(os.getenv "LUMA_SPEC_SEED") or 1

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

local function list_of(random, dtype, n, most)
  local list = {}
  for i = 1, n do
    list[i] = dtype == "bool" and random(0, 1) or random(dtype:find "^u" and 0 or -most, most)
  end
  return list
end

-- The tensor in some layout, and its flat list.
local function draw(random, dtype, shape, most)
  local list = list_of(random, dtype, numel(shape), most)
  local values = list
  if dtype == "bool" then
    values = {}
    for i, v in ipairs(list) do values[i] = v ~= 0 end
  end
  return equation.tensor(random, shape, values, dtype), list
end

-- Positions lo .. hi in some layout and integer dtype, and their flat list.
local function positions(random, shape, hi)
  local dtypes = {"int64", "int32", "uint8", "int16"}
  local list = {}
  for i = 1, numel(shape) do list[i] = random(1, hi) end
  return equation.tensor(random, shape, list, dtypes[random(1, 4)]), list
end

-- Calls f(place, flat) for every place of a shape, in order.
local function each_place(shape, f)
  local place = {}
  for flat = 1, numel(shape) do
    local rest = flat - 1
    for d = #shape, 1, -1 do
      place[d] = rest % shape[d] + 1
      rest = rest // shape[d]
    end
    f(place, flat)
  end
end

local function flat_of(shape, place)
  local flat = 0
  for d, s in ipairs(shape) do flat = flat * s + place[d] - 1 end
  return flat + 1
end

local joins = {
  sum = function(a, b) return a + b end,
  prod = function(a, b) return a * b end,
  amax = math.max,
  amin = math.min,
}

-- Joins terms into list: terms are {flat place, value} in order.
local function join(list, terms, reduce, include_self)
  local out, count = table.move(list, 1, #list, 1, {}), {}
  local f = joins[reduce == "mean" and "sum" or reduce]
  for _, t in ipairs(terms) do
    local at, v = t[1], t[2]
    if not count[at] then count[at] = include_self and 1 or 0 end
    out[at] = count[at] == 0 and v or f(out[at], v)
    count[at] = count[at] + 1
  end
  if reduce == "mean" then
    for at, n in pairs(count) do out[at] = out[at] / n end
  end
  return out
end

-- What whole numbers, or their quotients, are in a dtype.
local function stored(list, dtype, reduce)
  if #list == 0 then return list end
  local out = {}
  for i, v in ipairs(list) do
    if reduce == "mean" and not dtype:find "float" then v = math.floor(v) end
    out[i] = v
  end
  if dtype == "bool" then return out end
  if reduce == "mean" and dtype:find "float" then
    -- a quotient of float32, or of float64, is rounded twice at most
    local x = luma.tensor(out, "float64")
    if dtype ~= "float64" then x = x:to("float32") end
    return layouts.flat(x:to(dtype))
  end
  for i, v in ipairs(out) do out[i] = math.tointeger(v) end
  return layouts.flat(luma.tensor(out, "int64"):to(dtype))
end

local function same(text, want, dtype, shape, y)
  assert.equal(dtype, y.dtype)
  assert.same(shape, y.shape)
  local got = layouts.flat(y)
  for i, v in ipairs(want) do
    if got[i] ~= v and (got[i] == got[i] or v == v) then
      error(("%s, element %d: %s, not %s"):format(text, i, got[i], v), 2)
    end
  end
end

local ways = {"sum", "prod", "mean", "amax", "amin"}
local shapes = {{7}, {3, 5}, {5, 3}, {2, 3, 4}, {1, 6}, {40, 2}, {2, 40}}

local function case(number, f)
  local random = model.random(number)
  local dtype = oracle.names[random(1, #oracle.names)]
  local reduce = ways[dtype == "bool" and random(4, 5) or random(1, 5)]
  local shape = shapes[random(1, #shapes)]
  local include = random(0, 1) == 1
  local text = ("seed %d: %s of %s, include_self %s"):format(number, reduce, dtype, include)
  -- products stay whole and small
  local most = reduce == "prod" and 1 or 3
  f(random, dtype, shape, random(1, #shape), most, text, reduce, include)
end

-- Plain, into a tensor, in place.
local function forms(text, name, x, want, dtype, shape, ...)
  same(text, want, dtype, shape, luma[name](x, ...))
  local y = x:clone()
  assert.equal(y, luma[name .. "_"](y, ...))
  same(text .. " in place", want, dtype, shape, y)
end

it("scatter_reduce: drawn cases", function()
  for number = seed, seed + 399 do
    case(number, function(random, dtype, shape, dim, most, text, reduce, include)
      local x, xs = draw(random, dtype, shape, most)
      local size = {}
      for d, s in ipairs(shape) do size[d] = d == dim and random(0, 9) or random(1, s) end
      local index, at = positions(random, size, shape[dim])
      local src, values = draw(random, dtype, size, most)
      local terms = {}
      each_place(size, function(place, flat)
        local to = table.move(place, 1, #place, 1, {})
        to[dim] = at[flat]
        terms[flat] = {flat_of(shape, to), values[flat]}
      end)
      local want = stored(join(xs, terms, reduce, include), dtype, reduce)
      local options = {reduce = reduce, include_self = include}
      if include and number % 2 == 0 then options.include_self = nil end
      if reduce == "sum" and number % 3 == 0 then options.reduce = nil end
      forms(text, "scatter_reduce", x, want, dtype, shape, dim, index, src, options)
    end)
  end
end)

it("index_reduce: drawn cases", function()
  for number = seed, seed + 199 do
    case(number, function(random, dtype, shape, dim, most, text, reduce, include)
      local x, xs = draw(random, dtype, shape, most)
      local size = table.move(shape, 1, #shape, 1, {})
      size[dim] = random(0, 9)
      local index, at = positions(random, {size[dim]}, shape[dim])
      local src, values = draw(random, dtype, size, most)
      local terms = {}
      each_place(size, function(place, flat)
        local to = table.move(place, 1, #place, 1, {})
        to[dim] = at[place[dim]]
        terms[flat] = {flat_of(shape, to), values[flat]}
      end)
      local want = stored(join(xs, terms, reduce, include), dtype, reduce)
      forms(text, "index_reduce", x, want, dtype, shape, dim, index, src,
        {reduce = reduce, include_self = include})
      if #xs > 0 and size[dim] > 0 then
        each_place(size, function(place)
          local to = table.move(place, 1, #place, 1, {})
          to[dim] = at[place[dim]]
          xs[flat_of(shape, to)] = 1
        end)
        forms(text, "index_fill", x, stored(xs, dtype), dtype, shape, dim, index, dtype == "bool" or 1)
      end
    end)
  end
end)

it("sums and products of floats in source order, rounded as they come; of small floats at the end", function()
  local n = 1000
  local index = luma.ones(n, {dtype = "int64"})
  local values = {}
  local random = model.random(3)
  for i = 1, n do values[i] = random(-99999, 99999) / 7777 end
  local function f32(v) return string.unpack("f", string.pack("f", v)) end
  local sum, product = 1.0, 1.0
  for i = 1, n do
    values[i] = f32(values[i])
    sum = f32(sum + values[i])
    if i <= 40 then product = f32(product * values[i]) end
  end
  local src = luma.tensor(values)
  local one = luma.ones(1)
  assert.equal(sum, one:scatter_reduce(1, index, src):item())
  assert.equal(f32(sum / 1001), one:scatter_reduce(1, index, src, {reduce = "mean"}):item())
  local few = index:narrow(1, 1, 40)
  assert.equal(product, one:scatter_reduce(1, few, src:narrow(1, 1, 40), {reduce = "prod"}):item())
  -- 1 + 300 x 1 / 256: bfloat16 alone would stay at 1
  local small = luma.full({300}, 1 / 256, {dtype = "bfloat16"})
  local ones = luma.ones(1, {dtype = "bfloat16"})
  assert.equal(2.171875, ones:scatter_reduce(1, luma.ones(300, {dtype = "int64"}), small):item())
  assert.equal(2.171875, ones:scatter_add(1, luma.ones(300, {dtype = "int64"}), small):item())
  assert.equal(2.171875,
    ones:index_put({luma.ones(300, {dtype = "int64"})}, small, {accumulate = true}):item())
end)

it("NaN, infinities and untouched elements", function()
  local x = luma.tensor {1, nan, 3, huge}
  local index, src = luma.tensor({1, 1, 3, 3}, "int64"), luma.tensor {nan, 5, -2, 7}
  local function of(reduce, include)
    return layouts.flat(x:scatter_reduce(1, index, src, {reduce = reduce, include_self = include}))
  end
  local y = of("amax", true)
  assert(y[1] ~= y[1] and y[2] ~= y[2] and y[3] == 7 and y[4] == huge)
  y = of("amin", false)
  assert(y[1] ~= y[1] and y[2] ~= y[2] and y[3] == -2 and y[4] == huge)
  y = of("sum", false)
  assert(y[1] ~= y[1] and y[2] ~= y[2] and y[3] == 5 and y[4] == huge)
  y = of("mean", false)
  assert(y[1] ~= y[1] and y[2] ~= y[2] and y[3] == 2.5 and y[4] == huge)
  y = of("prod", false)
  assert(y[3] == -14 and y[4] == huge)
  check.tensor({0, 4}, "uint8", luma.tensor({200, 9}, "uint8"):scatter_reduce(1, {1, 2},
    luma.tensor({56, 0}, "uint8"), {reduce = "mean"}))
end)

it("index_put: drawn cases", function()
  for number = seed, seed + 399 do
    local random = model.random(number)
    local dtype = oracle.names[random(1, #oracle.names)]
    local accumulate = dtype ~= "bool" and random(0, 1) == 1
    local shape = ({{9}, {4, 5}, {3, 4, 2}, {2, 3, 2, 3}})[random(1, 4)]
    local x, xs = draw(random, dtype, shape, 2)
    local entries, dims = {}, 0
    local columns = {} -- per dim: the flat list of positions, its shape
    local count = random(0, 5)
    local used_mask = false
    while dims < #shape and (dims == 0 or random(0, 2) > 0) do
      local k = random(1, math.min(2, #shape - dims))
      if not used_mask and random(1, 4) == 1 then
        used_mask = true
        local size = {table.unpack(shape, dims + 1, dims + k)}
        local mask, ms = draw(random, "bool", size, 1)
        local lists = {}
        for d = 1, k do lists[d] = {} end
        each_place(size, function(place, flat)
          if ms[flat] ~= 0 then
            for d = 1, k do table.insert(lists[d], place[d]) end
          end
        end)
        entries[#entries + 1] = mask
        count = #lists[1]
        for d = 1, k do columns[dims + d] = {lists[d], {count}} end
        dims = dims + k
      else
        columns[dims + 1] = false
        entries[#entries + 1] = false
        dims = dims + 1
      end
    end
    for d = 1, dims do -- the others broadcast with the mask
      if not columns[d] then
        local size = random(1, 4) == 1 and {1} or {count}
        if not used_mask and random(1, 3) == 1 then size = {random(1, 2), table.unpack(size)} end
        local index, at = positions(random, size, shape[d])
        columns[d] = {at, size}
        for e, entry in ipairs(entries) do
          if not entry then
            entries[e] = index
            break
          end
        end
      end
    end
    -- the broadcast shape
    local wide = {}
    for d = 1, dims do
      local size = columns[d][2]
      for k = 0, #size - 1 do
        local s = size[#size - k]
        if wide[k + 1] == nil or wide[k + 1] == 1 then wide[k + 1] = s end
      end
    end
    local front = {}
    for k = #wide, 1, -1 do front[#front + 1] = wide[k] end
    local whole = table.move(front, 1, #front, 1, {})
    for d = dims + 1, #shape do whole[#whole + 1] = shape[d] end
    local values, vs
    if random(1, 3) == 1 then
      values, vs = dtype == "bool" or 1, nil
    else
      values, vs = draw(random, dtype, whole, 2)
    end
    local want = table.move(xs, 1, #xs, 1, {})
    each_place(whole, function(place, flat)
      local to = {}
      for d = 1, #shape do
        if d > dims then
          to[d] = place[#front + d - dims]
        else
          local at, size = columns[d][1], columns[d][2]
          local from = {}
          for k = 1, #size do
            local p = place[#front - #size + k]
            from[k] = size[k] == 1 and 1 or p
          end
          to[d] = at[flat_of(size, from)]
        end
      end
      local f = flat_of(shape, to)
      local v = vs and vs[flat] or 1
      want[f] = accumulate and want[f] + v or v
    end)
    local text = ("seed %d: index_put %s of [%s]"):format(number, dtype, table.concat(shape, " "))
    forms(text, "index_put", x, stored(want, dtype), dtype, shape, entries, values, {accumulate = accumulate})
  end
end)

it("masked_scatter: drawn cases", function()
  for number = seed, seed + 199 do
    local random = model.random(number)
    local dtype = oracle.names[random(1, #oracle.names)]
    local shape = shapes[random(1, #shapes)]
    local x, xs = draw(random, dtype, shape, 2)
    local narrow = random(1, 3) == 1 and {shape[#shape]} or shape
    local mask, ms = draw(random, "bool", narrow, 1)
    local source, ss = draw(random, dtype, {2, numel(shape)}, 3)
    local next = 0
    for flat = 1, #xs do
      if ms[(flat - 1) % #ms + 1] ~= 0 then
        next = next + 1
        xs[flat] = ss[next]
      end
    end
    forms("seed " .. number, "masked_scatter", x, stored(xs, dtype), dtype, shape, mask, source)
  end
  local x = luma.range(1, 4):to("float32")
  luma.masked_scatter(x, luma.tensor {true, false, true, true}, x:flip(1), {out = x})
  check.tensor({4, 2, 3, 2}, "float32", x)
end)

it("take_along_dim: drawn cases", function()
  for number = seed, seed + 199 do
    local random = model.random(number)
    local dtype = oracle.names[random(1, #oracle.names)]
    local shape = shapes[random(1, #shapes)]
    local dim = random(1, #shape)
    local from, size, whole = {}, {}, {}
    for d, s in ipairs(shape) do
      local k = d == dim and 0 or random(1, 4)
      from[d], size[d] = k == 1 and 1 or s, k == 2 and 1 or s
      whole[d] = k ~= 0 and math.max(from[d], size[d])
    end
    size[dim] = random(0, 6)
    whole[dim] = size[dim]
    local x, xs = draw(random, dtype, from, 3)
    local index, at = positions(random, size, from[dim])
    local want = {}
    each_place(whole, function(place, flat)
      local i, p = {}, {}
      for d = 1, #shape do i[d] = size[d] == 1 and 1 or place[d] end
      for d = 1, #shape do p[d] = from[d] == 1 and 1 or place[d] end
      p[dim] = at[flat_of(size, i)]
      want[flat] = xs[flat_of(from, p)]
    end)
    local text = "seed " .. number
    same(text, stored(want, dtype), dtype, whole, x:take_along_dim(index, dim))
    same(text, stored(want, dtype), dtype, whole, luma.take_along_dim(x, index, dim - #shape - 1))
    if #xs > 0 then
      local flat, places = positions(random, size, #xs)
      want = {}
      for i, p in ipairs(places) do want[i] = xs[p] end
      same(text, stored(want, dtype), dtype, {#want}, x:take_along_dim(flat))
    end
  end
  local x = luma.tensor {{30, 10}, {20, 40}}
  check.tensor({{10, 30}, {20, 40}}, "float32", x:take_along_dim(x:argsort(2), 2))
end)

it("errors name the argument and the position, and nothing is written", function()
  local x = luma.zeros(3, 2)
  local one = luma.tensor({{1, 2}}, "int64")
  local function raises(text, f) check.raises(text, f) end
  raises("'reduce'", function() return x:scatter_reduce(1, one, luma.ones(1, 2), {reduce = "max"}) end)
  raises("bad argument #1 to 'scatter_reduce' (bool has no sums", function()
    return luma.scatter_reduce(x:gt(0), 1, one, luma.ones(1, 2):gt(0), {reduce = "prod"})
  end)
  raises("index 4 at position [1, 2] is out of range for size 3", function()
    return x:scatter_reduce(1, luma.tensor({{1, 4}}, "int64"), luma.ones(1, 2), {include_self = false})
  end)
  raises("bad argument #4 to 'index_reduce'", function()
    return luma.index_reduce(x, 1, {1, 2}, luma.ones(3, 2))
  end)
  raises("bad argument #4 to 'index_fill' (the value is [2]", function()
    return luma.index_fill(x, 1, {1}, luma.ones(2))
  end)
  raises("bad argument #2 to 'index_put' (index 3 is one too many for [3 x 2])", function()
    return luma.index_put(x, {one, one, one}, 1)
  end)
  raises("bad argument #2 to 'index_put' (the mask is [2] for [3 x 2] from dim 1 on)", function()
    return luma.index_put(x, {luma.tensor {true, false}}, 1)
  end)
  raises("bad argument #2 to 'index_put'", function() return luma.index_put(x, {}, 1) end)
  raises("bad argument #2 to 'index_put' (the index is float32", function()
    return luma.index_put(x, {luma.ones(2)}, 1)
  end)
  raises("out of range for size 3", function()
    return luma.index_put_(x, {luma.tensor({1, 4}, "int64")}, 1, {accumulate = true})
  end)
  if device.is_cpu then check.tensor({{0, 0}, {0, 0}, {0, 0}}, "float32", x) end
  x = luma.zeros(3, 2)
  raises("bad argument #3 to 'index_put' ([3] does not broadcast to [1 x 2 x 2])", function()
    return luma.index_put(x, {one}, luma.ones(3))
  end)
  raises("bad argument #3 to 'masked_scatter' ([3] for the 6 places where the mask holds)", function()
    return luma.masked_scatter(x, x:eq(0), luma.ones(3))
  end)
  raises("bad argument #2 to 'masked_scatter' (the mask is [2 x 2]: it does not broadcast to [3 x 2])",
    function() return luma.masked_scatter(x, luma.ones(2, 2):gt(0), luma.ones(6)) end)
  raises("float32 values do not go into int32", function()
    return luma.zeros(2, {dtype = "int32"}):masked_scatter(luma.tensor {true, true}, luma.ones(2))
  end)
  raises("bad argument #2 to 'take_along_dim' (the index is [2], x is [3 x 2]", function()
    return luma.take_along_dim(x, luma.tensor({1, 2}, "int64"), 1)
  end)
  raises("they do not broadcast", function()
    return luma.take_along_dim(x, luma.ones(1, 3, {dtype = "int64"}), 1)
  end)
end)
