-- order_spec.lua -- kthvalue, median, mode, quantile, unique, searchsorted, bucketize, bincount and
-- histc against references in plain Lua: every dtype and layout, random shapes, ties, NaN, no elements,
-- errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local reference = require "reference"
local order = require "order_reference"
local layouts = require "layouts"
local check = require "check"
local device = require "spec.support.device"

local T, nan, huge = luma.tensor, 0 / 0, math.huge
local seed = require "seed".value
math.randomseed(seed)
local function fail(text, ...) error((text):format(...) .. (" (LUMA_SPEC_SEED=%d)"):format(seed), 0) end
local function is_real(dtype) return oracle.dtypes[dtype].kind == "float" end
local function same(a, b) return a == b or a ~= a and b ~= b end

local views = {
  {"contiguous", function(x) return x end},
  {"permuted", layouts.turned},
  {"reversed", layouts.reversed},
  {"stepped", layouts.stepped},
}

-- Few different values, so that there are ties.
local function draw(dtype, n, special, spread)
  local values = {}
  for i = 1, n do
    local v = math.random(-(spread or 4), spread or 4)
    if is_real(dtype) then
      v = v / 2
      if v == 0 then v = math.random(2) == 1 and 0.0 or -0.0 end
      if special and math.random(7) == 1 then v = ({nan, huge, -huge})[math.random(3)] end
    elseif dtype:find "^uint" then
      v = v + (spread or 4)
    end
    values[i] = oracle.cast(dtype, v)
  end
  return values
end

local shapes = {{1}, {2}, {7}, {64}, {3, 5}, {5, 1}, {2, 3, 4}, {1, 1, 6}}
local function random_shape()
  local shape = {}
  for d = 1, math.random(1, 4) do shape[d] = math.random(1, 5) end
  return shape
end
local function each_case(dtype, special, f)
  local cases = {table.unpack(shapes)}
  for _ = 1, 3 do cases[#cases + 1] = random_shape() end
  for _, shape in ipairs(cases) do
    local values = draw(dtype, reference.numel(shape), special)
    local x = layouts.make(values, dtype):reshape(shape)
    local view = views[math.random(#views)]
    f(view[2](x), values, shape, ("%s [%s] %s"):format(dtype, table.concat(shape, " x "), view[1]))
  end
end

-- For every dim: f of each line is what call(x, dim, keepdim) gives.
local function compare(x, values, shape, place, call, f)
  for dim = 1, #shape do
    local keepdim = math.random(2) == 1
    local v, p = call(x, dim, keepdim)
    assert.same(reference.reduced_shape(shape, {[dim] = true}, keepdim), v.shape)
    assert.equal(x.dtype, v.dtype)
    local got, at = layouts.flat(v), layouts.flat(p)
    assert.equal("int64", p.dtype)
    for i, positions in ipairs(reference.groups(shape, {[dim] = true})) do
      local list = {}
      for j, q in ipairs(positions) do list[j] = values[q] end
      local want, where = f(list)
      if not (same(want, got[i]) and where == at[i]) then
        fail("%s, dim %d, line %d: %s at %s, not %s at %s", place, dim, i, got[i], at[i], want, where)
      end
    end
  end
end

describe("at a place of the order", function()
  for _, dtype in ipairs(oracle.names) do
    it("kthvalue, median, nanmedian, mode of " .. dtype, function()
      each_case(dtype, true, function(x, values, shape, place)
        local least = huge
        for _, s in ipairs(shape) do least = math.min(least, s) end
        local k = math.random(least)
        compare(x, values, shape, "kthvalue of " .. place,
          function(t, dim, keepdim) return t:kthvalue(k, dim, {keepdim = keepdim}) end,
          function(list) return order.kthvalue(list, k) end)
        for _, name in ipairs {"median", "nanmedian", "mode"} do
          compare(x, values, shape, name .. " of " .. place,
            function(t, dim, keepdim) return t[name](t, dim, {keepdim = keepdim}) end, order[name])
        end
        for _, name in ipairs {"median", "nanmedian"} do
          local v, p = x[name](x)
          assert.is_nil(p)
          assert.same({}, v.shape)
          local got = v:item()
          if dtype == "bool" then got = got and 1 or 0 end
          if not same((order[name](values)), got) then fail("%s of all of %s", name, place) end
        end
      end)
    end)
  end

  it("of long lines", function()
    for _, dtype in ipairs {"float32", "int16"} do
      local values = draw(dtype, 6001, false, 500)
      local x = layouts.make(values, dtype)
      local v, p = x:kthvalue(4000)
      local want, at = order.kthvalue(values, 4000)
      assert.equal(want, v:item())
      assert.equal(at, p:item())
      assert.equal((order.median(values)), x:median():item())
      v, p = x:mode()
      want, at = order.mode(values)
      assert.equal(want, v:item())
      assert.equal(at, p:item())
    end
  end)

  it("kthvalue is what sort has at that place", function()
    local dtypes = {"int16", "float64", "float32", "bool", "uint8", "int64", "bfloat16"}
    local sizes, all = {201, 2049, 9000, 1, 5, 33, 200, 70000}, luma.get_default_device() == "cpu"
    for _, dtype in ipairs(all and dtypes or {table.unpack(dtypes, 1, 2)}) do
      for _, n in ipairs(all and sizes or {table.unpack(sizes, 1, 3)}) do
        for _, range in ipairs {2, 300, 1 << 40} do
          luma.manual_seed(math.random(1 << 30))
          local x = luma.randint(-range, range, {n}):to "float64":mul(range > 300 and 0.37 or 1)
          if dtype:find "float" then x:masked_fill_(luma.rand(n):lt(1 / n), nan) end
          x = x:to(dtype)
          local sorted, places = x:sort()
          for _, k in ipairs {1, 2, n // 4, n // 2, n // 2 + 1, n - 1, n, math.random(n), math.random(n)} do
            if k >= 1 and k <= n then
              local v, p = x:kthvalue(k)
              if places[k] ~= p:item() or not same(sorted[k], v:item()) then
                fail("%s: %d of %d up to %d gives %s, at %d", dtype, k, n, range, v:item(), p:item())
              end
            end
          end
          if n % 3 == 0 then
            local k = math.random(n // 3)
            local v, p = x:reshape(3, -1):kthvalue(k, 2)
            local rows, at = x:reshape(3, -1):sort(2)
            for i = 1, 3 do
              if at[i][k] ~= p[i] or not same(rows[i][k], v[i]) then
                fail("%s: %d of row %d of 3 of %d", dtype, k, i, n // 3)
              end
            end
          end
          local middle = x:isnan():any() and nan or sorted[(n + 1) // 2]
          if not same(middle, x:median():item()) then fail("%s: median of %d", dtype, n) end
        end
      end
    end
  end)

  it("of 0-d tensors; defaults; results that are given", function()
    local v, p = T(3):kthvalue(1)
    assert.same({3, 1}, {v:item(), p:item()})
    v, p = T(3):mode(1, {keepdim = true})
    assert.same({3, 1}, {v:item(), p:item()})
    v, p = T(3):median(1)
    assert.same({3, 1}, {v:item(), p:item()})
    local x = T {{3, 1, 2}, {9, 9, 8}}
    check.tensor({2, 9}, "float32", (x:kthvalue(2)))
    check.tensor({1, 9}, "float32", (x:mode()))
    local values, places = luma.zeros(2), luma.zeros({2}, {dtype = "int64"})
    local a, b = x:median(2, {out = {values, places}})
    assert.is_true(rawequal(a, values) and rawequal(b, places))
    check.tensor({2, 9}, "float32", values)
    check.tensor({3, 1}, "int64", places)
    v = luma.zeros({})
    x:median({out = v})
    assert.equal(3, v:item())
  end)

  it("errors", function()
    local x = luma.zeros(2, 3)
    check.raises("k is 4: 1 to 3, the size of dim 2", luma.kthvalue, x, 4)
    check.raises("k is 0", luma.kthvalue, x, 0)
    check.raises("k is " .. math.mininteger, luma.kthvalue, x, math.mininteger)
    check.raises("dim", luma.kthvalue, x, 1, 3)
    for _, name in ipairs {"median", "nanmedian", "mode"} do
      check.raises("[2 x 0] has no elements along dim 2", luma[name], luma.zeros(2, 0), 2)
      check.raises("dim", luma[name], x, 3)
      assert.same({0}, luma[name](luma.zeros(0, 3), 2).shape)
    end
    check.raises("[0] has no elements", luma.median, luma.zeros(0))
    local given = luma.ones(2)
    check.raises("int64", luma.mode, x, 2, {out = {given, luma.zeros(2)}})
    check.tensor({1, 1}, "float32", given)
  end)
end)

describe("quantiles", function()
  local ways = {"linear", "lower", "higher", "midpoint", "nearest"}
  local function near(dtype, want, got)
    if same(want, got) then return true end
    return math.abs(want - got) <= oracle.ulp(dtype, want) * 0.51 + math.abs(want) * 1e-12
  end
  local function values_of(dtype, list)
    local out = {}
    for i, v in ipairs(list) do out[i] = oracle.cast(dtype, v) + 0.0 end
    return out
  end

  for _, dtype in ipairs(oracle.names) do
    it("of " .. dtype, function()
      local to = is_real(dtype) and dtype or "float32"
      each_case(dtype, false, function(x, values, shape, place)
        local qs = {0, 1, 0.5, math.random(), math.random()}
        local way = ways[math.random(#ways)]
        for dim = 1, #shape do
          local keepdim = math.random(2) == 1
          local y = x:quantile(T(qs, "float64"), dim, {interpolation = way, keepdim = keepdim})
          local reduced = reference.reduced_shape(shape, {[dim] = true}, keepdim)
          assert.same({#qs, table.unpack(reduced)}, y.shape)
          assert.equal(to, y.dtype)
          for i, q in ipairs(qs) do
            local one = x:quantile(q, dim, {interpolation = way, keepdim = keepdim})
            assert.same(reduced, one.shape)
            local got, again = layouts.flat(y:select(1, i)), layouts.flat(one)
            for g, positions in ipairs(reference.groups(shape, {[dim] = true})) do
              local list = {}
              for j, p in ipairs(positions) do list[j] = values[p] end
              local want = order.quantile(values_of(to, list), q, way)
              if not (near(to, want, got[g]) and near(to, want, again[g])) then
                fail("%s, dim %d, q %.17g %s: %s and %s, not %s", place, dim, q, way, got[g], again[g], want)
              end
            end
          end
        end
        local want = order.quantile(values_of(to, values), qs[4], way)
        local got = x:quantile(qs[4], {interpolation = way}):item()
        if not near(to, want, got) then fail("of all of %s: %s, not %s", place, got, want) end
      end)
    end)
  end

  it("with NaN, and without", function()
    for _, dtype in ipairs {"float32", "float64", "float16"} do
      each_case(dtype, true, function(x, values, _, place)
        local q, way = math.random(), ways[math.random(#ways)]
        local list = values_of(dtype, values)
        local want = order.quantile(list, q, way)
        local ignoring = order.quantile(list, q, way, true)
        local a = x:quantile(q, {interpolation = way}):item()
        local b = x:nanquantile(q, {interpolation = way}):item()
        if not near(dtype, want, a) then fail("quantile %s: %s, not %s", place, a, want) end
        if not near(dtype, ignoring, b) then fail("nanquantile %s: %s, not %s", place, b, ignoring) end
      end)
    end
    local x = T {{1, nan, 3}, {4, 5, 6}, {nan, nan, nan}}
    check.tensor({nan, 5, nan}, "float32", x:quantile(0.5, 2))
    check.tensor({2, 5, nan}, "float32", x:nanquantile(0.5, 2))
    check.tensor({{1, 4, nan}, {3, 6, nan}}, "float32", x:nanquantile(T {0, 1}, 2))
    check.tensor({-huge, huge}, "float32", T({{-huge, -huge}, {huge, huge}}):quantile(0.3, 2))
  end)

  it("errors and edges", function()
    local x = luma.range(1, 4)
    check.tensor(2.5, "float32", x:quantile(0.5))
    check.tensor({2.5}, "float32", x:quantile(0.5, {keepdim = true}))
    check.tensor({{{2.5}}}, "float32", x:reshape(2, 2):quantile(T {0.5}, {keepdim = true}))
    check.tensor({}, "float32", x:quantile(luma.zeros(0)))
    check.raises("1.5 at position 2: 0 to 1", luma.quantile, x, T {0.5, 1.5})
    check.raises("nan at position 1", luma.quantile, x, nan)
    check.raises("2 dims", luma.quantile, x, luma.zeros(1, 1))
    check.raises("int64: floats", luma.quantile, x, T({1}, "int64"))
    check.raises("no elements", luma.quantile, luma.zeros(0), 0.5)
    check.raises("cubic", luma.quantile, x, 0.5, {interpolation = "cubic"})
  end)
end)

-- ---- unique ----

local function group_list(list, sorts)
  local p = {}
  for i = 1, #list do p[i] = i end
  if sorts then p = order.order(list) end
  local values, inverse, counts = {}, {}, {}
  for i = 1, #p do
    local v, before = list[p[i]], i > 1 and list[p[i - 1]]
    if i == 1 or not (v == before or v ~= v and before ~= before) then
      values[#values + 1], counts[#counts + 1] = v, 0
    end
    inverse[p[i]] = #values
    counts[#counts] = counts[#counts] + 1
  end
  return values, inverse, counts
end

local function equal_lists(want, got, what)
  if #want ~= #got then fail("%s: %d, not %d", what, #got, #want) end
  for i = 1, #want do
    if not same(want[i], got[i]) then fail("%s, number %d: %s, not %s", what, i, got[i], want[i]) end
  end
end

describe("unique", function()
  local all = {return_inverse = true, return_counts = true}
  for _, dtype in ipairs(oracle.names) do
    it("elements of " .. dtype, function()
      each_case(dtype, true, function(x, values, shape, place)
        for _, name in ipairs {"unique", "unique_consecutive"} do
          local v, inverse, counts = x[name](x, all)
          local want, which, often = group_list(values, name == "unique")
          equal_lists(want, layouts.flat(v), name .. " of " .. place)
          equal_lists(which, layouts.flat(inverse), "inverse, " .. place)
          equal_lists(often, layouts.flat(counts), "counts, " .. place)
          assert.same(shape, inverse.shape)
          assert.equal(dtype, v.dtype)
          assert.equal("int64", inverse.dtype)
          assert.equal("int64", counts.dtype)
        end
      end)
    end)
  end

  -- Slices as lists of their elements, joined to words where elements allow.
  it("slices along any dim", function()
    for _, dtype in ipairs {"bool", "int8", "int64", "float16", "float32"} do
      for _ = 1, 12 do
        local shape = random_shape()
        local values = draw(dtype, reference.numel(shape), false, 1)
        for i, v in ipairs(values) do if v == 0 then values[i] = oracle.cast(dtype, 0) end end
        local x = views[math.random(#views)][2](layouts.make(values, dtype):reshape(shape))
        for dim = 1, #shape do
          local others = {}
          for d = 1, #shape do others[d] = d ~= dim end
          local slices = reference.groups(shape, others)
          local rows = {}
          for i, positions in ipairs(slices) do
            local row = {}
            for j, p in ipairs(positions) do row[j] = values[p] end
            rows[i] = row
          end
          local function less(a, b)
            for j = 1, #a do if a[j] ~= b[j] then return a[j] < b[j] end end
            return false
          end
          for _, name in ipairs {"unique", "unique_consecutive"} do
            local p = {}
            for i = 1, #rows do p[i] = i end
            if name == "unique" then
              table.sort(p, function(i, j)
                if less(rows[i], rows[j]) then return true end
                return not less(rows[j], rows[i]) and i < j
              end)
            end
            local firsts, which, often = {}, {}, {}
            for i = 1, #p do
              local a, b = rows[p[i - 1]], rows[p[i]]
              if i == 1 or less(a, b) or less(b, a) then
                firsts[#firsts + 1], often[#often + 1] = p[i], 0
              end
              which[p[i]] = #firsts
              often[#often] = often[#often] + 1
            end
            local v, inverse, counts = x[name](x, dim, all)
            assert.is_true(v:equal(x:index_select(dim, firsts)))
            equal_lists(which, layouts.flat(inverse), name .. ": inverse")
            equal_lists(often, layouts.flat(counts), name .. ": counts")
          end
        end
      end
    end
  end)

  it("gives what is asked for", function()
    local x = T {3, 1, 3, 2}
    local v, second = x:unique()
    check.tensor({1, 2, 3}, "float32", v)
    assert.is_nil(second)
    check.tensor({1, 1, 2}, "int64", select(2, x:unique {return_counts = true}))
    check.tensor({3, 1, 3, 2}, "int64", select(2, x:unique {return_inverse = true, sorted = false}))
    check.tensor(1, "int64", select(2, T(5):unique {return_inverse = true}))
    check.tensor({nan}, "float32", (T({nan, nan}):unique()))
    check.tensor({3}, "int64", select(2, T({nan, nan, nan}):unique_consecutive {return_counts = true}))
  end)

  it("of no elements, of slices without elements; errors", function()
    local v, inverse, counts = luma.zeros(0, 3):unique(all)
    assert.same({{0}, {0, 3}, {0}}, {v.shape, inverse.shape, counts.shape})
    v, inverse, counts = luma.zeros(0, 3):unique(1, all)
    assert.same({{0, 3}, {0}, {0}}, {v.shape, inverse.shape, counts.shape})
    v, inverse, counts = luma.zeros(4, 0):unique(1, all)
    assert.same({{1, 0}, {4}, {1}}, {v.shape, inverse.shape, counts.shape})
    check.tensor({4}, "int64", counts)
    v, inverse = luma.zeros(0, 1):expand {0, 1 << 50}:unique(1, {return_inverse = true})
    assert.same({{0, 1 << 50}, {0}}, {v.shape, inverse.shape})
    check.raises("dim", luma.unique, luma.zeros(2), 2)
    check.raises("0-d", luma.unique, T(1), 1)
  end)

  it("of many, near each other and far apart", function()
    for _, factor in ipairs {1, 1000003} do
      local values = draw("int64", 20000, false, 3000)
      for i, v in ipairs(values) do values[i] = v * factor end
      local v, inverse, counts = layouts.make(values, "int64"):reshape(100, 200):unique(all)
      local want, which, often = group_list(values, true)
      equal_lists(want, layouts.flat(v), "values")
      equal_lists(which, layouts.flat(inverse), "inverse")
      equal_lists(often, layouts.flat(counts), "counts")
      assert.same({100, 200}, inverse.shape)
    end
    local lo, hi = math.mininteger, math.maxinteger
    check.tensor({lo, 0, hi}, "int64", (T({hi, lo, 0, hi}, "int64"):unique()))
    check.tensor({lo, lo + 9}, "int64", (T({lo + 9, lo}, "int64"):unique()))
    check.tensor({hi - 9, hi}, "int64", (T({hi, hi - 9, hi}, "int64"):unique()))
    check.tensor({0, 4294967295}, "uint32", (T({4294967295, 0}, "uint32"):unique()))
  end)
end)

-- ---- search and counts ----

describe("searchsorted and bucketize", function()
  for _, dtype in ipairs(oracle.names) do
    it("of " .. dtype, function()
      for _, n in ipairs {0, 1, 2, 3, 7, 8, 33} do
        local list = draw(dtype, n, true)
        table.sort(list, order.less)
        local sorted = layouts.make(list, dtype)
        for _, m in ipairs {0, 1, 9, 20} do
          local values = draw(dtype, m, true, 6)
          for _, right in ipairs {false, true} do
            local want = {}
            for i, v in ipairs(values) do want[i] = order.search(list, v, right) end
            for _, view in ipairs(views) do
              local x = view[2](layouts.make(values, dtype))
              local s = view[2](sorted)
              local what = ("%s %d in %d, right %s, %s"):format(dtype, m, n, right, view[1])
              local y = s:searchsorted(x, {right = right})
              assert.equal("int64", y.dtype)
              equal_lists(want, layouts.flat(y), "searchsorted " .. what)
              equal_lists(want, layouts.flat(s:searchsorted(x, {side = right and "right" or "left"})),
                "side " .. what)
              equal_lists(want, layouts.flat(x:bucketize(s, {right = right})), "bucketize " .. what)
            end
          end
        end
      end
    end)
  end

  it("of rows, of any shape, of a number", function()
    for _ = 1, 20 do
      local rows, columns = math.random(3), math.random(3)
      local n, m = math.random(0, 6), math.random(0, 5)
      local sorted = T(draw("float32", rows * columns * n + 1, false)):narrow(1, 1, rows * columns * n)
      sorted = sorted:reshape(rows, columns, n):sort()
      local values = T(draw("float32", rows * columns * m + 1, false)):narrow(1, 1, rows * columns * m)
      values = values:reshape(rows, columns, m)
      local y = sorted:searchsorted(values)
      assert.same({rows, columns, m}, y.shape)
      for i = 1, rows do
        for j = 1, columns do
          local list = layouts.flat(sorted[{i, j}])
          for k = 1, m do
            assert.equal(order.search(list, values(i, j, k)), y(i, j, k))
          end
        end
      end
    end
    local s = T {1, 3, 5}
    check.tensor({{1, 2}, {4, 4}}, "int64", s:searchsorted(T {{0, 3}, {6, nan}}))
    check.tensor(2, "int64", s:searchsorted(3))
    check.tensor(3, "int64", s:searchsorted(3, {right = true}))
    check.tensor(4, "int64", s:searchsorted(T(9)))
    check.tensor({2, 3}, "int64", s:searchsorted(T({2, 4}, "int64")))
    check.tensor({2, 3}, "int64", T({1, 3, 5}, "uint8"):searchsorted(T {1.5, 4.5}))
  end)

  it("numbers among integers are exact", function()
    local s = T({math.mininteger, -1, 0, 7, math.maxinteger - 1, math.maxinteger}, "int64")
    local function at(v, right) return s:searchsorted(v, {right = right}):item() end
    assert.same({2, 2}, {at(-1.5, false), at(-1.5, true)})
    assert.same({4, 4}, {at(6.5, false), at(6.5, true)})
    assert.same({4, 5}, {at(7.0, false), at(7.0, true)})
    assert.same({6, 7}, {at(math.maxinteger, false), at(math.maxinteger, true)})
    assert.same({7, 7, 7}, {at(2.0 ^ 63, false), at(huge, true), at(nan, false)})
    assert.same({1, 1, 2}, {at(-huge, true), at(math.mininteger, false), at(-2.0 ^ 63, true)})
    assert.equal(3, T({1, 2, 200}, "uint8"):searchsorted(150):item())
    assert.equal(4, T({1, 2, 200}, "uint8"):searchsorted(300):item())
    assert.equal(1, T({1, 2, 200}, "uint8"):searchsorted(-300):item())
  end)

  it("many values in a long list", function()
    local sorted = luma.range(2, 20000, 2, {dtype = "int32"})
    local values = luma.range(0, 20001, {dtype = "int32"})
    local places = values:floor_div(2):to("int64"):add(1):minimum(10001)
    check.value(true, sorted:searchsorted(values, {right = true}):equal(places))
    values = luma.rand(5000) * 9
    sorted = luma.rand(3000):sort()
    local y = sorted:searchsorted(values)
    local list, flat = layouts.flat(sorted), layouts.flat(values)
    for i = 1, 5000, 97 do assert.equal(order.search(list, flat[i]), y[i]) end
    local out = luma.zeros({5000}, {dtype = "int64"}):flip(1)
    luma.searchsorted(sorted, values, {out = out})
    assert.is_true(out:equal(y))
  end)

  it("errors", function()
    local s = T {1, 2, 3}
    check.raises("contradict", luma.searchsorted, s, s, {right = true, side = "left"})
    check.raises("middle", luma.searchsorted, s, s, {side = "middle"})
    check.raises("[3] in [2 x 3]", luma.searchsorted, luma.zeros(2, 3), s)
    check.raises("[3 x 3] in [2 x 3]", luma.searchsorted, luma.zeros(2, 3), luma.zeros(3, 3))
    check.raises("0-d", luma.searchsorted, T(1), s)
    check.raises("to search for a number", luma.searchsorted, luma.zeros(2, 3), 1)
    check.raises("2 dims", luma.bucketize, s, luma.zeros(2, 3))
    check.raises("int64", luma.searchsorted, s, s, {out = luma.zeros(3)})
  end)
end)

it("places among elements that lie evenly, or nearly", function()
  for _, dtype in ipairs {"float32", "float64", "int64", "uint8"} do
    for _, n in ipairs {8, 9, 100} do
      local even = luma.range(1, n)
      for name, list in pairs {
        even = even, twice = (even + 1) // 2 + 3, wide = even * 2 - 1, squares = even * even // n,
        bent = even + even // 3, one = luma.ones(n), last = luma.cat {even["1:-2"], T {200}},
      } do
        local sorted = list:to(dtype)
        local near = sorted:to "float64"
        local values = luma.cat {near, near - 0.25, near + 1, luma.range(0, 255, 3):to "float64",
          luma.tensor({-1e30, 1e30, -huge, huge, nan, 0}, "float64")}
        if not is_real(dtype) then values = values:nan_to_num():clamp(0, 255) end
        values = values:to(dtype)
        local v, e = values:unsqueeze(2), sorted:unsqueeze(1)
        for right, count in pairs {[false] = e:lt(v), [true] = e:le(v)} do
          local wanted = luma.where(values:ne(values), n, count:sum(2)) + 1
          assert.is_true(luma.searchsorted(sorted, values, {right = right}):equal(wanted), name)
        end
      end
    end
  end
end)

describe("bincount", function()
  it("counts labels and adds weights", function()
    for _, dtype in ipairs(check.integers) do
      for _, n in ipairs {0, 1, 5, 100} do
        local labels, weights = {}, {}
        for i = 1, n do labels[i], weights[i] = math.random(1, 20), math.random(-8, 8) / 4 end
        local least = math.random(0, 25)
        local counts, sums = {}, {}
        for i = 1, math.max(least, math.max(0, table.unpack(labels))) do counts[i], sums[i] = 0, 0.0 end
        for i, v in ipairs(labels) do
          counts[v] = counts[v] + 1
          sums[v] = sums[v] + weights[i]
        end
        for _, view in ipairs(views) do
          local x = view[2](layouts.make(labels, dtype))
          check.tensor(counts, "int64", x:bincount {minlength = least})
          for _, to in ipairs {"float32", "float64", "float16"} do
            local w = view[2](layouts.make(weights, to))
            check.tensor(sums, to, x:bincount {minlength = least, weights = w})
          end
        end
      end
    end
    local x = T({2, 2, 4}, "int64")
    check.tensor({0, 3, 0, 5}, "int64", x:bincount {weights = T({1, 2, 5}, "uint8")})
    check.tensor({0, 1, 0, 1}, "int64", x:bincount {weights = T {true, false, true}})
    check.tensor({1, 0, 2}, "int64", luma.bincount {1, 3, 3})
  end)

  it("errors", function()
    local x = T({1, 0, 3}, "int64")
    check.raises("label 0 at position 2: labels count from 1 (add 1", luma.bincount, x)
    check.raises("label -3 at position 1", luma.bincount, T({-3, 1}, "int8"))
    check.raises("float32: an integer", luma.bincount, T {1, 2})
    check.raises("bool", luma.bincount, T {true})
    check.raises("2 dims", luma.bincount, luma.ones({2, 2}, {dtype = "int64"}))
    check.raises("minlength is -1", luma.bincount, x, {minlength = -1})
    check.raises("one weight for each of 3", luma.bincount, x, {weights = T {1, 2}})
    assert.is_false((pcall(luma.bincount, T({1, math.maxinteger}, "int64"))))
    assert.is_false((pcall(luma.bincount, T({1}, "int64"), {minlength = math.maxinteger})))
  end)
end)

describe("histc", function()
  it("counts what lies in bins", function()
    for _, dtype in ipairs(oracle.names) do
      local to = is_real(dtype) and dtype or "float32"
      for _ = 1, 6 do
        local values = draw(dtype, math.random(0, 60), true, 6)
        local bins, lo, hi = math.random(9), math.random(-5, 0) / 2, math.random(1, 5) / 2
        local counts = {}
        for b = 1, bins do counts[b] = 0 end
        for _, v in ipairs(values) do
          if v >= lo and v <= hi then
            local b = bins
            while b > 1 and v < lo + (hi - lo) * ((b - 1) / bins) do b = b - 1 end
            counts[b] = counts[b] + 1
          end
        end
        for b = 1, bins do counts[b] = oracle.cast(to, counts[b]) end
        local x = views[math.random(#views)][2](layouts.make(values, dtype))
        local y = x:histc {bins = bins, min = lo, max = hi}
        assert.equal(to, y.dtype)
        equal_lists(counts, layouts.flat(y), "histc of " .. dtype)
      end
    end
    check.tensor({1, 2, 1}, "float32", T({1, 2, 2, 4}):histc {bins = 3})
    check.tensor({0, 3, 0}, "float32", T({5, 5, 5}):histc {bins = 3})
    check.tensor({2, 2}, "float32", T({{1, 2}, {3, 4}}, "int32"):histc {bins = 2})
    assert.same({100}, luma.rand(5):histc().shape)
    check.tensor({0, 0}, "float32", luma.zeros(0):histc {bins = 2})
  end)
  it("errors", function()
    check.raises("0 bins", luma.histc, T {1}, {bins = 0})
    check.raises("bins", luma.histc, T {1}, {bins = math.maxinteger})
    check.raises("min 2 is above max 1", luma.histc, T {1}, {min = 2, max = 1})
    check.raises("not finite", luma.histc, T {1, nan})
    check.raises("not finite", luma.histc, T {1, huge})
    check.raises("not finite", luma.histc, T {1}, {min = 0, max = huge})
  end)
end)

it("the device is the one of x", function()
  local D = device.cuda
  if not D then
    pending("no CUDA device: " .. tostring(device.no_cuda))
    return
  end
  local x = luma.rand({5, 40}, {device = D})
  for _, y in ipairs {x:kthvalue(3), x:median(), x:median(2), x:mode(1), x:quantile(0.5), x:unique(),
                      x:unique(2), x:flatten():sort():searchsorted(x), x:histc(), x:diff(),
                      x:quantile(T({0.5}, {device = "cpu"})),
                      x:flatten():sort():searchsorted(T(0.5, {device = "cpu"}))} do
    assert.equal(D, y.device)
  end
  check.raises("cpu", luma.bucketize, x, T({1, 2}, {device = "cpu"}))
end)
