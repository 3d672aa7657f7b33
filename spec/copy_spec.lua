-- copy_spec.lua -- assignment, fill, casts, contiguous, joins against a model without strides;
-- which way each copy went; reported faults of copies and joins.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local model = require "model"
local oracle = require "oracle"

local function counted(shape, dtype)
  return luma.range(1, model.numel(shape)):reshape(shape):to(dtype or "int64")
end

local function says(text, f, ...)
  local good, message = pcall(f, ...)
  assert.is_false(good)
  assert.is_truthy(message:find(text, 1, true), message)
end

-- How many copies of each kind f made.
local function ways(f)
  local before = luma.copy_counts()
  f()
  local now = luma.copy_counts()
  for name in pairs(now) do now[name] = now[name] - before[name] end
  return now
end

local function way(name, n)
  local out = {shared = 0, memcpy = 0, copy2d = 0, strided = 0}
  out[name] = n or 1
  return out
end

-- m with every value as dtype holds it; reading booleans gives booleans.
local function as(dtype, m)
  local out = {shape = m.shape}
  for i, v in ipairs(m) do
    out[i] = oracle.cast(dtype, v)
    if dtype == "bool" then out[i] = out[i] ~= 0 end
  end
  return out
end

local function number(v) return v == true and 1 or v == false and 0 or v end

describe("assignment", function()
  local function random_shape(random, most)
    local shape = {}
    for d = 1, random(1, 4) do shape[d] = random(1, most) end
    return shape
  end

  -- A random view of `shape`: a bigger base, its dims in another order, cut, turned.
  local function place(random, shape, dtype)
    local n, order, wide, back = #shape, {}, {}, {}
    for d = 1, n do table.insert(order, random(1, d), d) end
    for k, d in ipairs(order) do back[d] = k end
    local cuts = {}
    for k, d in ipairs(order) do
      local step = random(1, 4) == 1 and random(2, 3) or 1
      local lead = random(1, 3) == 1 and random(1, 2) or 0
      wide[k] = lead + (shape[d] - 1) * step + 1 + (random(1, 3) == 1 and 1 or 0)
      cuts[d] = {lead + 1, lead + 1 + (shape[d] - 1) * step, step}
      if random(1, 3) == 1 then cuts[d] = {cuts[d][2], cuts[d][1], -step} end
    end
    local base, positions = counted(wide, dtype), model.count(wide)
    local x, m = base:permute(back), model.permute(positions, back)
    for d, cut in ipairs(cuts) do
      x = x:slice(d, table.unpack(cut))
      m = model.slice(m, d, cut[1], shape[d], cut[3])
    end
    return x, m, base
  end

  local function check(random, shape, to, from)
    local dst, where, base = place(random, shape, to)
    local source = {}
    for d, size in ipairs(shape) do source[d] = random(1, 6) == 1 and 1 or size end
    if random(1, 4) == 1 then table.remove(source, 1) end
    local src = place(random, source, from)
    local want, m = model.of(base), as(to, model.expand(model.of(src), shape))
    dst:copy_(src)
    for i, position in ipairs(where) do want[position] = m[i] end
    assert.same(want, model.of(base), to .. " from " .. from)
  end

  it("writes what the model writes and nothing else", function()
    for seed = 1, 150 do
      local random = model.random(seed)
      local dtype = oracle.names[random(1, #oracle.names)]
      check(random, random_shape(random, 5), dtype, dtype)
    end
  end)

  it("casts every dtype to every other on the way", function()
    for i, to in ipairs(oracle.names) do
      for k, from in ipairs(oracle.names) do
        local random = model.random(100 * i + k)
        check(random, random_shape(random, 4), to, from)
      end
    end
  end)

  it("turns big tiles of every size of element", function()
    for _, shape in ipairs {{70, 131}, {64, 64}, {9, 200}, {8, 8}, {3, 75, 20}, {40, 3, 30},
      {5, 90}, {90, 7}} do
      for _, dtype in ipairs {"bool", "int16", "float32", "float64"} do
        local n = #shape
        local wide = {}
        for d = 1, n do wide[d] = shape[n + 1 - d] end
        local x, back = counted(wide, dtype), {}
        for d = 1, n do back[d] = n + 1 - d end
        local view, m = x:permute(back), model.permute(model.of(x), back)
        assert.same(m, model.of(view:contiguous()), dtype)
        assert.same(as("float32", m), model.of(view:to("float32")), dtype)
        local dst = luma.zeros(wide, {dtype = dtype}):permute(back)
        dst:copy_(view:contiguous())
        assert.same(m, model.of(dst), dtype)
      end
    end
  end)

  it("moves pairs and quadruples of elements as one", function()
    for _, last in ipairs {2, 4, 8, 16} do
      for _, dtype in ipairs {"uint8", "float16", "int32", "float64"} do
        local x = counted({20, 11, last}, dtype)
        assert.same(model.transpose(model.of(x), 1, 2), model.of(x:transpose(1, 2):contiguous()),
          dtype)
      end
    end
  end)

  it("interleaves and takes apart few channels", function()
    for channels = 2, 9 do
      for _, dtype in ipairs {"uint8", "float32"} do
        local x = counted({2, channels, 35, 20}, dtype)
        local y = x:permute(1, 3, 4, 2):contiguous()
        for _, at in ipairs {{1, 1, 1, 1}, {2, channels, 35, 20}, {1, 2, 17, 13}, {2, 1, 3, 19}} do
          assert.equal(x(table.unpack(at)), y(at[1], at[3], at[4], at[2]))
        end
        assert.is_true(y:permute(1, 4, 2, 3):contiguous():equal(x))
      end
    end
  end)

  it("copies past the cache what is too big for it", function()
    local x = luma.range(1, 2100 * 2100):reshape(2100, 2100):to("float32")
    local turned, cast = x:t():contiguous(), x:t():to("float64")
    local same, rows = x:clone(), x:reshape(4, 525, 2100):transpose(1, 2):contiguous()
    local filled = luma.full({2100, 2101}, 7, {dtype = "float32"})
    local random = model.random(1)
    for _ = 1, 2000 do
      local i, k = random(1, 2100), random(1, 2100)
      local v = (i - 1) * 2100.0 + k
      assert.equal(v, turned(k, i))
      assert.equal(v, cast(k, i))
      assert.equal(v, same(i, k))
      assert.equal(v, rows((i - 1) % 525 + 1, (i - 1) // 525 + 1, k))
      assert.equal(7.0, filled(i, k + 1))
    end
    local aligned = luma.range(1, 2048 * 2176):reshape(2048, 2176):to("float32")
    turned = aligned:t():contiguous()
    for _ = 1, 2000 do
      local i, k = random(1, 2048), random(1, 2176)
      assert.equal((i - 1) * 2176.0 + k, turned(k, i))
    end
  end)

  it("into overlapping memory is as if the source were copied first", function()
    for seed = 1, 300 do
      local random = model.random(seed)
      local n = random(4, 9)
      local x = counted({n, n})
      local before = model.of(x)
      local a, b, h, w = random(1, n), random(1, n), random(1, n), random(1, n)
      local from = {random(1, n - h + 1), random(1, n - w + 1)}
      local to = {random(1, n - h + 1), random(1, n - w + 1)}
      local function cut(y, at, first, second)
        return y:narrow(1, at[1], first):narrow(2, at[2], second)
      end
      local src, dst = cut(x, from, h, w), cut(x, to, h, w)
      local m = model.slice(model.slice(before, 1, from[1], h, 1), 2, from[2], w, 1)
      if a > b then src, m = src:flip(1), model.flip(m, 1) end
      if h == w and a % 2 == 0 then src, m = src:t(), model.transpose(m, 1, 2) end
      local want = model.of(x)
      model.walk({h, w}, function(i)
        want[(to[1] + i[1] - 2) * n + to[2] + i[2] - 1] = model.at(m, i)
      end)
      dst:copy_(src)
      assert.same(want, model.of(x))
    end
  end)

  it("of nothing, of one, of numbers and tables", function()
    local none = luma.zeros(0, 3)
    none:copy_(luma.zeros(1, 3)):copy_(luma.zeros(0, 1)):fill_(1)
    assert.same({0, 3}, none:t():contiguous():t().shape)
    local one = luma.tensor(5)
    one:copy_(luma.tensor {{{7}}})
    assert.equal(7.0, one:item())
    local x = luma.zeros(2, 3)
    x[1] = {1, 2, 3}
    x["2, ::2"] = 9
    assert.same({shape = {2, 3}, 1.0, 2.0, 3.0, 9.0, 0.0, 9.0}, model.of(x))
  end)

  it("names both shapes, and a destination that overlaps itself", function()
    local x = luma.zeros(2, 3)
    says("[3 x 3] does not broadcast to [2 x 3]", x.copy_, x, luma.zeros(3, 3))
    says("[2 x 2 x 3] does not broadcast to [2 x 3]", x.copy_, x, luma.zeros(2, 2, 3))
    says("[2] does not broadcast to [2 x 3]", x.copy_, x, luma.zeros(2))
    for _, y in ipairs {luma.zeros(3):expand(2, 3), luma.zeros(5):unfold(1, 3, 1)} do
      says("the destination overlaps itself", y.copy_, y, 1)
      says("the destination overlaps itself", y.fill_, y, 1)
      says("the destination overlaps itself", y.copy_, y, luma.zeros(3))
    end
    luma.zeros(1):expand(1, 1):fill_(1)
    luma.zeros(0):unsqueeze(1):expand(3, 0):fill_(1)
  end)
end)

describe("fill", function()
  it("into every layout of every dtype", function()
    for seed = 1, 120 do
      local random = model.random(seed)
      local dtype = oracle.names[seed % #oracle.names + 1]
      local shape = {random(1, 7), random(1, 9), random(1, 6)}
      local base, positions = luma.zeros(shape, {dtype = dtype}), model.count(shape)
      local x, m = model.random_view(base, positions, random, 3, false)
      x:fill_(3)
      local want = model.of(base)
      for _, position in ipairs(m) do want[position] = number(oracle.cast(dtype, 3)) end
      local got = model.of(base)
      for i in ipairs(want) do assert.equal(number(want[i]), number(got[i])) end
    end
  end)

  it("takes only numbers that fit", function()
    for _, dtype in ipairs {"uint8", "int8", "int16", "int32", "uint32", "int64"} do
      local d = oracle.dtypes[dtype]
      local x = luma.zeros(2, {dtype = dtype})
      for _, v in ipairs {d.min, d.max, 2.0, -0.0, true} do
        assert.equal(v == true and 1 or math.tointeger(v), x:fill_(v)(2))
      end
      local over = d.max < math.maxinteger and {d.max + 1, d.min - 1} or {}
      for _, v in ipairs {2.5, 0 / 0, 1 / 0, -1 / 0, 2.0 ^ 63, -2.0 ^ 64, table.unpack(over)} do
        says("does not fit into " .. dtype, x.fill_, x, v)
        says("does not fit into " .. dtype, luma.full, {2}, v, {dtype = dtype})
      end
      assert.equal(1, x(1))
    end
    says("300 does not fit into uint8", luma.full, {1}, 300, {dtype = "uint8"})
    says("nan does not fit into uint8", luma.full, {1}, 0 / 0, {dtype = "uint8"})
    for v, want in pairs {[0] = false, [2] = true, [0.5] = true, [1 / 0] = true} do
      assert.equal(want, luma.full({1}, v, {dtype = "bool"})(1))
    end
    assert.equal(true, luma.full({1}, 0 / 0, {dtype = "bool"})(1))
    assert.equal(oracle.cast("float16", 0.1), luma.full({1}, 0.1, {dtype = "float16"})(1))
  end)
end)

describe("which way a copy goes", function()
  local x = counted({6, 8})

  it("contiguous shares, force_contiguous and clone never do", function()
    assert.same(way "shared", ways(function() x:contiguous() end))
    assert.same(way "shared", ways(function() x:narrow(1, 2, 3):contiguous() end))
    assert.same(way "shared", ways(function() x:unsqueeze(2):transpose(1, 2):contiguous() end))
    assert.same(way "shared", ways(function() x:narrow(2, 1, 0):contiguous() end))
    assert.same(way "memcpy", ways(function() x:force_contiguous() end))
    assert.same(way "memcpy", ways(function() x:clone() end))
    local y = x:contiguous()
    y:narrow(1, 1, 1):fill_(0)
    assert.equal(0, x(1, 1))
    x:copy_(counted({6, 8}))
    local z = x:clone()
    z:fill_(0)
    assert.equal(1, x(1, 1))
    assert.same(way "shared", ways(function() x:reshape(8, 6) end))
    assert.same(way "shared", ways(function() x:flatten() end))
  end)

  it("rows that lie together move as blocks, the rest by strides", function()
    assert.same(way "copy2d", ways(function() x:narrow(2, 3, 4):contiguous() end))
    assert.same(way "copy2d", ways(function() x:slice(1, 1, 5, 2):contiguous() end))
    assert.same(way "copy2d", ways(function() x:flip(1):contiguous() end))
    assert.same(way "strided", ways(function() x:t():contiguous() end))
    assert.same(way "strided", ways(function() x:slice(2, 1, 7, 2):contiguous() end))
    assert.same(way "strided", ways(function() x:flip(2):contiguous() end))
    assert.same(way "strided", ways(function() x:t():reshape(48) end))
  end)

  it("assignment", function()
    local y = luma.zeros(6, 8, {dtype = "int64"})
    assert.same(way "memcpy", ways(function() y:copy_(x) end))
    assert.same(way "memcpy", ways(function() y:t():copy_(x:t()) end))
    assert.same(way "memcpy", ways(function() y["2:4"] = x["1:3"] end))
    assert.same(way "memcpy", ways(function() y:flip{}:copy_(x:flip{}) end))
    assert.same(way "copy2d", ways(function() y[":, 2:4"] = x[":, 1:3"] end))
    assert.same(way "copy2d", ways(function() y:copy_(x[1]) end))
    assert.same(way "strided", ways(function() y:copy_(x[":, 1:1"]) end))
    assert.same(way("memcpy", 0), ways(function() y:copy_(y) end))
    assert.same(way("memcpy", 0),
      ways(function() y:to("float32") end)) -- a conversion is none of the four
  end)

  it("cat: one block each along dim 1, blocks along any dim, strides otherwise", function()
    local a, b = counted {2, 3, 4}, counted {2, 3, 4}
    assert.same(way("memcpy", 2), ways(function() luma.cat({a, b}, 1) end))
    assert.same(way("copy2d", 2), ways(function() luma.cat({a, b}, 2) end))
    assert.same(way("copy2d", 2), ways(function() luma.cat({a, b}, 3) end))
    assert.same(way("strided", 2), ways(function()
      luma.cat({a:transpose(1, 3), b:transpose(1, 3)}, 1)
    end))
    assert.same(way("memcpy", 3), ways(function() luma.stack {a, b, a} end))
    assert.same(way("copy2d", 2), ways(function() luma.stack({a, b}, 2) end))
  end)
end)

describe("joins", function()
  it("cat of random views along every dim", function()
    for seed = 1, 150 do
      local random = model.random(seed)
      local n = random(1, 4)
      local dim, shape, xs, ms = random(1, n), {}, {}, {}
      for d = 1, n do shape[d] = random(1, 4) end
      for k = 1, random(1, 4) do
        local own = {table.unpack(shape)}
        own[dim] = random(0, 3)
        local order = {}
        for d = 1, n do table.insert(order, random(1, d), d) end
        local stored, back = {}, {}
        for i, d in ipairs(order) do stored[i], back[d] = own[d], i end
        local x = counted(stored):permute(back)
        if random(1, 2) == 1 then x = x:flip(random(1, n)) end
        xs[k], ms[k] = x, model.of(x)
      end
      local y = luma.cat(xs, random(0, 1) == 1 and dim or dim - n - 1)
      assert.same(model.cat(ms, dim), model.of(y))
      assert.is_true(y:is_contiguous())
    end
  end)

  it("cat promotes and writes into out, which may be an input", function()
    local a, b = counted({2, 2}, "uint8"), counted({1, 2}, "int8")
    assert.equal("int16", luma.cat{a, b}.dtype)
    assert.equal("float32", luma.cat{a, luma.zeros(1, 2)}.dtype)
    local x = counted {4, 3}
    local out = x:narrow(1, 1, 4)
    luma.cat({x:narrow(1, 3, 2), x:narrow(1, 1, 2)}, 1, {out = out})
    assert.same({shape = {4, 3}, 7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6}, model.of(x))
    says("the result is [4 x 3]", luma.cat, {x, x:narrow(1, 1, 0)}, 1,
      {out = luma.zeros(3, 4, {dtype = "int64"})})
  end)

  it("stack adds a dim anywhere", function()
    local a, b = counted {2, 3}, counted({2, 3}):flip{}
    for dim = 1, 3 do
      local want = model.cat({model.unsqueeze(model.of(a), dim),
        model.unsqueeze(model.of(b), dim)}, dim)
      assert.same(want, model.of(luma.stack({a, b}, dim)))
      assert.same(want, model.of(luma.stack({a, b}, dim - 4)))
    end
    assert.same({shape = {2}, 3, 4},
      model.of(luma.stack {luma.tensor(3, "int64"), luma.tensor(4, "int64")}))
  end)

  it("tile", function()
    for _, case in ipairs {{{2, 3}, {2, 3}}, {{2, 3}, {4, 1, 5}}, {{3}, {7}},
      {{2, 1, 2}, {3, 0, 1}}, {{}, {3, 2}},
                           {{0, 2}, {2, 3}}} do
      local shape, reps = table.unpack(case)
      local added, want = #reps - #shape, {}
      for d = 1, #reps do want[d] = reps[d] * (shape[d - added] or 1) end
      local m = model.count(shape)
      for _, x in ipairs {counted(shape), counted(shape):flip{}:contiguous():flip{}} do
        assert.same(model.make(want, function(index)
          local back = {}
          for d = 1, #shape do back[d] = (index[d + added] - 1) % shape[d] + 1 end
          return model.at(m, back)
        end), model.of(x:tile(table.unpack(reps))))
      end
    end
    says("1 repetitions for [2 x 3]", luma.tile, counted {2, 3}, 2)
    says("-1 repetitions", luma.tile, counted {2, 3}, 1, -1)
  end)

  it("roll", function()
    local shape = {3, 4, 2}
    local m = model.count(shape)
    for _, case in ipairs {{{1}, {1}}, {{-1, 3}, {2, 1}}, {{5, 2, -7}, {1, -1, 2}},
      {{1, 1}, {2, 2}}, {{0}, {3}},
                           {{math.maxinteger, math.mininteger}, {1, 2}}} do
      local by = {0, 0, 0}
      for i, d in ipairs(case[2]) do
        local k = d < 0 and d + 4 or d
        by[k] = (by[k] + case[1][i] % shape[k]) % shape[k]
      end
      for _, x in ipairs {counted(shape),
        counted {2, 4, 3}:transpose(1, 3):contiguous():copy_(counted(shape))} do
        assert.same(model.make(shape, function(index)
          local back = {}
          for d = 1, 3 do back[d] = (index[d] - 1 - by[d]) % shape[d] + 1 end
          return model.at(m, back)
        end), model.of(x:roll(table.unpack(case))))
      end
    end
    assert.same({shape = {2, 3}, 5, 6, 1, 2, 3, 4}, model.of(counted {2, 3}:roll {2}))
    assert.same({shape = {2, 3}, 3, 5, 2, 4, 6, 1}, model.of(counted {3, 2}:t():roll {-1}))
    assert.same({0, 3}, luma.zeros(0, 3):roll({4}, {1}).shape)
    assert.equal(3.0, luma.tensor(3):roll{2}:item())
    says("2 shifts for 1 dims", luma.roll, counted {2}, {1, 2}, {1})
  end)

  it("pad", function()
    local m = model.count {2, 3}
    for _, widths in ipairs {{1, 2}, {0, 0, 1, 1}, {2, 1, 0, 3}, {-1, 0}, {-1, 2, 1, -1}, {},
      {-2, -1}} do
      local left, right = widths[1] or 0, widths[2] or 0
      local top, bottom = widths[3] or 0, widths[4] or 0
      for _, x in ipairs {counted {2, 3}, counted({3, 2}):t():contiguous():copy_(counted {2, 3})} do
        assert.same(model.make({2 + top + bottom, 3 + left + right}, function(index)
          local i, k = index[1] - top, index[2] - left
          if i < 1 or i > 2 or k < 1 or k > 3 then return 9 end
          return model.at(m, {i, k})
        end), model.of(x:pad(widths, {value = 9})))
      end
    end
    assert.equal(0, counted {2}:pad {0, 1}(3))
    says("2.5 does not fit into int64", luma.pad, counted {2}, {1, 1}, {value = 2.5})
    says("cut more than dim 1 of [2] holds", luma.pad, counted {2}, {-2, -1})
    says("3 widths for [2]", luma.pad, counted {2}, {1, 1, 1})
    says("too large", luma.pad, counted {2}, {math.maxinteger, 1})
  end)

  it("masked_fill and slice_set", function()
    local x = counted {2, 3}
    local mask = luma.tensor {{true, false, true}, {false, false, true}}
    assert.same({shape = {2, 3}, 0, 2, 0, 4, 5, 0}, model.of(x:masked_fill(mask, 0)))
    assert.same({shape = {2, 3}, -1, 2, -1, -1, 5, -1}, model.of(x:masked_fill(mask[1], -1.0)))
    assert.equal("uint8", x:to("uint8"):masked_fill(mask, 255).dtype)
    says("2.5 does not fit into int64", luma.masked_fill, x, mask, 2.5)
    says("256 does not fit into uint8", luma.masked_fill, x:to("uint8"), mask, 256)
    says("int64: a bool mask expected", luma.masked_fill, x, x, 0)
    says("does not broadcast to [2 x 3]", luma.masked_fill, x, luma.zeros(2, 2, 3):eq(0), 0)
    local y = x:clone():masked_fill_(mask, 7)
    assert.same({shape = {2, 3}, 7, 2, 7, 4, 5, 7}, model.of(y))
    assert.same({shape = {2, 3}, 1, 8, 9, 4, 8, 9},
      model.of(x:slice_set(luma.tensor({8, 9}, "int64"):unsqueeze(1), 2, 2)))
    y = x:clone()
    assert.is_true(rawequal(y, y:slice_set_(luma.zeros(1, 3), 1, -1)))
    assert.same({shape = {2, 3}, 1, 2, 3, 0, 0, 0}, model.of(y))
    y = counted {6}
    y:slice_set_(y:narrow(1, 1, 5), 1, 2)
    assert.same({shape = {6}, 1, 1, 2, 3, 4, 5}, model.of(y))
    says("[2 x 2] from position 3 of dim 2 on reaches outside [2 x 3]", luma.slice_set, x,
      luma.zeros(2, 2), 2, 3)
    says("does not broadcast", luma.slice_set, x, luma.zeros(3, 1), 2, 1)
  end)
end)

describe("reported faults", function()
  it("a join of views", function()
    local a, b = luma.range(0, 5):reshape(2, 3):t(), luma.range(10, 15):reshape(3, 2)
    assert.same({{0, 3}, {1, 4}, {2, 5}, {10, 11}, {12, 13}, {14, 15}},
      luma.cat({a, b}, 1):totable())
    assert.same({{10, 11}, {12, 13}, {14, 15}, {0, 3}, {1, 4}, {2, 5}},
      luma.cat({b, a}, 1):totable())
    assert.same({{0, 3, 10, 11}, {1, 4, 12, 13}, {2, 5, 14, 15}}, luma.cat({a, b}, 2):totable())
    assert.same({{10, 11, 0, 3}, {12, 13, 1, 4}, {14, 15, 2, 5}}, luma.cat({b, a}, 2):totable())
    assert.same({10, 0, 10}, {table.unpack(luma.cat({b, a, b}, 2):select(1, 1):slice(1, 1, 5,
      2):totable())})
    local list = {luma.range(0, 3):flip(1), luma.full({1}, 7, {dtype = "int64"}):expand(4),
      luma.range(0, 7)["2::2"]}
    assert.same({{3, 2, 1, 0}, {7, 7, 7, 7}, {1, 3, 5, 7}}, luma.stack(list, 1):totable())
    assert.same({{3, 7, 1}, {2, 7, 3}, {1, 7, 5}, {0, 7, 7}}, luma.stack(list, 2):totable())
  end)

  it("in place on an expanded tensor", function()
    local quarter = luma.full({1}, math.pi / 4)
    local x = quarter:expand(3)
    says("the destination overlaps itself", x.cos_, x)
    assert.equal(quarter(1), luma.full({1}, math.pi / 4)(1))
    local zeros = luma.zeros(1, {dtype = "int64"}):expand(4)
    says("the destination overlaps itself", zeros.add_, zeros, 1)
    assert.same({0, 0, 0, 0}, zeros:totable())
    for _, v in ipairs(x:cos():totable()) do assert.is_true(math.abs(v - 0.70710678) < 1e-7) end
  end)

  it("in place with operands that overlap", function()
    local start = {10, 11, 12, 13, 14, 13, 12, 11}
    local x = luma.tensor(start, "float64")
    x["2:"]:div_(x[":-2"])
    for i, v in ipairs {10, 1.1, 1.0909091, 1.0833333, 1.0769231, 0.92857143, 0.92307692,
      0.91666667} do
      assert.is_true(math.abs(v - x(i)) < 1e-7)
    end
    x = luma.range(1, 8)
    x["2:"]:add_(x[":-2"])
    assert.same({1, 3, 5, 7, 9, 11, 13, 15}, x:totable())
    x = luma.tensor(start, "int64")
    x[":-2"]:sub_(x["2:"])
    assert.same({-1, -1, -1, -1, 1, 1, 1, 11}, x:totable())
    x = luma.range(0, 5)
    x[":"] = x["::-1"]
    assert.same({5, 4, 3, 2, 1, 0}, x:totable())
  end)

  it("messages name the operation, both shapes and the dim", function()
    says("bad argument #1 to 'stack' ([1 x 4 x 8 x 8] and [1 x 5 x 9 x 9] along a new dim 2: "
      .. "the shapes differ)",
      luma.stack, {luma.zeros(1, 4, 8, 8), luma.zeros(1, 5, 9, 9)}, 2)
    says("bad argument #1 to 'cat' ([2 x 3] and [2 x 4] along dim 1: "
      .. "sizes 3 and 4 of dim 2 differ)",
      luma.cat, {luma.zeros(2, 3), luma.zeros(2, 4)}, 1)
    says("bad argument #1 to 'cat' ([2 x 3] and [3] along dim 1: 2 and 1 dims)",
      luma.cat, {luma.zeros(2, 3), luma.zeros(3)}, 1)
    says("bad argument #2 to 'reshape' ([6] to [4 x 2]: the number of elements differs)",
      luma.reshape, luma.zeros(6), 4, 2)
    says("bad argument #2 to 'cat' (dim 5 is out of range: the tensor has 2 dims)", luma.cat,
      {luma.zeros(2, 3)}, 5)
    says("bad argument #2 to 'select' (dim 5 is out of range: [2 x 3] has 2 dims)", luma.select,
      luma.zeros(2, 3), 5, 1)
    says("bad argument #1 to 'cat' (an empty list)", luma.cat, {})
    says("bad argument #1 to 'cat' (0-d tensors have no dim to join along: use stack)", luma.cat,
      {luma.tensor(1)})
  end)
end)
