-- cuda_grid_spec.lua -- every operation that has kernels, on every dtype and in a few layouts, on a
-- CUDA device and on the CPU: the same bits, or within a few ulp for sums and products. Small, so
-- that it runs in every flavour and order of the emulated device, and wide, so that it launches
-- every kernel.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local oracle = require "oracle"

if not luma.cuda.is_available() then
  describe("the grid on CUDA", function()
    pending("needs a device: LUMA_CUDA=emulate gives one")
  end)
  return
end

-- ---- both devices ----

-- f(device) gives tensors or numbers, or raises. What it gives, on the CPU.
local function outcome(f, device)
  local results = table.pack(pcall(function()
    local list = table.pack(f(device))
    for i = 1, list.n do
      if luma.is_tensor(list[i]) then list[i] = list[i]:cpu() end
    end
    return table.unpack(list, 1, list.n)
  end))
  return results
end

-- The greatest distance in units of the dtype's eps, against the greatest magnitude.
local eps = check.eps
local function near(a, b, ulps)
  if not eps[a.dtype] then return a == b end
  local tolerance = ulps * eps[a.dtype]
  return a:to("float64"):allclose(b:to("float64"), {rtol = tolerance, atol = tolerance,
    equal_nan = true})
end

-- The bits of a tensor whose NaN, which have a sign of no meaning, are all one.
local function bits(x)
  return (eps[x.dtype] and x:masked_fill(x:isnan(), 0 / 0) or x):tobytes()
end

-- The same on both devices: the same error, or the same dtypes, shapes and bits (ulps: so close).
local function same(what, f, ulps)
  local want, got = outcome(f, "cpu"), outcome(f, "cuda")
  if want[1] ~= got[1] then
    error(("%s: %s on the CPU, %s on the device"):format(what, tostring(want[2]), tostring(got[2])), 2)
  end
  if not want[1] then return false end
  for i = 2, want.n do
    local a, b = want[i], got[i]
    local fine = math.type(a) == math.type(b) and (a == b or (a ~= a and b ~= b))
    if luma.is_tensor(a) then
      assert.equal(a.dtype, b.dtype, what)
      assert.same(a.shape, b.shape, what)
      fine = bits(a) == bits(b) or (ulps and near(a, b, ulps))
    end
    if not fine then
      error(("%s: result %d is %s on the CPU, %s on the device"):format(what, i - 1,
        luma.is_tensor(a) and luma.show(a) or tostring(a),
        luma.is_tensor(b) and luma.show(b) or tostring(b)), 2)
    end
  end
  return true
end

-- ---- inputs ----

local function list_of(dtype, n, lo, hi, seed, specials)
  local values = oracle.values(dtype, n, lo, hi, seed, specials)
  if dtype == "bool" then
    for i, v in ipairs(values) do values[i] = v ~= 0 end
  end
  return values
end

local function make(dtype, shape, lo, hi, seed, specials)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  if n == 0 then return luma.zeros(shape, {dtype = dtype, device = "cpu"}) end
  return luma.tensor(list_of(dtype, n, lo, hi, seed, specials), {dtype = dtype, device = "cpu"})
    :reshape(shape)
end

-- x on the device, in a layout of its own.
local ways = {
  plain = function(x) return x end,
  stepped = function(x) return luma.stack({x, x}, -1):select(-1, 1) end,
  offset = function(x) return luma.cat({x, x}, -1):narrow(-1, 2, x.shape[x.ndim] - 1) end,
  turned = function(x)
    return x.ndim > 1 and x:transpose(1, -1):contiguous():transpose(1, -1) or x:flip(1)
  end,
}
local function on(device, x, way) return ways[way or "plain"](x:to(device)) end
local names = {"plain", "stepped", "offset", "turned"}

local integers_only = {floor_div = true, trunc_div = true, remainder = true, fmod = true,
  lshift = true, rshift = true, pow = true}

describe("elementwise on CUDA", function()
  for _, op in ipairs(luma.ops) do
    local arity = op.inputs
    if arity > 0 then
      it(op.name, function()
        local f, p = luma[op.name], op.row == "unary_p" and {1, 4} or {}
        for k, dtype in ipairs(check.dtypes) do
          local lo, hi = op.lo, op.hi
          local tame = integers_only[op.name] and not dtype:find "float"
          local x = make(dtype, {3, 7}, lo, hi, k, not tame)
          local y = make(dtype, {3, 7}, tame and 1 or lo, tame and 3 or hi, k + 50)
          local mask = make("bool", {3, 7}, 0, 1, k)
          for i, way in ipairs(names) do
            local other = names[i % #names + 1]
            local function arguments(device, a, b, c)
              if arity == 3 then return on(device, mask, a), on(device, x, b), on(device, y, c) end
              if arity == 2 then return on(device, x, a), on(device, y, b) end
              return on(device, x, a), table.unpack(p)
            end
            if way ~= "offset" and other ~= "offset" then
              same(("%s of %s %s"):format(op.name, dtype, way), function(device)
                return f(arguments(device, way, other, way))
              end)
            end
            same(("%s of %s, all %s"):format(op.name, dtype, way), function(device)
              return f(arguments(device, way, way, way))
            end)
          end
          if arity == 2 then
            same(op.name .. " with a row of " .. dtype, function(device)
              return f(on(device, x), on(device, y):select(1, 2))
            end)
            same(op.name .. " with a number and " .. dtype, function(device)
              return f(on(device, x), 2)
            end)
          end
        end
      end)
    end
  end

  it("of two dtypes", function()
    for i, a in ipairs(check.dtypes) do
      for j, b in ipairs(check.dtypes) do
        local x, y = make(a, {3, 5}, -3, 3, i), make(b, {3, 5}, -3, 3, j)
        same(a .. " + " .. b, function(device) return on(device, x) + on(device, y) end)
      end
    end
  end)
end)

describe("copies on CUDA", function()
  it("cast every dtype to every other", function()
    for i, from in ipairs(check.dtypes) do
      local x = make(from, {4, 17}, -300, 300, i, true)
      for _, to in ipairs(check.dtypes) do
        for _, way in ipairs(names) do
          same(("%s to %s, %s"):format(from, to, way), function(device)
            return on(device, x, way):to(to)
          end)
        end
      end
    end
  end)

  it("move any layout to any other", function()
    for i, dtype in ipairs(check.dtypes) do
      local x = make(dtype, {5, 6, 7}, -9, 9, i)
      for _, from in ipairs(names) do
        same(dtype .. " of " .. from, function(device)
          local v = on(device, x, from)
          local y = v:permute(3, 1, 2):contiguous()
          local z = luma.zeros(v.shape, {dtype = dtype, device = device}):flip(2)
          z:copy_(v)
          return y, z, v:flip({1, 3}):clone(), v:narrow(2, 2, 3):contiguous()
        end)
      end
      same("joins of " .. dtype, function(device)
        local v = on(device, x)
        return luma.cat({v, v}, 2), luma.stack({v, v}, 3), v:tile(2, 1, 2), v:roll(3, 2),
          v:pad({1, 2}), v:tril(), v:triu({diagonal = 1})
      end)
      same("fill of " .. dtype, function(device)
        local z = luma.zeros({4, 33}, {dtype = dtype, device = device})
        z:slice(2, 2, 33, 3):fill_(1)
        z:t():narrow(1, 3, 2):fill_(1)
        return z, luma.full({65}, 1, {dtype = dtype, device = device})
      end)
    end
    same("a big transpose", function(device)
      return luma.range(1, 70 * 90, {device = device}):reshape(70, 90):t():contiguous()
    end)
  end)
end)

describe("reductions and scans on CUDA", function()
  local shapes = {{7}, {3, 5}, {300}, {4, 70}, {70, 4}, {2, 3, 40}, {9000}, {2, 0}}
  for _, op in ipairs(luma.ops) do
    if op.row == "reduce" then
      it(op.name, function()
        for i, dtype in ipairs(check.dtypes) do
          for j, shape in ipairs(shapes) do
            local x = make(dtype, shape, op.name == "prod" and 1 or -2, op.name == "prod" and 1.01 or 2,
              i + j)
            for dim = 0, #shape do
              for _, way in ipairs {"plain", "turned"} do
                local d = dim > 0 and dim or nil
                same(("%s of %s [%s], dim %d, %s"):format(op.name, dtype, table.concat(shape, " "), dim,
                  way), function(device)
                  return luma[op.name](on(device, x, way), d)
                end, 64)
              end
            end
          end
        end
      end)
    end
  end

  it("max and min with positions, NaN among them", function()
    for i, dtype in ipairs(check.dtypes) do
      local x = make(dtype, {9, 40}, -5, 5, i, true)
      for dim = 1, 2 do
        same(dtype, function(device)
          local v = on(device, x)
          local a, b = v:max(dim)
          local c, d = v:min(dim)
          return a, b, c, d, v:argmax(dim), v:argmin(dim), v:argmax()
        end)
      end
    end
  end)

  for _, name in ipairs {"cumsum", "softmax", "log_softmax", "cummax", "logcumsumexp"} do
    it(name, function()
      for i, dtype in ipairs(check.dtypes) do
        for j, shape in ipairs {{7}, {3, 5}, {4, 300}, {300, 4}, {2, 3, 40}, {9000}} do
          local x = make(dtype, shape, name == "cumsum" and 0 or -2, 2, i + j)
          for dim = 1, #shape do
            for _, way in ipairs {"plain", "turned"} do
              same(("%s of %s [%s], dim %d, %s"):format(name, dtype, table.concat(shape, " "), dim, way),
                function(device) return luma[name](on(device, x, way), dim) end, 64)
            end
          end
        end
      end
    end)
  end
end)

describe("order and places on CUDA", function()
  it("sort, argsort, topk", function()
    for i, dtype in ipairs(check.dtypes) do
      for _, shape in ipairs {{1}, {7}, {3, 40}, {600}, {2, 3000}, {5000}} do
        local x = make(dtype, shape, -9, 9, i, true)
        for _, options in ipairs {{}, {descending = true}} do
          same(dtype, function(device)
            local v = on(device, x)
            local a, b = v:sort(-1, options)
            local c, d = v:topk(math.min(5, shape[#shape]))
            return a, b, v:argsort(1, options), c, d
          end)
        end
      end
    end
  end)

  it("index, gather, scatter, masks", function()
    for i, dtype in ipairs(check.dtypes) do
      local x = make(dtype, {6, 9}, -9, 9, i)
      local mask = make("bool", {6, 9}, 0, 1, i)
      for _, kind in ipairs {"int64", "int32", "uint8"} do
        local rows = luma.tensor({3, 1, 6, 3}, {dtype = kind, device = "cpu"})
        local places = luma.tensor({{1, 2, 3}, {6, 5, 4}}, {dtype = kind, device = "cpu"})
        same(dtype .. " by " .. kind, function(device)
          local v, r = on(device, x, i % 2 == 0 and "turned" or "plain"), on(device, rows)
          local q = on(device, places)
          local z = v:clone()
          z[{r, ":"}] = v:narrow(1, 1, 4)
          return v:index_select(1, r), v:gather(1, q), v:take(q), v[{r, r}], z,
            v:index_copy(1, luma.tensor({2, 1}, {dtype = kind, device = device}), v:narrow(1, 3, 2)),
            v:scatter(1, q, v:narrow(1, 1, 2):narrow(2, 1, 3))
        end)
        same("adding " .. dtype .. " by " .. kind, function(device)
          local v, r = on(device, x), on(device, rows)
          return v:index_add(1, r, v:narrow(1, 1, 4)), v:scatter_add(1, on(device, places),
            v:narrow(1, 1, 2):narrow(2, 1, 3))
        end, 8)
      end
      local wide = make(dtype, {5, 32}, -9, 9, i)
      same("rows of " .. dtype, function(device)
        local v = on(device, wide)
        local r = luma.tensor({4, 2, 4}, {dtype = "int64", device = device})
        local z = v:clone()
        z[{r, ":"}] = v:narrow(1, 2, 3)
        return v:index_select(1, r), v:index_copy(1, r, v:narrow(1, 1, 3)), z, v[{r, "2:9"}]
      end)
      same("nothing of " .. dtype, function(device)
        local v = luma.zeros({6, 0}, {dtype = dtype, device = device})
        return v:index_select(1, luma.tensor({6, 1}, {dtype = "int64", device = device}))
      end)
      same("masks of " .. dtype, function(device)
        local v, m = on(device, x), on(device, mask)
        local z = v:clone()
        z[m] = 1
        return v:masked_select(m), v:masked_fill(m, 1), v[m], z, v:nonzero(), m:nonzero(),
          m:t():nonzero()
      end)
    end
  end)

  it("random numbers", function()
    for i, dtype in ipairs(check.dtypes) do
      same(dtype, function(device)
        luma.manual_seed(40 + i)
        local options = {dtype = dtype, device = device}
        local float, results = dtype:find "float", {}
        local function add(x) results[#results + 1] = x end
        for _, n in ipairs {1, 3, 4, 7, 1030} do
          if float then
            add(luma.rand(n, options))
            add(luma.randn(n, options))
          end
          add(luma.randint(0, dtype == "bool" and 1 or 100, {n}, options))
          if n < 100 and not float and dtype ~= "bool" then add(luma.randperm(n, options)) end
        end
        return table.unpack(results)
      end)
    end
    same("draws", function(device)
      luma.manual_seed(3)
      local p = luma.linspace(0, 1, 50, {device = device})
      return p:bernoulli(), p:multinomial(7), p:multinomial(60, {replacement = true})
    end)
  end)
end)

describe("products on CUDA", function()
  it("of every dtype", function()
    for i, dtype in ipairs(check.dtypes) do
      local a, b = make(dtype, {2, 5, 7}, -2, 2, i), make(dtype, {7, 6}, -2, 2, i + 9)
      local long = make(dtype, {2, 3000}, -1, 1, i)
      same(dtype, function(device)
        return on(device, a):matmul(on(device, b)), on(device, a, "turned"):matmul(on(device, b, "turned")),
          on(device, long):matmul(on(device, long):t())
      end, 3000)
    end
  end)
end)

describe("quantised blocks on CUDA", function()
  for _, format in ipairs {"q8_0", "q4_0"} do
    it("of " .. format, function()
      local w, x = make("float32", {5, 160}, -9, 9, 3, true), make("float32", {9, 160}, -9, 9, 4)
      same("made and read", function(device)
        local q = on(device, w):quantize(format)
        return q.blocks, q:dequantize(), q:embedding(luma.tensor({5, 1}, "int64"):to(device))
      end)
      local finite = make("float32", {5, 160}, -9, 9, 5)
      for _, rows in ipairs {1, 2, 9} do
        same("products of " .. rows, function(device)
          local q = on(device, finite):quantize(format)
          return on(device, x):narrow(1, 1, rows):quantized_matmul(q)
        end, 300)
      end
    end)
  end
end)

describe("the emulated device", function()
  it("saw no rule broken", function()
    assert.equal(0, luma.cuda.stats().reports)
  end)
end)
