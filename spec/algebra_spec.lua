-- algebra_spec.lua -- products made of others (inner, outer, kron, cross, addmm and its kin, powers and
-- chains of matrices) against plain loops: every dtype and layout, broadcasting, out, in place, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local seeded = require "seed".seeded
local equation = require "equation"
local layouts = require "layouts"
local model = require "model"
local oracle = require "oracle"

local numbers = {}
for _, name in ipairs(oracle.names) do
  if name ~= "bool" then numbers[#numbers + 1] = name end
end
local nan = 0 / 0

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

-- Whole numbers of -most .. most: the tensor, and {shape =, values =}.
local function draw(random, dtype, shape, most)
  local values = {}
  for i = 1, numel(shape) do values[i] = random(dtype:find "^u" and 0 or -most, most) end
  return equation.tensor(random, shape, values, dtype), {shape = shape, values = values}
end

local function same(want, shape, dtype, y)
  assert.equal(dtype, y.dtype)
  assert.same(shape, y.shape)
  if #want > 0 then want = layouts.flat(luma.tensor(want, "int64"):to(dtype)) end
  assert.same(want, layouts.flat(y))
end

-- Every dtype a few times over, with a stream of whole numbers.
local function each(f)
  for i, dtype in ipairs(numbers) do
    for seed = 1, 4 do f(dtype, model.random(100 * i + seed), seed) end
  end
end

it("outer, inner, vdot", function()
  each(function(dtype, random)
    local v, a = draw(random, dtype, {5}, 2)
    local w, b = draw(random, dtype, {3}, 2)
    local _, want = equation.einsum("i,j->ij", {a, b})
    same(want, {5, 3}, dtype, v:outer(w))
    local x, c = draw(random, dtype, {2, 4}, 1)
    local y, d = draw(random, dtype, {3, 2, 4}, 1)
    _, want = equation.einsum("ai,bci->abc", {c, d})
    same(want, {2, 3, 2}, dtype, luma.inner(x, y))
    local u, e = draw(random, dtype, {5}, 1)
    _, want = equation.einsum("i,i->", {e, a})
    same(want, {}, dtype, luma.vdot(u, v))
  end)
  check.tensor({2, 4}, "float32", luma.inner(luma.tensor(2), luma.tensor {1, 2}))
  check.raises("bad argument #1 to 'outer' ([2 x 2]: a vector (1 dim) expected)", function()
    return luma.outer(luma.ones(2, 2), luma.ones(2))
  end)
  check.raises("[2 x 3] by [4]: last sizes 3 and 4 differ", function()
    return luma.inner(luma.ones(2, 3), luma.ones(4))
  end)
  check.raises("bool has no products", function() return luma.outer(luma.ones(2):gt(0), luma.ones(2)) end)
end)

-- By its definition, of shapes of one length.
local function kron(a, b)
  local n, shape, out = #a.shape, {}, {}
  for d = 1, n do shape[d] = a.shape[d] * b.shape[d] end
  for flat = 0, numel(shape) - 1 do
    local rest, i, j, si, sj = flat, 0, 0, 1, 1
    for d = n, 1, -1 do
      local at = rest % shape[d]
      rest = rest // shape[d]
      i, j = i + at // b.shape[d] * si, j + at % b.shape[d] * sj
      si, sj = si * a.shape[d], sj * b.shape[d]
    end
    out[flat + 1] = a.values[i + 1] * b.values[j + 1]
  end
  return shape, out
end

it("kron of any dims", function()
  local shapes = {{{2, 3}, {3, 2}}, {{3}, {4}}, {{1, 3}, {2, 1}}, {{2, 2, 2}, {2, 1, 3}}, {{0, 2}, {3, 2}},
                  {{2, 1, 2, 2, 2}, {2, 2, 2, 1, 2}}, {{2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}},
                  {{1, 2, 1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1, 2, 1}}, {{}, {}}}
  for i, pair in ipairs(shapes) do
    local dtype = numbers[i % #numbers + 1]
    local random = model.random(i)
    local x, a = draw(random, dtype, pair[1], 2)
    local y, b = draw(random, dtype, pair[2], 2)
    local shape, want = kron(a, b)
    same(want, shape, dtype, luma.kron(x, y))
  end
  check.tensor({{1, 2, 2, 4}}, "float32", luma.kron(luma.tensor {1, 2}, luma.tensor {{1, 2}}))
  check.raises("too large", function()
    return luma.kron(luma.ones(1):expand(1 << 40), luma.ones(1):expand(1 << 40))
  end)
end)

it("cross along any dim, of shapes that broadcast", function()
  each(function(dtype, random, seed)
    local shape = ({{3}, {2, 3}, {3, 2}, {2, 3, 4}})[seed]
    local dim = ({1, 2, 1, 2})[seed]
    local x, a = draw(random, dtype, shape, 2)
    local y, b = draw(random, dtype, shape, 2)
    local step = 1
    for d = dim + 1, #shape do step = step * shape[d] end
    local want = {}
    for flat = 0, numel(shape) - 1 do
      local i = flat // step % 3
      local base = flat - i * step + 1
      local j, k = base + (i + 1) % 3 * step, base + (i + 2) % 3 * step
      want[flat + 1] = a.values[j] * b.values[k] - a.values[k] * b.values[j]
    end
    same(want, shape, dtype, luma.cross(x, y, dim))
    same(want, shape, dtype, luma.cross(x, y))
    same(want, shape, dtype, luma.cross(x, y, dim, {out = x}))
  end)
  check.tensor({{0, 0, 1}, {0, 0, 2}}, "float32",
    luma.cross(luma.tensor {1, 0, 0}, luma.tensor {{0, 1, 0}, {0, 2, 0}}, -1))
  check.raises("bad argument #1 to 'cross' ([2] has no dim of size 3)", function()
    return luma.cross(luma.ones(2), luma.ones(2))
  end)
  check.raises("bad argument #3 to 'cross' (dim 1 of [2 x 3] has not size 3)", function()
    return luma.cross(luma.ones(2, 3), luma.ones(2, 3), 1)
  end)
end)

local kin = {
  addmm = {"ij,jk->ik", {2, 5}, {5, 3}, {2, 3}},
  addmv = {"ij,j->i", {4, 5}, {5}, {4}},
  addr = {"i,j->ij", {4}, {3}, {4, 3}},
  baddbmm = {"bij,bjk->bik", {2, 3, 4}, {2, 4, 2}, {2, 3, 2}},
  addbmm = {"bij,bjk->ik", {2, 3, 4}, {2, 4, 2}, {3, 2}},
}

it("beta x + alpha times a product", function()
  each(function(dtype, random, seed)
    for name, k in pairs(kin) do
      local a, la = draw(random, dtype, k[2], 1)
      local b, lb = draw(random, dtype, k[3], 1)
      local shape = k[4]
      -- x of the whole shape, or of the last dim, which broadcasts
      local narrow = seed % 2 == 0
      local x, lx = draw(random, dtype, narrow and {shape[#shape]} or shape, 2)
      local _, product = equation.einsum(k[1], {la, lb})
      for _, options in ipairs {{}, {beta = 2}, {alpha = 2}, {beta = 0, alpha = 2},
                                {beta = 3, alpha = 1.0}} do
        local want = {}
        for i, p in ipairs(product) do
          local at = narrow and (i - 1) % shape[#shape] + 1 or i
          want[i] = math.tointeger((options.beta or 1) * lx.values[at] + (options.alpha or 1) * p)
        end
        same(want, shape, dtype, luma[name](x, a, b, options))
        if not narrow then
          local y = x:clone()
          assert.equal(y, y[name .. "_"](y, a, b, options))
          same(want, shape, dtype, y)
          y = x:clone():transpose(1, -1):force_contiguous():transpose(1, -1)
          local into = {out = y}
          for key, v in pairs(options) do into[key] = v end
          luma[name](y, a, b, into)
          same(want, shape, dtype, y)
        end
      end
    end
  end)
end)

it("beta 0 does not count x; numbers keep integers; kinds", function()
  local a, b = luma.ones(2, 3), luma.ones(3, 2)
  check.tensor({{3, 3}, {3, 3}}, "float32", luma.full({2, 2}, nan):addmm(a, b, {beta = 0}))
  local undefined = luma.full({2, 2}, nan)
  check.tensor({{6, 6}, {6, 6}}, "float32", undefined:addmm_(a, b, {beta = 0, alpha = 2}))
  check.tensor({4, 4}, "float64", luma.ones(2, {dtype = "float64"}):addmv(a, luma.ones(3)))
  local half = luma.ones(2, 2, {dtype = "float16"})
  half:addmm_(a, b)
  check.tensor({{4, 4}, {4, 4}}, "float16", half)
  local whole = luma.ones(2, 2, {dtype = "int32"})
  check.tensor({{4, 4}, {4, 4}}, "float32", whole:addmm(a, b))
  check.raises("(int32 does not hold float32 results)", function()
    return whole:addmm_(a, b)
  end)
  check.raises("alpha", function()
    return whole:addmm(a:to("int32"), b:to("int32"), {alpha = 0.5})
  end)
  check.raises("bad argument #1 to 'addmm' ([3] does not broadcast to [2 x 2])", function()
    return luma.addmm(luma.ones(3), a, b)
  end)
  check.raises("[2] in place, the result is [2 x 2]", function() return luma.addmm_(luma.ones(2), a, b) end)
  check.raises("bad argument #3 to 'addmm' ([2 x 3] by [2 x 3]: inner sizes 3 and 2 differ)", function()
    return luma.addmm(luma.ones(2), a, a)
  end)
  check.raises("bad argument #2 to 'addmv' ([3]: a matrix (2 dims) expected)", function()
    return luma.addmv(luma.ones(2), luma.ones(3), luma.ones(3))
  end)
  check.raises("batch sizes 2 and 3 differ", function()
    return luma.baddbmm(luma.ones(1), luma.ones(2, 1, 1), luma.ones(3, 1, 1))
  end)
  check.raises("bad argument #2 to 'addbmm' (bool", function()
    return luma.addbmm(luma.ones(1), luma.ones(2, 1, 1):gt(0), luma.ones(2, 1, 1))
  end)
end)

it("beta x + alpha times a product of small floats is rounded once", seeded(function()
  luma.manual_seed(math.random(1 << 30))
  for _, dtype in ipairs {"float16", "bfloat16", "float8_e4m3"} do
    for name, k in pairs(kin) do
      for trial = 1, 20 do
        -- float8 of such size that no sum overflows
        local function small(shape) return luma.randn(shape, {dtype = "float64"}):mul(2):to(dtype) end
        local a, b, x = small(k[2]), small(k[3]), small(k[4])
        local options = ({{}, {beta = 3}, {alpha = 1.5}, {beta = 0.7, alpha = -1}})[trial % 4 + 1]
        local exact = luma[name](x:to("float32"), a:to("float32"), b:to("float32"), options)
        local want = exact:to(dtype)
        assert.equal(tostring(want), tostring(luma[name](x, a, b, options)))
        local y = x:clone()
        y[name .. "_"](y, a, b, options)
        assert.equal(tostring(want), tostring(y))
      end
    end
  end
end))

it("matrix_power by its definition", function()
  each(function(dtype, random, seed)
    local shape = ({{3, 3}, {2, 2, 2}, {1, 1}, {2, 0, 0}})[seed]
    local n = shape[#shape]
    local x, a = draw(random, dtype, shape, 1)
    for power = 0, 7 do
      local want = {}
      for base = 0, numel(shape) - 1, math.max(n * n, 1) do
        local m = {}
        for i = 1, n * n do m[i] = (i - 1) % (n + 1) == 0 and 1 or 0 end
        for _ = 1, power do
          local next = {}
          for i = 0, n - 1 do
            for j = 0, n - 1 do
              local sum = 0
              for k = 0, n - 1 do sum = sum + m[i * n + k + 1] * a.values[base + k * n + j + 1] end
              next[i * n + j + 1] = sum
            end
          end
          m = next
        end
        table.move(m, 1, n * n, #want + 1, want)
      end
      local most = 0
      for _, v in ipairs(want) do most = math.max(most, math.abs(v)) end
      if most <= 16 then same(want, shape, dtype, luma.matrix_power(x, power)) end
    end
  end)
  local f = luma.tensor({{1, 1}, {1, 0}}, "int64")
  check.tensor({{165580141, 102334155}, {102334155, 63245986}}, "int64", f:matrix_power(40))
  check.tensor({{1, 0}, {0, 1}}, "int64", luma.matrix_power(f:eq(7):to("int64"), 0, {out = f}))
  local one = luma.ones(1, 1)
  local power = one:matrix_power(1)
  power:fill_(5)
  assert.equal(1, one:item())
  assert.equal(1, one:matrix_power(math.maxinteger):item())
  check.raises("bad argument #2 to 'matrix_power' (-1: negative powers need an inverse", function()
    return luma.matrix_power(one, -1)
  end)
  check.raises("bad argument #1 to 'matrix_power' ([2 x 3]: square matrices expected)", function()
    return luma.matrix_power(luma.ones(2, 3), 2)
  end)
end)

it("chain_matmul: the product, whatever the order", function()
  each(function(dtype, random, seed)
    local sizes = ({{2, 3}, {1, 4, 2}, {2, 1, 3, 2}, {1, 2, 2, 1, 2}})[seed]
    local xs, lists, text = {}, {}, {}
    for i = 1, #sizes - 1 do
      xs[i], lists[i] = draw(random, dtype, {sizes[i], sizes[i + 1]}, 1)
      text[i] = ("abcdef"):sub(i, i + 1)
    end
    local shape, want = equation.einsum(
      table.concat(text, ",") .. "->a" .. ("abcdef"):sub(#sizes, #sizes), lists)
    same(want, shape, dtype, luma.chain_matmul(table.unpack(xs)))
    same(want, shape, dtype, luma.chain_matmul(xs))
    same(want, shape, dtype, luma.chain_matmul(xs, {out = luma.zeros(shape, {dtype = dtype})}))
  end)
  check.raises("#3 to 'chain_matmul' ([3 x 4] by [2 x 3]: inner sizes 4 and 2 differ)", function()
    return luma.chain_matmul(luma.ones(2, 3), luma.ones(3, 4), luma.ones(2, 3))
  end)
  check.raises("bad argument #2 to 'chain_matmul' ([4]: a matrix (2 dims) expected)", function()
    return luma.chain_matmul(luma.ones(3, 4), luma.ones(4))
  end)
  check.raises("the tensor was released", function()
    local x = luma.ones(2, 2)
    x:free()
    return luma.chain_matmul(luma.ones(2, 2), x)
  end)
end)
