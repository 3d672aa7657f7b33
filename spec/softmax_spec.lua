-- softmax_spec.lua -- running sums, softmax and log_softmax against references in plain Lua: every dtype,
-- layout and dim; lines that are cut in pieces; large values.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local reference = require "reference"
local layouts = require "layouts"
local check = require "check"

local huge = math.huge
local function is_real(dtype) return oracle.dtypes[dtype].kind == "float" end

local function running(list, real)
  local out = {}
  if real then
    local part = {}
    for i, x in ipairs(list) do
      part[i] = x
      out[i] = reference.total(part)
    end
  else
    local sum = 0
    for i, x in ipairs(list) do
      sum = sum + x
      out[i] = sum
    end
  end
  return out
end

local scans = {
  cumsum = running,
  softmax = reference.softmax,
  log_softmax = reference.log_softmax,
}

-- Bounds on the error of a float result: ulps of the result, and a share of the magnitudes; exponents are
-- off by their last place.
local function tolerance(name, dtype, list, want)
  local wide = dtype == "float64"
  if name == "cumsum" then
    return 0.51, 2.0 ^ (wide and -47 or -40) * reference.magnitude(list)
  end
  local eps = 2.0 ^ (wide and -50 or -22)
  local spread = 2.0 ^ (wide and -51 or -22) * 20
  if name == "softmax" then
    return 0.51, math.abs(want) * (eps + spread) + oracle.ulp(dtype, 0)
  end
  return 0.51, eps * (math.abs(want) + 4) + spread
end

-- Every scan along one dim, in every layout.
local function scan_all(values, shape, dim, dtype)
  local wanted, lists = {}, {}
  for name in pairs(scans) do wanted[name] = {} end
  for _, positions in ipairs(reference.groups(shape, {[dim] = true})) do
    local list = reference.pick(values, positions)
    for name, f in pairs(scans) do
      for i, want in ipairs(f(list, is_real(dtype))) do
        wanted[name][positions[i]] = want
        lists[positions[i]] = list
      end
    end
  end
  local function good(name, dtype_out, y, i)
    local want = wanted[name][i]
    if not is_real(dtype_out) then return y == want end
    local ulps, share = tolerance(name, dtype_out, lists[i], want)
    return math.abs(y - want) <= share
      or oracle.close(dtype_out, y, want, ulps, share / oracle.ulp(dtype_out, want))
  end
  layouts.each_view(values, shape, dtype, function(x, layout)
    for name in pairs(scans) do
      local y = x[name](x, dim)
      assert.equal(reference.result_dtype(name, dtype), y.dtype)
      assert.same(shape, y.shape)
      for i, v in ipairs(layouts.flat(y)) do
        if not good(name, y.dtype, v, i) then
          error(("%s of %s %s, element %d: %s, not %s"):format(name, dtype, layout, i, v,
            wanted[name][i]))
        end
      end
    end
  end)
end

describe("scans", function()
  for _, dtype in ipairs(oracle.names) do
    it("along every dim and layout: " .. dtype, function()
      for _, n in ipairs {0, 1, 2, 3, 7, 8, 9, 31, 32, 33} do
        scan_all(oracle.values(dtype, n, -9, 9, n), {n}, 1, dtype)
        local values = oracle.values(dtype, n * 3, -9, 9, n)
        for dim = 1, 2 do
          scan_all(values, {n, 3}, dim, dtype)
          scan_all(values, {3, n}, dim, dtype)
        end
      end
      local values = oracle.values(dtype, 120, -9, 9, 11)
      for dim = 1, 4 do scan_all(values, {3, 4, 2, 5}, dim, dtype) end
      scan_all(oracle.values(dtype, 257, -9, 9, 12), {257}, 1, dtype)
    end)
  end

  it("default to the last dim", function()
    local x = luma.tensor {{1, 2}, {3, 4}}
    check.tensor({{1, 3}, {3, 7}}, "float32", x:cumsum())
    assert.is_true(x:softmax():equal(x:softmax(2)))
    assert.is_true(x:log_softmax():equal(x:log_softmax(-1)))
  end)

  it("run along lines that are cut in pieces", function()
    local n = 300000
    local x = luma.range(1, n):remainder(17)
    local total = 0
    local want = {}
    for i = 1, n do
      total = total + i % 17
      want[i] = total
    end
    for _, dtype in ipairs {"int32", "int64", "float32", "float64"} do
      local y = x:to(dtype):cumsum()
      for _, i in ipairs {1, 7, 8, 65535, 65536, 65537, 131072, 131073, 299999, n} do
        assert.equal(want[i], y[i])
      end
      assert.equal(want[n], x:to(dtype):flip(1):cumsum()[n])
      local columns = x:to(dtype):reshape(n, 1):expand(n, 2):clone()
      assert.equal(want[n], columns:cumsum(1)(n, 2))
      assert.equal(want[n], columns:t():cumsum(2)(1, n))
    end
    for _, dtype in ipairs {"float16", "float32", "float64"} do
      local flat = luma.zeros(n, {dtype = dtype})
      assert.is_true(flat:softmax():to("float64"):allclose(1 / n, {rtol = 1e-6, atol = 6e-8}))
      assert.is_true(flat:log_softmax():to("float64"):allclose(-math.log(n), {rtol = 1e-3}))
      local y = flat:reshape(n // 2, 2):softmax(1):to("float64")
      assert.is_true(y:allclose(2 / n, {rtol = 1e-6, atol = 6e-8}))
    end
  end)
end)

it("log_softmax of large values", function()
  local function near(want, x, eps)
    for i, v in ipairs(layouts.flat(x)) do
      assert(math.abs(v - want[i]) <= eps * math.abs(want[i]) + 1e-5)
    end
  end
  near({0, -134.8113708, -94.6969070}, luma.tensor({94.69690704, -40.11446381, 0}):log_softmax(), 1e-7)
  near({-0.69314718, -0.69314718}, luma.tensor({1000, 1000}):log_softmax(), 1e-7)
  near({0, -20000}, luma.tensor({10000, -10000}):log_softmax(), 0)
  near({0, -12}, luma.tensor({12, 0}, "float16"):log_softmax(), 1e-3)
  check.tensor({0.5, 0.5}, "float32", luma.tensor({1000, 1000}):softmax())
  check.value(1000 + math.log(2), luma.tensor({1000, 1000}, "float64"):logsumexp():item())
  assert.is_true(luma.tensor({-huge, -huge}):softmax():isnan():all())
  check.value(-huge, luma.tensor({-huge, -huge}):logsumexp():item())
  check.value(huge, luma.tensor({1, huge}):logsumexp():item())
end)
