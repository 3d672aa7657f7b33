-- cuda_views_spec.lua -- operations on views drawn at random, on a CUDA device and on the CPU: up to 8
-- dims of sizes about those of warps and groups, permuted, stepped, turned round, repeated, cut out of
-- more. The same bits; sums nearly.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"

local D = device.cuda
if not D then
  describe("random views on a CUDA device", function()
    it("needs one", function() pending(device.no_cuda) end)
  end)
  return
end

local CASES = 60 -- of each kind
local INTEGERS = {"uint8", "int8", "int16", "int32", "uint32", "int64"}
local DTYPES = {"bool", "float8_e4m3", "float16", "bfloat16", "float32", "float64", table.unpack(INTEGERS)}
local EPS = check.eps
local SIZES = {0, 1, 1, 2, 3, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 65, 127, 257}
local SPECIAL = {0.0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1e-40, 1e-310, 6e-8, 3.4e38, 1e308, 0.5, 2.5, 65504, 448}

local random = math.random
local function pick(list) return list[random(#list)] end

-- Sizes whose product is about `most` at most.
local function shape_of(ndim, most)
  local shape, total = {}, 1
  for d = 1, ndim do
    local n = pick(SIZES)
    if n == 0 and random(4) > 1 then n = 1 end
    if total * n > most then n = random(3) end
    total = total * n
    shape[d] = n
  end
  return shape
end

-- n elements on the CPU. tame: small, and over 0 where whole.
local function draw(dtype, n, tame)
  local o = {dtype = dtype, device = "cpu"}
  if dtype == "bool" then return luma.rand(n, {device = "cpu"}):gt(0.5) end
  if not EPS[dtype] then
    if tame then return luma.randint(1, 9, n, o) end
    local most = (1 << 8 * luma.empty(0, o):itemsize() - 1) - 1
    return luma.randint(dtype:find "^u" and 0 or -most - 1, most, n, o)
  end
  local x = luma.randn(n, {dtype = "float64", device = "cpu"}) * (tame and 0.5 or pick{0.01, 1, 30, 1e4})
  for _ = 1, tame and 0 or math.min(n, 5) do x[random(n)] = pick(SPECIAL) end
  return x:to(dtype)
end

-- A view of a shape: elements on the CPU, and what makes the view of them or of their like elsewhere.
local function view(shape, dtype, tame)
  local ndim, plain, total = #shape, random(4) == 1, 1
  local order, base, want, cut = {}, {}, {}, {}
  for d = 1, ndim do order[d] = d end
  for d = plain and 1 or ndim, 2, -1 do
    local other = random(d)
    order[d], order[other] = order[other], order[d]
  end
  for d = 1, ndim do
    local n, kind = shape[order[d]], (plain or total > 20000) and 1 or random(5)
    want[d], base[d] = n, n
    if n == 0 then kind = 1 end
    if kind == 2 then
      cut[d] = {n, 1, -1}
    elseif kind == 3 then
      local first, step = random(3), random(3)
      cut[d] = {first, first + (n - 1) * step, step}
      base[d] = first + (n - 1) * step + random(2) - 1
    elseif kind == 4 then
      base[d] = 1
    end
    total = total * base[d]
  end
  local front, back = random(4) - 1, {}
  for d = 1, ndim do back[order[d]] = d end
  return {flat = draw(dtype, total + front, tame), make = function(flat)
    local x = flat:narrow(1, 1 + front, total):reshape(base)
    for d, c in pairs(cut) do x = x:slice(d, table.unpack(c)) end
    if ndim > 0 then x = x:expand(want):permute(back) end
    return x
  end}
end

local function bits(x)
  if EPS[x.dtype] then
    x = luma.where(x:isnan(), luma.full({}, 0 / 0, {dtype = x.dtype, device = "cpu"}), x)
  end
  return x:tobytes()
end

-- f of all views on both devices. ulps: of the largest, what floats may differ by.
local function compare(what, ulps, views, f)
  local here, there = {}, {}
  for k, v in ipairs(views) do here[k], there[k] = v.make(v.flat), v.make(v.flat:to(D)) end
  local want = table.pack(pcall(f, table.unpack(here)))
  local got = table.pack(pcall(function(...)
    local results = table.pack(f(...))
    luma.cuda.synchronize(D)
    return table.unpack(results, 1, results.n)
  end, table.unpack(there)))
  if not want[1] or not got[1] then
    if want[1] == got[1] then return end
    error(("%s: %s on the CPU, %s on the device"):format(what, tostring(want[2]), tostring(got[2])), 0)
  end
  for k = 2, want.n do
    local a, b = want[k], got[k]
    if type(a) == "boolean" then -- all and any of everything
      a, b = luma.tensor(a, {device = "cpu"}), luma.tensor(b, {device = "cpu"})
    end
    b = b:cpu()
    local fine = a.dtype == b.dtype and luma.equal(luma.tensor(a.shape, {device = "cpu"}),
      luma.tensor(b.shape, {device = "cpu"})) and bits(a) == bits(b)
    if not fine and ulps and EPS[a.dtype] and a:numel() > 0 then
      local x, y = a:to("float64"), b:to("float64")
      local most = math.max(x:abs():amax():item(), 1e-300)
      fine = x:allclose(y, {rtol = 0, atol = ulps * EPS[a.dtype] * most, equal_nan = true})
    end
    if not fine then
      error(("%s: result %d is %s, on the device %s"):format(what, k - 1, luma.show(a), luma.show(b)), 0)
    end
  end
end

local function text(...)
  local words = table.pack(...)
  for k = 1, words.n do
    words[k] = type(words[k]) == "table" and "[" .. table.concat(words[k], " ") .. "]" or tostring(words[k])
  end
  return table.concat(words, " ")
end

-- ---- kinds of operations ----

local TAME = {floor_div = 1, trunc_div = 1, remainder = 1, fmod = 1, lshift = 1, rshift = 1, pow = 1}
local SUMS = {sum = 1, prod = 1, mean = 1, logsumexp = 1}
local rows, reductions = {}, {}
for _, op in ipairs(luma.ops) do
  if op.inputs > 0 then rows[#rows + 1] = op end
  -- those of equal elements are rounding errors and nothing else
  if op.row == "reduce" and op.name ~= "var" and op.name ~= "std" then reductions[#reductions + 1] = op end
end

local function broadcast(shape)
  local s = table.move(shape, 1, #shape, 1, {})
  for d = 1, #s do if random(5) == 1 then s[d] = 1 end end
  if #s > 0 and random(5) == 1 then table.remove(s, 1) end
  return s
end

local kinds = {}

function kinds.elementwise()
  local op, shape, dtype, views = pick(rows), shape_of(random(0, 8), 2000), pick(DTYPES), {}
  local count = op.inputs
  for k = 1, count do
    local other = random(5) == 1 and pick(DTYPES) or dtype
    if count == 3 and k == 1 then other = "bool" end
    views[k] = view(k > 1 and broadcast(shape) or shape, other, k == 2 and TAME[op.name] ~= nil)
  end
  local p = op.row == "unary_p" and {random(), 3} or {}
  compare(text(op.name, dtype, shape), nil, views, function(x, y, z)
    if count == 1 then return luma[op.name](x, table.unpack(p)) end
    return luma[op.name](x, y, z)
  end)
end

function kinds.reductions()
  local op, shape, dtype, dims = pick(reductions), shape_of(random(6), 8000), pick(DTYPES), {}
  for d = 1, #shape do if random(2) == 1 then dims[#dims + 1] = d end end
  if op.name:find "arg" then dims = random(#shape) elseif #dims == 0 then dims = nil end
  compare(text(op.name, dtype, shape, dims or "all"), SUMS[op.name] and (op.name == "prod" and 4000 or 40),
    {view(shape, dtype, SUMS[op.name] ~= nil)}, function(x) return luma[op.name](x, dims) end)
end

function kinds.conversions()
  local shape, from, to = shape_of(random(0, 8), 2000), pick(DTYPES), pick(DTYPES)
  compare(text(from, "to", to, shape), nil, {view(shape, from), view(shape, to)}, function(x, y)
    return x:to(to), luma.zeros_like(y):copy_(x), x:contiguous()
  end)
end

function kinds.joins()
  local shape, dtype = shape_of(random(8), 2000), pick(DTYPES)
  local d = random(#shape)
  compare(text("cat", dtype, shape, d), nil, {view(shape, dtype), view(shape, dtype)}, function(x, y)
    return luma.cat({x, y}, d), x:roll(1, d), x:flip{d}:clone(), x:reshape(-1)
  end)
end

function kinds.lines()
  local shape, dtype, name = shape_of(random(5), 8000), pick(DTYPES),
    pick{"cumsum", "softmax", "log_softmax", "cummax", "cummin"}
  local d = random(#shape)
  compare(text(name, dtype, shape, d), 40, {view(shape, dtype, true)}, function(x)
    return luma[name](x, d)
  end)
end

function kinds.order()
  local shape, dtype, descending = shape_of(random(4), 8000), pick(DTYPES), random(2) == 1
  local d = random(#shape)
  if shape[d] == 0 then return end
  local k = random(shape[d])
  compare(text("sort", dtype, shape, d, k), nil, {view(shape, dtype, random(2) == 1)}, function(x)
    local a, i = x:sort(d, {descending = descending})
    local b, j = x:topk(k, d)
    local c, l = x:max(d)
    return a, i, b, j, c, l, x:argsort(d, {descending = descending})
  end)
end

function kinds.places()
  local shape, dtype, n = shape_of(random(5), 2000), pick(DTYPES), random(20)
  local d = random(#shape)
  if shape[d] == 0 or shape[d] > 127 then return end
  local some = table.move(shape, 1, #shape, 1, {})
  some[d] = n
  local whole = pick{"int64", "int32", "uint8", "int16"}
  local index = {flat = luma.randint(1, shape[d], n, {dtype = whole, device = "cpu"}),
    make = function(x) return x end}
  local views = {view(shape, dtype), index, view(shape, "bool"), view(some, dtype, true)}
  compare(text("index", dtype, shape, d, whole, n), 8, views, function(x, i, m, y)
    local key, z, w = {}, x:clone(), x:clone()
    for k = 1, #shape do key[k] = k == d and i or ":" end
    z[key] = y
    w[m] = 1
    return x:index_select(d, i), x[key], z, w, x:index_copy(d, i, y), x:masked_select(m), x:nonzero(),
      dtype == "bool" and z or x:index_add(d, i, y)
  end)
end

function kinds.products()
  local sizes, batch = {1, 2, 3, 5, 7, 16, 17, 33, 64, 65, 100}, shape_of(random(0, 2), 6)
  local dtype, m, k, n = pick(DTYPES), pick(sizes), pick(sizes), pick(sizes)
  local a, b = broadcast(batch), broadcast(batch)
  for _, s in ipairs{a, b} do
    s[#s + 1] = s == a and m or k
    s[#s + 1] = s == a and k or n
  end
  compare(text("matmul", dtype, a, b), 600, {view(a, dtype, true), view(b, dtype, true)}, function(x, y)
    return x:matmul(y)
  end)
end

describe("random views on a CUDA device", function()
  for name, run in pairs(kinds) do
    it(name, function()
      math.randomseed(#name, 5)
      luma.manual_seed(#name)
      for _ = 1, CASES do run() end
    end)
  end
end)
