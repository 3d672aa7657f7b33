-- cuda_far_spec.lua -- views whose elements lie more than 2^31 bytes apart, where offsets take 64 bits,
-- through every family of kernels, against the CPU. Only pages that are touched take memory.
local luma = require "luma"

if not luma.cuda.is_available() then
  describe("far apart on CUDA", function()
    pending("needs a device: LUMA_CUDA=emulate gives one")
  end)
  return
end

local D = luma.cuda.current()
local SHAPE = {2, 5, 33}

-- Memory for elements 2^31 bytes apart, which then go by `order` in the other two dims.
local function far(dtype, order)
  local step = (1 << 31) // luma.empty(0, {dtype = dtype, device = "cpu"}):itemsize()
  local r, c = SHAPE[2], SHAPE[3]
  local flat = luma.empty(step + 2 * r * c + 64, {dtype = dtype, device = D})
  if order == "turned" then return flat:as_strided(SHAPE, {step, 1, r}) end
  if order == "offset" then return flat:as_strided(SHAPE, {step, c + 1, 1}, 4) end
  if order == "stepped" then return flat:as_strided(SHAPE, {step, 2 * c, 2}) end
  return flat:as_strided(SHAPE, {step, c, 1})
end

local function draw(dtype)
  local x = luma.rand(SHAPE, {device = "cpu", dtype = "float64"})
  return dtype == "bool" and x:gt(0.5) or (x * 8):to(dtype)
end

-- What f gives for v on the device is what it gives for x on the CPU; floats: nearly.
local function same(what, f, x, v, ...)
  local more, moved = {...}, {}
  for i, t in ipairs(more) do moved[i] = t:to(D) end
  local want, got = table.pack(f(x, table.unpack(more))), table.pack(f(v, table.unpack(moved)))
  for i = 1, want.n do
    local a, b = want[i], got[i]:cpu()
    assert.equal(a.dtype, b.dtype, what)
    local fine = a:tobytes() == b:tobytes()
    if not fine and a.dtype:find "float" then fine = a:allclose(b, {rtol = 1e-5, atol = 1e-5}) end
    if not fine then error(("%s: result %d is %s, not %s"):format(what, i, luma.show(b), luma.show(a)), 2) end
  end
end

local reads = {
  copies = function(x) return x:contiguous(), x:flip{1, 3}:clone(), x:to("float64"), x:to("uint8") end,
  elementwise = function(x) return x + x, x:eq(x:flip{1}), luma.where(x:ne(0), x, 1) end,
  reductions = function(x)
    return x:sum(1), x:amax{1, 3}, x:argmin(1), x:any{1, 2}, x:to("float32"):var(1), x:mean(2)
  end,
  lines = function(x) return x:cumsum(1), x:softmax(1), x:log_softmax(3), x:logsumexp{1, 3} end,
  running = function(x)
    local a, b = x:cummax(1)
    local c, d = x:cummin(3)
    return a, b, c, d, x:sign():cumprod(1), x:logcumsumexp(3), x:diff(1, 1)
  end,
  order = function(x)
    local a, b = x:sort(1)
    local c, d = x:topk(2, 3)
    return a, b, c, d, x:nonzero(), x:masked_select(x:ne(0))
  end,
  places = function(x, i) return x:index_select(1, i), x[{i, i}], x[{i, ":", i}], x:take(i * 130) end,
  products = function(x)
    if x.dtype == "bool" then return x:clone() end
    return x:matmul(x:transpose(2, 3)), x:permute(2, 1, 3):matmul(x:permute(2, 3, 1))
  end,
}
local writes = {
  copies = function(x, y) x:copy_(y:flip{1, 2}) end,
  conversions = function(x, y) x:copy_(y:to("float64")) end,
  fill = function(x) x:fill_(1) end,
  elementwise = function(x, y)
    local f = x.dtype == "bool" and luma.logical_or or luma.maximum
    f(y, y:flip{1}, {out = x})
  end,
  places = function(x, y, i) x[{i:narrow(1, 1, 2)}] = y end,
  elements = function(x, _, i) x[{i, ":", i}] = 1 end,
  masks = function(x, y) x[y:ne(0)] = 0 end,
  products = function(x, y)
    if x.dtype == "bool" then return end
    luma.matmul(y, luma.ones(SHAPE[3], SHAPE[3], {dtype = y.dtype, device = y.device}), {out = x})
  end,
}

describe("far apart on CUDA", function()
  local i = luma.tensor({2, 1, 2, 2}, {dtype = "int64", device = "cpu"})
  for _, dtype in ipairs{"bool", "uint8", "float16", "float32", "int64"} do
    for _, order in ipairs{"plain", "turned", "offset", "stepped"} do
      it(dtype .. ", " .. order, function()
        luma.manual_seed(#dtype)
        local x, y, v = draw(dtype), draw(dtype), far(dtype, order)
        v:copy_(x)
        for name, f in pairs(reads) do same(name, f, x, v, i) end
        for name, f in pairs(writes) do
          v:copy_(x)
          same("written: " .. name, function(to, from, at)
            if not rawequal(to, v) then to = to:clone() end
            f(to, from, at)
            return to
          end, x, v, y, i)
        end
      end)
    end
  end
  teardown(function()
    collectgarbage()
    luma.empty_cache(D)
  end)
end)
