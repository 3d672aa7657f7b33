-- reduce_spec.lua -- reductions against references in plain Lua: every row, dtype, layout and length;
-- positions, dims, errors; sums at length; the same bits, of scans too, from one thread and two and from
-- every instruction set level.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local reference = require "reference"
local layouts = require "layouts"
local check = require "check"
local program = require "program"

local nan, huge = 0 / 0, math.huge
local each_view, pick = layouts.each_view, reference.pick
local rows = {"sum", "prod", "mean", "var", "std", "amax", "amin", "argmax", "argmin", "all", "any",
              "logsumexp", "count_nonzero", "nansum", "nanmean", "norm"}
local lengths = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025}

local function is_real(dtype) return oracle.dtypes[dtype].kind == "float" end

-- ---- what may come out ----

-- Bounds on the error of a float result: ulps of the result, and a share of the magnitudes summed.
local function tolerance(name, dtype, list)
  local share = dtype == "float64" and 2.0 ^ -48 or 2.0 ^ -40
  if name:find("sum$") and name ~= "logsumexp" then return 0.51, share * reference.magnitude(list) end
  if name == "norm" then return dtype == "float64" and 2 or 0.51, 0 end
  if name:find("mean") then return 0.51, share * reference.magnitude(list) / #list end
  if name == "prod" then return dtype == "float64" and #list or 0.51, 0 end
  if name == "var" or name == "std" then return 0.51, share * 4 * reference.magnitude(list) end
  return 3, dtype == "float64" and 1e-14 or 2e-6 -- logsumexp: an absolute error of its exponents
end

local function close(name, dtype, y, want, list)
  if want ~= want or math.abs(want) == huge or y ~= y then return oracle.close(dtype, y, want, 1) end
  local ulps, share = tolerance(name, dtype, list)
  return math.abs(y - want) <= share or oracle.close(dtype, y, want, ulps, share / oracle.ulp(dtype, want))
end

-- The flat results of row `name` over x against the reference, which stands in `wanted`.
local function compare(name, dtype, results, wanted, lists, place)
  for i, want in ipairs(wanted) do
    local y = results[i]
    local good
    if math.type(want) == "float" and is_real(dtype) and not name:find("^a") then
      good = close(name, dtype, y, want, lists[i])
    else
      good = y == want or (y ~= y and want ~= want)
    end
    if not good then
      error(("%s of %s, %s, result %d: %s, not %s"):format(name, dtype, place, i, y, want), 2)
    end
  end
  assert.equal(#wanted, #results)
end

-- A product or exponential that leaves the range on the way depends on the order.
local function in_range(name, dtype, list)
  if name ~= "prod" or not is_real(dtype) then return true end
  local product = 1.0
  for _, x in ipairs(list) do
    product = product * x
    local a = math.abs(product)
    if a > 1e290 or (a < 1e-290 and x ~= 0) or a ~= a then return false end
  end
  return true
end

local function dims_text(dims)
  local list = {}
  for d in pairs(dims) do list[#list + 1] = d end
  return "dims " .. table.concat(list, " ")
end

-- What row `name` shall give for the groups of values, or nil where that is not to be told.
local function expectation(name, dtype, lists)
  local result = reference.result_dtype(name, dtype)
  local wanted = {}
  for g, list in ipairs(lists) do
    if not in_range(name, dtype, list) then return nil end
    local want = reference.rows[name](list, is_real(dtype))
    if type(want) == "boolean" then want = want and 1 or 0 end
    wanted[g] = is_real(result) and want + 0.0 or want
  end
  return wanted
end

-- Every row over one tensor and one set of dims, in every layout.
local function reduce_all(values, shape, dims, dtype)
  local list, keep = {}, #shape % 2 == 1
  for d in pairs(dims) do list[#list + 1] = d end
  table.sort(list)
  local lists = {}
  for g, positions in ipairs(reference.groups(shape, dims)) do lists[g] = pick(values, positions) end
  local empty = lists[1] and #lists[1] == 0
  local wanted = {}
  for _, name in ipairs(rows) do
    local fits = not (name:find("^arg") and #list > 1) and not (name:find("^a[mr]") and empty)
    wanted[name] = fits and expectation(name, dtype, lists) or nil
  end
  each_view(values, shape, dtype, function(x, layout)
    for name, want in pairs(wanted) do
      local along = name:find("^arg") and list[1] or list
      local y
      if name == "norm" then
        y = x:norm(2, along, {keepdim = keep})
      else
        y = x[name](x, along, {keepdim = keep})
      end
      local result = reference.result_dtype(name, dtype)
      assert.equal(result, y.dtype)
      assert.same(reference.reduced_shape(shape, dims, keep), y.shape)
      compare(name, result, layouts.flat(y), want, lists, layout .. ", " .. dims_text(dims))
    end
  end)
end

describe("every row, dtype and layout", function()
  for _, dtype in ipairs(oracle.names) do
    it("along a vector: " .. dtype, function()
      for _, n in ipairs(lengths) do
        local values = oracle.values(dtype, n, -9, 9, n + 1)
        reduce_all(values, {n}, {true}, dtype)
      end
    end)

    it("along rows and columns: " .. dtype, function()
      for _, n in ipairs {0, 1, 2, 5, 8, 9, 31, 32, 33, 257} do
        local values = oracle.values(dtype, n * 3, -9, 9, n + 2)
        for _, shape in ipairs {{n, 3}, {3, n}} do
          reduce_all(values, shape, {true}, dtype)
          reduce_all(values, shape, {[2] = true}, dtype)
        end
      end
    end)

    it("over several dims: " .. dtype, function()
      local shape = {3, 4, 2, 5}
      local values = oracle.values(dtype, 120, -9, 9, 7)
      for mask = 1, 15 do
        local dims = {}
        for d = 1, 4 do dims[d] = mask >> (d - 1) & 1 == 1 or nil end
        reduce_all(values, shape, dims, dtype)
      end
    end)

    it("with extreme values: " .. dtype, function()
      for _, n in ipairs {18, 40, 130} do
        local values = oracle.values(dtype, n, -9, 9, 3, true)
        for _, name in ipairs {"amax", "amin", "argmax", "argmin", "all", "any"} do
          local want = reference.rows[name](values, is_real(dtype))
          if type(want) == "boolean" then want = want and 1 or 0 end
          each_view(values, {n}, dtype, function(x, layout)
            compare(name, "int64", layouts.flat(x[name](x, 1)), {want}, {values}, layout)
          end)
        end
      end
    end)
  end
end)

it("broadcast tensors reduce as their copies", function()
  for _, dtype in ipairs(oracle.names) do
    local values = oracle.values(dtype, 6, -9, 9, 5)
    local x = layouts.make(values, dtype):reshape(2, 1, 3):expand(2, 70, 3)
    local copy = x:clone()
    for _, name in ipairs(rows) do
      for _, dim in ipairs {1, 2, 3} do
        local y, want
        if name == "norm" then
          y, want = x:norm(3, dim):to("float64"), copy:norm(3, dim):to("float64")
        else
          y, want = x[name](x, dim):to("float64"), copy[name](copy, dim):to("float64")
        end
        assert.is_true(y:allclose(want, {rtol = 1e-6, equal_nan = true}))
      end
    end
  end
end)

-- ---- dims, shapes, results ----

it("dims: one, a list, none, negative; keepdim", function()
  local x = luma.range(1, 24):to("float32"):reshape(2, 3, 4)
  assert.same({3, 4}, x:sum(1).shape)
  assert.same({2, 1, 4}, x:sum(2, {keepdim = true}).shape)
  assert.same({3}, x:sum({-1, 1}).shape)
  assert.same({1, 3, 1}, x:sum({-1, 1}, {keepdim = true}).shape)
  assert.same({}, x:sum().shape)
  assert.same({}, x:sum({}).shape)
  assert.same({1, 1, 1}, x:mean({keepdim = true}).shape)
  check.tensor(300, "float32", x:sum())
  check.tensor({78, 222}, "float32", x:sum({2, 3}))
  check.tensor(24, "int64", x:argmax())
  check.tensor({{{24}}}, "int64", x:argmax({keepdim = true}))
  check.tensor(1, "int64", x:argmin())
end)

it("0-d tensors are their own reductions, over dim 1 or -1 too", function()
  for _, dtype in ipairs(oracle.names) do
    local x = layouts.make({1}, dtype):reshape({})
    for _, dim in ipairs {{}, {1}, {-1}} do
      assert.equal(1, layouts.flat(x:sum(dim))[1])
      assert.equal(1, layouts.flat(x:amax(dim))[1])
      assert.equal(1, layouts.flat(x:mean(dim))[1])
    end
    assert.same({}, x:sum(1, {keepdim = true}).shape)
    assert.equal(1, x:argmax(1):item())
    local v, i = x:max(-1)
    assert.equal(1, layouts.flat(v)[1])
    assert.equal(1, i:item())
    assert.equal(1, layouts.flat(x:cumsum(1))[1])
    assert.equal(1, layouts.flat(x:softmax(-1))[1])
  end
end)

it("errors name the argument and what is wrong", function()
  local x = luma.zeros(2, 3)
  check.raises("bad argument #1 to 'sum'", function() return x:sum(3) end)
  check.raises("given twice", function() return x:sum({1, -2}) end)
  check.raises("0", function() return x:sum(0) end)
  check.raises("out is float32, the result is int64", function()
    return luma.argmax(x, 1, {out = luma.zeros(3)})
  end)
  check.raises("out is [2], the result is [3]", function() return luma.sum(x, 1, {out = luma.zeros(2)}) end)
end)

it("out takes the result and may be the input", function()
  local x = luma.range(1, 6):to("float32"):reshape(2, 3)
  local out = luma.zeros(3)
  assert.equal(out, luma.sum(x, 1, {out = out}))
  check.tensor({5, 7, 9}, "float32", out)
  luma.sum(x, 1, {out = x[1]})
  check.tensor({{5, 7, 9}, {4, 5, 6}}, "float32", x)
  luma.cumsum(x, 2, {out = x})
  check.tensor({{5, 12, 21}, {4, 9, 15}}, "float32", x)
  local v, i = luma.zeros(3), luma.zeros(3, {dtype = "int64"})
  luma.max(x, 1, {out = {v, i}})
  check.tensor({5, 12, 21}, "float32", v)
  check.tensor({1, 1, 1}, "int64", i)
  local strided = luma.zeros(2, 2)
  luma.sum(x, 2, {out = strided:t()[2]})
  check.tensor({{0, 38}, {0, 28}}, "float32", strided)
end)

it("max and min with a dim give values and positions", function()
  for _, dtype in ipairs(oracle.names) do
    for _, shape in ipairs {{5, 4}, {4, 33}, {70, 3}, {1, 1}} do
      local n = shape[1] * shape[2]
      local values = oracle.values(dtype, n, -4, 4, n)
      for dim = 1, 2 do
        local groups = reference.groups(shape, {[dim] = true})
        each_view(values, shape, dtype, function(x, layout)
          for name, f in pairs {max = reference.greatest, min = reference.least} do
            local v, i = x[name](x, dim)
            assert.equal(dtype, v.dtype)
            assert.equal("int64", i.dtype)
            v, i = layouts.flat(v), layouts.flat(i)
            for g, positions in ipairs(groups) do
              local best, at = f(pick(values, positions))
              assert(v[g] == best and i[g] == at, layout .. " " .. name .. " " .. dtype)
            end
          end
        end)
      end
    end
  end
end)

it("var and std with a correction", function()
  local values = {1.0, 2.0, 4.0, 7.0}
  local x = luma.tensor(values, "float64")
  for _, c in ipairs {0, 1, 2.5, 4, 5} do
    local want = reference.variance(values, c)
    assert(oracle.close("float64", x:var(1, {correction = c}):item(), want, 1))
    assert(oracle.close("float64", x:std({correction = c}):item(), math.sqrt(want), 1))
  end
  assert.is_true(luma.tensor({3.0}):var():isnan():item())
  check.tensor({0.5}, "float32", luma.tensor({{1.0}, {2.0}}):var(1))
end)

-- Of floats some are NaN or infinite.
local function with_holes(dtype, n, seed)
  local values = oracle.values(dtype, n, -9, 9, seed)
  if is_real(dtype) then
    for i = seed % 3 + 1, n, 5 do values[i] = nan end
  end
  return values
end

local powers = {0, 1, 2, 3, 0.5, 4.25, -1, -2.5, huge, -huge}

it("norm of any p over any dims", function()
  local turn = 0
  for _, dtype in ipairs(oracle.names) do
    local ulps = dtype == "float64" and 8 or 0.51
    for case, shape in ipairs {{257}, {33, 3}, {2, 5, 3}} do
      local values = oracle.values(dtype, reference.numel(shape), -9, 9, 11 * case)
      for d = 0, #shape do
        local dims = {}
        for e = 1, #shape do dims[e] = (d == 0 or d == e) or nil end
        local lists = {}
        for g, positions in ipairs(reference.groups(shape, dims)) do lists[g] = pick(values, positions) end
        each_view(values, shape, dtype, function(x, layout)
          turn = turn + 1
          for k = turn % 3 + 1, #powers, 3 do
            local p = powers[k]
            local y = d == 0 and x:norm(p) or x:norm(p, d)
            assert.equal(is_real(dtype) and dtype or "float32", y.dtype)
            for g, got in ipairs(layouts.flat(y)) do
              local want = reference.norm(lists[g], p)
              -- a power of 0 below 0 makes 0 or, with one in the way, of infinity 0
              if not (got == want or oracle.close(y.dtype, got, want, ulps)) then
                error(("norm %s of %s, %s: %s, not %s"):format(p, dtype, layout, got, want))
              end
            end
          end
        end)
      end
    end
  end
end)

it("norm: its forms, and what has none", function()
  local x = luma.tensor {{3, 4}, {6, 8}}
  check.tensor({5, 10}, "float32", x:norm("fro", 2))
  check.tensor({{5}, {10}}, "float32", x:norm(nil, {2}, {keepdim = true}))
  check.tensor({9, 12}, "float32", x:norm(1, 1))
  check.tensor(8, "float32", x:norm(huge))
  check.tensor(3, "float32", x:norm(-huge))
  assert.is_true(luma.tensor({1, nan}):norm(huge):isnan():item())
  assert.is_true(luma.tensor({1, nan}):norm(-huge):isnan():item())
  assert.equal(2, luma.tensor({1, nan}):norm(0):item())
  -- squares that float32 and float16 cannot hold
  assert.is_true(luma.tensor({3e38, 1e-30}):norm():eq(3e38):item())
  assert.is_true(oracle.close("float32", luma.tensor({3e-25, 4e-25}):norm():item(), 5e-25, 1))
  assert.equal(60000, luma.full({36}, 10000, {dtype = "float16"}):norm():item())
  local empty = luma.zeros(0, 3)
  assert.equal(0, empty:norm():item())
  check.tensor({0, 0, 0}, "float32", empty:norm(0, 1))
  check.raises("[0 x 3] has no elements along dim 1", function() return empty:norm(huge, 1) end)
  check.raises("[0 x 3] has no elements along dim 1", function() return empty:norm(-2, 1) end)
  check.raises("bad argument #2 to 'norm' (p is NaN", function() return luma.norm(x, nan) end)
  check.raises("bad argument #3 to 'norm'", function() return luma.norm(x, 2, 3) end)
  check.raises("\"fro\"", function() return x:norm("nuc") end)
end)

it("NaN wherever it stands, and magnitudes, of long rows and their views", function()
  for _, dtype in ipairs {"float32", "float64"} do
    for _, n in ipairs {1, 7, 8, 33, 100, 1023, 1025, 2100} do
      local x, sum = luma.range(1, n):to(dtype), n * (n + 1) // 2
      for _, i in ipairs {1, (n + 1) // 2, n} do
        local y = x:clone()
        y[i] = nan
        for _, v in ipairs {y, y:flip(1), luma.stack({y, x}, 2)[{":", 1}]} do
          assert.equal(sum - i, v:nansum():item())
          local mean = v:nanmean():item()
          assert.is_true(n == 1 or math.abs(mean * (n - 1) / (sum - i) - 1) < 1e-6)
        end
      end
      local signed = x * luma.where(luma.range(1, n):remainder(3):eq(0), -1, 1)
      assert.equal(sum, signed:norm(1):item())
      assert.is_true(luma.stack({signed, x}):norm(1, 2):eq(sum):all())
    end
  end
end)

it("what is no NaN: nansum, nanmean, count_nonzero", function()
  for _, dtype in ipairs(oracle.names) do
    for _, shape in ipairs {{300}, {31, 9}} do
      local values = with_holes(dtype, reference.numel(shape), #shape + shape[1])
      for d = 1, #shape do
        local lists = {}
        for g, positions in ipairs(reference.groups(shape, {[d] = true})) do
          lists[g] = pick(values, positions)
        end
        each_view(values, shape, dtype, function(x, layout)
          for _, name in ipairs {"nansum", "nanmean", "count_nonzero"} do
            local y, wanted, clean = x[name](x, d), {}, {}
            for g, list in ipairs(lists) do
              wanted[g] = reference.rows[name](list, is_real(dtype))
              clean[g] = {}
              for _, v in ipairs(list) do
                if v == v then table.insert(clean[g], v) end
              end
            end
            compare(name, y.dtype, layouts.flat(y), wanted, clean, layout)
          end
        end)
      end
    end
  end
  local none = luma.tensor {{nan, nan}, {1, nan}}
  check.tensor({0, 1}, "float32", none:nansum(2))
  assert.is_true(none:nanmean(2):isnan():equal(luma.tensor {true, false}))
  check.tensor({2, 2}, "int64", none:count_nonzero(2))
  assert.equal(huge, luma.tensor({huge, nan, 1}):nansum():item())
end)

local function same(a, b)
  return a.dtype == b.dtype and
    a:to("float64"):allclose(b:to("float64"), {rtol = 0, atol = 0, equal_nan = true})
end

it("two results: aminmax, var_mean, std_mean", function()
  for _, dtype in ipairs(oracle.names) do
    for _, shape in ipairs {{5, 33}, {70, 3}, {2, 3, 4}} do
      local values = with_holes(dtype, reference.numel(shape), shape[1])
      each_view(values, shape, dtype, function(x)
        for _, dims in ipairs {{}, {1}, {2}, {-1, 1}} do
          local keep = {keepdim = #dims == 1}
          local least, greatest = x:aminmax(dims, keep)
          assert.is_true(same(least, x:amin(dims, keep)))
          assert.is_true(same(greatest, x:amax(dims, keep)))
          for _, name in ipairs {"var", "std"} do
            local options = {correction = #dims, keepdim = keep.keepdim}
            local spread, mean = x[name .. "_mean"](x, dims, options)
            assert.is_true(same(spread, x[name](x, dims, options)))
            assert.is_true(same(mean, x:mean(dims, keep)))
          end
        end
      end)
    end
  end
  local long = luma.randn(3, 200000)
  local spread, mean = long:var_mean(2)
  assert.is_true(same(spread, long:var(2)) and same(mean, long:mean(2)))
  local x = luma.tensor {{1, 4}, {2, 9}}
  luma.aminmax(x, 1, {out = {x[1], x[2]}})
  check.tensor({{1, 4}, {2, 9}}, "float32", x)
  luma.aminmax(x, 2, {out = {x[1], x[2]}})
  check.tensor({{1, 2}, {4, 9}}, "float32", x)
  check.raises("the tensors for the two results overlap", luma.aminmax, x, 1, {out = {x[1], x[1]}})
  check.raises("[0] has no elements", function() return luma.zeros(0):aminmax() end)
  check.raises("bad argument #2 to 'var_mean'", function() return luma.var_mean(x, 3) end)
end)

it("trace", function()
  for _, shape in ipairs {{1, 1}, {3, 3}, {2, 5}, {5, 2}, {0, 3}} do
    for _, dtype in ipairs(oracle.names) do
      local values, want = oracle.values(dtype, shape[1] * shape[2], -9, 9, 3), 0
      for i = 1, math.min(shape[1], shape[2]) do want = want + values[(i - 1) * shape[2] + i] end
      each_view(values, shape, dtype, function(x)
        local y = x:trace()
        assert.same({}, y.shape)
        assert.equal(is_real(dtype) and dtype or "int64", y.dtype)
        assert(y:item() == want or oracle.close(y.dtype, y:item(), want + 0.0, 1))
      end)
    end
  end
  check.raises("bad argument #1 to 'trace' ([2]: a matrix (2 dims) expected)", function()
    return luma.trace(luma.zeros(2))
  end)
end)

it("all and any without dims are booleans, with dims tensors", function()
  local x = luma.tensor {{1, 0}, {2, nan}}
  assert.is_false(x:all())
  assert.is_true(x:any())
  check.tensor({false, true}, "bool", x:all(2))
  check.tensor({true, true}, "bool", x:any(1))
  assert.is_false(luma.tensor({0.0, -0.0}):any())
end)

-- ---- faults that users of other libraries reported ----

it("the last dim of a transposed matrix", function()
  for _, dtype in ipairs(check.dtypes) do
    if dtype ~= "bool" and dtype ~= "float8_e4m3" then
      local x = luma.tensor({{1, 2, 3}, {4, 5, 6}}, dtype):t()
      assert.same({5, 7, 9}, layouts.flat(x:sum(2)))
      assert.same({4, 10, 18}, layouts.flat(x:prod(2)))
      assert.same({2.5, 3.5, 4.5}, layouts.flat(x:mean(2)))
      assert.same({4, 5, 6}, layouts.flat((x:max(2))))
      assert.same({2, 2, 2}, layouts.flat(x:argmax(2)))
    end
  end
end)

it("reductions of no elements", function()
  for _, dtype in ipairs(check.dtypes) do
    local x = luma.zeros(0, 3, {dtype = dtype})
    for _, name in ipairs {"max", "min", "amax", "amin", "argmax", "argmin"} do
      check.raises("[0 x 3] has no elements along dim 1", function() return x[name](x) end)
      check.raises("[0 x 3] has no elements along dim 1", function() return x[name](x, 1) end)
      check.raises("[3 x 0] has no elements along dim 2", function()
        return x[name](x:t(), 2)
      end)
      local y, positions = x[name](x, 2)
      assert.same({0}, y.shape)
      if positions then assert.same({0}, positions.shape) end
    end
    assert.same({0}, layouts.flat(x:sum()))
    assert.same({0, 0, 0}, layouts.flat(x:sum(1)))
    assert.same({1}, layouts.flat(x:prod()))
    assert.same({1, 1, 1}, layouts.flat(x:prod(1)))
    for _, name in ipairs {"mean", "var", "std"} do
      for _, y in ipairs {x[name](x), x[name](x, 1)} do assert.is_true(y:isnan():all()) end
    end
    assert.is_true(x:all())
    assert.is_false(x:any())
    assert.same({1, 1, 1}, layouts.flat(x:all(1)))
    assert.same({0, 0, 0}, layouts.flat(x:any(1)))
    assert.same({-huge, -huge, -huge}, layouts.flat(x:to("float32"):logsumexp(1)))
    assert.same({0, 3}, x:cumsum(1).shape)
    assert.same({0, 3}, x:softmax(1).shape)
    assert.same({0, 3}, x:log_softmax(2).shape)
    check.raises("[0] has no elements", function() return luma.zeros(0, {dtype = dtype}):max() end)
  end
  assert.same({0, 4}, luma.zeros(0, 0, 4):amax(2).shape)
end)

it("NaN wins in every place", function()
  for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64", "float8_e4m3"} do
    for n = 2, 40 do
      for at = 1, n, n > 20 and 3 or 1 do
        local values = {}
        for i = 1, n do values[i] = (i * 7 % 5) + 0.0 end
        values[at] = at % 2 == 0 and nan or -nan
        local x = luma.tensor(values, dtype)
        local column = x:reshape(n, 1):expand(n, 3):clone()
        for _, name in ipairs {"max", "min"} do
          local v, i = x[name](x, 1)
          assert(v:item() ~= v:item() and i:item() == at, name)
          v, i = column[name](column, 1)
          assert(v:isnan():all() and i:eq(at):all(), name)
          v = x["a" .. name](x)
          assert(v:item() ~= v:item(), name)
          assert(column["a" .. name](column, 1):isnan():all(), name)
          assert.equal(at, x["arg" .. name](x):item())
        end
      end
    end
  end
  local y = luma.tensor {{1, nan}, {3, 4}}
  assert.is_true(y:max():isnan():item())
  assert.is_true(y:amax(1):eq(luma.tensor {3, 0}):equal(luma.tensor {true, false}))
  check.tensor({2, 2}, "int64", y:argmax(2))
  check.tensor({1, 2}, "int64", luma.tensor {{nan, nan}, {1, nan}}:argmin(2))
end)

it("extremes are found wherever in a row they stand", function()
  for _, n in ipairs {7, 63, 64, 65, 127, 130, 321} do
    for _, dtype in ipairs {"uint8", "int64", "float16", "float32", "float64"} do
      local x = luma.ones(n, n, {dtype = dtype}):triu() -- in row i all from i on
      assert.is_true(x:argmax(2):equal(luma.range(1, n)))
      assert.is_true((1 - x):argmin(2):equal(luma.range(1, n)))
    end
    local x = luma.eye(n)
    assert.is_true(x:log():neg():argmin(2):equal(luma.range(1, n)))
    assert.is_true((x / (1 - x)):mul(0):argmax(2):equal(luma.range(1, n))) -- NaN in row i at i
  end
end)

it("of two zeros the value is the one at the position", function()
  for _, dtype in ipairs {"float16", "float32", "float64"} do
    local zeros = {-0.0, 0.0, -0.0, 0.0, -0.0, -0.0, -0.0, 0.0, 0.0}
    each_view(zeros, {3, 3}, dtype, function(x, layout)
      for dim = 1, 2 do
        for _, op in ipairs {"max", "min"} do
          local values, positions = luma[op](x, dim, {keepdim = true})
          local where = dtype .. " " .. layout .. " " .. op
          assert.equal(x:gather(dim, positions):tobytes(), values:tobytes(), where)
        end
      end
    end)
  end
end)

it("the first of equals", function()
  for _, layout in ipairs(layouts.views) do
    local function at(name, values, dtype)
      return layouts.flat(layout[2](layouts.make(values, dtype))[name](layout[2](
        layouts.make(values, dtype))))[1]
    end
    for _, dtype in ipairs {"uint8", "int32", "int64", "float16", "float32", "float64"} do
      local x = layout[2](luma.tensor({{2, 3, 0, 3, 3}, {1, 3, 1, 3, 1}}, dtype))
      assert.same({2, 2}, layouts.flat(x:argmax(2)))
      assert.same({3, 1}, layouts.flat(x:argmin(2)))
      assert.same({1, 1, 2, 1, 1}, layouts.flat(x:argmax(1)))
      local zeros, up, down = {}, {}, {}
      for i = 1, 2001 do zeros[i] = 0 end
      for i = 1, 1200 do
        up[i] = (i + 1) % 2
        down[i] = i % 2
      end
      assert.equal(1, at("argmax", zeros, dtype))
      assert.equal(1, at("argmin", zeros, dtype))
      assert.equal(2, at("argmax", up, dtype))
      assert.equal(2, at("argmin", down, dtype))
    end
    assert.equal(2, at("argmax", {0, 1, 1}, "bool"))
    assert.equal(1, at("argmax", {-0.0, 0.0}, "float32"))
    assert.equal(1, at("argmin", {0.0, -0.0}, "float64"))
  end
end)

it("sums do not stop growing", function()
  local values = {2.0 ^ 24}
  for i = 2, 1025 do values[i] = 1.0 end
  each_view(values, {1025}, "float32", function(x) check.value(16778240.0, x:sum():item()) end)
  local x = luma.tensor(values)
  check.value(16778240.0, x:flip(1):sum():item())
  check.value(16778240.0, x:cumsum()[-1])
  local columns = x:reshape(1025, 1):expand(1025, 3):clone()
  for _, v in ipairs(layouts.views) do
    check.tensor({16778240, 16778240, 16778240}, "float32", v[2](columns):sum(1))
    check.tensor({16778240, 16778240, 16778240}, "float32", v[2](columns):flip(1):sum(1))
    check.value(16778240.0, v[2](columns):cumsum(1)(1025, 2))
  end
  check.tensor(3000, "float16", luma.ones(3000, {dtype = "float16"}):sum())
  check.tensor(60000, "float16", luma.full({4}, 60000, {dtype = "float16"}):mean())
  check.tensor(300, "bfloat16", luma.ones(300, {dtype = "bfloat16"}):sum())
  for _, shape in ipairs {{3000, 4}, {4, 3000}} do
    local ones = luma.ones(shape, {dtype = "float16"})
    assert.is_true(ones:sum(shape[1] == 3000 and 1 or 2):eq(3000):all())
  end
end)

it("mean and std of small integers", function()
  local x = luma.tensor({0, 100, 200, 123}, "uint8")
  check.tensor(423, "int64", x:sum())
  check.tensor(105.75, "float32", x:mean())
  check.tensor(5099.1875, "float32", x:var({correction = 0}))
  assert.is_true(x:std({correction = 0}):allclose(71.4085954, {rtol = 1e-7}))
  assert.is_true(x:std():allclose(82.4555436, {rtol = 1e-7}))
  local y = luma.tensor({200, 100, 50}, "uint8")
  check.tensor({200, 300, 350}, "int64", y:cumsum())
  check.tensor(1000000, "int64", y:prod())
  local trues = luma.ones(300, {dtype = "bool"})
  check.tensor(300, "int64", trues:sum())
  check.tensor(1, "float32", trues:mean())
end)

-- ---- length, threads, levels ----

it("long sums of float32 are accurate", function()
  luma.manual_seed(1)
  local n = 4000000
  local x = luma.rand(n)
  local exact = (x:to("float64") * 2.0 ^ 24):to("int64"):sum():item() * 2.0 ^ -24
  local function near(v) assert(math.abs(v - exact) <= exact * 1e-7, v) end
  near(x:sum():item())
  near(x:flip(1):sum():item())
  near(x:mean():item() * n)
  near(x:reshape(n // 4, 4):sum(1):sum():item())
  near(x:reshape(n // 4, 4):t():sum(2):sum():item())
  near(x:cumsum()[n])
end)

-- Results of every row over tensors large enough to be shared out, as one string of bytes.
local results = [[
  local luma = require "luma"
  luma.set_num_threads(%d)
  luma.manual_seed(5)
  local hash = 0
  local function add(x)
    x = x:isnan():where(luma.zeros({}, {dtype = x.dtype}), x)
    local bytes = x:tobytes()
    bytes = bytes .. ("\0"):rep(-#bytes %% 8)
    local words = luma.frombytes(bytes, "int64", {#bytes // 8})
    hash = hash * 31 + (words * (luma.range(1, #bytes // 8) * 0x9e3779b97f4a7c15)):sum():item()
  end
  local base = luma.randn(300, 1100)
  local long = luma.randn(400000)
  for _, dtype in ipairs {"float32", "float64", "float16", "int32", "uint8"} do
    local x, y = (base * 20):to(dtype), (long * 20):to(dtype)
    for _, v in ipairs {x, x:t(), x:flip({1, 2}), x:slice(2, 1, 1099, 3)} do
      for _, name in ipairs {"sum", "prod", "mean", "var", "amax", "argmin", "logsumexp"} do
        add(v[name](v, 1))
        add(v[name](v, 2))
        add(v[name](v))
      end
      add(v:cumsum(1))
      add(v:cumsum(2))
      add(v:to("float32"):softmax(1))
      add(v:to("float32"):log_softmax(2))
    end
    for _, v in ipairs {y, y:flip(1), y:reshape(100000, 4), y:reshape(4, 100000):t()} do
      add(v:sum())
      add(v:sum(1))
      add(v:std(1))
      add(v:cumsum(1))
      add(v:argmax())
      add(v:to("float32"):softmax(1))
    end
  end
  io.write(("%%016x"):format(hash))
]]

describe("the same bits", function()
  if not program.is_luma then return end
  local function hash(threads, level)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(results:format(threads))
    file:close()
    local out, code = program.shell(("%s $LUMA %s"):format(level and "LUMA_CPU=" .. level or "", path))
    os.remove(path)
    assert(code == 0, out)
    return out
  end

  it("from one thread and from two", function()
    local one = hash(1)
    assert.equal(16, #one)
    assert.equal(one, hash(2))
  end)

  it("from every level with fused multiply-add", function()
    local out = program.shell("LUMA_CPU=avx512 $LUMA -e 'io.write(1)'")
    if out ~= "1" or program.shell("LUMA_CPU=avx2 $LUMA -e 'io.write(1)'") ~= "1" then return end
    assert.equal(hash(2, "avx2"), hash(2, "avx512"))
  end)
end)
