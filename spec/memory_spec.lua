-- memory_spec.lua -- when memory is given back, what happens when there is none, and that no error
-- leaks any.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"
local program = require "program"

local T = luma.tensor
local MB = 1 << 20

local function storages()
  collectgarbage()
  collectgarbage()
  luma.empty_cache() -- with what a device keeps for products
  return luma.memory().storages
end

describe("bounds:", function()
  if not device.is_cpu then return end -- they run in processes of their own, on the CPU

  -- Peak bytes of a script in a process of its own, above what lived before its loop.
  local function peak(mode, setup, body)
    local output = program.script(([[
      collectgarbage %q
      local luma = require "luma"
      %s
      collectgarbage()
      local live = luma.memory().allocated
      %s
      local m = luma.memory()
      print(live, m.peak_allocated)]]):format(mode, setup, body))
    local live, most = output:match("^(%d+)%s+(%d+)\n$")
    assert(live, output)
    return tonumber(live), tonumber(most)
  end

  local cases = {
    {"tiny temporaries", "local x = luma.zeros(4)",
      "for _ = 1, 300000 do local y = x * 2 + 1 end"},
    {"temporaries of 4 MB", "local x = luma.zeros(1 << 20)",
      "for _ = 1, 200 do local y = x * 2 + 1 end"},
    {"temporaries of 100 MB", "local x = luma.zeros(25 << 20)",
      "for _ = 1, 8 do local y = x * 2 + 1 end", 100}, -- x * 2 lives while y is made
    {"construction, a result and a view",
      "local x", "for _ = 1, 300 do local a = luma.zeros(2 << 20); x = (a + 1)['1:9'] end",
      24}, -- the last x, a, and a + 1
    {"1e5 live tensors", "local t = {} for i = 1, 100000 do t[i] = luma.zeros(250) end",
      "for _ = 1, 60 do local y = luma.ones(1 << 20) + 1 end"},
    {"a big Lua heap", "local t = {} for i = 1, 200000 do t[i] = {i} end",
      "for _ = 1, 60 do local y = luma.ones(1 << 20) + 1 end"},
    {"ten kept in turn",
      "local x, keep = luma.zeros(1 << 20), {} for i = 1, 10 do keep[i] = x + i end",
      "for i = 1, 200 do keep[i % 10 + 1] = x * 2 + 1 end"},
  }
  for _, mode in ipairs {"generational", "incremental"} do
    for _, case in ipairs(cases) do
      it(case[1] .. " stay within twice the live set and 64 MB, " .. mode, function()
        local live, most = peak(mode, case[2], case[3])
        live = live + (case[4] or 0) * MB
        assert.is_true(most <= 2 * live + 68 * MB, ("%d MB live, %d MB at most"):format(
          live // MB, most // MB))
      end)
    end
  end

  it("a small view of a big tensor stays right", function()
    local kept
    for round = 1, 200 do
      local x = luma.full({1 << 20}, round)
      local y = x + 1
      if round == 100 then kept = y["5:7"] end
    end
    check.tensor({101, 101, 101}, "float32", kept)
    assert.is_true(luma.memory().allocated < 300 * MB)
  end)

  it("a stopped collector is left alone", function()
    local output = program.script [[
      local luma = require "luma"
      collectgarbage "stop"
      local ran = false
      setmetatable({}, {__gc = function() ran = true end})
      for _ = 1, 40 do local x = luma.zeros(1 << 20) end
      print(ran, collectgarbage "isrunning", luma.memory().allocated >= 40 * (4 << 20))]]
    assert.equal("false\tfalse\ttrue\n", output)
  end)
end)

describe("release:", function()
  it("x:free() drops this hold, views live on", function()
    local before = storages()
    local x = luma.range(1, 1000)
    local v = x["2:3"]
    x:free()
    check.tensor({2, 3}, "int64", v)
    check.raises("released", function() return x + 1 end)
    check.raises("released", function() return x[1] end)
    check.raises("released", function() x[1] = 1 end)
    check.raises("released", function() return x.shape end)
    check.raises("released", function() return #x end)
    check.raises("released", function() return x:sum() end)
    check.raises("released", function() return luma.cat {x, x} end)
    check.raises("released", function() return T {1}:add(1, {out = x}) end)
    assert.equal("Tensor[released]", tostring(x)) -- shown, as it cannot be used
    x:free()
    v:free()
    assert.equal(before, storages())
  end)

  it("<close> releases at the end of the block", function()
    local before = storages()
    local outer
    do
      local x <close> = luma.zeros(10)
      outer = x
      assert.equal(before + 1, luma.memory().storages)
    end
    assert.equal(before, luma.memory().storages)
    check.raises("released", function() return outer + 1 end)
    pcall(function()
      local y <close> = luma.zeros(10)
      error(y)
    end)
    assert.equal(before, luma.memory().storages)
  end)

  it("what nobody holds is collected", function()
    local before = storages()
    for _ = 1, 10 do luma.zeros(10):exp() end
    assert.equal(before, storages())
  end)
end)

describe("figures:", function()
  it("memory reports what there is", function()
    local m = luma.memory(device.name)
    for _, name in ipairs {"allocated", "reserved", "active", "inactive_split", "requested",
                           "storages", "segments"} do
      assert.equal("integer", math.type(m[name]), name)
      assert.is_true(m["peak_" .. name] >= m[name], name)
    end
    assert.equal("integer", math.type(m.retries))
    assert.equal("integer", math.type(m.ooms))
    local x = luma.zeros(1 << 20)
    assert.is_true(luma.memory().allocated >= m.allocated + (4 << 20))
    x:free()
    assert.is_true(luma.memory().allocated <= m.allocated)
    check.raises("no device 'tpu'", luma.memory, "tpu")
  end)

  it("a limit may be a share of the machine's memory", function()
    luma.set_memory_limit(0.5, "cpu")
    local total = luma.cache_info("cpu").device_total
    assert.equal(total // 2, luma.memory("cpu").limit)
    luma.set_memory_limit(1.0, "cpu")
    assert.equal(total, luma.memory("cpu").limit)
    luma.set_memory_limit(1 << 40, "cpu")
    assert.equal(1 << 40, luma.memory("cpu").limit)
    luma.set_memory_limit(0.0, "cpu")
    assert.equal(0, luma.memory("cpu").limit)
    check.raises("a share above 0", luma.set_memory_limit, -0.25, "cpu")
    check.raises("no integer representation", luma.set_memory_limit, 0 / 0, "cpu")
    check.raises("no integer representation", luma.set_memory_limit, 1.5, "cpu")
  end)

  it("empty_cache gives memory back", function()
    local x = luma.zeros(8 << 20)
    x:free()
    luma.empty_cache()
    local m = luma.memory()
    assert.is_true(m.reserved <= m.allocated + 40 * MB)
  end)
end)

describe("a function that hears of allocations", function()
  after_each(function() luma.set_memory_callback() end)

  local function listen(more)
    local log = {}
    luma.set_memory_callback(function(event, name, bytes, address)
      assert(math.type(bytes) == "integer" and math.type(address) == "integer")
      log[#log + 1] = ("%s %s %d"):format(event, name, bytes)
      if more then more(event, bytes) end
    end)
    return log
  end

  it("is called when the next operation begins", function()
    local warm <close> = luma.zeros(7, {device = "cpu"}) -- there is a segment
    local log = listen()
    local x = luma.zeros(7, {device = "cpu"})
    assert.equal(0, #log, warm)
    x:free()
    luma.memory()
    assert.same({"alloc cpu 28", "free cpu 28", "freed cpu 28"}, log)
    luma.set_memory_callback()
    luma.zeros(7)
    assert.equal(3, #log)
  end)

  it("may use tensors, whose events come later", function()
    local n = 0
    local warm <close> = luma.zeros(7, {device = "cpu"})
    local log = listen(function(event)
      if event == "alloc" and n < 5 and warm then
        n = n + 1
        assert(luma.ones(n, {device = "cpu"})[1] == 1)
      end
    end)
    luma.zeros(7, {device = "cpu"})
    for _ = 1, 10 do luma.memory() end
    assert.equal(5, n)
    assert.equal("alloc cpu 28", log[1])
    assert.equal("alloc cpu 4", log[2])
  end)

  it("may replace or remove itself, and fail: then it is called no more", function()
    local last
    listen(function() luma.set_memory_callback(function(event) last = event end) end)
    luma.zeros(7, {device = "cpu"}):free()
    luma.memory()
    luma.zeros(7, {device = "cpu"})
    luma.memory()
    assert.equal("alloc", last)
    listen(function() luma.set_memory_callback() end)
    luma.zeros(7, {device = "cpu"}):free()
    luma.memory()
    local log = listen(function() error("in the function") end)
    local x = luma.zeros(7, {device = "cpu"})
    check.raises("in the function", function() return x + 1 end)
    assert.equal(1, #log)
    assert.equal(1, (x + 1)[1])
    check.raises("in the function", function()
      luma.set_memory_callback(function() error {toString = 1, text = "in the function"} end)
      local _ = x + 1
      local ok, e = pcall(luma.memory)
      assert(not ok and type(e) == "table")
      error(e.text)
    end)
    check.raises("function expected", luma.set_memory_callback, 1)
  end)

  it("does not keep more than it can", function()
    local lost
    luma.set_memory_callback(function(event, _, n) if event == "lost" then lost = n end end)
    local keep = {} -- luacheck: ignore
    for i = 1, 100000 do keep[i] = luma.zeros(1, {device = "cpu"}) end
    assert.is_nil(lost) -- each operation begins with what the one before did
    keep = nil -- luacheck: ignore
    collectgarbage()
    luma.memory()
    assert.is_true(lost > 100000 and lost < 200000, lost)
  end)

  it("in coroutines and finalizers", function()
    local n = 0
    luma.set_memory_callback(function() n = n + 1 end)
    local co = coroutine.wrap(function()
      for _ = 1, 3 do
        luma.zeros(3)
        coroutine.yield()
      end
    end)
    co()
    co()
    assert.is_true(n > 0)
    setmetatable({}, {__gc = function() luma.zeros(3) end})
    collectgarbage()
    collectgarbage()
    luma.set_memory_callback(coroutine.wrap(function() while true do coroutine.yield() end end))
    luma.zeros(3)
    luma.memory()
  end)
end)

describe("a snapshot", function()
  it("of the CPU lists what lives", function()
    local x <close> = luma.zeros(500000, {device = "cpu"}) -- 2 MB
    local found
    for _, segment in ipairs(luma.memory_snapshot("cpu")) do
      local at = segment.address
      for _, block in ipairs(segment.blocks) do
        assert.equal(at, block.address)
        at = at + block.size
        if block.requested_size == x:nbytes() then found = block.state end
      end
      assert.equal(segment.address + segment.total_size, at)
    end
    assert.equal("active_allocated", found)
  end)
end)

describe("out of memory:", function()
  it("under a limit is a Lua error with the figures, and the script goes on", function()
    luma.empty_cache()
    luma.set_memory_limit(luma.memory().reserved + 64 * MB)
    local keep = {}
    local ok, message = pcall(function()
      for i = 1, 100 do keep[i] = luma.zeros(1 << 20) end
    end)
    assert.is_false(ok)
    assert.is_truthy(message:find("memory", 1, true), message)
    assert.is_truthy(message:find(device.name, 1, true), message)
    assert.is_true(#keep > 4)
    keep = nil -- luacheck: ignore
    check.tensor({2, 2}, "float32", luma.ones(2) + 1)
    -- garbage makes room without a word
    for _ = 1, 100 do luma.zeros(1 << 20) end
    luma.set_memory_limit()
    check.raises("negative", luma.set_memory_limit, -1)
  end)

  it("a shape that no machine holds", function()
    check.raises("memory", luma.zeros, 1 << 44)
    check.raises("too large", luma.zeros, 1 << 61)
    check.raises("memory", function() return luma.zeros(1):expand(1 << 44) + 1 end)
    local tall, wide = luma.zeros(1 << 20, 1), luma.zeros(1, 1 << 24)
    check.raises("memory", luma.matmul, tall, wide)
    check.tensor({1}, "float32", luma.ones(1))
  end)

  it("in a small address space #slow", function()
    local output, code = program.shell([[ulimit -v 600000; printf %s '
      local luma = require "luma"
      local keep, n = {}, 0
      for round = 1, 3 do
        keep, n = {}, 0
        local ok, message = pcall(function()
          while n < 10000 do keep[n + 1] = luma.zeros(1 << 20); n = n + 1 end
        end)
        assert(not ok and message:find "memory", message)
        assert(n > 20, n)
        local a, b = keep[1]:reshape(1024, 1024), keep[2]:reshape(1024, 1024)
        pcall(luma.matmul, a, b)
        keep, a, b = nil, nil, nil
        assert((luma.ones(3) + 1)[2] == 2)
      end
      local t = {}
      local ok, message = pcall(function() for i = 1, 1e9 do t[i] = luma.zeros(4) end end)
      assert(not ok, "tiny")
      t = nil
      assert((luma.ones(3) + 1)[2] == 2)
      io.write "went on"' | LUMA_THREADS=2 $LUMA -]])
    assert.equal("went on", output)
    assert.equal(0, code)
  end)
end)

describe("failures at every allocation:", function()
  local x = T {{4, 2, 3}, {1, 5, 6}}
  local i = T({2, 1}, "int64")
  local calls = {
    add = function() return x + x end,
    broadcast = function() return x + x[1] end,
    mixed = function() return x + i:unsqueeze(2) end,
    number = function() return x * 2 end,
    power = function() return i ^ i end,
    equal = function() return x == x:clone() end,
    table = function() return T {{1, 2}, {3, 4}} end,
    ragged = function() return not pcall(T, {{1, 2}, {3}}) or error "no error" end,
    range = function() return luma.range(1, 5) end,
    zeros = function() return luma.zeros(2, 3) end,
    rand = function() return luma.rand(5) end,
    randperm = function() return luma.randperm(5) end,
    bernoulli = function() return T {0.5, 1}:bernoulli() end,
    multinomial = function() return T {0.5, 1}:multinomial(1) end,
    eye = function() return luma.eye(3) end,
    tril = function() return x:tril() end,
    diag = function() return T {1, 2}:diag() end,
    meshgrid = function() return luma.meshgrid(T {1, 2}, T {3}) end,
    view = function() return x:t() end,
    select = function() return x[1] end,
    range_of = function() return x["2, ::2"] end,
    mask = function() return x[x:gt(2)] end,
    pick = function() return x[{i, i}] end,
    pick_columns = function() return x[{{}, i}] end,
    split = function() return x:split(1) end,
    unbind = function() return x:unbind(2) end,
    cat = function() return luma.cat({x, x}, 2) end,
    stack = function() return luma.stack {x, x} end,
    sum = function() return x:sum(1) end,
    var = function() return x:var() end,
    all = function() return x:all() end,
    max = function() return x:max(2) end,
    sort = function() return x:sort() end,
    topk = function() return x:topk(2) end,
    cumsum = function() return x:cumsum() end,
    softmax = function() return x:softmax() end,
    matmul = function() return x:matmul(x:t()) end,
    gather = function() return x:gather(2, {{1}, {2}}) end,
    scatter_add = function() return x:scatter_add(1, {{1, 1, 1}}, luma.ones(1, 3)) end,
    where = function() return luma.where(x:gt(2), x, 0) end,
    to = function() return x:to("float16") end,
    totable = function() return x:t():totable() end,
    tobytes = function() return x:t():tobytes() end,
    item = function() return x:sum():item() end,
    tostring = function() return tostring(x) end,
    walk = function() for _, row in pairs(x) do row:exp() end end,
    out = function() return x:add(1, {out = luma.zeros(2, 3)}) end,
    out_cast = function() return x:t():exp({out = luma.zeros(3, 2)}) end,
    assign = function() luma.zeros(2, 3)["1, ::2"] = {1, 2} end,
    assign_mask = function() luma.zeros(2, 3)[x:gt(2)] = 1 end,
    assign_pick = function() luma.zeros(2, 3)[{i, i}] = T {1, 2} end,
    assign_overlap = function() local y = x:clone(); y[1] = y[2]; y["..."] = y["::-1"] end,
    inplace = function() return x:clone():mul_(x) end,
    inplace_cast = function() return x:clone():add_(x:to("float64")) end,
  }

  x:matmul(x:t()) -- the first product of a device makes what all of them use

  local function tensors(n) luma.fail_after(n, true) end

  local function run(arm, f)
    f() -- a device may keep what its first use made
    local keep = x:tobytes()
    local before = storages()
    local failures = 0
    for n = 1, 2000 do
      arm(n)
      local ok, message = pcall(f)
      luma.fail_after()
      luma.fail_lua_after()
      if ok then
        message = nil -- luacheck: ignore
        assert.equal(keep, x:tobytes())
        assert.equal(before, storages())
        return failures
      end
      if type(message) == "string" and not message:find("memory") and
        not message:find("stack overflow") then error(message) end
      failures = failures + 1
    end
    error("it never succeeds")
  end

  for name, f in pairs(calls) do
    it(name .. " leaks nothing and changes nothing", function()
      run(tensors, f)
      run(luma.fail_lua_after, f)
    end)
  end

  it("are seen", function()
    assert.is_true(run(tensors, calls.add) > 0)
    assert.is_true(run(tensors, calls.matmul) > 0)
    assert.is_true(run(luma.fail_lua_after, calls.add) > 0)
  end)
end)

describe("finalizers and states:", function()
  it("may release arguments while an operation collects", function()
    local output, code = program.shell([[printf %s '
      local luma = require "luma"
      local function trap(...)
        local list = {...}
        setmetatable({}, {__gc = function() for _, t in ipairs(list) do t:free() end end})
      end
      local calls = {
        function(x, y) return x + y end, function(x, y) return x:matmul(y) end,
        function(x, y) return luma.cat {x, y} end, function(x) return x:sum(1) end,
        function(x) return x:sort() end, function(x, y) x[1] = y[1] end,
        function(x, y) return x[y:gt(1)] end, function(x) return x:split(1) end,
        function(x) return x:totable() end, function(x) return x:tobytes() end,
        function(x, y) return x:add(1, {out = y}) end, function(x, y) return x:add_(y) end,
        function(x) return x:to "float64" end, function(x) return x:item() end,
        function(x, y) return x == y end, function(x) return tostring(x) end,
        function(x) for _, r in pairs(x) do r:exp() end end,
        function(x) return x:index_select(1, {1, 2}) end, function(x) return x:tril() end,
        function(x) return x[{luma.tensor({1}, "int64"), {}}] end,
        function(x) return x:multinomial(1) end, function(x) return luma.tensor(x) end,
        function(x) return x:triu {diagonal = 1} end, function(x) return x:diag {diagonal = 1} end,
        function(x) return x:zeros_like {dtype = "int8"} end, function(x) return x:bernoulli() end,
        function(x, y) return luma.meshgrid(x[1], y[1], {indexing = "xy"}) end,
        function(x, y) return x:div(y, {rounding = "floor", out = x}) end,
        function(x, y) return x:max(1, {out = {y, y}}) end, function(x, y) x["1,:"] = y[{2}] end,
        function(x, y) x[y:gt(0)] = y[y:gt(0)] end, function(x) x[1] = {1, 2} end}
      local n = 0
      for _, mode in ipairs {"generational", "incremental"} do
        collectgarbage(mode, 5, 1000, 1)
        for round = 1, 20 do
          for _, f in ipairs(calls) do
            local x, y = luma.ones(2, 2), luma.ones(2, 2)
            trap(x, y)
            local ok, message = pcall(f, x, y)
            if not ok and message:find "released" then n = n + 1 end
          end
        end
      end
      assert(n > 100, n)
      print "fine"' | LUMA_GCSTRESS=1 $LUMA -]])
    assert.equal("fine\n", output)
    assert.equal(0, code)
  end)

  it("may fail while an error is made, and it stays what it was", function()
    local output, code = program.script [[
      local luma = require "luma"
      -- a long name, so that the place in the message is a new string each time
      local fail = load("local luma = ... local x = luma.load('/nowhere/x.npy') return x",
        "=" .. ("x"):rep(50))
      local objects, closed, wrong = 5000, 0, 0
      collectgarbage("incremental", 10, 40, 1)
      collectgarbage("stop")
      for _ = 1, objects do
        setmetatable({}, {__gc = function()
          closed = closed + 1
          pcall(luma.load, "/elsewhere")
        end})
      end
      collectgarbage("restart")
      while closed < objects do
        local _, message = pcall(fail, luma)
        if not message:find("/nowhere/x.npy", 1, true) then wrong = wrong + 1 end
      end
      print(wrong)]]
    assert.equal("0\n", output)
    assert.equal(0, code)
  end)

  it("may use tensors, keep them, and make new ones while the state closes", function()
    local output, code = program.script [[
      local early = setmetatable({}, {__gc = function(o)
        print(pcall(function() return o.x + 1 end))
        print(pcall(function() return luma.zeros(2) end))
      end})
      local luma = require "luma"
      _G.luma = luma
      early.x = luma.ones(2)
      setmetatable({}, {__gc = function() kept = luma.ones(3) + 1 end})
      local live = luma.ones(5)
      _G.live = live]]
    assert.equal(0, code)
    assert.is_falsy(output:find("core dumped"), output)
  end)

  it("a coroutine is as good as the main thread", function()
    local co = coroutine.wrap(function()
      local x = luma.ones(3)
      for k = 1, 3 do
        x = x + k
        coroutine.yield(x)
      end
      error(x)
    end)
    check.tensor({2, 2, 2}, "float32", co())
    check.tensor({4, 4, 4}, "float32", co())
    check.tensor({7, 7, 7}, "float32", co())
    assert.is_true(luma.is_tensor(select(2, pcall(co))))
  end)

  it("tensors are keys and values of weak tables", function()
    local weak = setmetatable({}, {__mode = "kv"})
    weak[luma.zeros(1)] = luma.zeros(2)
    local x = luma.zeros(3)
    weak[x] = x
    collectgarbage()
    collectgarbage()
    local n = 0
    for k in pairs(weak) do
      n = n + 1
      assert.is_true(rawequal(k, x))
    end
    assert.equal(1, n)
  end)
end)
