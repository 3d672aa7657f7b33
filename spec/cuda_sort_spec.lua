-- sort, argsort and topk on a CUDA device, to the bit as on the CPU: lengths around each change of
-- method, every dtype, ties, NaN, signed zeros, views on both sides.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"

local D = device.cuda
if not D then
  describe("sorting on CUDA", function() pending("needs a device: " .. device.no_cuda) end)
  return
end

local seed = 20
before_each(function() math.randomseed(seed) end)

local function draw(n, dtype)
  local list = {}
  for i = 1, n do
    local v = math.random(-120, 120)
    if dtype == "bool" then
      v = v > 0
    elseif dtype:find "uint" then
      v = v + 120
    elseif dtype == "int32" then
      v = v * math.random(1 << 20)
    elseif dtype == "int64" then
      v = v * math.random(1 << 40)
    elseif dtype:find "float" then
      v = v % 11 == 0 and 0 / 0 or v % 13 == 0 and math.huge or v / 8 * math.random(3)
      if v == 0 then v = math.random(2) == 1 and 0.0 or -0.0 end
    end
    list[i] = v
  end
  return luma.tensor(list, {dtype = dtype, device = "cpu"})
end

-- f(x) gives values and positions; those of x's twin on the device are the same bits.
local function same(x, f, what)
  local values, positions = f(x)
  local device_values, device_positions = f(x:to(D))
  assert.equal(D, device_values.device)
  assert.equal(values:tobytes(), device_values:tobytes(), what)
  if positions then assert.equal(positions:tobytes(), device_positions:tobytes(), what) end
end

-- A warp for rows up to 32, a block up to 2048, tiles of 2048 or 4096 from there on.
local lengths = {1, 2, 3, 31, 32, 33, 63, 64, 65, 200, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097,
  8193, 12289}

describe("sort on CUDA", function()
  for _, dtype in ipairs(check.dtypes) do
    it("of " .. dtype, function()
      for _, n in ipairs(lengths) do
        local rows = n < 100 and 9 or n < 2000 and 3 or n < 5000 and 2 or 1
        local x = draw(rows * n, dtype):reshape(rows, n)
        for _, descending in ipairs {false, true} do
          same(x, function(t) return t:sort(2, {descending = descending}) end, n)
        end
      end
    end)
  end

  it("passes over digits that are the same everywhere", function()
    for _, n in ipairs {5000, 9000} do
      local small = draw(n, "int8"):to("int64")
      same(small, function(x) return x:sort() end)
      same(small:lshift(24), function(x) return x:sort() end)
      same(luma.full({n}, 7, {dtype = "int64", device = "cpu"}), function(x) return x:sort() end)
      same(luma.tensor({{n, 1}, {2, 3}}, {dtype = "int64", device = "cpu"}):index_select(2,
        draw(n, "uint8"):remainder(2) + 1), function(x) return x:sort() end)
    end
  end)

  it("of sorted rows and of rows turned round", function()
    local x = luma.range(1, 10000):to("cpu")
    for _, dtype in ipairs {"int32", "float32", "float64"} do
      same(x:to(dtype), function(t) return t:sort() end)
      same(x:to(dtype), function(t) return t:sort(1, {descending = true}) end)
    end
  end)
end)

-- Of a contiguous tensor of 3 dims, on either device.
local views = {
  transposed = function(x) return x:transpose(1, 3) end,
  stepped = function(x) return x["::2, :, ::3"] end,
  backward = function(x) return x["::-1, ::-1, ::-1"] end,
  part = function(x) return x["2:, 2:3, 2:"] end,
  permuted = function(x) return x:permute {2, 3, 1} end,
  expanded = function(x) return x:select(1, 2):unsqueeze(1):expand(3, x:size(2), x:size(3)) end,
}

describe("sort of views on CUDA", function()
  for name, view in pairs(views) do
    it(name, function()
      for _, dtype in ipairs {"int8", "float16", "float32", "float64"} do
        for _, shape in ipairs {{4, 5, 6}, {3, 4, 130}, {150, 3, 2}} do
          local x = draw(shape[1] * shape[2] * shape[3], dtype):reshape(shape)
          for dim = 1, 3 do
            same(x, function(t) return view(t):sort(dim) end)
            same(x, function(t) return view(t):argsort(dim, {descending = true}) end)
            same(x, function(t) return view(t):topk(1, dim) end)
          end
        end
      end
    end)
  end

  it("of long rows that lie apart", function()
    for _, dtype in ipairs {"uint8", "float32", "int64"} do
      local x = draw(3 * 5000, dtype):reshape(5000, 3)
      same(x, function(t) return t:sort(1) end)
      same(x, function(t) return t["::-1, :"]:transpose(1, 2):sort(2) end)
      same(x, function(t) return t:topk(7, 1) end)
    end
  end)

  it("into views", function()
    for _, n in ipairs {7, 90, 5000} do
      local x = draw(2 * n, "float32"):reshape(2, n)
      same(x, function(t)
        local values = luma.zeros(n, 2, {device = t.device}):transpose(1, 2)
        local wide = luma.zeros(2, 2 * n, {dtype = "int64", device = t.device})
        return t:sort(2, {out = {values, wide["::-1, ::2"]}})
      end)
    end
  end)
end)

describe("topk on CUDA", function()
  for _, dtype in ipairs(check.dtypes) do
    it("of " .. dtype, function()
      for _, case in ipairs {{20, 3}, {33, 33}, {500, 100}, {2049, 1}, {2049, 600}, {4097, 1024},
                             {4097, 1025}, {9000, 5}, {9000, 2250}, {9000, 2251}} do
        local n, k = case[1], case[2]
        local rows = n < 5000 and 3 or 1
        local x = draw(rows * n, dtype):reshape(rows, n)
        for _, largest in ipairs {false, true} do
          same(x, function(t) return t:topk(k, 2, {largest = largest}) end, n)
        end
      end
    end)
  end

  it("of what is all the same", function()
    for _, k in ipairs {1, 100, 2000, 2100} do
      same(luma.ones(9000, {device = "cpu"}), function(x) return x:topk(k) end)
    end
  end)

  it("of many rows", function()
    for _, dtype in ipairs {"float32", "float64"} do
      same(draw(40 * 4500, dtype):reshape(40, 4500), function(x) return x:topk(3) end)
    end
  end)

  it("of more than a block sorts", function()
    for _, dtype in ipairs {"int16", "float32", "float64"} do
      same(draw(20000, dtype), function(x) return x:topk(4500) end)
    end
  end)
end)
