-- edges.lua -- the values of every dtype at which casts change their mind, as numbers and as bytes
-- that no cast has made. Knows nothing of luma.
local oracle = require "oracle"
local M = {}

local huge, nan = math.huge, 0 / 0
local formats = {
  bool = "<I1", uint8 = "<I1", int8 = "<i1", int16 = "<i2", int32 = "<i4", uint32 = "<I4", int64 = "<i8",
  float32 = "<f", float64 = "<d",
}
local small = { -- format, bits of the fraction, bias, the bits of NaN
  float8_e4m3 = {"<I1", 3, 7, 0x7f},
  float16 = {"<I2", 10, 15, 0x7e00},
  bfloat16 = {"<I2", 7, 127, 0x7fc0},
}

-- The bytes of v, which dtype holds exactly.
function M.bytes(dtype, v)
  local f = small[dtype]
  if not f then return string.pack(formats[dtype], v) end
  local format, digits, bias, bits = table.unpack(f)
  local width = dtype == "float8_e4m3" and 8 or 16
  local sign = (v < 0 or (v == 0 and 1 / v < 0)) and 1 << (width - 1) or 0
  local y = math.abs(v)
  if v == v then
    if y == huge then
      bits = (2 * bias + 1) << digits
    elseif y < 2.0 ^ (1 - bias) then
      bits = math.tointeger(y * 2.0 ^ (bias + digits - 1))
    else
      local e = 1 - bias
      while y >= 2.0 ^ (e + 1) do e = e + 1 end
      bits = ((e + bias) << digits) + math.tointeger((y * 2.0 ^ -e - 1) * 2.0 ^ digits)
    end
  end
  return string.pack(format, sign | bits)
end

-- Whether these bytes of dtype are a NaN.
function M.is_nan(dtype, bytes)
  local f = small[dtype]
  local v = string.unpack(f and f[1] or formats[dtype], bytes)
  if not f then return v ~= v end
  local sign = dtype == "float8_e4m3" and 0x80 or 0x8000
  local least = dtype == "float8_e4m3" and 0x7e or (2 * f[3] + 1) << f[2] -- the greatest that is none
  return v & ~sign > least
end

-- The double next to x, away from zero or toward it.
local function beside(x, step)
  local i = string.unpack("<i8", string.pack("<d", x))
  return (string.unpack("<d", string.pack("<i8", i + step)))
end

local function holds(dtype, v)
  local y = oracle.cast(dtype, v)
  return y == v and (y ~= 0 or math.type(y) == "integer" or 1 / y == 1 / v)
end

local function whole_numbers(add)
  for _, v in ipairs {
    0, 1, 2, 3, 100, 448, 449, 456, 463, 464, 465, 480, 2047, 2049, 2051, 65503, 65504, 65505, 65519, 65520,
    65521, 65535, 65536, math.mininteger, math.maxinteger, (1 << 30) + (1 << 22), (1 << 30) + (1 << 22) + 1,
    (1 << 31) + (1 << 23) + 1, (1 << 53) + (1 << 29), (1 << 53) + (1 << 29) + 1, (3 << 53) + 1,
    (1 << 60) + (1 << 52), (1 << 60) + (1 << 52) + 1, (1 << 62) + (1 << 38), (1 << 62) + (1 << 38) + 1,
    (1 << 62) + (1 << 54) + 1,
  } do
    add(v)
    add(-v)
  end
  for k = 3, 62 do
    for d = -1, 1 do
      add((1 << k) + d)
      add(-(1 << k) + d)
    end
  end
end

local function fractions(add)
  local function around(x)
    for _, v in ipairs {x, beside(x, 1), x > 0 and beside(x, -1) or x} do
      add(v)
      add(-v)
    end
  end
  add(nan)
  add(0.0)
  add(-0.0)
  add(huge)
  add(-huge)
  for _, v in ipairs {
    0.5, 1.5, 2.5, 0.9, 1.0, 456.0, 464.0, 65519.0, 65519.99, 65520.0, 3e9, 2.0 ^ 53 + 2, 2.0 ^ 62, 2.0 ^ 63,
    2.0 ^ 64, 1e20, 0x1.FFFFFFp127, 0x1.FFp127, 1e300,
  } do
    around(v)
  end
  for _, dtype in ipairs(oracle.names) do
    local d = oracle.dtypes[dtype]
    if d.kind == "int" then
      for _, v in ipairs {d.max + 0.0, d.min + 0.0} do
        for _, off in ipairs {-1, -0.5, 0, 0.5, 1} do
          if v + off ~= 0 then around(math.abs(v + off)) end
        end
      end
    elseif d.kind == "float" then
      local least = 2.0 ^ (d.emin - d.digits + 1) -- subnormal
      for _, v in ipairs {least, 2.0 ^ d.emin, 1.0, 2.0 ^ d.digits, d.max} do
        local u = oracle.ulp(dtype, v)
        for _, steps in ipairs {0, 0.25, 0.5, 1, 1.5, 2.5} do
          around(v + steps * u)
          if v - steps * u > 0 then around(v - steps * u) end
        end
      end
    end
  end
end

-- A list of values that dtype holds: the edges of all dtypes, without repetitions. Booleans are 0 and 1.
function M.values(dtype)
  local list, seen, d = {}, {}, oracle.dtypes[dtype]
  local function add(v)
    if d.kind == "float" then v = v + 0.0 end
    if d.kind == "float" and not holds(dtype, v) then -- the nearest that it holds serves too
      if v == v then v = oracle.cast(dtype, v) end
    elseif not holds(dtype, v) and v == v then
      return
    end
    local key = string.pack(d.kind == "float" and "<d" or "<i8", v)
    if not seen[key] then list[#list + 1] = v end
    seen[key] = true
  end
  whole_numbers(add)
  if d.kind == "float" then fractions(add) end
  return list
end

return M
