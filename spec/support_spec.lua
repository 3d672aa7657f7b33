-- support_spec.lua -- what luma.help says of the dtypes that an operation takes is what it takes: each
-- is called with tensors of every dtype.
local luma = require "luma"
local device = require "spec.support.device"
local check = require "spec.support.check"

local GROUPS = {bool = {"bool"}, integers = check.integers, floats = check.floats}

-- By dtype what the help of an operation says for a device; nil where it says nothing.
local function said(name, where)
  local line = luma.help(name):match("\n    dtypes: ([^\n]*)")
  if not line then return nil end
  for part in (line .. "; "):gmatch("(.-); ") do
    local text, devices = part:match("^(.-) on (.*)$")
    if (" " .. devices .. " "):find(" " .. where .. " ", 1, true) then
      local taken = {}
      for _, dtype in ipairs(check.dtypes) do taken[dtype] = text == "all" end
      for words in text:gmatch("[^,]+") do
        local group, but = words:match("^%s*(%a+) but (.*)$")
        local given = GROUPS[group or words:match("^%s*(.-)%s*$")]
        for _, dtype in ipairs(given or {}) do taken[dtype] = true end
        for dtype in (given and but or ""):gmatch("%S+") do taken[dtype] = false end
        if not given then
          for dtype in words:gmatch("%S+") do taken[dtype] = taken[dtype] ~= nil end
        end
      end
      return taken
    end
  end
end

local function call(row, dtype)
  local x = luma.ones(2, 2):to(dtype)
  if row.row == "ternary" then return pcall(luma[row.name], luma.ones(2, 2):gt(0), x, x) end
  local one = row.row == "unary_p" and not row.signature:find(",.*,") -- number
  if row.row == "unary_p" then return pcall(luma[row.name], x, 1, not one and 1 or nil) end
  if row.inputs == 2 then return pcall(luma[row.name], x, x) end
  return pcall(luma[row.name], x)
end

describe("the dtypes that luma.help says", function()
  luma.zeros(1) -- the device is in use

  it("are those that operations take", function()
    local checked = 0
    for _, row in ipairs(luma.ops) do
      local taken = row.row ~= "make" and row.row ~= "defined" and said(row.name, device.name)
      -- others than elementwise rows: those that one tensor is enough for
      if taken and (row.inputs > 0 or call(row, "float32")) then
        checked = checked + 1
        for _, dtype in ipairs(check.dtypes) do
          local good, message = call(row, dtype)
          assert(good == taken[dtype],
                 ("%s of %s: said %s, but %s"):format(row.name, dtype, taken[dtype], tostring(message)))
        end
      end
    end
    assert(checked > 60, checked)
  end)

  it("are there for nearly all of them, and leave the random numbers alone", function()
    luma.manual_seed(1)
    local state = luma.get_rng_state(device.name)
    local without = {}
    for _, row in ipairs(luma.ops) do
      if row.row ~= "make" and row.row ~= "defined" and not said(row.name, device.name) then
        without[#without + 1] = row.name
      end
    end
    assert(#without < 6, table.concat(without, " "))
    assert.same(state, luma.get_rng_state(device.name))
    assert.is_false(said("matmul", device.name).bool)
    assert.is_false(said("lshift", device.name).float32)
    assert.is_true(said("softmax", device.name).float16)
  end)
end)
