-- ggml.lua -- quantised blocks as GGML's reference code makes them (ggml-quants.c), in Lua's doubles
-- rounded to float32 after every step; products as luma's manual defines them. Knows nothing of luma.
local oracle = require "oracle"
local M = {}

local huge = math.huge
local function f32(x) return oracle.cast("float32", x) end
local function f16(x) return oracle.cast("float16", x) end
M.f32 = f32

M.bytes = {q8_0 = 34, q4_0 = 18}

local function half_bytes(v)
  return require "edges".bytes("float16", v)
end

-- C's roundf: halves away from zero.
local function roundf(x) return x < 0 and -math.floor(-x + 0.5) or math.floor(x + 0.5) end

-- The scale as stored, and what elements are multiplied by; luma's answer to what GGML leaves open: a
-- block without finite numbers has the scale NaN.
local function scales(d, finite)
  local stored = f16(d)
  if not finite or stored == huge or stored == -huge then return 0 / 0, 0 end
  local inverse = d == 0 and 0 or f32(1 / d)
  if inverse == huge or inverse == -huge then inverse = 0 end
  return stored, inverse
end

-- 32 numbers that float32 holds -> bytes
function M.quantize(format, x)
  local amax, max, finite = 0.0, 0.0, true
  for i = 1, 32 do
    local v = x[i]
    if v ~= v or v == huge or v == -huge then finite = false end
    if amax < math.abs(v) then amax, max = math.abs(v), v end
  end
  local q = {}
  if format == "q8_0" then
    local d, inverse = scales(f32(amax / 127), finite)
    for i = 1, 32 do
      q[i] = string.pack("b", inverse == 0 and 0 or math.tointeger(roundf(f32(x[i] * inverse))))
    end
    return half_bytes(d) .. table.concat(q)
  end
  local d, inverse = scales(f32(max / -8), finite)
  for i = 1, 32 do
    local v = inverse == 0 and 8 or math.floor(f32(f32(x[i] * inverse) + 8.5))
    q[i] = math.min(15, math.tointeger(v))
  end
  for i = 1, 16 do q[i] = string.char(q[i] | q[i + 16] << 4) end
  return half_bytes(d) .. table.concat(q, "", 1, 16)
end

-- float16 bits -> number
local function half_number(bits)
  local sign, e, m = bits >> 15, bits >> 10 & 31, bits & 1023
  local v
  if e == 31 then v = m == 0 and huge or 0 / 0
  elseif e == 0 then v = m * 2.0 ^ -24
  else v = (1024 + m) * 2.0 ^ (e - 25) end
  return sign == 1 and -v or v
end

-- bytes of one block -> scale, 32 integers that it multiplies
function M.parts(format, bytes)
  local d, q = half_number(string.unpack("<I2", bytes)), {}
  for i = 1, 32 do
    if format == "q8_0" then
      q[i] = string.unpack("b", bytes, 2 + i)
    else
      q[i] = (bytes:byte(3 + (i - 1) % 16) >> (i > 16 and 4 or 0) & 15) - 8
    end
  end
  return d, q
end

-- bytes of a row of blocks -> numbers
function M.dequantize(format, bytes)
  local out, size = {}, M.bytes[format]
  for at = 1, #bytes, size do
    local d, q = M.parts(format, bytes:sub(at, at + size - 1))
    for i = 1, 32 do out[#out + 1] = d * q[i] end
  end
  return out
end

-- ---- products ----

-- A block of x as products see it: scale, integers.
local function rounded(x, from)
  local amax, q = 0.0, {}
  for i = from, from + 31 do amax = math.max(amax, math.abs(x[i])) end
  local lift = amax < 2.0 ^ -60 and 2.0 ^ 64 or 1.0
  local inverse = amax == 0 and 0 or f32(127 / (amax * lift))
  for i = 1, 32 do q[i] = math.tointeger(roundf(f32(x[from + i - 1] * lift * inverse))) end
  return f32(amax / 127), q
end

-- The lane, of 16, to which element i (from 0) of block b (from 0) goes.
local lanes = {
  q8_0 = function(_, i) return i // 2 end,
  q4_0 = function(b, i) return b % 4 * 4 + i % 16 // 4 end,
}

-- x (a list of finite numbers that float32 holds) times a row of blocks, step by step as on the CPU.
function M.dot(format, x, bytes)
  local sums, size = {}, M.bytes[format]
  for l = 0, 15 do sums[l] = 0.0 end
  for b = 0, #bytes // size - 1 do
    local dw, w = M.parts(format, bytes:sub(b * size + 1, (b + 1) * size))
    local dx, q = rounded(x, b * 32 + 1)
    local whole, scale = {}, f32(dw * dx)
    for i = 0, 31 do
      local l = lanes[format](b, i)
      whole[l] = (whole[l] or 0) + w[i + 1] * q[i + 1]
    end
    for l, v in pairs(whole) do sums[l] = f32(sums[l] + f32(v * scale)) end
  end
  local half = 8
  while half > 0 do
    for l = 0, half - 1 do sums[l] = f32(sums[l] + sums[l + half]) end
    half = half // 2
  end
  return sums[0]
end

-- x times a row w of the numbers that blocks stand for: the exact value, nearly, and how far from it a
-- product may be.
function M.exact(x, w)
  local sum, lost, bound, all = 0.0, 0.0, 0.0, 0.0
  for from = 1, #x, 32 do
    local amax, size = 0.0, 0.0
    for i = from, from + 31 do
      local term = x[i] * w[i]
      local t = sum + term
      lost = lost + (math.abs(sum) >= math.abs(term) and sum - t + term or term - t + sum)
      sum = t
      amax, size, all = math.max(amax, math.abs(x[i])), size + math.abs(w[i]), all + math.abs(term)
    end
    bound = bound + amax / 254 * size
  end
  return sum + lost, bound * (1 + 2.0 ^ -20) + (#x / 32 + 8) * 2.0 ^ -24 * (all + bound)
end

-- How far the number that stands for x may be from it, in a block whose greatest magnitude is amax.
function M.error_of(format, amax)
  if format == "q8_0" then return amax * (1 / 254 + 2.0 ^ -11) + 127 * 2.0 ^ -25 end
  return amax * (1 / 8 + 2.0 ^ -11) + 8 * 2.0 ^ -25
end

return M
