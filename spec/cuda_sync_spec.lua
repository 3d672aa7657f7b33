-- Which calls wait for a CUDA device: those that need a value on the host, and nothing else.
local luma = require "luma"
local device = require "spec.support.device"

local D = device.cuda
if not D then
  describe("synchronisation", function() pending("needs a device: " .. device.no_cuda) end)
  return
end

local function T(values, dtype)
  return luma.tensor(values, {dtype = dtype, device = D})
end

local function synchronisations(f)
  local before = luma.cuda.stats(D).synchronisations
  f()
  return luma.cuda.stats(D).synchronisations - before
end

-- Operands, made anew for each call.
local function operands()
  return {
    x = T {{1, -2, 3}, {4, 5, -6}}, y = T {{2, 2, 1}, {1, 3, 2}}, v = T {3, 1, 2}, s = T(2.5),
    i = T({{7, 2, 5}, {1, 9, 4}}, "int32"), j = T({{2, 2, 3}, {1, 3, 2}}, "int32"),
    h = T({1, 2, 3}, "float16"), mask = T {{true, false, true}, {false, true, true}},
    row = T {true, false, true}, index = T({3, 1, 2}, "int64"), square = T {{1, 2}, {3, 4}},
    positions = T({{1, 3, 2}, {2, 1, 1}}, "int64"),
    host = luma.tensor({{1, 2, 3}, {4, 5, 6}}, {device = "cpu"}),
    scalar = luma.tensor(2, {device = "cpu"}),
  }
end

describe("nothing waits for the device in", function()
  for _, row in ipairs(luma.ops) do
    local of_ints = row.takes == "ints" or row.takes == "bits"
    local calls = {
      unary = function(f, o) f(of_ints and o.i or o.x) end,
      test = function(f, o) f(o.x) end,
      unary_p = function(f, o)
        if row.name == "clamp" then f(o.x, 0, 1) else f(o.x, 2, 1) end
      end,
      binary = function(f, o)
        if of_ints then f(o.i, o.j) else f(o.x, o.y) end
      end,
      compare = function(f, o) f(o.x, o.y) end,
      ternary = function(f, o) f(o.mask, o.x, o.y) end,
      reduce = function(f, o) f(o.x, 1) end,
    }
    local call = calls[row.row]
    if call and row.name ~= "item" then
      it(row.name, function()
        local o = operands()
        local n = synchronisations(function()
          local ok, message = pcall(call, luma[row.name], o)
          if not ok and row.row == "unary_p" then ok, message = pcall(luma[row.name], o.x, 2) end
          assert(ok, message)
        end)
        assert.equal(0, n)
      end)
    end
  end

  local others = {
    ["reductions of all elements"] = function(o)
      return o.x:sum(), o.x:mean(), o.x:max(), o.x:argmax(), o.x:all(1), o.mask:any(2), o.x:max(1)
    end,
    ["integers, with numbers and 0-d CPU tensors"] = function(o)
      return o.i // o.j, o.i % 7, o.i + o.scalar, o.scalar * o.x, o.x ^ 2, o.i:fmod(3)
    end,
    ["casts and moves to the device"] = function(o)
      return o.x:to "float16", o.h:to "float64", o.i:to "float32", o.host:to(D), o.host:cuda(),
        o.x:to(D, "int8"), o.x:clone(), luma.tensor(o.x)
    end,
    ["views and copies of them"] = function(o)
      return o.x:t():contiguous(), o.x["::-1, 2"], o.x:reshape(3, 2), o.x:expand(4, 2, 3):clone(),
        o.x:t():reshape(6), o.x:flip(1):force_contiguous(), o.x:unfold(2, 2, 1)
    end,
    ["constructors"] = function()
      local d = {device = D}
      return luma.zeros(3, d), luma.full({2}, 7, d), luma.eye(3, d), luma.range(1, 5, d),
        luma.linspace(0, 1, 5, d), T {{1, 2}, {3, 4}}, luma.rand(4, d), luma.randn(4, d),
        luma.randint(1, 6, 4, d), luma.randperm(6, d), luma.empty(2, d)
    end,
    ["assignments"] = function(o)
      o.x[1][2] = 7
      o.x[{2, 3}] = 0.5
      o.x[1] = o.v
      o.x["1, ::2"] = {8, 9}
      o.x[o.mask] = 0
      o.v[o.index] = o.v
      o.x:copy_(o.host)
      o.x:fill_(3):zero_():add_(1):mul_(o.y)
    end,
    ["joins and rearrangements"] = function(o)
      return luma.cat {o.x, o.y}, luma.cat({o.x:t(), o.x:t()}, 2), luma.stack {o.v, o.v},
        o.x:tile(2, 2), o.x:roll(1, 2), o.x:pad {1, 1}, o.x:slice_set(T {{0}, {0}}, 2, 1),
        o.x:masked_fill(o.mask, -1), o.x:tril(), o.v:diag()
    end,
    ["indexing by positions"] = function(o)
      return o.v[o.index], o.x:index_select(2, o.index), o.x:index_select(2, {3, 1}),
        o.x:gather(1, o.positions:clamp(1, 2)), o.x:take(o.index), o.x:scatter(2, o.positions, 1),
        o.x:scatter_add(2, o.positions, o.y), o.x:index_add(2, o.index, o.y),
        o.x:index_copy(2, {1, 2, 3}, o.y)
    end,
    ["order and scans"] = function(o)
      return o.x:sort(2), o.x:argsort(1), o.x:topk(2), o.x:cumsum(1), o.x:softmax(2),
        o.x:log_softmax(1), o.i:sort(2, {descending = true}), o.x:cumprod(1), o.x:cummax(2),
        o.i:cummin(1), o.x:logcumsumexp(2), o.x:diff(), o.x:kthvalue(2), o.x:median(2), o.x:nanmedian(1),
        o.x:mode(), o.v:searchsorted(o.x), o.x:bucketize(o.v)
    end,
    ["matrix products"] = function(o)
      return o.square:matmul(o.square), o.x:matmul(o.y:t()), o.square:mm(o.square:t()),
        o.square:mv(T {1, 2}), o.v:dot(o.v), o.i:matmul(o.j:t()), o.h:matmul(o.h)
    end,
    ["what is not used, and released"] = function(o)
      for _ = 1, 20 do o.x = o.x + 1 end
      o.x:free()
    end,
  }
  for name, f in pairs(others) do
    it(name, function()
      local o = operands()
      assert.equal(0, synchronisations(function() return f(o) end))
    end)
  end
end)

describe("what needs a value on the host waits once:", function()
  local path = os.tmpname() .. ".npy"
  local calls = {
    ["one element"] = function(o) return o.v[2] end,
    ["one element, called"] = function(o) return o.x(1, 2) end,
    item = function(o) return o.s:item() end,
    totable = function(o) return o.x:totable() end,
    ["totable of a view"] = function(o) return o.x:t():totable() end,
    tobytes = function(o) return o.x:tobytes() end,
    ["printing"] = function(o) return tostring(o.x) end,
    ["printing a 0-d tensor"] = function(o) return tostring(o.s) end,
    ["printing the corners of a large one"] = function()
      return tostring(luma.zeros(100, 100, {device = D}))
    end,
    ["=="] = function(o) return o.x == o.y end,
    equal = function(o) return o.x:equal(o.y) end,
    allclose = function(o) return o.x:allclose(o.y) end,
    all = function(o) return o.x:all() end,
    any = function(o) return o.mask:any() end,
    ['to("cpu")'] = function(o) return o.x:to "cpu" end,
    ["cpu"] = function(o) return o.x:cpu() end,
    ["copy_ to the CPU"] = function(o) return o.host:copy_(o.x) end,
    nonzero = function(o) return o.x:nonzero() end,
    masked_select = function(o) return o.x:masked_select(o.mask) end,
    ["mask indexing"] = function(o) return o.x[o.mask] end,
    ["indexing by a mask of one dim"] = function(o) return o.v[o.row] end,
    ["assignment of a tensor through a mask"] = function(o) o.v[o.row] = T {7, 8} end,
    ["saving"] = function(o) luma.save(path, o.x) end,
    ["luma.cuda.synchronize"] = function() luma.cuda.synchronize(D) end,
  }
  for name, f in pairs(calls) do
    it(name, function()
      local o = operands()
      assert.equal(1, synchronisations(function() return f(o) end))
      os.remove(path)
    end)
  end

  it("draws that check their chances first", function()
    local o = operands()
    assert.is_true(synchronisations(function() return T {0.5, 1}:bernoulli() end) >= 1)
    assert.is_true(synchronisations(function() return o.v:multinomial(2) end) >= 1)
  end)

  it("nothing of the driver's rules was broken on the way", function()
    luma.cuda.synchronize(D)
    assert.equal(0, luma.cuda.stats(D).reports)
  end)
end)
