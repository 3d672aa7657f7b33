-- cast_table_spec.lua -- casts of the edge values of every dtype to every other, bit by bit, on every
-- path that casts: to, copies into any view and across devices, mixed arithmetic, fill, construction,
-- joins, products, index assignment. Expected are the oracle's values and, lest both err, a table
-- written by hand.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local device = require "device"
local edges = require "edges"
local oracle = require "oracle"

local huge, nan = math.huge, 0 / 0

local function pack(dtype, values)
  local bytes = {}
  for i, v in ipairs(values) do bytes[i] = edges.bytes(dtype, v) end
  return table.concat(bytes)
end

local function raw(dtype, values) return luma.frombytes(pack(dtype, values), dtype, {#values}) end

local function show(v) return math.type(v) == "float" and ("%a"):format(v) or tostring(v) end

-- x has these elements: the same bits, but for those of NaN. loose: a zero may have either sign.
local function same(what, values, want, x, dtype, loose)
  assert.equal(dtype, x.dtype, what)
  local bytes, expected = x:tobytes(), pack(dtype, want)
  if bytes == expected then return end
  local size = x:itemsize()
  for i, v in ipairs(want) do
    local a, b = bytes:sub((i - 1) * size + 1, i * size), expected:sub((i - 1) * size + 1, i * size)
    local fine = a == b or (loose and v == 0 and a == edges.bytes(dtype, -v)) or
      (v ~= v and edges.is_nan(dtype, a))
    if not fine then
      error(("%s: of %s expected %s, got %s (%d)"):format(what, show(values[i]), show(v),
        tostring(luma.frombytes(a, dtype, {1})), i))
    end
  end
end

local sources, results = {}, {} -- from -> values; from -> to -> values
for _, from in ipairs(oracle.names) do
  sources[from], results[from] = edges.values(from), {}
  for _, to in ipairs(oracle.names) do
    local list = {}
    for i, v in ipairs(sources[from]) do list[i] = oracle.cast(to, v) end
    results[from][to] = list
  end
end

local function each_pair(f)
  for _, from in ipairs(oracle.names) do
    local x = raw(from, sources[from])
    for _, to in ipairs(oracle.names) do f(from, to, x, sources[from], results[from][to]) end
  end
end

local rank = {bool = 0, int = 1, float = 2}
local function kind(dtype) return oracle.dtypes[dtype].kind end

describe("casts of edge values", function()
  it("by a table written by hand", function()
    local max32, max64 = 0x1.FFFFFEp127, 0x1.FFFFFFFFFFFFFp1023
    local least, most = math.mininteger, math.maxinteger
    for _, row in ipairs {
      -- to integers: truncated, saturated, NaN is 0
      {"float64", 2.0 ^ 63, "int64", most},
      {"float64", 0x1.FFFFFFFFFFFFFp62, "int64", 9223372036854774784},
      {"float64", -2.0 ^ 63, "int64", least},
      {"float64", -0x1.0000000000001p63, "int64", least},
      {"float32", 2.0 ^ 63, "int64", most},
      {"float32", 0x1.FFFFFEp62, "int64", 9223371487098961920},
      {"bfloat16", 2.0 ^ 63, "int64", most},
      {"float64", 2147483647.5, "int32", 2147483647},
      {"float64", 2147483648.0, "int32", 2147483647},
      {"float32", 2147483648.0, "int32", 2147483647},
      {"float32", 2147483520.0, "int32", 2147483520},
      {"float64", -2147483648.9, "int32", -2147483648},
      {"float64", 4294967295.5, "uint32", 4294967295},
      {"float32", 4294967296.0, "uint32", 4294967295},
      {"float32", 4294967040.0, "uint32", 4294967040},
      {"float64", -0.9, "uint32", 0},
      {"float64", -1.0, "uint32", 0},
      {"float32", 255.99998, "uint8", 255},
      {"float32", 256.0, "uint8", 255},
      {"float16", -0.5, "uint8", 0},
      {"float16", 65504.0, "int16", 32767},
      {"float16", 65504.0, "uint8", 255},
      {"float16", -128.9, "int8", -128},
      {"float32", nan, "int64", 0},
      {"float64", nan, "uint32", 0},
      {"float8_e4m3", nan, "int8", 0},
      {"float16", huge, "uint32", 4294967295},
      {"bfloat16", -huge, "int64", least},
      {"float8_e4m3", 448.0, "uint8", 255},
      {"float8_e4m3", -448.0, "int8", -128},
      {"float64", max64, "int64", most},
      {"float64", 2.0 ^ -1074, "int8", 0},
      -- integers to integers: wrapped
      {"int64", most, "int32", -1},
      {"int64", least, "int32", 0},
      {"int64", most, "uint32", 4294967295},
      {"int64", 4294967296, "uint32", 0},
      {"int64", -1, "uint8", 255},
      {"uint32", 4294967295, "int8", -1},
      {"uint32", 2147483648, "int32", -2147483648},
      {"uint32", 4294967295, "int64", 4294967295},
      {"int32", -2147483648, "uint32", 2147483648},
      {"int16", -32768, "int8", 0},
      {"int16", -129, "int8", 127},
      {"uint8", 128, "int8", -128},
      {"int8", -1, "uint32", 4294967295},
      -- to bool: not zero
      {"float64", nan, "bool", 1},
      {"float32", -0.0, "bool", 0},
      {"float64", 2.0 ^ -1074, "bool", 1},
      {"float32", 2.0 ^ -149, "bool", 1},
      {"bfloat16", 2.0 ^ -133, "bool", 1},
      {"float8_e4m3", 2.0 ^ -9, "bool", 1},
      {"int64", least, "bool", 1},
      {"int16", 256, "bool", 1},
      {"bool", 1, "float8_e4m3", 1.0},
      {"bool", 1, "int64", 1},
      -- integers to floats: rounded once, to even
      {"int32", (1 << 24) + 1, "float32", 16777216.0},
      {"int32", (1 << 24) + 3, "float32", 16777220.0},
      {"uint32", 4294967295, "float32", 4294967296.0},
      {"int64", (1 << 53) + 1, "float64", 2.0 ^ 53},
      {"int64", (1 << 53) + 3, "float64", 2.0 ^ 53 + 4},
      {"int64", most, "float64", 2.0 ^ 63},
      {"int64", most, "float32", 2.0 ^ 63},
      {"int64", least, "float32", -2.0 ^ 63},
      {"int64", (1 << 62) + (1 << 38) + 1, "float32", 0x1.000002p62},
      {"int64", (1 << 62) + (1 << 38), "float32", 2.0 ^ 62},
      {"int64", (1 << 62) + (1 << 54) + 1, "bfloat16", 0x1.02p62},
      {"int64", (1 << 62) + (1 << 54), "bfloat16", 2.0 ^ 62},
      {"int64", 65519, "float16", 65504.0},
      {"int64", 65520, "float16", huge},
      {"int32", -65520, "float16", -huge},
      {"int16", 2049, "float16", 2048.0},
      {"int16", 2051, "float16", 2052.0},
      {"uint8", 255, "float8_e4m3", 256.0},
      {"int16", 464, "float8_e4m3", 448.0},
      {"int16", 465, "float8_e4m3", 448.0},
      {"int64", least, "float8_e4m3", -448.0},
      {"uint8", 17, "float8_e4m3", 16.0},
      {"uint8", 19, "float8_e4m3", 20.0},
      {"int64", 257, "bfloat16", 256.0},
      -- floats to smaller floats: one rounding
      {"float64", 65519.0, "float16", 65504.0},
      {"float64", 65519.999999999, "float16", 65504.0},
      {"float64", 65520.0, "float16", huge},
      {"float32", 65520.0, "float16", huge},
      {"float32", 65519.996, "float16", 65504.0},
      {"float64", 1 + 2 ^ -11 + 2 ^ -40, "float16", 1 + 2 ^ -10},
      {"float64", 1 + 2 ^ -11, "float16", 1.0},
      {"float64", 1 + 3 * 2 ^ -11 - 2 ^ -40, "float16", 1 + 2 ^ -10},
      {"float64", 2 ^ -25, "float16", 0.0},
      {"float64", 2 ^ -25 + 2 ^ -60, "float16", 2 ^ -24},
      {"float64", -2 ^ -25, "float16", -0.0},
      {"float64", 3 * 2 ^ -25, "float16", 2 ^ -23},
      {"float64", -0.0, "float16", -0.0},
      {"float32", -0.0, "bfloat16", -0.0},
      {"float64", 2 ^ -14 - 2 ^ -25, "float16", 2 ^ -14},
      {"float64", 1 + 2 ^ -8 + 2 ^ -40, "bfloat16", 1 + 2 ^ -7},
      {"float32", max32, "bfloat16", huge},
      {"float64", 0x1.FFp127, "bfloat16", huge},
      {"float32", 0x1.FEFFFEp127, "bfloat16", 0x1.FEp127},
      {"float64", 2.0 ^ -134, "bfloat16", 0.0},
      {"float64", 3 * 2.0 ^ -135, "bfloat16", 2.0 ^ -133},
      {"float64", 0x1.FFFFFFp127, "float32", huge},
      {"float64", 0x1.FFFFFEFFFFFFFp127, "float32", max32},
      {"float64", 2.0 ^ -150, "float32", 0.0},
      {"float64", 2.0 ^ -150 * (1 + 2.0 ^ -52), "float32", 2.0 ^ -149},
      {"float64", 16777217.0, "float32", 16777216.0},
      {"float64", 464.0, "float8_e4m3", 448.0},
      {"float64", 464.0001, "float8_e4m3", 448.0},
      {"float64", huge, "float8_e4m3", 448.0},
      {"float64", -max64, "float8_e4m3", -448.0},
      {"float32", 2.0 ^ -10, "float8_e4m3", 0.0},
      {"float64", 2.0 ^ -10 * (1 + 2.0 ^ -52), "float8_e4m3", 2.0 ^ -9},
      {"float16", 3 * 2.0 ^ -10, "float8_e4m3", 2.0 ^ -8},
      {"float64", -2.0 ^ -1074, "float8_e4m3", -0.0},
      {"float64", 1 + 2 ^ -4 + 2 ^ -40, "float8_e4m3", 1.125},
      {"float32", 17.0, "float8_e4m3", 16.0},
      {"float16", 2.0 ^ -24, "float8_e4m3", 0.0},
      {"float64", nan, "float8_e4m3", nan},
      {"bfloat16", nan, "float16", nan},
      -- to wider floats: exact
      {"float16", 2.0 ^ -24, "float32", 2.0 ^ -24},
      {"float16", 0x1.FF8p-15, "bfloat16", 2.0 ^ -14},
      {"bfloat16", 2.0 ^ -133, "float32", 2.0 ^ -133},
      {"float32", 2.0 ^ -149, "float64", 2.0 ^ -149},
      {"float8_e4m3", 2.0 ^ -9, "float16", 2.0 ^ -9},
      {"float8_e4m3", -0.0, "float64", -0.0},
      {"float16", -huge, "bfloat16", -huge},
    } do
      local from, v, to, want = table.unpack(row)
      if oracle.dtypes[from].digits then v = oracle.cast(from, v) end
      local what = ("%s to %s"):format(from, to)
      for _, n in ipairs {1, 35} do
        local values, wants = {}, {}
        for i = 1, n do values[i], wants[i] = v, want end
        same(what, values, wants, raw(from, values):to(to), to)
      end
      same("oracle, " .. what, {v}, {want}, raw(to, {oracle.cast(to, v)}), to)
    end
  end)

  it("by to, whole and in part", function()
    each_pair(function(from, to, x, values, want)
      same(from .. " to " .. to, values, want, x:to(to), to)
      local n = #values
      same(from .. " to " .. to .. ", from the second", {table.unpack(values, 2)}, {table.unpack(want, 2)},
        x:narrow(1, 2, n - 1):to(to), to)
      local turned, back = {}, {}
      for i = 1, n do turned[i], back[i] = want[n + 1 - i], values[n + 1 - i] end
      same(from .. " to " .. to .. ", reversed", back, turned, x:flip(1):to(to), to)
    end)
  end)

  it("by copy_ into any view", function()
    each_pair(function(from, to, x, values, want)
      local what, n = from .. " into " .. to, #values
      local stepped = luma.zeros(3 * n, {dtype = to}):slice(1, 2, 3 * n, 3)
      same(what .. " stepped", values, want, stepped:copy_(x), to)
      local turned = luma.zeros(n, {dtype = to}):flip(1)
      same(what .. " reversed", values, want, turned:copy_(x), to)
      local even = n - n % 2
      local across = luma.zeros({2, even // 2}, {dtype = to}):t()
      across:copy_(x:narrow(1, 1, even):reshape(even // 2, 2))
      same(what .. " transposed", values, {table.unpack(want, 1, even)}, across:reshape(even), to)
      local wide = luma.zeros({n, 3}, {dtype = to}):copy_(x:unsqueeze(2)) -- repeated
      same(what .. " from repeated", values, want, wide:select(2, 3), to)
      local inner = raw(from, values) -- read while it is overwritten
      if inner:itemsize() == wide:itemsize() then return end
      same(what .. " as rows", values, want, luma.zeros({2, n}, {dtype = to}):copy_(inner):select(1, 2), to)
    end)
  end)

  it("by promotion: where, arithmetic, joins, products", function()
    each_pair(function(from, to, x, values)
      local one = raw(to, {1})
      local met = (x:narrow(1, 1, 0) + one:narrow(1, 1, 0)).dtype
      local joined = luma.cat({x:narrow(1, 1, 0), one:narrow(1, 1, 0)}).dtype
      local what, n = from .. " with " .. to, #values
      local want, product = results[from][joined], results[from][met]
      same("where, " .. what, values, want, luma.where(luma.ones(n, {dtype = "bool"}), x, one), joined)
      local cat = luma.cat({one, x, one})
      same("cat, " .. what, values, want, cat:narrow(1, 2, n), joined)
      same("stack, " .. what, values, want, luma.stack({x, one:expand(n)}, 2):select(2, 1), joined)
      same("mul, " .. what, values, product, x * one, met)
      same("mul, " .. what .. ", swapped", values, product, one:expand(n) * x, met)
      if from == "bool" or to == "bool" then return end
      one = one:reshape(1, 1)
      same("matmul, " .. what, values, want, x:unsqueeze(2):matmul(one):select(2, 1), joined, true)
      local row = one:matmul(x:unsqueeze(1)):select(1, 1)
      same("matmul, " .. what .. ", swapped", values, want, row, joined, true)
    end)
  end)

  it("by promotion, before anything is computed", function()
    local big = luma.tensor({65520, 65519, -65520}, "int64")
    local half = luma.tensor({-16}, "float16")
    same("added", {1, 2, 3}, {huge, 65472.0, -huge}, big + half, "float16")
    same("compared", {1, 2, 3}, {0, 1, 0}, big:eq(luma.tensor({65504}, "float16")), "bool")
    same("of a row repeated", {1, 2, 3}, {huge, 65472.0, -huge},
      (big:expand(4, 3) + half:expand(4, 3)):select(1, 4), "float16")
    same("a 0-d one", {1}, {huge}, big:select(1, 1) + half, "float16")
    same("a product", {1, 2, 3}, {huge, 32752.0, -huge},
      big:unsqueeze(2):matmul(luma.tensor({0.5}, "float16")), "float16")
    local x = luma.tensor({0.0, 0.0, 0.0}, "float16")
    same("in place", {1, 2, 3}, {huge, 65504.0, -huge}, x:add_(big), "float16")
    same("wider floats first", {1, 2, 3}, {65519.0, 65519.0, 65519.0},
      luma.tensor({65519, 65519, 65519}, "int64") + luma.zeros(3), "float32")
  end)

  it("into index assignments and writes", function()
    each_pair(function(from, to, x, values, want)
      local what, n = from .. " into " .. to, #values
      local function zeros() return luma.zeros(n, {dtype = to}) end
      local all = luma.range(1, n)
      local z = zeros()
      z[{{}}] = x
      same("ranges, " .. what, values, want, z, to)
      z = zeros()
      z[luma.ones(n, {dtype = "bool"})] = x
      same("mask, " .. what, values, want, z, to)
      z = zeros()
      z[all] = x
      same("index, " .. what, values, want, z, to)
      if rank[kind(from)] <= rank[kind(to)] then
        same("scatter, " .. what, values, want, zeros():scatter(1, all, x), to)
        same("index_copy, " .. what, values, want, zeros():index_copy(1, all, x), to)
        same("slice_set, " .. what, values, want, zeros():slice_set(x, 1, 1), to)
      end
    end)
  end)

  it("in place: the result comes back to the dtype of self", function()

    each_pair(function(from, to, x, values, want)
      if to == "bool" or from == "bool" or rank[kind(from)] > rank[kind(to)] then return end
      if kind(from) == "int" and kind(to) == "float" then return end -- goes by the dtype of self: below
      same(from .. " added to " .. to, values, want, luma.zeros(#values, {dtype = to}):add_(x), to, true)
    end)
  end)

  it("of Lua numbers: construction, fill, full, elements", function()
    local every = device.is_cpu and 1 or 11 -- numbers become elements on the host
    for _, to in ipairs(oracle.names) do
      local d = oracle.dtypes[to]
      for _, from in ipairs {"int64", "float64"} do
        for i = 1, #sources[from], every do
          local v, want, good = sources[from][i], results[from][to][i], true
          if d.kind == "int" then
            good = v == v and v >= d.min and v <= d.max and math.tointeger(v) ~= nil
          end
          local what = ("%s into %s"):format(show(v), to)
          local ok, x = pcall(luma.full, {2}, v, {dtype = to})
          assert.equal(good, ok, what)
          local filled = pcall(luma.zeros(2, {dtype = to}).fill_, luma.zeros(2, {dtype = to}), v)
          assert.equal(good, filled, what)
          local made, y = pcall(luma.tensor, {v, v}, to)
          assert.equal(good, made, what)
          if good then
            same("full, " .. what, {v, v}, {want, want}, x, to)
            same("tensor, " .. what, {v, v}, {want, want}, y, to)
            if i % 7 == 0 then
              local z = luma.zeros(3, {dtype = to})
              z[2] = v
              same("an element, " .. what, {v, v, v}, {oracle.cast(to, 0), want, oracle.cast(to, 0)}, z, to)
            end
          end
        end
      end
    end
  end)

  it("back to Lua: totable, item, calls", function()
    for _, dtype in ipairs(oracle.names) do
      local x = raw(dtype, sources[dtype])
      local list = x:totable()
      for i, v in ipairs(sources[dtype]) do
        if dtype == "bool" then v = v ~= 0 end
        local ways = i % 5 == 0 and {list[i], x(i), x:select(1, i):item()} or {list[i]}
        for _, got in ipairs(ways) do
          local equal = got == v and math.type(got) == math.type(v) and (v ~= 0 or 1 / got == 1 / v)
          assert(equal or (v ~= v and got ~= got), ("%s %s reads as %s"):format(dtype, show(v), show(got)))
        end
      end
    end
  end)

  it("of integers to the default float dtype", function()
    for _, default in ipairs {"float32", "float64", "float16", "bfloat16"} do
      luma.set_default_dtype(default)
      for _, from in ipairs {"uint8", "int8", "int16", "int32", "uint32", "int64"} do
        local x = raw(from, sources[from])
        same(from .. " / 1 in " .. default, sources[from], results[from][default], x / 1, default)
      end
      luma.set_default_dtype("float32")
    end
  end)

  it("on the way to another device and back", function()
    if not device.cuda then return end
    local there = device.is_cpu and device.cuda or "cpu"
    each_pair(function(from, to, x, values, want)
      local what, n = ("%s to %s, %s"):format(from, to, there), #values
      same(what .. ", both", values, want, x:to(there, to), to)
      same(what .. ", copied", values, want, luma.zeros(n, {dtype = to, device = there}):copy_(x), to)
      local stepped = luma.zeros(2 * n, {dtype = to, device = there}):slice(1, 1, 2 * n, 2)
      same(what .. ", stepped", values, want, stepped:copy_(x), to)
      same(what .. ", back", values, want, x:to(there):to(to):to(device.name), to)
    end)
  end)

  it("of all 256 float8 and 65536 16-bit floats to float32 and back", function()
    for _, dtype in ipairs {"float8_e4m3", "float16", "bfloat16"} do
      local size = dtype == "float8_e4m3" and 1 or 2
      local bytes = {}
      for i = 0, (1 << (8 * size)) - 1 do bytes[i + 1] = string.pack("<I" .. size, i) end
      bytes = table.concat(bytes)
      local x = luma.frombytes(bytes, dtype, {#bytes // size})
      local known = x:isnan():logical_not()
      for _, through in ipairs {"float32", "float64"} do
        local y = x:to(through)
        assert.is_true(y:isnan():logical_not():equal(known))
        assert.equal(x:masked_select(known):tobytes(), y:to(dtype):masked_select(known):tobytes(),
          dtype .. through)
      end
      local expected = {["float8_e4m3"] = 2, ["float16"] = 2046, ["bfloat16"] = 254}
      assert.equal(expected[dtype], x:numel() - known:to("int64"):sum():item())
    end
  end)
end)
