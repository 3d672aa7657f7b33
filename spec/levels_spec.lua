-- levels_spec.lua -- elementwise results have the same bits at every CPU level that has FMA and with
-- any number of threads; where no rounding is left to a level, at the baseline too.
package.path = "spec/support/?.lua;" .. package.path
local device = require "device"
local program = require "program"

if not device.is_cpu then return end

-- Prints a line per row and dtype: its name, whether the baseline may differ, a digest of the bits.
local digests = [[
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local layouts = require "layouts"
local N = 60000 -- enough for two threads
local careful = {floor_div = 1, trunc_div = 1, remainder = 1, fmod = 1, lshift = 1, rshift = 1, pow = 1}
local weights = luma.range(1, N)

local function draw(dtype, op, seed, specials)
  return layouts.make(oracle.values(dtype, 3000, op.lo, op.hi, seed, specials), dtype):tile(N // 3000)
end

local function digest(y)
  if y.dtype:find "float" then y = y:masked_fill(y:isnan(), 0 / 0) end
  local bytes = luma.frombytes(y:tobytes(), "uint8", {N, y:itemsize()}):to("int64")
  return (bytes * weights:unsqueeze(2) * luma.range(3, y:itemsize() + 2)):sum():item()
end

for _, op in ipairs(luma.ops) do
  for _, dtype in ipairs(op.inputs > 0 and oracle.names or {}) do
    local x, y = draw(dtype, op, 1, true), draw(dtype, op, 2, not careful[op.name])
    if careful[op.name] and not dtype:find "float" and dtype ~= "bool" then y = y:abs():clamp(1, 100) end
    local arguments = {x, op.inputs > 1 and y or nil}
    if op.row == "ternary" then arguments = {x:ne(0), x, y} end
    if op.row == "unary_p" then arguments = {x, 2, 3} end
    local ok, result = pcall(luma[op.name], table.unpack(arguments))
    if ok then print(op.name, dtype, op.ulp <= 0.5, digest(result)) end
  end
end
]]

local function run(level, threads)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(digests)
  file:close()
  local output, status = program.shell(
    ("LUMA_CPU=%s LUMA_THREADS=%d $LUMA %s"):format(level, threads, path))
  os.remove(path)
  return status == 0 and output or nil, output
end

describe("bits of elementwise results #slow #once", function()
  it("are those of every level and number of threads", function()
    local base, message = run("base", 1)
    assert(base, message)
    assert.is_true(select(2, base:gsub("\n", "")) > 400)
    assert.equal(base, (run("base", 2)))
    local first
    for _, level in ipairs {"avx2", "avx512"} do
      for threads = 1, 2 do
        local output = run(level, threads)
        if output then -- a level that the machine has
          first = first or output
          assert.equal(first, output)
        end
      end
    end
    if not first then return end
    local lines = base:gmatch "[^\n]+"
    for line in first:gmatch "[^\n]+" do
      local other = lines()
      if line:find("\ttrue\t", 1, true) then assert.equal(line, other) end
    end
  end)
end)
