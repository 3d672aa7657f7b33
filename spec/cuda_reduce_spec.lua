-- cuda_reduce_spec.lua -- reductions and scans of the CUDA device against the CPU's: every row, dtype
-- and layout, lengths about the sizes of warps, blocks and chunks; the same bits in every order.
local luma = require "luma"
local device = require "spec.support.device"
local oracle = require "spec.support.oracle"
local program = require "spec.support.program"

local D = device.cuda
local nan, huge = 0 / 0, math.huge

if not D then
  pending("no CUDA device: " .. tostring(device.no_cuda))
  return
end

local rows = {"sum", "prod", "mean", "var", "std", "amax", "amin", "argmax", "argmin", "all", "any",
              "logsumexp", "max", "min", "count_nonzero", "nansum", "nanmean", "norm", "var_mean", "std_mean",
              "aminmax"}
local scans = {"cumsum", "softmax", "log_softmax"}

local function is_real(dtype) return oracle.dtypes[dtype].kind == "float" end

-- Numbers about 0 of a dtype, on the CPU.
local function draw(shape, dtype)
  local x = luma.randn(shape, {device = "cpu"}) * 3
  if dtype == "bool" then return x:gt(-4) end
  if dtype:find "^uint" then x = x:abs() end
  return x:to(dtype)
end

-- Views that need no kernel, of a matrix.
local views = {
  {"as it is", function(x) return x end},
  {"transposed", function(x) return x:t() end},
  {"reversed", function(x) return x:flip({1, 2}) end},
  {"stepped", function(x) return x:slice(2, 1, x.shape[2], 2) end},
  {"inside", function(x) return x:narrow(2, 2, x.shape[2] - 1) end},
}

-- How far two results of a row may lie apart: a share of them, and of what was added.
local function bounds(name, dtype)
  local ulp = 2.0 ^ (1 - oracle.dtypes[dtype].digits)
  local wide = dtype == "float64"
  if name == "prod" then return wide and 1e-12 or ulp, 0 end
  if name == "softmax" then return math.max(ulp, wide and 1e-13 or 1e-6), oracle.ulp(dtype, 0) end
  if name:find "log" then return ulp, wide and 1e-13 or 1e-5 end
  return wide and 2.0 ^ -44 or ulp, wide and 1e-12 or 1e-7
end

local function compare(place, name, want, got)
  assert.equal(D, got.device)
  assert.equal(want.dtype, got.dtype, place)
  assert.same(want.shape, got.shape, place)
  got = got:cpu()
  local good
  if is_real(want.dtype) and not name:find "^a?m[ai][xn]$" then
    local share, least = bounds(name, want.dtype)
    good = want:to("float64"):allclose(got:to("float64"), {rtol = share, atol = least, equal_nan = true})
  else
    good = want:equal(got) or want:eq(got):logical_or(want:isnan():logical_and(got:isnan())):all()
  end
  if not good then error(("%s of %s, %s:\n%s\nnot\n%s"):format(name, want.dtype, place, got, want), 2) end
end

-- A row of x, on the device y, along dim (0: all).
local function reduce(place, name, x, y, dim)
  local along = dim > 0 and dim or {}
  if dim == 0 and (name == "max" or name == "min") then return end
  if dim == 0 and name:find "^arg" then along = nil end
  place = place .. ", dim " .. dim
  if name == "norm" then
    for _, p in ipairs {0, 1, 2, 2.5, -1, huge, -huge} do
      compare(place .. ", p " .. p, name, x:norm(p, along), y:norm(p, along))
    end
    return
  end
  local want, at = x[name](x, along)
  local got, places = y[name](y, along)
  if type(want) == "boolean" then
    assert.equal(want, got, place)
    return
  end
  compare(place, name, want, got)
  if at and type(at) ~= "number" then compare(place, "the second of " .. name, at, places) end
end

local function in_views(shape, dtype, f)
  local x = draw(shape, dtype)
  local y = x:to(D)
  for _, v in ipairs(views) do
    f(v[2](x), v[2](y), ("%s [%d x %d] %s"):format(dtype, shape[1], shape[2], v[1]))
  end
end

-- Longer products leave the range on the way.
local function fits(name, dtype, n)
  return name ~= "prod" or not is_real(dtype) or n <= 40
end

describe("as on the CPU", function()
  before_each(function() luma.manual_seed(7) end)

  for _, dtype in ipairs(oracle.names) do
    it("reductions of every layout: " .. dtype, function()
      for _, shape in ipairs {{1, 2}, {5, 33}, {33, 5}, {70, 65}, {3, 257}, {513, 3}, {2, 2049}} do
        in_views(shape, dtype, function(x, y, place)
          for _, name in ipairs(rows) do
            for dim = 0, 2 do
              if fits(name, dtype, dim == 0 and shape[1] * shape[2] or x.shape[dim]) then
                reduce(place, name, x, y, dim)
              end
            end
          end
        end)
      end
    end)

    it("scans of every layout: " .. dtype, function()
      for _, shape in ipairs {{1, 2}, {5, 33}, {33, 5}, {70, 65}, {3, 257}, {513, 3}, {2, 2049}} do
        in_views(shape, dtype, function(x, y, place)
          for _, name in ipairs(scans) do
            for dim = 1, 2 do compare(place, name, x[name](x, dim), y[name](y, dim)) end
          end
        end)
      end
    end)

    it("over several dims: " .. dtype, function()
      local x = draw({3, 4, 2, 5}, dtype)
      local y = x:to(D)
      for _, v in ipairs {function(t) return t end, function(t) return t:permute({3, 1, 4, 2}) end} do
        for mask = 1, 15 do
          local dims = {}
          for d = 1, 4 do if mask >> (d - 1) & 1 == 1 then dims[#dims + 1] = d end end
          for _, name in ipairs {"sum", "var", "amin", "all", "logsumexp"} do
            local a, b = v(x), v(y)
            compare("dims " .. table.concat(dims, " "), name, a[name](a, dims), b[name](b, dims))
          end
        end
      end
    end)
  end

  it("at every length about a warp, a block and a tile", function()
    for _, dtype in ipairs {"float16", "float32", "int8"} do
      for _, n in ipairs {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256,
                          257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097} do
        local x = draw({n}, dtype)
        local y = x:to(D)
        for _, name in ipairs {"sum", "std", "amax", "argmin", "logsumexp"} do
          reduce(dtype .. " " .. n, name, x, y, 1)
        end
        for _, name in ipairs(scans) do compare(dtype .. " " .. n, name, x[name](x), y[name](y)) end
      end
    end
  end)

  it("along lines that are cut into chunks", function()
    for _, dtype in ipairs {"float16", "float32", "float64", "int32", "uint8"} do
      for _, shape in ipairs {{2, 70000}, {30000, 3}} do
        local x = draw(shape, dtype)
        local y = x:to(D)
        local dim = shape[1] > shape[2] and 1 or 2
        for _, name in ipairs(rows) do
          if fits(name, dtype, 30000) then
            reduce("long " .. dtype, name, x, y, dim)
            reduce("long " .. dtype, name, x:narrow(dim, 2, 29990), y:narrow(dim, 2, 29990), dim)
          end
        end
        for _, name in ipairs(scans) do
          compare("long " .. dtype, name, x[name](x, dim), y[name](y, dim))
        end
      end
    end
  end)

  it("of repeated elements and of one", function()
    for _, dtype in ipairs {"float32", "int16"} do
      local x = draw({1, 5}, dtype)
      local y = x:to(D)
      for _, name in ipairs(rows) do
        for dim = 1, 2 do reduce("expanded", name, x:expand(40, 5), y:expand(40, 5), dim) end
        reduce("0-d", name, x:narrow(2, 2, 1):reshape({}), y:narrow(2, 2, 1):reshape({}), 0)
      end
      for _, name in ipairs(scans) do
        local a, b = x:expand(40, 5), y:expand(40, 5)
        for dim = 1, 2 do compare("expanded", name, a[name](a, dim), b[name](b, dim)) end
      end
    end
  end)
end)

-- ---- what is on the edge ----

local function put(values, dtype) return luma.tensor(values, {dtype = dtype, device = D}) end

it("reductions of no elements", function()
  for _, dtype in ipairs(oracle.names) do
    local x = luma.zeros(0, 3, {dtype = dtype, device = D})
    assert.same({0, 0, 0}, x:sum(1):totable())
    assert.same({1, 1, 1}, x:prod(1):totable())
    assert.same({}, x:sum(2):totable())
    for _, name in ipairs {"mean", "var", "std"} do
      for _, v in ipairs(x[name](x, 1):totable()) do assert(v ~= v) end
    end
    for _, v in ipairs(x:logsumexp(1):totable()) do assert(is_real(dtype) and v == -huge or v == v) end
    assert.is_true(x:all())
    assert.is_false(x:any())
    assert.same({0}, x:max(2).shape)
    assert.same({0, 3}, x:cumsum(1).shape)
    assert.same({0, 3}, x:softmax(2).shape)
  end
end)

it("NaN wins, zeros are equal, the first of equals stands", function()
  for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64", "float8_e4m3"} do
    for _, n in ipairs {2, 33, 300, 9000} do
      for _, at in ipairs {1, 2, n // 2 + 1, n} do
        local x = luma.zeros(n, {dtype = dtype, device = "cpu"})
        x[at] = nan
        if at < n then x[n] = nan end
        x = x:to(D)
        for _, name in ipairs {"max", "min"} do
          local v, i = x[name](x, 1)
          assert(v:item() ~= v:item())
          assert.equal(at, i:item())
          assert(x["a" .. name](x):item() ~= x["a" .. name](x):item())
        end
      end
    end
    assert.equal(1, put({-0.0, 0.0, -0.0}, dtype):argmax():item())
    assert.equal(1, put({0.0, -0.0}, dtype):argmin():item())
  end
  for _, n in ipairs {1, 40, 5000} do
    local x = luma.full({n}, 3, {dtype = "int32", device = "cpu"})
    assert.equal(1, x:to(D):argmax():item())
    x[n] = 4
    x = x:to(D)
    assert.equal(n, x:argmax():item())
    assert.equal(n, x:reshape(n, 1):expand(n, 3):argmax(1):totable()[2])
  end
end)

it("infinities", function()
  local low = put({-huge, -huge}, "float32")
  assert.equal(-huge, low:logsumexp():item())
  assert.is_true(low:softmax():cpu():isnan():all())
  assert.equal(huge, put({1, huge}, "float32"):logsumexp():item())
  local x = luma.full({9000}, -huge, {device = "cpu"})
  x[8000] = 2.0
  assert.equal(2.0, x:to(D):logsumexp():item())
  assert.equal(1.0, x:to(D):softmax()[8000])
  assert.equal(0.0, x:to(D):softmax()[1])
  assert.equal(huge, put({1, huge, 2}, "float64"):sum():item())
end)

it("float sums are kept in double", function()
  local ones = luma.ones(1025, {device = "cpu"})
  ones[1] = 2.0 ^ 24
  assert.equal(16778240.0, ones:to(D):sum():item())
  assert.equal(16778240.0, ones:to(D):cumsum()[1025])
  assert.equal(60000, luma.full({4}, 60000, {dtype = "float16", device = D}):mean():item())
end)

it("results go where out says", function()
  local x = put({{1, 2, 3}, {4, 5, 6}}, "float32")
  local out = luma.zeros(2, 3, {device = D})
  luma.sum(x, 1, {out = out[2]})
  assert.same({{0, 0, 0}, {5, 7, 9}}, out:totable())
  luma.sum(x, 2, {out = out:t()[1]})
  assert.same({{6, 0, 0}, {15, 7, 9}}, out:totable())
  luma.cumsum(x, 1, {out = out:flip(2)})
  assert.same({{3, 2, 1}, {9, 7, 5}}, out:totable())
  local v, i = luma.zeros(3, {device = D}), luma.zeros(3, {dtype = "int64", device = D})
  luma.max(x, 1, {out = {v, i}})
  assert.same({4, 5, 6}, v:totable())
  assert.same({2, 2, 2}, i:totable())
end)

-- ---- the same bits ----

local results = [[
  local luma = require "luma"
  luma.manual_seed(5)
  local hash = 0
  local function add(x)
    local bytes = x:cpu():tobytes()
    for k = 1, #bytes - 3, 4 do hash = hash * 31 + string.unpack("<i4", bytes, k) end
  end
  for _, shape in ipairs {{300, 70}, {2, 20000}, {20000, 2}} do
    local base = luma.randn(shape, {device = "cpu"})
    for _, dtype in ipairs {"float32", "float64", "float16"} do
      local x = base:to(dtype):to("cuda")
      for dim = 1, 2 do
        for _, name in ipairs {"sum", "mean", "var", "logsumexp", "cumsum", "softmax"} do
          add(x[name](x, dim))
        end
      end
    end
  end
  io.write(("%016x"):format(hash))
]]

it("the same bits twice, and in every order of threads", function()
  if not program.is_luma or os.getenv "LUMA_CUDA" ~= "emulate" then return end
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(results)
  file:close()
  local first
  for _, order in ipairs {"forward", "forward", "reverse", "random", "warp"} do
    local out, code = program.shell(("LUMA_EMU_ORDER=%s $LUMA %s"):format(order, path))
    assert(code == 0, out)
    assert.equal(16, #out)
    first = first or out
    assert.equal(first, out, order)
  end
  os.remove(path)
end)
