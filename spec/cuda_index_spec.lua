-- Indexing on a CUDA device, to the bit as on the CPU: reads, writes of which the last wins, sums in
-- order; every dtype of values and of indices, views on all sides, duplicates, masks.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"

local D = device.cuda
if not D then
  describe("indexing on CUDA", function() pending("needs a device: " .. device.no_cuda) end)
  return
end

before_each(function() math.randomseed(11) end)

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

local function values(dtype, ...)
  local shape, list = {...}, {}
  for i = 1, numel(shape) do
    list[i] = math.random(0, 100)
    if dtype == "bool" then list[i] = list[i] > 50 end
    if dtype:find "float" then list[i] = list[i] / 3 - 10 end
  end
  return luma.tensor(list, {dtype = dtype, device = "cpu"}):reshape(shape)
end

local function positions(size, dtype, ...)
  local shape, list = {...}, {}
  for i = 1, numel(shape) do list[i] = math.random(size) end
  return luma.tensor(list, {dtype = dtype, device = "cpu"}):reshape(shape)
end

-- f of these tensors and of their twins on the device gives the same bits.
local function same(f, ...)
  local there = {}
  for i, x in ipairs {...} do there[i] = x:to(D) end
  local y = f(table.unpack(there))
  assert.equal(D, y.device)
  assert.equal(f(...):tobytes(), y:tobytes())
end

local shapes = {{1, 1}, {5, 7}, {33, 64}, {3, 16}, {100, 1}, {1, 100}}

describe("reads on CUDA", function()
  for _, dtype in ipairs(check.dtypes) do
    it("of " .. dtype, function()
      for _, shape in ipairs(shapes) do
        local x = values(dtype, shape[1], shape[2])
        for _, kind in ipairs(check.integers) do
          local rows, columns = positions(shape[1], kind, 40), positions(shape[2], kind, 40)
          local flat = positions(math.min(numel(shape), 127), kind, 5, 6)
          for dim = 1, 2 do
            local list = dim == 1 and rows or columns
            local each = positions(shape[dim], kind, shape[1], shape[2])
            same(function(a, i) return a:index_select(dim, i) end, x, list)
            same(function(a, i) return a:t():index_select(3 - dim, i["::-2"]) end, x, list)
            same(function(a, i) return a:gather(dim, i) end, x, each)
            same(function(a, i) return a:t():gather(3 - dim, i:t()) end, x, each)
          end
          same(function(a, i) return a:take(i) end, x, flat)
          same(function(a, i) return a["::-1, ::2"]:take(i:clamp(1, a:size(1))) end, x, flat:t())
          same(function(a, i) return a[i] end, x, rows)
          same(function(a, i, k) return a[{i, k}] end, x, rows, columns)
          same(function(a, i, k) return a[{i:reshape(40, 1), k}] end, x, rows, columns)
          same(function(a, i) return a[{i:expand(3, 40)}] end, x, rows)
        end
      end
    end)
  end

  it("of rows of every width", function()
    for _, width in ipairs {1, 2, 3, 4, 6, 8, 12, 16, 17, 32} do
      for _, dtype in ipairs {"uint8", "float16", "float32", "int64"} do
        for offset = 0, 1 do
          same(function(a, i) return a:narrow(2, 1 + offset, width):index_select(1, i) end,
            values(dtype, 9, width + 1), positions(9, "int32", 30))
        end
      end
    end
  end)

  it("of more dims", function()
    local x = values("float32", 3, 4, 5, 6)
    same(function(a, i, k) return a[{{}, i, {}, k}] end, x, positions(4, "int64", 7),
      positions(6, "int64", 7))
    same(function(a, i, k) return a:permute {4, 2, 1, 3}[{i, {}, k}] end, x,
      positions(6, "uint8", 2, 7), positions(3, "int16", 7))
    same(function(a, i) return a:index_select(3, i) end, x, positions(5, "int64", 20))
  end)
end)

describe("writes on CUDA", function()
  for _, dtype in ipairs(check.dtypes) do
    it("of " .. dtype .. ", of which the last wins", function()
      for _, shape in ipairs(shapes) do
        local x = values(dtype, shape[1], shape[2])
        for _, kind in ipairs {"uint8", "int64"} do
          local rows, columns = positions(shape[1], kind, 60), positions(shape[2], kind, 60)
          same(function(a, i, v) a[i] = v return a end, x:clone(), rows,
            values(dtype, 60, shape[2]))
          same(function(a, i, k, v) a[{i, k}] = v return a end, x:clone(), rows, columns,
            values(dtype, 60))
          same(function(a, i, k, v) a[{i:reshape(60, 1), k}] = v return a end, x:clone(), rows,
            columns, values(dtype, 60, 60))
          same(function(a, k, v) a[{{}, k}] = v return a end, x:clone(), columns,
            values(dtype, shape[1], 60))
          same(function(a, i, k, v) a:t()[{k, i}] = v:expand(60) return a end, x:clone(), rows,
            columns, values(dtype, 1))
          for dim = 1, 2 do
            local list = dim == 1 and rows or columns
            local each = positions(shape[dim], kind, shape[1], shape[2])
            same(function(a, i, v) return a:scatter(dim, i, v) end, x, each,
              values(dtype, shape[1], shape[2]))
            same(function(a, i, v) return a:t():scatter(3 - dim, i:t(), v:t()) end, x, each,
              values(dtype, shape[1], shape[2]))
            same(function(a, i, v) return a:index_copy(dim, i, v) end, x, list,
              dim == 1 and values(dtype, 60, shape[2]) or values(dtype, shape[1], 60))
          end
        end
      end
    end)
  end

  it("few into much, by a hash table", function()
    local x = luma.zeros(700, 900, {device = "cpu"})
    for _, size in ipairs {2, 40, 700} do
      same(function(a, i, k, v) a[{i, k}] = v return a end, x:clone(), positions(size, "int64", 500),
        positions(size, "int32", 500), values("float32", 500))
    end
  end)

  it("of an index that repeats along a dim", function()
    same(function(a, i, v) a[{i:reshape(5, 1):expand(5, 8)}] = v return a end,
      values("float32", 9, 3), positions(9, "int64", 5), values("float32", 5, 8, 3))
  end)
end)

local sums = {"uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3", "float16", "bfloat16",
  "float32", "float64"}

describe("sums on CUDA", function()
  for _, dtype in ipairs(sums) do
    it("of " .. dtype .. ", in order", function()
      for _, shape in ipairs(shapes) do
        local x = values(dtype, shape[1], shape[2])
        for _, kind in ipairs {"uint8", "int64"} do
          for dim = 1, 2 do
            local each = positions(shape[dim], kind, shape[1], shape[2])
            local list = positions(shape[dim], kind, 90)
            same(function(a, i, v) return a:scatter_add(dim, i, v) end, x, each,
              values(dtype, shape[1], shape[2]))
            same(function(a, i, v) return a:t():scatter_add(3 - dim, i:t(), v:t()) end, x, each,
              values(dtype, shape[1], shape[2]))
            same(function(a, i, v) return a:index_add(dim, i, v) end, x, list,
              dim == 1 and values(dtype, 90, shape[2]) or values(dtype, shape[1], 90))
          end
        end
      end
    end)
  end

  it("of many terms into few places", function()
    for _, dtype in ipairs {"float32", "float64", "int8"} do
      for _, n in ipairs {2000, 2049, 4097, 9000} do
        same(function(a, i, v) return a:index_add(1, i, v) end, values(dtype, 3),
          positions(3, "int64", n), values(dtype, n))
      end
    end
  end)

  it("of few terms into many places", function()
    for _, dtype in ipairs {"float32", "int16"} do
      same(function(a, i, v) return a:index_add(1, i, v) end, values(dtype, 70000, 1),
        positions(70000, "int32", 3000), values(dtype, 3000, 1))
    end
  end)

  it("of more terms than there can be memory for", function()
    local n = 558992244657870000 -- 33 bytes for each are little, modulo 2^64
    local list = luma.ones({1}, {dtype = "int64", device = D}):expand(n)
    local terms = luma.ones({1}, {device = D}):expand(n)
    check.raises("not enough memory to sort 558992244657870000 elements", luma.index_add,
      luma.zeros({10}, {device = D}), 1, list, terms)
  end)
end)

describe("masks on CUDA", function()
  it("nonzero", function()
    for _, n in ipairs {1, 2, 15, 16, 17, 4095, 4096, 4097, 16384, 16385, 40000} do
      for _, share in ipairs {0, 3, 50, 100} do
        local list = {}
        for i = 1, n do list[i] = math.random(0, 99) < share end
        local mask = luma.tensor(list, {device = "cpu"})
        same(function(m) return m:nonzero() end, mask)
        if n > 20 then same(function(m) return m:narrow(1, 4, n - 5):nonzero() end, mask) end
        if n % 8 == 0 then
          same(function(m) return m:reshape(2, n // 8, 4):nonzero() end, mask)
          same(function(m) return m:reshape(2, n // 2):t():nonzero() end, mask)
        end
      end
    end
  end)

  it("nonzero of numbers", function()
    same(function(x) return x:nonzero() end, values("int32", 40, 50):sub(50))
    same(function(x) return x:nonzero() end, values("float32", 40, 50):relu())
  end)

  it("masked_select, assignment by a mask", function()
    local x = values("float32", 30, 40)
    same(function(a) return a[a:gt(5)] end, x)
    same(function(a) return a:masked_select(a:t():t():lt(0)) end, x)
    same(function(a, v) a[a:gt(5)] = v return a end, x, values("float32", 1))
  end)
end)

describe("a wrong index on CUDA", function()
  local function at(f)
    local ok, message = pcall(function() f() luma.cuda.synchronize(D) end)
    assert.is_false(ok)
    return message
  end

  it("is reported by the next wait, with position, value, size and operation", function()
    local x = values("float32", 4, 3):to(D)
    local i = positions(3, "int64", 4, 3):to(D)
    i[{2, 3}] = 9
    i[{4, 1}] = 0
    assert.matches("index 9 at position %[2, 3%] is out of range for size 3 %(in 'gather'",
      at(function() x:gather(2, i) end))
    assert.matches("index 9 at position %[2, 3%] is out of range for size 3 %(in 'scatter_add'",
      at(function() x:scatter_add(2, i, x) end))
    assert.matches("index 9 at position %[2, 3%] is out of range for size 4 %(in 'scatter'",
      at(function() x:scatter(1, i, x) end))
    assert.matches("index 5 at position %[2%] is out of range for size 3 %(in 'index_select'",
      at(function() x:index_select(2, luma.tensor({1, 5}, {dtype = "uint8", device = D})) end))
    assert.matches("index 5 at position %[2%] is out of range for size 3 %(in 'index_select'",
      at(function()
        x:narrow(1, 1, 0):index_select(2, luma.tensor({1, 5}, {dtype = "uint8", device = D}))
      end))
  end)

  it("moves nothing, and all else as it should be", function()
    local x = luma.tensor({1, 2, 3}, {device = D})
    local i = luma.tensor({1, 4, 1, 0}, {dtype = "int64", device = D})
    local read = x:take(i)
    at(function() end)
    check.tensor({1, 0, 1, 0}, "float32", read:cpu())
    x[i] = luma.tensor({5, 6, 7, 8}, {device = D})
    at(function() end)
    check.tensor({7, 2, 3}, "float32", x:cpu())
    local sum = x:index_add(1, i, luma.tensor({1, 1, 1, 1}, {device = D}))
    at(function() end)
    check.tensor({9, 2, 3}, "float32", sum:cpu())
    local whole = x:to("int32"):index_add(1, i, luma.tensor({1, 1, 1, 1}, {dtype = "int32", device = D}))
    at(function() end)
    check.tensor({9, 2, 3}, "int32", whole:cpu())
  end)
end)
