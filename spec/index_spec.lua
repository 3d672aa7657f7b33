-- index_spec.lua -- gather, scatter and their kin, indexing by tensors, against plain Lua: every
-- dtype and layout, duplicates, overlap, wrong indices.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"

local T = luma.tensor
math.randomseed(20)

-- ---- plain Lua: nested lists and lists of coordinates

local function at(list, place)
  for _, i in ipairs(place) do list = list[i] end
  return list
end

local function put(list, place, v)
  for d = 1, #place - 1 do list = list[place[d]] end
  list[place[#place]] = v
end

-- Nested lists of f(place) in the shape; places in row-major order.
local function build(shape, f, place)
  place = place or {}
  if #place == #shape then return f({table.unpack(place)}) end
  local list = {}
  for i = 1, shape[#place + 1] do
    place[#place + 1] = i
    list[i] = build(shape, f, place)
    place[#place] = nil
  end
  return list
end

local function changed(place, dim, i)
  local p = {table.unpack(place)}
  p[dim] = i
  return p
end

local function resized(shape, dim, n) return changed(shape, dim, n) end

local function draw(shape, dtype)
  return build(shape, function()
    local v = math.random(0, 15)
    if dtype == "bool" then return v % 2 == 1 end
    return dtype:find("float") and v + 0.0 or v
  end)
end

local function indices(shape, size)
  return build(shape, function() return math.random(size) end)
end

-- The same values in every layout.
local function layouts(values, dtype)
  local x = T(values, dtype)
  local shape, order, back, wide = x.shape, {}, {}, {}
  for d = 1, #shape do order[d], back[d], wide[d] = #shape + 1 - d, #shape + 1 - d, 2 * shape[d] end
  local stepped = luma.zeros(wide, {dtype = dtype})
  for d = 1, #shape do stepped = stepped:slice(d, 2, 2 * shape[d], 2) end
  stepped:copy_(x)
  return {contiguous = x, transposed = x:permute(order):contiguous():permute(back),
    reversed = x:flip {}:contiguous():flip {}, stepped = stepped,
    offset = luma.cat {x:narrow(1, 1, 1), x}:narrow(1, 2, shape[1])}
end

local index_dtypes = {"uint8", "int8", "int16", "int32", "uint32", "int64"}
local counter = 0
local function index_of(values)
  counter = counter + 1
  local all = {}
  local dtype = index_dtypes[counter % #index_dtypes + 1]
  for _, x in pairs(layouts(values, dtype)) do all[#all + 1] = x end
  return all[math.random(#all)]
end

local function each_layout(shape, f)
  for _, dtype in ipairs(check.dtypes) do
    local values = draw(shape, dtype)
    for name, x in pairs(layouts(values, dtype)) do
      local ok, message = device.pcall(f, x, values, dtype)
      if not ok then error(("%s, %s: %s"):format(dtype, name, message), 0) end
    end
  end
end

local small = {float8_e4m3 = true, float16 = true, bfloat16 = true}

-- ---- reading

local shape = {3, 4, 2}

describe("reading by index:", function()
  it("index_select", function()
    each_layout(shape, function(x, values, dtype)
      for dim = 1, 3 do
        local list = indices({5}, shape[dim])
        local expected = build(resized(shape, dim, 5), function(p)
          return at(values, changed(p, dim, list[p[dim]]))
        end)
        check.tensor(expected, dtype, x:index_select(dim, index_of(list)))
        check.tensor(expected, dtype, x:index_select(dim - 4, list))
      end
    end)
  end)

  it("so many rows that they are written past the caches", function()
    for _, n in ipairs {63, 64, 80, 127, 129, 200} do -- of a few lines of the cache, whole or not
      local count = 13000000 // (4 * n)
      local x = luma.range(1, 100 * n):reshape(100, n):to "float32"
      local index = luma.range(1, count) * 7 % 100 + 1
      local expected = ((index - 1) * n):unsqueeze(2) + luma.range(1, n)
      assert.is_true(x:index_select(1, index):equal(expected))
      local place = luma.zeros(count * n + 2)
      local out = place:narrow(1, 2, count * n):reshape(count, n)
      assert.is_true(x:index_select(1, index, {out = out}):equal(expected))
      assert.equal(0.0, place(1) + place(-1))
    end
  end)

  it("gather, also with an index smaller than x", function()
    each_layout(shape, function(x, values, dtype)
      for dim = 1, 3 do
        for _, size in ipairs {resized(shape, dim, 5), changed({2, 3, 1}, dim, 3)} do
          local list = indices(size, shape[dim])
          local expected = build(size, function(p)
            return at(values, changed(p, dim, at(list, p)))
          end)
          check.tensor(expected, dtype, x:gather(dim, index_of(list)))
        end
      end
    end)
  end)

  it("take counts flat, in any layout", function()
    each_layout(shape, function(x, values, dtype)
      local list = indices({2, 3}, 24)
      local expected = build({2, 3}, function(p)
        local i = at(list, p) - 1
        return values[i // 8 + 1][i // 2 % 4 + 1][i % 2 + 1]
      end)
      check.tensor(expected, dtype, x:take(index_of(list)))
    end)
  end)

  it("nonzero lists places in order; masked_select their elements", function()
    each_layout(shape, function(x, values, dtype)
      local places, elements, rows, mask = {}, {}, {}, draw({4, 2}, "bool")
      build(shape, function(p)
        local v = at(values, p)
        if v and v ~= 0 then places[#places + 1] = p end
        if mask[p[2]][p[3]] then elements[#elements + 1] = v end
        rows[#rows + 1] = v
      end)
      if #places > 0 then check.tensor(places, "int64", x:nonzero()) end
      check.tensor(elements, dtype, x:masked_select(T(mask)))
      check.tensor(rows, dtype, x:masked_select(T(true)))
      assert.same({0}, x:masked_select(T(false)).shape)
    end)
  end)

  it("nonzero across blocks of words", function()
    for _, n in ipairs {1, 8, 63, 64, 65, 511, 512, 513, 32767, 32768, 32769, 100003} do
      local x, expected = luma.zeros(n, {dtype = "uint8"}), {}
      for i = 1, n do
        if i % 7 == 3 or i == n then
          x[i] = i % 200 + 1
          expected[#expected + 1] = {i}
        end
      end
      check.tensor(expected, "int64", x:nonzero())
      local m = x:reshape(n, 1):expand(n, 2):nonzero()
      assert.equal(2 * #expected, m.shape[1])
      assert.same({expected[#expected][1], 2}, m[-1]:totable())
    end
  end)

  it("of nothing, and of one", function()
    check.tensor({}, "float32", luma.zeros(3):index_select(1, {}))
    assert.same({2, 0}, luma.zeros(2, 3):index_select(2, {}).shape)
    assert.same({0, 3}, luma.zeros(0, 4):index_select(2, {1, 1, 2}).shape)
    check.raises("index 1 at position [1] is out of range for size 0", luma.index_select,
      luma.zeros(2, 0), 2, {1})
    check.tensor({5, 5}, "float32", T(5):index_select(1, {1, 1}))
    check.tensor(5, "float32", T(5):gather(1, T(1, "int64")))
    check.tensor(5, "float32", T(5):take(T(1, "int8")))
    assert.same({0, 2}, luma.zeros(3, 2):masked_select(luma.zeros(3, 2, {dtype = "bool"}))
      :reshape(0, 2).shape)
    assert.same({0, 2}, luma.zeros(0, 5):nonzero().shape)
    assert.same({1, 0}, T(5):nonzero().shape)
    assert.same({0, 0}, T(0):nonzero().shape)
    check.tensor({{2}}, "int64", T {0, 0 / 0}:nonzero())
  end)
end)

-- ---- writing

describe("writing by index:", function()
  -- Every operation as function, in place, and into a tensor of another layout.
  local function three_ways(op, x, expected, dtype, dim, index, src)
    check.tensor(expected, dtype, luma[op](x, dim, index, src))
    local out = luma.zeros_like(x):flip {}
    assert.equal(out, luma[op](x, dim, index, src, {out = out}))
    check.tensor(expected, dtype, out)
    local self = x:clone():t():contiguous():t()
    assert.equal(self, self[op .. "_"](self, dim, index, src))
    check.tensor(expected, dtype, self)
  end

  it("scatter: the last of duplicates wins", function()
    each_layout({3, 4}, function(x, values, dtype)
      for dim = 1, 2 do
        local list, src = indices({3, 4}, 3), draw({4, 5}, dtype)
        local expected = build({3, 4}, function(p) return at(values, p) end)
        build({3, 4}, function(p) put(expected, changed(p, dim, at(list, p)), at(src, p)) end)
        local index = index_of(list)
        check.tensor(expected, dtype, x:scatter(dim, index, T(src, dtype)))
        local out = luma.empty_like(x)
        check.tensor(expected, dtype, x:scatter(dim, index, T(src, dtype), {out = out}))
        local self = x:clone():scatter_(dim, index, T(src, dtype):t():contiguous():t())
        check.tensor(expected, dtype, self)
        check.tensor(values, dtype, x)
      end
    end)
  end)

  it("scatter of a number", function()
    check.tensor({0, 7, 7}, "int16", luma.zeros(3, {dtype = "int16"}):scatter(1, {2, 3}, 7))
    check.tensor({1, 2.5}, "float32", luma.ones(2):scatter(1, {2}, 2.5))
    check.tensor({true, false}, "bool", T {true, true}:scatter(1, {2}, false))
    check.raises("2.5 does not fit into int64", luma.scatter, T({1, 2}, "int64"), 1, {1}, 2.5)
    check.raises("300 does not fit into uint8", luma.scatter, T({1, 2}, "uint8"), 1, {1}, 300)
  end)

  it("scatter_add", function()
    each_layout({3, 4}, function(x, values, dtype)
      if dtype == "bool" then
        check.raises("bool has no sums", luma.scatter_add, x, 1, {{1, 1, 1, 1}}, x)
        return
      end
      for dim = 1, 2 do
        local list, src = indices({3, 4}, 3), draw({3, 4}, dtype)
        local expected = build({3, 4}, function(p) return at(values, p) end)
        build({3, 4}, function(p)
          local q = changed(p, dim, at(list, p))
          put(expected, q, at(expected, q) + at(src, p))
        end)
        -- sums are rounded once; the halves of float8 from 16 on are left to the next spec
        if not small[dtype] then
          three_ways("scatter_add", x, expected, dtype, dim, index_of(list), T(src, dtype))
        end
      end
    end)
  end)

  it("index_add and index_copy", function()
    each_layout({3, 4, 2}, function(x, values, dtype)
      for dim = 1, 3 do
        local size = resized({3, 4, 2}, dim, 5)
        local list, src = indices({5}, x.shape[dim]), draw(size, dtype)
        local sums = build({3, 4, 2}, function(p) return at(values, p) end)
        local copies = build({3, 4, 2}, function(p) return at(values, p) end)
        build(size, function(p)
          local q = changed(p, dim, list[p[dim]])
          put(copies, q, at(src, p))
          if dtype ~= "bool" then put(sums, q, at(sums, q) + at(src, p)) end
        end)
        local index = index_of(list)
        check.tensor(copies, dtype, x:index_copy(dim, index, T(src, dtype)))
        check.tensor(copies, dtype, x:clone():index_copy_(dim, index, T(src, dtype)))
        if dtype ~= "bool" and not small[dtype] then
          check.tensor(sums, dtype, x:index_add(dim, index, T(src, dtype)))
          check.tensor(sums, dtype, x:clone():index_add_(dim, index, T(src, dtype)))
        end
        check.tensor(values, dtype, x)
      end
    end)
  end)

  it("sums never run in a 16-bit or 8-bit type", function()
    for _, dtype in ipairs {"float16", "bfloat16", "float8_e4m3"} do
      local n = dtype == "float16" and 3000 or dtype == "bfloat16" and 1024 or 256
      local ones, index = luma.ones(n, {dtype = dtype}), luma.ones(n, {dtype = "int64"})
      check.tensor({n, 0}, dtype, luma.zeros(2, {dtype = dtype}):scatter_add(1, index, ones))
      check.tensor({n, 0}, dtype, luma.zeros(2, {dtype = dtype}):index_add_(1, index, ones))
    end
  end)

  it("integers wrap", function()
    check.tensor({44}, "uint8", T({200}, "uint8"):index_add(1, {1}, T({100}, "uint8")))
    local most = math.maxinteger
    check.tensor({math.mininteger}, "int64",
      T({most}, "int64"):scatter_add(1, {1}, T({1}, "int64")))
  end)

  it("src is cast, but its kind may not be higher", function()
    check.tensor({2.0, 5.0}, "float32", luma.ones(2):index_copy(1, {1, 2}, T({2, 5}, "int8")))
    check.tensor({2.5, 1.0}, "float32", luma.ones(2):index_add(1, {1}, T({1.5}, "float64")))
    check.tensor({4, 1}, "int32", luma.ones(2, {dtype = "int32"}):scatter_add(1, {1, 1, 1},
      T {true, true, true}))
    check.raises("bad argument #4 to 'index_copy' (float32 values do not go into int64",
      luma.index_copy, T({1}, "int64"), 1, {1}, T {1.5})
  end)

  it("behaves as if what it reads were copied first", function()
    local x = luma.range(1, 6)
    check.tensor({6, 5, 4, 3, 2, 1}, "int64", x:scatter_(1, luma.range(1, 6), x:flip(1)))
    x = luma.range(1, 6)
    check.tensor({2, 3, 4, 5, 6, 1}, "int64", x:index_copy_(1, {6, 1, 2, 3, 4, 5}, x))
    x = luma.range(1, 3)
    check.tensor({2, 4, 6}, "int64", x:scatter_add_(1, x, x)) -- index and src are x itself
    x = T({3, 1, 2}, "int64")
    check.tensor({2, 3, 1}, "int64", x:gather(1, x, {out = x}))
    x = luma.range(1, 8)
    check.tensor({8, 7, 6, 5, 4, 3, 2, 1}, "int64", x:index_select(1, x:flip(1), {out = x}))
    x = luma.range(1, 5)
    x[T({2, 3, 4, 5}, "int64")] = x["1:4"]
    check.tensor({1, 1, 2, 3, 4}, "int64", x)
    check.raises("overlaps itself", function()
      luma.zeros(1):expand(4):scatter_(1, {1}, 5)
    end)
    -- an index leads anywhere in x, not only to what lies at the result's place
    local function over(f)
      local base = luma.range(1, 12)
      local read, out = base:narrow(1, 1, 8), base:narrow(1, 5, 8)
      local wanted = f(read):clone()
      assert.is_true(f(read, {out = out}):equal(wanted))
      assert.is_true(out:equal(wanted))
    end
    local back = T({8, 7, 6, 5, 4, 3, 2, 1}, "int64")
    over(function(y, o) return y:take(back, o) end)
    over(function(y, o) return y:gather(1, back, o) end)
    over(function(y, o) return y:index_select(1, back, o) end)
    over(function(y, o) return y:masked_select(y:gt(0), o) end)
  end)
end)

-- ---- several index tensors

-- The rule: index dims stand where the indexed dims were when those are side by side, else in
-- front.
local function pick(values, shape_, list, index_shape, f)
  local first, last, apart
  for d = 1, #shape_ do
    if list[d] then
      first = first or d
      apart = apart or (last and last ~= d - 1)
      last = d
    end
  end
  local source, result = {}, {}
  for d = 0, #shape_ do
    if d == (apart and 0 or first - 1) then
      for k = 1, #index_shape do source[#source + 1], result[#result + 1] = -k, index_shape[k] end
    end
    if d < #shape_ and not list[d + 1] then
      source[#source + 1], result[#result + 1] = d + 1, shape_[d + 1]
    end
  end
  return build(result, function(p)
    local q, place = {}, {}
    for i, s in ipairs(source) do if s < 0 then q[-s] = p[i] else place[s] = p[i] end end
    for d = 1, #shape_ do if list[d] then place[d] = at(list[d], q) end end
    return f(values, place, p)
  end), result
end

describe("several index tensors:", function()
  local cases = {{1}, {2}, {3}, {1, 2}, {2, 3}, {1, 3}, {1, 2, 3}, {1, 4}, {2, 4}, {1, 3, 4}}

  it("read", function()
    for _, dims in ipairs(cases) do
      for _, index_shape in ipairs {{3}, {2, 3}} do
        local values = draw({3, 4, 2, 3}, "float32")
        for name, x in pairs(layouts(values, "float32")) do
          local list, key = {}, {{}, {}, {}, {}}
          for _, d in ipairs(dims) do
            list[d] = indices(index_shape, x.shape[d])
            key[d] = index_of(list[d])
          end
          local expected = pick(values, x.shape, list, index_shape, at)
          local ok, message = pcall(check.tensor, expected, "float32", x[key])
          if not ok then error(table.concat(dims, ",") .. " " .. name .. ": " .. message) end
        end
      end
    end
  end)

  it("write, the last of duplicates", function()
    for _, dims in ipairs(cases) do
      for _, index_shape in ipairs {{3}, {2, 3}} do
        local values = draw({3, 4, 2, 3}, "float32")
        for _, x in pairs(layouts(values, "float32")) do
          local list, key = {}, {{}, {}, {}, {}}
          for _, d in ipairs(dims) do
            list[d] = indices(index_shape, x.shape[d])
            key[d] = index_of(list[d])
          end
          local expected, count = build(x.shape, function(p) return at(values, p) end), 100
          local src = pick(values, x.shape, list, index_shape, function(_, place)
            count = count + 1
            put(expected, place, count + 0.0)
            return count
          end)
          x[key] = T(src, "int64")
          check.tensor(expected, "float32", x)
        end
      end
    end
  end)

  it("broadcast among themselves and with ranges", function()
    local x = luma.range(1, 12):reshape(3, 4)
    local rows, columns = T({{1}, {3}}, "int64"), T({2, 4, 1}, "uint8")
    check.tensor({{2, 4, 1}, {10, 12, 9}}, "int64", x[{rows, columns}])
    check.tensor({{2, 3}, {10, 11}}, "int64", x[{T({1, 3}, "int64"), {2, 3}}])
    x[{rows, columns}] = T {10, 20, 30}
    check.tensor({{30, 10, 3, 20}, {5, 6, 7, 8}, {30, 10, 11, 20}}, "int64", x)
    local two, three = T({1, 2}, "int8"), T({1, 2, 3}, "int8")
    check.raises("do not broadcast", function() return x[{two, three}] end)
    check.raises("does not broadcast", function() x[{rows, columns}] = T {1, 2} end)
  end)
end)

-- ---- wrong indices

describe("wrong indices", function()
  it("are errors with value, position and size; nothing is written", function()
    local x = T {10, 20, 30}
    local bad = {4, 0, -1, 1 << 31, math.mininteger, math.maxinteger}
    for _, v in ipairs(bad) do
      local index = T({1, v, 2}, "int64")
      local text = ("index %d at position [2] is out of range for size 3"):format(v)
      local out = T {7, 8, 9}
      for _, options in ipairs {{}, {out = out}} do
        check.raises(text, x.index_select, x, 1, index, options)
        check.raises(text, x.gather, x, 1, index, options)
        check.raises(text, x.take, x, index, options)
        check.raises(text, x.scatter, x, 1, index, luma.ones(3), options)
        check.raises(text, x.scatter_add, x, 1, index, luma.ones(3), options)
        check.raises(text, x.index_add, x, 1, index, luma.ones(3), options)
        check.raises(text, x.index_copy, x, 1, index, luma.ones(3), options)
      end
      check.raises(text, x.scatter_, x, 1, index, 1)
      check.raises(text, x.scatter_add_, x, 1, index, luma.ones(3))
      check.raises(text, x.index_add_, x, 1, index, luma.ones(3))
      check.raises(text, x.index_copy_, x, 1, index, luma.ones(3))
      check.raises(text, function() return x[index] end)
      check.raises(text, function() x[index] = 1 end)
      -- a device has written the other places when it finds this one
      if not device.is_cpu then x, out = T {10, 20, 30}, T {7, 8, 9} end
      check.tensor({7, 8, 9}, "float32", out)
      check.tensor({10, 20, 30}, "float32", x)
    end
  end)

  it("name the first of several, also in large tensors and by threads", function()
    local index = luma.ones(300, 400, {dtype = "int32"})
    index[{250, 17}] = 5
    index[{299, 1}] = 6
    local text = "index 5 at position [250, 17] is out of range for size 3"
    check.raises(text, luma.take, luma.zeros(3), index)
    check.raises(text, luma.gather, luma.zeros(300, 3), 2, index)
    check.raises("index 6 at position [1, 299]", luma.take, luma.zeros(3), index:t())
  end)

  it("are found at any place among many", function()
    local x, ones = luma.zeros(5), luma.ones(523)
    for _, place in ipairs {1, 4, 8, 9, 512, 513, 522, 523} do
      for _, v in ipairs {0, 6, -1, 2 + (1 << 32)} do
        local index = luma.range(1, 523) % 5 + 1
        index[place] = v
        local text = ("index %d at position [%d] is out of range for size 5"):format(v, place)
        check.raises(text, x.gather, x, 1, index)
        check.raises(text, x.scatter_add, x, 1, index, ones)
        check.raises(text, x.scatter_reduce, x, 1, index, ones, {reduce = "mean"})
        check.raises(text, x.index_put, x, {index}, ones, {accumulate = true})
        check.raises(text, x.scatter_add_, x, 1, index, ones)
        if not device.is_cpu then x = luma.zeros(5) end
        check.tensor({0, 0, 0, 0, 0}, "float32", x)
      end
    end
    local index, y = luma.range(1, 523) % 5 + 1, luma.range(1, 10)["::2"]
    for _, view in ipairs {y, y:flip(1), y:expand(5)} do
      check.tensor(view:totable(), "int64", view:index_select(1, index)["5:9"])
    end
    check.tensor({104, 105, 105, 105, 104}, "float32", x:scatter_add(1, index, ones))
    check.tensor({104, 105, 105, 105, 104}, "float32", x:flip(1):scatter_add(1, 6 - index, ones):flip(1))
  end)

  it("0 brings the remark on NumPy's labels", function()
    check.raises("(positions count from 1: add 1 to labels made by NumPy)", luma.index_select,
      luma.zeros(3), 1, {1, 0})
    local _, message = pcall(luma.index_select, luma.zeros(3), 1, {4})
    assert.is_nil(message:find("NumPy", 1, true))
  end)

  it("of a wrong dtype are named as the index", function()
    local x = luma.zeros(3)
    check.raises("bad argument #3 to 'index_select' (the index is float32: an integer dtype " ..
      "expected", luma.index_select, x, 1, T {1})
    check.raises("the index is float64", luma.gather, x, 1, T({1}, "float64"))
    check.raises("the index is bool", luma.scatter, x, 1, T {true}, 1)
    check.raises("the index is bool", luma.take, x, T {true})
    check.raises("the mask is uint8: bool expected", luma.masked_select, x, T({1, 0, 1}, "uint8"))
  end)

  it("of a wrong shape name both", function()
    local x = luma.zeros(2, 3)
    check.raises("the index is [3], x is [2 x 3]", luma.gather, x, 1, {1, 1, 1})
    check.raises("the index is [3 x 1], larger than x [2 x 3] along dim 1", luma.gather, x, 2,
      {{1}, {1}, {1}})
    check.raises("larger than src [1 x 3] along dim 1", luma.scatter, x, 1, {{1}, {2}},
      luma.zeros(1, 3))
    check.raises("src is [3]: [2 x 3] expected", luma.index_add, x, 1, {1, 2}, luma.zeros(3))
    check.raises("the index is [1 x 1]: one dim expected", luma.index_copy, x, 1, {{1}}, x)
    check.raises("dim 3", luma.index_select, x, 3, {1})
  end)
end)

it("rows longer than 256 are added whole, duplicates too", function()
  local x = luma.range(0, 1999):to("float32"):reshape(4, 500)
  for _ = 1, 5 do
    local y = luma.zeros(2, 500):index_add_(1, {1, 2, 2, 2}, x)
    check.tensor(luma.range(0, 499):totable(), "float32", y[1])
    check.value(3000.0, y(2, 1))
    check.value(3765.0, y(2, 256))
    check.value(3768.0, y(2, 257))
    check.value(4497.0, y(2, 500))
    check.value(1999000.0, y:to("float64"):sum():item())
  end
  local z = luma.ones(5, 3):index_add(1, {1, 5, 3, 3, 5}, luma.ones(5, 3))
  check.tensor({2, 1, 3, 1, 3}, "float32", z:select(2, 1))
end)

it("threads change nothing, not even the order of float sums", function()
  local threads = luma.config().threads
  local n = 60000
  local index = luma.range(1, n):mul(7919):remainder(500):add(1)
  local src = luma.range(1, n):to("float32"):mul(0.1)
  local rows = luma.range(1, 200 * 300):to("float32"):reshape(200, 300):mul(0.1)
  local places = luma.range(1, 200):mul(31):remainder(20):add(1)
  local results = {}
  for k = 1, 2 do
    luma.set_num_threads(k)
    results[k] = {luma.zeros(500):scatter_add(1, index, src),
      luma.zeros(500):scatter(1, index, src), luma.zeros(20, 300):index_add(1, places, rows),
      rows:index_select(1, places),
      src:take(index), src:gt(2000):nonzero(), src[src:gt(2000)]}
  end
  luma.set_num_threads(threads)
  for i, r in ipairs(results[1]) do assert.is_false(r:ne(results[2][i]):any()) end
end)
