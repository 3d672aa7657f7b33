-- quant_spec.lua -- quantised blocks: the bytes that GGML makes, what they stand for, products within
-- their bound (on the CPU to the bit), rows by index, views, sizes, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"
local ggml = require "ggml"
local oracle = require "oracle"

local FORMATS = {"q8_0", "q4_0"}
local huge, nan = math.huge, 0 / 0
local f32 = ggml.f32

local function hex(bytes) return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

local function numbers(n, seed, lo, hi)
  local random, list = oracle.random(seed), {}
  for i = 1, n do list[i] = f32(random(lo or -3, hi or 3)) end
  return list
end

local function raw(values, shape)
  local bytes = {}
  for i, v in ipairs(values) do bytes[i] = string.pack("<f", v) end
  return luma.frombytes(table.concat(bytes), "float32", shape)
end

local function row_bytes(format, values)
  local bytes = {}
  for at = 1, #values, 32 do
    bytes[#bytes + 1] = ggml.quantize(format, {table.unpack(values, at, at + 31)})
  end
  return table.concat(bytes)
end

local function ramp(f)
  local list = {}
  for i = 1, 32 do list[i] = f(i) + 0.0 end
  return list
end

-- Blocks of every kind, by name.
local kinds = {
  {"zeros", ramp(function() return 0.0 end)},
  {"negative zeros", ramp(function() return -0.0 end)},
  {"a ramp", ramp(function(i) return i end)},
  {"both signs alike, negative first", ramp(function(i) return i % 2 == 1 and -5 or 5 end)},
  {"both signs alike, positive first", ramp(function(i) return i % 2 == 1 and 5 or -5 end)},
  {"one far out", ramp(function(i) return i == 7 and -1000 or i / 100 end)},
  {"halves", ramp(function(i) return i == 1 and 127 or i - 16.5 end)},
  {"scales that are subnormal in float16", numbers(32, 3, -0.001, 0.001)},
  {"scales that float16 has not", numbers(32, 4, -1e-7, 1e-7)},
  {"subnormals", ramp(function(i) return i * 2.0 ^ -149 end)},
  {"the last scale that float16 has", ramp(function(i) return i == 9 and 65504 * 127 or 1 end)},
  {"the last scale of q4_0", ramp(function(i) return i == 9 and 65504 * 8 or -3 end)},
  {"a scale that float16 has not", ramp(function(i) return i == 3 and 1e7 or 1 end)},
  {"the greatest float32", ramp(function(i) return i == 3 and 0x1.FFFFFEp127 or 1 end)},
  {"an infinity", ramp(function(i) return i == 30 and -huge or i end)},
  {"a NaN", ramp(function(i) return i == 32 and nan or i end)},
  {"NaN alone", ramp(function() return nan end)},
}
for seed = 1, 12 do
  kinds[#kinds + 1] = {"random " .. seed, numbers(32, seed, -2.0 ^ (seed - 6), 2.0 ^ (seed - 5))}
end

describe("quantised blocks", function()
  it("have the bytes that one writes by hand", function()
    local x = ramp(function(i) return ({127, -127, 0.5, -0.5, 1.5, -1.5, 2.4, -2.6})[i] or 0 end)
    local function made(format, t) return hex(luma.quantize(t, format).blocks:tobytes()) end
    assert.equal("003c" .. "7f8101ff02fe02fd" .. ("00"):rep(24), made("q8_0", raw(x, {32})))
    -- d = 8 / -8: x / d + 8.5 is 0.5, 16.5 (held at 15), 7.5, 9.5, 8.1 ...; 1 to 16 are low halves
    local first = {8, -8, 1, -1, 0.4, -0.5, 0.6, -7}
    local y = ramp(function(i) return first[i] or (i > 16 and i < 20 and 3) or 0 end)
    assert.equal("00bc" .. "505f57" .. "89" .. "8889" .. "878f" .. ("88"):rep(8), made("q4_0", raw(y, {32})))
    assert.equal("0080" .. ("88"):rep(16), made("q4_0", luma.zeros(32)))
    assert.equal(("00"):rep(34), made("q8_0", luma.zeros(32)))
    assert.equal("007e" .. ("00"):rep(32), made("q8_0", luma.full({32}, nan)))
    assert.equal("007e" .. ("88"):rep(16), made("q4_0", luma.full({32}, -huge)))
  end)

  for _, format in ipairs(FORMATS) do
    it("have GGML's bytes in " .. format, function()
      local all, want = {}, {}
      for k, kind in ipairs(kinds) do
        table.move(kind[2], 1, 32, #all + 1, all)
        want[k] = ggml.quantize(format, kind[2])
        assert.equal(hex(want[k]), hex(luma.quantize(raw(kind[2], {32}), format).blocks:tobytes()), kind[1])
      end
      local size = ggml.bytes[format]
      local blocks = luma.quantize(raw(all, {#kinds, 32}), format).blocks
      assert.same({#kinds, size}, blocks.shape)
      assert.equal(hex(table.concat(want)), hex(blocks:tobytes()))
      assert.same({#kinds * size}, luma.quantize(raw(all, {#all}), format).blocks.shape)
      local turned = raw(all, {#kinds, 32}):t():contiguous():t() -- any view
      assert.equal(hex(table.concat(want)), hex(luma.quantize(turned, format).blocks:tobytes()))
    end)

    it("of other dtypes are those of their float32 in " .. format, function()
      for _, dtype in ipairs {"float8_e4m3", "float16", "bfloat16", "float64"} do
        local x = raw(numbers(5 * 64, 9, -400, 400), {5, 64}):to(dtype)
        assert.is_true(x:quantize(format).blocks:equal(x:to("float32"):quantize(format).blocks))
      end
    end)

    it("stand for what their bytes say in " .. format, function()
      local scales = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0x2e66, 0x7c00, 0x7e00}
      local bytes = {}
      for k, scale in ipairs(scales) do
        for part = 0, format == "q8_0" and 7 or 15 do -- every byte
          local q, step = {}, k % 2 == 0 and 1 or 7
          for i = 0, ggml.bytes[format] - 3 do q[i + 1] = string.char((part * 32 + i * step) % 256) end
          bytes[#bytes + 1] = string.pack("<I2", scale) .. table.concat(q)
        end
      end
      bytes = table.concat(bytes)
      local n = #bytes // ggml.bytes[format]
      local q = luma.quantized(luma.frombytes(bytes, "uint8", {n, ggml.bytes[format]}), format)
      local want, got = ggml.dequantize(format, bytes), q:dequantize():reshape(-1):totable()
      assert.equal(n * 32, #got)
      for i, v in ipairs(want) do
        local fine = got[i] == v and (v ~= 0 or 1 / got[i] == 1 / v) or (v ~= v and got[i] ~= got[i])
        assert(fine, i .. ": " .. got[i])
      end
      for _, dtype in ipairs {"float64", "float16", "bfloat16"} do
        local x = q:dequantize(dtype)
        assert.equal(dtype, x.dtype)
        local whole = q:dequantize():to(dtype)
        assert.is_true(x:masked_fill(x:isnan(), 0):equal(whole:masked_fill(whole:isnan(), 0)))
      end
    end)

    it("err within the bound of " .. format, function()
      for seed = 1, 6 do
        local size = 10.0 ^ (seed - 4)
        local x = numbers(40 * 32, seed, -size, size)
        local y = luma.quantize(raw(x, {40, 32}), format):dequantize():reshape(-1):totable()
        for b = 0, 39 do
          local amax = 0
          for i = 1, 32 do amax = math.max(amax, math.abs(x[32 * b + i])) end
          for i = 32 * b + 1, 32 * b + 32 do
            assert(math.abs(x[i] - y[i]) <= ggml.error_of(format, amax), ("%g is %g"):format(x[i], y[i]))
          end
        end
      end
    end)
  end
end)

describe("products with quantised blocks", function()
  local function case(format, m, n, k, seed, scale)
    local x, w = numbers(m * k, seed, -scale, scale), numbers(n * k, seed + 1)
    local bytes = {}
    for j = 0, n - 1 do bytes[j + 1] = row_bytes(format, {table.unpack(w, j * k + 1, (j + 1) * k)}) end
    local blocks = luma.frombytes(table.concat(bytes), "uint8", {n, k // 32 * ggml.bytes[format]})
    return x, bytes, luma.quantized(blocks, format)
  end

  for _, format in ipairs(FORMATS) do
    it("are within their bound, on the CPU to the bit: " .. format, function()
      local sizes = {{1, 1, 32}, {1, 5, 64}, {2, 3, 96}, {3, 4, 128}, {4, 7, 160}, {5, 2, 32}, {1, 9, 288},
                     {9, 3, 64}, {17, 2, 224}, {1, 4, 2080}, {4, 1, 2112}, {2, 5, 4160}}
      for seed, size in ipairs(sizes) do
        local m, n, k = table.unpack(size)
        local x, bytes, q = case(format, m, n, k, seed, 10.0 ^ (seed % 5 - 2))
        local y = luma.quantized_matmul(raw(x, {m, k}), q)
        assert.same({m, n}, y.shape)
        local got, what = y:totable(), table.concat(size, " ")
        for j = 1, n do
          local w = ggml.dequantize(format, bytes[j])
          for i = 1, m do
            local row = {table.unpack(x, (i - 1) * k + 1, i * k)}
            local want, bound = ggml.exact(row, w)
            assert(math.abs(got[i][j] - want) <= bound,
              ("%s: %g, expected %g, bound %g"):format(what, got[i][j], want, bound))
            if device.is_cpu then assert.equal(ggml.dot(format, row, bytes[j]), got[i][j], what) end
          end
        end
      end
    end)

    it("of tiny, huge and strange rows: " .. format, function()
      for _, scale in ipairs {1e-37, 1e-30, 1e25, 1e30} do
        local x, bytes, q = case(format, 2, 3, 64, 5, scale)
        local got = luma.quantized_matmul(raw(x, {2, 64}), q):totable()
        for j = 1, 3 do
          for i = 1, 2 do
            local row = {table.unpack(x, (i - 1) * 64 + 1, i * 64)}
            local want, bound = ggml.exact(row, ggml.dequantize(format, bytes[j]))
            assert(math.abs(got[i][j] - want) <= bound + 2.0 ^ -140,
              ("%g, expected %g"):format(got[i][j], want))
          end
        end
      end
      local x, _, q = case(format, 4, 3, 64, 5, 1)
      for i, v in ipairs {nan, huge, -huge} do x[i * 64 + 40] = v end
      local y = luma.quantized_matmul(raw(x, {4, 64}), q)
      assert.is_true(y[1]:isfinite():all())
      assert.is_true(y[{{2, 4}}]:isnan():all())
      assert.is_true(luma.quantized_matmul(luma.zeros(2, 64), q):equal(luma.zeros(2, 3)))
      local w = luma.ones(3, 64) -- a row of w that is NaN in part
      w[2][50] = huge
      y = luma.quantized_matmul(luma.ones(1, 64), w:quantize(format))
      check.near(64, y(1, 1), 0.01)
      assert.is_true(y(1, 2) ~= y(1, 2))
    end)

    it("take any view, vectors, batches, dtypes, out: " .. format, function()
      local w = luma.randn(6, 96)
      local q = w:quantize(format)
      local x = luma.randn(2, 5, 96)
      local want = x:reshape(10, 96):quantized_matmul(q)
      assert.is_true(want:reshape(2, 5, 6):equal(x:quantized_matmul(q)))
      assert.is_true(want[3]:equal(x[1][3]:quantized_matmul(q)))
      assert.is_true(want:reshape(2, 5, 6):transpose(1, 2):equal(x:transpose(1, 2):quantized_matmul(q)))
      assert.is_true(want:flip(1):equal(x:reshape(10, 96):flip(1):quantized_matmul(q)))
      local wide = luma.zeros(10, 192)
      local view = wide:slice(2, 1, 192, 2)
      view:copy_(x:reshape(10, 96))
      assert.is_true(want:equal(view:quantized_matmul(q)))
      assert.is_true(want[1]:expand(4, 6):equal(x[1][1]:expand(4, 96):quantized_matmul(q)))
      -- rows of blocks: part of them, backward, every other one, from an odd byte on
      local size = q.blocks:size(2)
      local parts = {q.blocks[{{2, 4}}], q.blocks:flip(1), q.blocks[{{1, 6, 2}}], q.blocks[{{6, 2, -2}}]}
      for _, rows in ipairs(parts) do
        local part = luma.quantized(rows, format)
        local exact = luma.quantized(rows:clone(), format)
        assert.is_true(part:dequantize():equal(exact:dequantize()))
        assert.is_true(x:quantized_matmul(part):equal(x:quantized_matmul(exact)))
      end
      local odd = luma.zeros(6 * size + 1, {dtype = "uint8"}):narrow(1, 2, 6 * size):view(6, size)
      odd:copy_(q.blocks)
      assert.is_true(want:equal(x:reshape(10, 96):quantized_matmul(luma.quantized(odd, format))))
      assert.is_true(luma.quantized(odd, format):dequantize():equal(q:dequantize()))
      local into = luma.zeros(6 * size + 1, {dtype = "uint8"}):narrow(1, 2, 6 * size):view(6, size)
      luma.quantize_blocks(w, {format = format, out = into})
      assert.is_true(into:equal(q.blocks))
      for _, dtype in ipairs {"float16", "bfloat16"} do
        local h = x:to(dtype)
        local y = h:quantized_matmul(q)
        assert.equal(dtype, y.dtype)
        assert.is_true(y:equal(h:to("float32"):quantized_matmul(q):to(dtype)))
      end
      local out = luma.zeros(6, 10)
      local r = x:reshape(10, 96):quantized_matmul(q, {out = out:t()})
      assert.is_true(want:t():equal(out))
      assert.is_true(r:equal(want))
      local square = luma.randn(32, 32)
      local product = square:quantized_matmul(square:quantize(format))
      luma.quantized_matmul(square, square:quantize(format), {out = square}) -- over its input
      assert.is_true(product:equal(square))
    end)

    it("of no elements, of 8 dims: " .. format, function()
      local q = luma.randn(3, 64):quantize(format)
      assert.same({0, 3}, luma.zeros(0, 64):quantized_matmul(q).shape)
      assert.same({2, 0, 3}, luma.zeros(2, 0, 64):quantized_matmul(q).shape)
      local none = luma.zeros(0, 64):quantize(format)
      assert.same({0, 64}, none:dequantize().shape)
      assert.same({5, 0}, luma.zeros(5, 64):quantized_matmul(none).shape)
      local empty = luma.zeros(3, 0):quantize(format)
      assert.same({3, 0}, empty.shape)
      assert.is_true(luma.zeros(2, 0):quantized_matmul(empty):equal(luma.zeros(2, 3)))
      local x = luma.randn(1, 2, 1, 3, 1, 2, 1, 64)
      assert.is_true(x:quantized_matmul(q):reshape(12, 3):equal(x:reshape(12, 64):quantized_matmul(q)))
      assert.is_true(x:quantize(format):dequantize():reshape(12, 64):equal(
        x:reshape(12, 64):quantize(format):dequantize()))
    end)
  end

  it("do not depend on the number of rows", function()
    for _, format in ipairs(FORMATS) do
      local x, q = luma.randn(70, 320), luma.randn(37, 320):quantize(format)
      local y = x:quantized_matmul(q)
      for _, i in ipairs {1, 2, 33, 64, 70} do
        assert.is_true(y[i]:equal(x[i]:quantized_matmul(q)))
        assert.is_true(y[{{1, i}}]:equal(x[{{1, i}}]:quantized_matmul(q)))
      end
    end
  end)
end)

describe("a quantised tensor", function()
  local q
  before_each(function() q = luma.randn(6, 64):quantize("q4_0") end)

  it("says what it is", function()
    assert.same({6, 64}, q.shape)
    assert.equal("q4_0", q.format)
    assert.equal(device.name, q.device)
    assert.equal(2, q.ndim)
    assert.equal(6, #q)
    assert.equal(384, q:numel())
    assert.equal(216, q:nbytes())
    assert.equal(64, q:size(-1))
    assert.equal("Quantized[q4_0 6x64 " .. device.name .. "]", tostring(q))
    assert.is_false(luma.is_tensor(q))
  end)

  it("has fields that nobody sets", function()
    for _, name in ipairs {"blocks", "format", "shape", "ndim", "device", "scale"} do
      check.raises(("a quantized tensor has no field '%s' to set"):format(name), function() q[name] = 1 end)
    end
    local shape = q.shape
    shape[2] = 32
    assert.same({6, 64}, q.shape)
    assert.equal("{6, 64}", tostring(q.shape))
    assert.equal("Quantized[q4_0 6x64 " .. device.name .. "]", tostring(q))
    check.raises("no elements to walk", pairs, q)
  end)

  it("gives rows by index", function()
    local x = q:dequantize()
    for _, index in ipairs {{1, 6, 3, 3}, {2}} do
      assert.is_true(x:index_select(1, index):equal(q:embedding(index)))
      assert.is_true(x:index_select(1, index):equal(q:index_select(1, index):dequantize()))
    end
    local places = luma.tensor({{1, 2, 3}, {6, 5, 4}}, "int32")
    assert.same({2, 3, 64}, q:embedding(places).shape)
    assert.is_true(x[5]:equal(q:embedding(places)[2][2]))
    assert.is_true(x[3]:to("float16"):equal(q:embedding({3}, "float16")[1]))
    assert.same({0, 64}, q:embedding(luma.zeros(0, {dtype = "int64"})).shape)
    check.raises("'embedding'", q.embedding, q, {1.5})
    local blame = device.is_cpu and "bad argument #2 to 'embedding' (" or "" -- late on other devices
    check.raises(blame .. "index 7 at position [1] is out of range", q.embedding, q, {7})
    check.raises(blame .. "index 0 at position [1]", q.embedding, q, luma.tensor({0}, "int64"))
    check.raises("integer dtype expected", q.embedding, q, luma.ones(2))
  end)

  it("moves between devices, and goes into files", function()
    assert.is_true(rawequal(q, q:to(device.name)))
    local host = q:cpu()
    assert.equal("cpu", host.device)
    assert.is_true(host.blocks:equal(q.blocks:cpu()))
    if device.cuda then
      local there = host:to(device.cuda)
      assert.equal(device.cuda, there.device)
      assert.is_true(there:dequantize():cpu():equal(host:dequantize()))
      local x = luma.randn(3, 64, {device = "cpu"})
      assert.is_true(luma.allclose(x:quantized_matmul(host), x:to(device.cuda):quantized_matmul(there):cpu(),
        {atol = 1e-4}))
      check.raises("where the others are on cpu", luma.quantized_matmul, x, there)
    end
    local path = os.tmpname() .. ".safetensors"
    luma.save(path, {w = q.blocks})
    local back = luma.quantized(luma.load(path).w, "q4_0")
    os.remove(path)
    assert.is_true(back:dequantize():cpu():equal(q:dequantize():cpu()))
  end)

  it("is no tensor: what it cannot do are errors", function()
    local x = luma.randn(6, 64)
    check.raises("no operators: dequantize()", function() return q + 1 end)
    check.raises("no operators", function() return 2 * q end)
    check.raises("no operators", function() return q < q end)
    check.raises("no operators", function() return -q end)
    check.raises("got quantized tensor", function() return x + q end)
    check.raises("got quantized tensor", luma.matmul, x, q)
    check.raises("got quantized tensor", luma.exp, q)
    check.raises("has no 'exp': dequantize()", function() return q:exp() end)
    check.raises("#1 to 'quantize' ([6 x 33]: rows of 33", luma.quantize, luma.ones(6, 33), "q8_0")
    check.raises("#1 to 'quantize' (a 0-d tensor", luma.quantize, luma.ones(3):select(1, 1), "q8_0")
    check.raises("#1 to 'quantize' (int32: a float dtype", luma.quantize, x:to("int32"), "q8_0")
    check.raises("#2 to 'quantize' (q8_0 or q4_0 expected, got 'q5_0')", luma.quantize, x, "q5_0")
    check.raises("#2 to 'quantize' (q8_0 or q4_0 expected, got nil)", luma.quantize, x)
    check.raises("#2 to 'quantized_matmul' ([6 x 32] by q4_0 [6 x 64]: row sizes 32 and 64 differ)",
      luma.quantized_matmul, luma.ones(6, 32), q)
    check.raises("#2 to 'quantized_matmul' (quantized tensor expected, got t", luma.quantized_matmul, x, x)
    check.raises("#1 to 'quantized_matmul' (float64: float32", luma.quantized_matmul, x:to("float64"), q)
    check.raises("#1 to 'quantized_matmul' (tensor expected, got q", luma.quantized_matmul, q, q)
    check.raises("(2 dims) expected", luma.quantized_matmul, x, luma.randn(2, 2, 64):quantize("q8_0"))
    check.raises("out is [6]", luma.quantized_matmul, x, q, {out = luma.zeros(6)})
    check.raises("unknown option 'bias'", luma.quantized_matmul, x, q, {bias = x})
    check.raises("#1 to 'dequantize' (quantized tensor expected", luma.dequantize, x)
    check.raises("'dequantize'", q.dequantize, q, "float17")
    check.raises("blocks of 34 bytes expected", luma.quantized, q.blocks, "q8_0")
    check.raises("blocks of 18 bytes expected", luma.quantized, luma.ones(18), "q4_0")
    check.raises("cannot be cut", q.index_select, q, 2, {1})
    check.raises("a device expected", q.to, q, "float16")
    check.raises("#1 to 'dequantize_blocks' ([6 x 36]: 36 bytes a row are no q8_0 blocks of 34)",
      luma.dequantize_blocks, q.blocks, {format = "q8_0"})
    check.raises("float32: blocks are uint8", luma.dequantize_blocks, x, {format = "q8_0"})
    check.raises("#2 to 'matmul_blocks'", luma.matmul_blocks, x, q.blocks:t(), {format = "q4_0"})
  end)
end)
