-- check.lua -- what the specs of the language assert with.
local luma = require "luma"
local device = require "spec.support.device"

local M = {}

M.floats = {"float8_e4m3", "float16", "bfloat16", "float32", "float64"}
M.eps = {float8_e4m3 = 2 ^ -3, float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float32 = 2 ^ -23, float64 = 2 ^ -52}
M.integers = {"uint8", "int8", "int16", "int32", "uint32", "int64"}
M.dtypes = {"bool"}
for _, list in ipairs {M.integers, M.floats} do
  for _, dtype in ipairs(list) do M.dtypes[#M.dtypes + 1] = dtype end
end

local function show(v)
  if luma.is_tensor(v) then
    return ("%s %s of [%s]"):format(v.dtype, tostring(v), table.concat(v.shape, " "))
  end
  return math.type(v) == "float" and ("%.17g"):format(v) or tostring(v)
end

local function same_value(a, b)
  if type(a) == "table" and type(b) == "table" then
    if #a ~= #b then return false end
    for i = 1, #a do if not same_value(a[i], b[i]) then return false end end
    return true
  end
  if a ~= a and b ~= b then return true end
  return a == b and math.type(a) == math.type(b)
end

-- x is a tensor with exactly these elements (nested lists; a number for 0-d) and this dtype.
-- Written integers stand for floats where the dtype is one.
function M.tensor(expected, dtype, x)
  if not luma.is_tensor(x) then error("a tensor expected, got " .. show(x), 2) end
  if x.dtype ~= dtype then error(("%s expected, got %s"):format(dtype, show(x)), 2) end
  local real = dtype:find("float") ~= nil
  local function convert(v)
    if type(v) ~= "table" then return real and type(v) == "number" and v + 0.0 or v end
    local list = {}
    for i, e in ipairs(v) do list[i] = convert(e) end
    return list
  end
  if not same_value(convert(expected), x:totable()) then
    error(("%s expected, got %s"):format(
      luma.show and luma.show(expected) or tostring(expected), show(x)), 2)
  end
end

-- v is exactly this value, of this subtype where it is a number.
function M.value(expected, v)
  if not same_value(expected, v) then
    error(("%s (%s) expected, got %s (%s)"):format(show(expected),
      math.type(expected) or type(expected), show(v), math.type(v) or type(v)), 2)
  end
end

-- f(...) raises an error that holds text literally.
function M.raises(text, f, ...)
  local ok, message = device.pcall(f, ...)
  if ok then error(("no error, where one with '%s' is expected"):format(text), 2) end
  if type(message) ~= "string" or not message:find(text, 1, true) then
    error(("an error with '%s' expected, got: %s"):format(text, tostring(message)), 2)
  end
  if message:find("%.c:%d") then error("a C file is named: " .. message, 2) end
end

-- |a - b| is small against b, for numbers and nested lists.
function M.near(expected, v, tolerance)
  tolerance = tolerance or 1e-6
  if luma.is_tensor(v) then v = v:totable() end
  if type(expected) == "table" then
    if type(v) ~= "table" or #v ~= #expected then error("lists of two lengths", 2) end
    for i = 1, #expected do M.near(expected[i], v[i], tolerance) end
    return
  end
  local allowed = tolerance * math.max(1, math.abs(expected))
  local fine = v == expected or math.abs(v - expected) <= allowed
  if not fine then error(("about %s expected, got %s"):format(show(expected), show(v)), 2) end
end

return M
