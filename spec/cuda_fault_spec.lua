-- Errors that a CUDA device finds while it works: raised by the next wait, or at once with
-- LUMA_SYNC=1; the first wins, and all goes on afterwards.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"
local program = require "spec.support.program"

local D = device.cuda
if not D then
  describe("faults", function() pending("needs a device: " .. device.no_cuda) end)
  return
end

local function T(values, dtype)
  return luma.tensor(values, {dtype = dtype, device = D})
end

-- The message without its position and the function that waited.
local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  return (message:gsub("^[^:]*:%d+: ", ""))
end

-- What the CPU says of the same call, without "bad argument #n to 'op'".
local function text_on_cpu(f)
  local message = message_of(f, function(values, dtype)
    return luma.tensor(values, {dtype = dtype, device = "cpu"})
  end)
  return message:match("%((.*)%)$") or message:match("^%w+: (.*)$") or message
end

local faults = {
  floor_div = function(make) return make({7, 8, 9}, "int64") // make({1, 0, 0}, "int64") end,
  remainder = function(make) return make({{7, 8}, {9, 1}}, "int32") % make({{1, 1}, {1, 0}}, "int32") end,
  trunc_div = function(make)
    return luma.div(make({7}, "int8"), make({0}, "int8"), {rounding = "trunc"})
  end,
  fmod = function(make) return luma.fmod(make({7, 8}, "int16"), make({2, 0}, "int16")) end,
  pow = function(make) return luma.pow(make({7, 8}, "int64"), make({2, -1}, "int64")) end,
  lshift = function(make) return make({1, 2}, "int32"):lshift(make({1, -1}, "int32")) end,
  index_select = function(make) return make {1, 2, 3}:index_select(1, make({1, 4}, "int64")) end,
  gather = function(make)
    return make {{1, 2}, {3, 4}}:gather(2, make({{1, 2}, {2, 3}}, "int32"))
  end,
  take = function(make) return make {{1, 2}, {3, 4}}:take(make({4, 0}, "int64")) end,
  scatter = function(make) return make {1, 2, 3}:scatter(1, make({-1, 1}, "int64"), 7) end,
  index_add = function(make)
    return make {1, 2, 3}:index_add(1, make({1, 9}, "int64"), make {1, 1})
  end,
}

describe("a fault", function()
  before_each(function() luma.cuda.synchronize(D) end)
  after_each(function() pcall(luma.cuda.synchronize, D) end)

  for name, f in pairs(faults) do
    it("of " .. name .. " is raised by the next wait, in the words of the CPU", function()
      local expected = text_on_cpu(f)
      local result = f(T) -- raises nothing
      local message = message_of(luma.cuda.synchronize, D)
      assert.is_truthy(message:find(expected, 1, true), ("%s\n%s"):format(message, expected))
      assert.is_truthy(message:find(name:match("^%S+"), 1, true), message)
      luma.cuda.synchronize(D) -- said once
      assert.equal(D, result.device)
    end)
  end

  it("leaves 0 in the element", function()
    local x = T({7, 8, 9}, "int64") // T({2, 0, 3}, "int64")
    check.raises("n//0", luma.cuda.synchronize, D)
    check.tensor({3, 0, 3}, "int64", x)
    local y = T {1, 2, 3}:index_select(1, T({3, 7, 1}, "int64"))
    check.raises("index 7", luma.cuda.synchronize, D)
    check.tensor({3, 0, 1}, "float32", y)
  end)

  it("writes nothing where an index is out of range", function()
    local x = T {1, 2, 3}
    x[T({2, 9}, "int64")] = T {20, 90}
    check.raises("index 9", luma.cuda.synchronize, D)
    check.tensor({1, 20, 3}, "float32", x)
  end)

  it("comes with any wait", function()
    for name, wait in pairs {
      item = function(x) return x:sum():item() end, totable = function(x) return x:totable() end,
      print = tostring, cpu = function(x) return x:cpu() end,
      equal = function(x) return x == x:clone() end, element = function(x) return x[1] end,
    } do
      local x = T({1}, "int64") % T({0}, "int64")
      local ok, message = pcall(wait, x)
      assert.is_false(ok, name)
      assert.is_truthy(message:find("n%0", 1, true), message)
    end
  end)

  it("is that of the line that prints", function()
    local x = T({1}, "int64") % T({0}, "int64")
    local line = debug.getinfo(1, "l").currentline + 1
    local ok, message = pcall(function() return tostring(x) .. "" end)
    assert.is_false(ok)
    assert.matches(("cuda_fault_spec.lua:%d: tostring: attempt to perform 'n%%0'"):format(line),
      message, 1, true)
  end)

  it("goes with what was sent to another device", function()
    local output = program.shell("LUMA_CUDA=emulate LUMA_EMU_DEVICES=3 $LUMA -e " .. program.quote [[
      local function T(v, d) return luma.tensor(v, {dtype = "int64", device = d}) end
      local x = T({7, 8}, "cuda:0") // T({1, 0}, "cuda:0")
      local before = luma.cuda.stats "cuda:0".synchronisations
      local y = x:to "cuda:1":to "cuda:2"
      print(luma.cuda.stats "cuda:0".synchronisations - before)
      print(pcall(function() return y[1] end))
      print(pcall(function() return y[1] end)) -- said once
      x = T({7}, "cuda:0") // T({1}, "cuda:0")
      y = x:to "cuda:1"
      local z = T({7}, "cuda:1") % T({0}, "cuda:1")
      print(pcall(function() return y[1] end))
      print(pcall(luma.cuda.synchronize, "cuda:0"))
      before = luma.cuda.stats "cuda:0".synchronisations
      x = x:to "cuda:1"
      print(x[1], luma.cuda.stats "cuda:0".synchronisations - before)]])
    local where = "(command line):"
    local function said(line, what, op, n)
      return ("false\t%s%d: index: attempt to perform '%s' at [%d] (in '%s', queued on cuda:%d before)\n")
        :format(where, line, what, n == 0 and 2 or 1, op, n)
    end
    assert.equal("0\n" .. said(6, "n//0", "floor_div", 0) .. "true\t7\n" ..
      said(11, "n%0", "remainder", 1) .. "true\n7\t0\n", output)
  end)

  it("that came first wins", function()
    local a, zero = T({1, 2}, "int64"), T({0, 0}, "int64")
    local _ = a % zero
    _ = a // zero
    _ = T {1}:index_select(1, T({5}, "int64"))
    check.raises("n%0", luma.cuda.synchronize, D)
    luma.cuda.synchronize(D)
    _ = T {1}:index_select(1, T({5}, "int64"))
    _ = a // zero
    check.raises("index 5", luma.cuda.synchronize, D)
  end)

  it("is found behind many launches", function()
    local a, one = T({1, 2}, "int64"), T({1, 1}, "int64")
    for i = 1, 300 do
      local _ = a // one
      if i == 290 then _ = a % T({1, 0}, "int64") end
    end
    check.raises("n%0", luma.cuda.synchronize, D)
  end)

  it("keeps its place and its position however many come before and after", function()
    local one, zero = T({{1, 1}, {1, 1}}, "int64"), T({{1, 1}, {0, 1}}, "int64")
    local function divide(n) for _ = 1, n do local _ = one // one end end
    local synchronisations = luma.cuda.stats(D).synchronisations
    for before = 0, 1600, 160 do
      divide(before)
      local _ = one % zero
      _ = one // zero[2]
      divide(1600 - before)
      _ = T {1}:index_select(1, T({5}, "int64"))
      assert.equal(synchronisations, luma.cuda.stats(D).synchronisations)
      check.raises("attempt to perform 'n%0' at [2, 1] (in 'remainder', queued on", luma.cuda.synchronize, D)
      luma.cuda.synchronize(D)
      synchronisations = luma.cuda.stats(D).synchronisations
    end
  end)

  it("blames no argument of the call that waits", function()
    local x, mask = T {1, 2}, T({true, false}, "bool")
    for _, wait in ipairs {
      function() return x[mask] end, function() x[mask] = T {7} end, function() return x:nonzero() end,
      function() return x:masked_select(mask) end, function() return luma.zeros(2):copy_(x) end,
    } do
      local _ = T({1}, "int64") % T({0}, "int64")
      local ok, message = pcall(wait)
      pcall(luma.cuda.synchronize, D)
      assert.is_true(ok or not message:find("bad argument", 1, true), message)
    end
    local _ = x[T({3}, "int64")]
    check.raises("index 3 at position [1] is out of range for size 2 (in indexing, queued on",
      luma.cuda.synchronize, D)
  end)

  it("leaves every tensor and the device usable", function()
    local x, i = T {1, 2, 3}, T({1, 2, 3}, "int64")
    local _ = i // (i - i)
    check.raises("n//0", luma.cuda.synchronize, D)
    check.tensor({2, 4, 6}, "float32", x + x)
    check.tensor({1, 1, 1}, "int64", i // i)
    check.tensor({1, 2, 3}, "int64", i)
  end)

  it("of a number is raised at once", function()
    check.raises("n//0", function() return T({7, 8}, "uint8") // 0 end)
    check.raises("negative shift count", function() return T({7, 8}, "int32"):lshift(-1) end)
    luma.cuda.synchronize(D)
  end)

  it("of an index list is raised at once", function()
    check.raises("bad argument #2 to 'index_select' (index 4 at position [2] is out of range for size 3",
      function() return T {1, 2, 3}:index_select(1, {1, 4}) end)
    check.raises("add 1 to labels", function() return T {1, 2, 3}:take {0} end)
    luma.cuda.synchronize(D)
  end)
end)

describe("LUMA_SYNC=1", function()
  it("raises at the line itself", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(([[
local x = luma.tensor({1, 2}, {dtype = "int64", device = %q})
local y = x + 1
local z = x // (x - x)
print("never")
]]):format(D))
    file:close()
    local output = program.shell("LUMA_SYNC=1 $LUMA " .. path)
    assert.is_truthy(output:find(path:match("[^/]*$") .. ":3: ", 1, true), output)
    assert.is_truthy(output:find("n//0", 1, true), output)
    assert.is_nil(output:find("never", 1, true))
    output = program.shell("LUMA_SYNC=0 $LUMA " .. path)
    assert.equal("never\n", output:match("^never\n"))
    os.remove(path)
  end)
end)
