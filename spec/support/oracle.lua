-- oracle.lua -- the independent reference of the specs: formulas of the registry evaluated in Lua's
-- doubles and 64-bit integers, then rounded or wrapped to a dtype. Knows nothing of luma.
local oracle = {}

local huge, nan = math.huge, 0 / 0

-- ---- dtypes ----

-- bits: width of integers; digits: significant bits of floats; emin: exponent of the least normal
oracle.dtypes = {
  bool = {kind = "bool", bits = 1, min = 0, max = 1},
  uint8 = {kind = "int", bits = 8, min = 0, max = 255},
  int8 = {kind = "int", bits = 8, min = -128, max = 127, signed = true},
  int16 = {kind = "int", bits = 16, min = -32768, max = 32767, signed = true},
  int32 = {kind = "int", bits = 32, min = -2147483648, max = 2147483647, signed = true},
  uint32 = {kind = "int", bits = 32, min = 0, max = 4294967295},
  int64 = {kind = "int", bits = 64, min = math.mininteger, max = math.maxinteger, signed = true},
  float8_e4m3 = {kind = "float", digits = 4, emin = -6, max = 448.0, saturates = true},
  float16 = {kind = "float", digits = 11, emin = -14, max = 65504.0},
  bfloat16 = {kind = "float", digits = 8, emin = -126, max = 0x1.FEp127},
  float32 = {kind = "float", digits = 24, emin = -126, max = 0x1.FFFFFEp127},
  float64 = {kind = "float", digits = 53, emin = -1022, max = 0x1.FFFFFFFFFFFFFp1023},
}
oracle.names = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64",
                "float8_e4m3", "float16", "bfloat16", "float32", "float64"}

-- The exponent e of x with 2^e <= |x| < 2^(e+1); x finite and not 0.
local function exponent(x)
  local e = string.unpack("<i8", string.pack("<d", math.abs(x))) >> 52
  if e > 0 then return e - 1023 end
  return exponent(x * 0x1p200) - 200
end

-- The distance between neighbours of dtype at x.
function oracle.ulp(dtype, x)
  local d = oracle.dtypes[dtype]
  local e = d.emin
  if x ~= 0 and x == x and math.abs(x) ~= huge then e = math.max(exponent(x), d.emin) end
  return 2.0 ^ (e - d.digits + 1)
end

local function half_even(x)
  local f = x // 1
  local r = x - f
  if r > 0.5 or (r == 0.5 and f % 2 == 1) then f = f + 1 end
  return f
end

-- x (a double) rounded once to a float dtype.
local function round_float(dtype, x)
  local d = oracle.dtypes[dtype]
  if x ~= x or x == 0 or dtype == "float64" then return x end
  local y = math.abs(x)
  if y ~= huge then
    local u = oracle.ulp(dtype, x)
    y = half_even(y / u) * u
    if y > d.max then y = huge end
  end
  if d.saturates and y > d.max then y = d.max end
  return x < 0 and -y or y
end

local function wrap(dtype, i)
  local d = oracle.dtypes[dtype]
  if d.bits == 64 then return i end
  local m = i & ((1 << d.bits) - 1)
  if d.signed and m > d.max then m = m - (1 << d.bits) end
  return m
end

local function truncate(dtype, x)
  local d = oracle.dtypes[dtype]
  if x ~= x then return 0 end
  if x >= 2.0 ^ 63 then return d.max end
  if x < -2.0 ^ 63 then return d.min end
  local i = math.tointeger(x < 0 and math.ceil(x) or math.floor(x))
  return math.max(d.min, math.min(d.max, i))
end

-- An integer rounded once to a float dtype: past 2^53 a double would round first.
local function from_integer(dtype, i)
  if dtype == "float64" or (i > -(1 << 53) and i < (1 << 53)) then
    return round_float(dtype, i + 0.0)
  end
  local high, low = i // 2048, i % 2048 -- 53 bits, and the rest as a sticky bit
  return round_float(dtype, (high * 2 + (low ~= 0 and 1 or 0)) * 1024.0)
end

-- v (integer or float; booleans as 0 and 1) as luma casts it to dtype.
function oracle.cast(dtype, v)
  local d = oracle.dtypes[dtype]
  if v == true then v = 1 elseif v == false then v = 0 end
  if d.kind == "bool" then return v ~= 0 and 1 or 0 end
  if d.kind == "int" then
    if math.type(v) == "integer" then return wrap(dtype, v) end
    return truncate(dtype, v)
  end
  if math.type(v) == "integer" then return from_integer(dtype, v) end
  return round_float(dtype, v)
end

-- ---- what formulas are written in ----

local env = setmetatable({}, {__index = _G})
oracle.env = env

function env.log(x) return x < 0 and nan or math.log(x) end
function env.truth(x) return x ~= 0 end
function env.sign(x)
  if x ~= x then return x end
  local s = x > 0 and 1 or x < 0 and -1 or 0
  return math.type(x) == "integer" and s or s + 0.0
end
function env.relu(x)
  if x > 0 or x ~= x then return x end
  return math.type(x) == "integer" and 0 or 0.0
end

-- A rounding to whole numbers: integers and large floats stay, zeros keep their sign.
local function whole(f)
  return function(x)
    if math.type(x) == "integer" or x ~= x or math.abs(x) >= 2.0 ^ 53 or x == 0 then return x end
    local y = f(x)
    return y == 0 and x < 0 and -0.0 or y
  end
end
env.floor = whole(function(x) return x // 1 end)
env.ceil = whole(function(x) return -(-x // 1) end)
env.round = whole(half_even)
env.trunc = whole(function(x) return x < 0 and -(-x // 1) or x // 1 end)

function env.clamp(x, lo, hi)
  if x ~= x then return x end
  if lo and x < lo then x = lo end
  if hi and x > hi then x = hi end
  return x
end
function env.maximum(x, y)
  if x ~= x or y ~= y then return nan end
  return x < y and y or x
end
function env.minimum(x, y)
  if x ~= x or y ~= y then return nan end
  return y < x and y or x
end
function env.fmod(x, y)
  if math.type(x) == "float" then return math.fmod(x, y) end
  if y == -1 then return 0 end
  local r = x % y
  if r ~= 0 and (x ~ y) < 0 then r = r - y end
  return r
end
function env.trunc_div(x, y)
  if math.type(x) == "float" then return env.trunc(x / y) end
  if y == -1 then return -x end
  local q = x // y
  if q < 0 and q * y ~= x then q = q + 1 end
  return q
end
function env.pow(x, y)
  if math.type(x) == "float" then return x ^ y end
  local r = 1
  for _ = 1, y do r = r * x end
  return r
end
function env.lshift(x, y) return y >= 64 and 0 or x << y end
function env.rshift(x, y) -- arithmetic
  if y >= 63 then return x < 0 and -1 or 0 end
  return x // (1 << y)
end

-- exp(-scale x^2) without the error of rounding x^2 (Dekker's exact product); scale a power of two.
local function gauss(x, scale)
  local c = x * 134217729.0
  local high = c - (c - x)
  local low = x - high
  local square = x * x
  local rest = ((high * high - square) + 2 * high * low) + low * low
  return math.exp(-square * scale) * (1 - rest * scale)
end

-- erf by a series of positive terms, erfc by its continued fraction (Abramowitz and Stegun 7.1.6,
-- 7.1.14).
local function erf_series(x)
  local term, sum = x, x
  for n = 1, 400 do
    term = term * 2 * x * x / (2 * n + 1)
    sum = sum + term
    if term < sum * 1e-18 then break end
  end
  return 2 / math.sqrt(math.pi) * gauss(x, 1) * sum
end
-- erfc(x) over exp(-x^2), x > 0; what is cut off is about exp(-2 x sqrt(2 n)) of it
local function erfc_fraction(x)
  local f = x
  for k = math.ceil(250 / (x * x)) + 10, 1, -1 do f = x + k / 2 / f end
  return 1 / math.sqrt(math.pi) / f
end
function env.erf(x)
  if x ~= x or x == 0 then return x end
  if x < 0 then return -env.erf(-x) end
  if x > 7 then return 1.0 end
  return x < 1 and erf_series(x) or 1 - gauss(x, 1) * erfc_fraction(x)
end
function env.gelu(x)
  if x ~= x or x == huge then return x end
  if x < -40 then return -0.0 end
  local z = x / math.sqrt(2)
  if z < -0.3 then return x * 0.5 * gauss(x, 0.5) * erfc_fraction(-z) end
  return x * 0.5 * (1 + env.erf(z))
end
function env.tanh(x)
  if x ~= x or x == 0 then return x end
  if x < 0 then return -env.tanh(-x) end
  if x > 20 then return 1.0 end
  if x < 0.3 then -- x / (1 + x^2 / (3 + x^2 / (5 + ...)))
    local f = 25.0
    for k = 23, 1, -2 do f = k + x * x / f end
    return x / f
  end
  return 1 - 2 / (math.exp(2 * x) + 1)
end

-- ---- exponentials, logarithms, hyperbolic functions ----

function env.expm1(x)
  if math.abs(x) > 0.5 or x ~= x or x == 0 then return x == 0 and x or math.exp(x) - 1 end
  local term, sum = x, x
  for n = 2, 20 do
    term = term * x / n
    sum = sum + term
  end
  return sum
end
function env.log1p(x)
  if x < -1 or x ~= x then return nan end
  local u = 1 + x
  if u == 1 or x == huge then return x end
  return u == 0 and -huge or math.log(u) * (x / (u - 1)) -- Kahan's: the error of u cancels
end
function env.log2(x) return x < 0 and nan or math.log(x, 2) end
function env.log10(x) return x < 0 and nan or math.log(x, 10) end
function env.sinh(x)
  if math.abs(x) > 30 then
    local e = math.exp(math.abs(x) / 2)
    return (x < 0 and -e or e) * 0.5 * e
  end
  local e = env.expm1(math.abs(x))
  local y = (e + e / (e + 1)) / 2
  return (x < 0 or 1 / x < 0) and -y or y
end
function env.cosh(x)
  local e = math.exp(math.abs(x) / 2)
  return e * 0.5 * e + 0.5 / e / e
end
function env.asinh(x)
  local a = math.abs(x)
  local y = a > 1e17 and math.log(a) + math.log(2) or env.log1p(a + a * a / (1 + math.sqrt(a * a + 1)))
  return (x < 0 or 1 / x < 0) and -y or y
end
function env.acosh(x)
  if x > 1e17 then return math.log(x) + math.log(2) end
  return x < 1 and nan or env.log1p(x - 1 + math.sqrt((x - 1) * (x + 1)))
end
function env.atanh(x)
  if x == 0 then return x end
  local y = 0.5 * env.log1p(2 * math.abs(x) / (1 - math.abs(x)))
  return x < 0 and -y or y
end
function env.logit(x)
  if x > 0.25 and x < 0.75 then return env.log1p((2 * x - 1) / (1 - x)) end
  return env.log(x / (1 - x))
end
function env.cbrt(x)
  if x == 0 or x ~= x or x == huge or x == -huge then return x end
  local y = math.abs(x) ^ (1 / 3)
  y = y - (y - math.abs(x) / (y * y)) / 3
  return x < 0 and -y or y
end
function env.hypot(x, y)
  x, y = math.abs(x), math.abs(y)
  if x == huge or y == huge then return huge end
  local most = math.max(x, y)
  if most == 0 or x ~= x or y ~= y then return x + y end
  local scale = 2.0 ^ (most < 1e-280 and -1000 or exponent(most)) -- below, all is exact in parts
  if most < 1e-280 then scale = 2.0 ^ -1000 end
  return math.sqrt((x / scale) ^ 2 + (y / scale) ^ 2) * scale
end
function env.logaddexp(x, y)
  if x ~= x or y ~= y then return nan end
  if x == y then return x + math.log(2) end
  return math.max(x, y) + env.log1p(math.exp(-math.abs(x - y)))
end
function env.sinc(x)
  local a = math.abs(x)
  if x == 0 then return 1.0 end
  if a == huge or x ~= x then return nan end
  local n = half_even(a)
  local y = a < 2.0 ^ 51 and math.sin(math.pi * (a - n)) or 0
  return (n % 2 == 1 and -y or y) / (math.pi * a)
end
function env.frac(x) return x - env.trunc(x) end
-- by the bits: a NaN has a sign too
function env.copysign(x, y)
  local negative = string.unpack("<i8", string.pack("<d", y)) < 0
  return negative and -math.abs(x) or math.abs(x)
end

-- ---- gamma functions, erf's relatives ----

-- zeta(k) - 1 by its sum, the tail by Euler and Maclaurin
local zeta = {}
for k = 2, 60 do
  local sum = 0
  for n = 2, 59 do sum = sum + n ^ -k end
  zeta[k] = sum + 60.0 ^ (1 - k) / (k - 1) + 60.0 ^ -k / 2 + k * 60.0 ^ (-k - 1) / 12
            - k * (k + 1) * (k + 2) * 60.0 ^ (-k - 3) / 720
            + k * (k + 1) * (k + 2) * (k + 3) * (k + 4) * 60.0 ^ (-k - 5) / 30240
end
local euler = 0.57721566490153286061
function env.lgamma(x)
  if x ~= x then return x end
  if x == huge or x == -huge or x == 0 then return huge end
  if x < 0 then
    if x == x // 1 then return huge end
    if x > -1e-17 then return -math.log(-x) end
    return math.log(math.pi / math.abs(x * math.sin(math.pi * (x - x // 1)))) - env.lgamma(-x)
  end
  if x > 40 then
    return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + 1 / (12 * x) - 1 / (360 * x ^ 3)
           + 1 / (1260 * x ^ 5)
  end
  local logs = 0
  while x > 2.5 do
    x = x - 1
    logs = logs + math.log(x)
  end
  if x < 0.5 then return env.lgamma(x + 1) - math.log(x) end
  -- Abramowitz and Stegun 6.1.33, around 2
  local z = x < 1.5 and x - 1 or x - 2
  local sum, power = z * (1 - euler), -z
  for k = 2, 60 do
    power = -power * z
    sum = sum + zeta[k] * power / k
  end
  return (x < 1.5 and sum - env.log1p(z) or sum) + logs
end
-- From the root: (x - root) times the sum over n of 1 / ((root + n) (x + n)), all of one sign.
function env.digamma(x)
  if x ~= x or x == huge then return x end
  if x == 0 then return 1 / x < 0 and huge or -huge end
  if x < 0 then
    if x == x // 1 then return nan end
    if x > -1e-10 then return -1 / x - euler end
    return env.digamma(1 - x) - math.pi / math.tan(math.pi * (x - x // 1))
  end
  if x > 1000 then return math.log(x) - 0.5 / x - 1 / (12 * x * x) end
  if x < 0.5 then return env.digamma(x + 1) - 1 / x end
  local root = 0x1.762d86356be3fp+0
  local d = (x - root) - 0x1.b86a722197829p-54
  local sum = 0
  for n = 0, 99 do sum = sum + 1 / ((root + n) * (x + n)) end
  local a, b = 1 / (root + 100), 1 / (x + 100)
  sum = sum + env.log1p(d * a) / d + a * b / 2 + a * b * (a + b) / 12
        - a * b * (a + b) * (a * a + b * b) / 120
  return d * sum
end
function env.erfc(x)
  if x ~= x then return x end
  if x < 1 then return x < -7 and 2.0 or 1 - env.erf(x) end
  return x > 28 and 0.0 or gauss(x, 1) * erfc_fraction(x)
end
function env.erfinv(x)
  local a = math.abs(x)
  if x == 0 then return x end
  if a >= 1 or x ~= x then return a == 1 and x * huge or nan end
  local l = env.log1p(-a * a) / 2 -- Winitzki's start, then Halley's steps
  local c = 2 / (math.pi * 0.147) + l
  local y = math.sqrt(math.sqrt(c * c - 2 * l / 0.147) - c)
  if a < 1e-4 then y = a * math.sqrt(math.pi) / 2 end
  for _ = 1, 3 do
    local off = a < 0.5 and env.erf(y) - a or (1 - a) - env.erfc(y)
    local step = off / (2 / math.sqrt(math.pi) * gauss(y, 1))
    y = y - step / (1 + y * step)
  end
  return x < 0 and -y or y
end

-- ---- activations ----

function env.relu6(x)
  if x ~= x then return x end
  return env.minimum(env.relu(x), math.type(x) == "integer" and 6 or 6.0)
end
function env.elu(x, alpha) return x > 0 and x or alpha * env.expm1(x) end
function env.celu(x, alpha) return x > 0 and x or alpha * env.expm1(x / alpha) end
function env.selu(x)
  local scale, alpha = 1.0507009873554804934, 1.6732632423543772848
  return x > 0 and scale * x or scale * alpha * env.expm1(x)
end
function env.softplus(x, beta, threshold)
  local z = x * beta
  if z > threshold then return x end
  return (math.max(z, 0) + env.log1p(math.exp(-math.abs(z)))) / beta
end
function env.logsigmoid(x) return math.min(x, 0.0) - env.log1p(math.exp(-math.abs(x))) end
function env.mish(x)
  local e = math.exp(math.min(x, 40.0))
  return x * (e * (e + 2) / (e * (e + 2) + 2))
end
function env.gelu_tanh(x)
  if x < -40 then return -0.0 end
  return x / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
end

-- ---- integers ----

local function unsigned_rest(a, b)
  if b < 0 then return math.ult(a, b) and a or a - b end
  if a >= 0 then return a % b end
  local r = a - ((a >> 1) // b << 1) * b
  return math.ult(r, b) and r or r - b
end
local function unsigned_quotient(a, b)
  if b < 0 then return math.ult(a, b) and 0 or 1 end
  if a >= 0 then return a // b end
  local q = (a >> 1) // b << 1
  return math.ult(a - q * b, b) and q or q + 1
end
function env.gcd(x, y)
  x, y = x < 0 and -x or x, y < 0 and -y or y
  while y ~= 0 do x, y = y, unsigned_rest(x, y) end
  return x
end
function env.lcm(x, y)
  local g = env.gcd(x, y)
  x, y = x < 0 and -x or x, y < 0 and -y or y
  return g == 0 and 0 or unsigned_quotient(x, g) * y
end
function env.popcount(x)
  local n = 0
  while x ~= 0 do n, x = n + (x & 1), x >> 1 end
  return n
end

-- The formula of a row as a function of x, y, z, p, q.
function oracle.compile(formula)
  return assert(load("local x, y, z, p, q = ... return " .. formula, "=formula", "t", env))
end

-- ---- numbers to test with ----

-- A generator of its own: the same numbers everywhere.
function oracle.random(seed)
  local state = seed or 1
  return function(lo, hi)
    state = state * 6364136223846793005 + 1442695040888963407
    return lo + (hi - lo) * ((state >> 11) * 2.0 ^ -53)
  end
end

local function extremes(dtype)
  local d = oracle.dtypes[dtype]
  if d.kind == "bool" then return {1, 0} end
  if d.kind == "int" then
    return {d.max, d.min, 0, 1, d.signed and -1 or 3, d.max - 1, d.min + 1, 2}
  end
  local u = oracle.ulp(dtype, 0)
  return {0.0, -0.0, 1.0, -1.0, huge, -huge, nan, d.max, -d.max, u, -u, 3 * u, 2.0 ^ d.emin, 0.5,
          1.5, 2.5, -0.5, -1.5}
end

-- n values that dtype holds exactly, from lo to hi; with specials the extremes come first.
function oracle.values(dtype, n, lo, hi, seed, specials)
  local d, out, rnd = oracle.dtypes[dtype], {}, oracle.random(seed)
  if specials then
    for _, v in ipairs(extremes(dtype)) do
      if #out < n then out[#out + 1] = oracle.cast(dtype, v) end
    end
  end
  while #out < n do
    local v = rnd(lo, hi)
    if d.kind == "bool" then
      out[#out + 1] = v > (lo + hi) / 2 and 1 or 0
    elseif d.kind == "int" then
      local i = math.floor(v)
      if i < d.min then i = -i end
      out[#out + 1] = math.max(d.min, math.min(d.max, i))
    else
      out[#out + 1] = round_float(dtype, v)
    end
  end
  return out
end

-- Whether y is what a row may give for the exact value `want` (a double) in a float dtype: within
-- `ulps`, where 0.5 means correctly rounded. slack: what the reference itself may be off by.
function oracle.close(dtype, y, want, ulps, slack)
  if want ~= want or y ~= y then return want ~= want and y ~= y end
  local d, rounded = oracle.dtypes[dtype], round_float(dtype, want)
  if y == rounded then return y ~= 0 or 1 / y == 1 / rounded or want ~= 0 end
  if math.abs(rounded) == huge or math.abs(y) == huge then -- neighbours at the end of the range
    return ulps > 0.5 and math.abs(y) >= d.max and math.abs(rounded) >= d.max and (y > 0) == (want > 0)
  end
  if d.digits < 24 and ulps > 0 then ulps = 0.51 + ulps * 2.0 ^ (d.digits - 24) end
  return math.abs(y - want) <= (ulps + (slack or 0) + 1e-6) * oracle.ulp(dtype, want)
end

return oracle
