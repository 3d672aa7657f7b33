-- cuda_memory_spec.lua -- the caching allocator under tensors of a CUDA device: small memory, what is
-- tried when there is none, figures that agree with each other.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"
local program = require "spec.support.program"

local D = device.cuda
local MB = 1 << 20

if not D then
  describe("CUDA memory", function()
    it("needs a device", function() pending(device.no_cuda) end)
  end)
  return
end

-- Output of a script in a process of its own, on an emulated device of 64 MB.
local function script(text, environment)
  local output, code = program.shell(("printf %%s %s | LUMA_CUDA=emulate LUMA_EMU_MEMORY=64M %s $LUMA -")
    :format(program.quote("local luma = require 'luma'\n" .. text), environment or ""))
  assert.equal(0, code, output)
  return output
end

describe("a device of 64 MB:", function()
  local temporaries = [[
    %s
    local x = luma.empty(6 << 20, {device = "cuda"}) -- 24 MB live
    for i = 1, 40 do
      local y = luma.empty(%s, {device = "cuda"}) -- of which two fit beside
      local z = luma.zeros(1000, {device = "cuda"})
      if i %% 20 == 0 then assert(z:sum():item() == 0) end
    end
    local m = luma.memory "cuda"
    print(m.ooms, m.reserved <= 64 << 20)]]
  for _, mode in ipairs {"generational", "incremental", "stop"} do
    it("temporaries never run out of memory while what lives fits, " .. mode, function()
      for _, size in ipairs {"4 << 20", "(i % 4 + 1) << 20", "300000"} do
        assert.equal("0\ttrue\n",
          script(temporaries:format(("collectgarbage %q"):format(mode), size)))
      end
    end)
  end

  it("a large Lua heap changes nothing", function()
    assert.equal("0\ttrue\n", script(temporaries:format(
      "heap = {} for i = 1, 200000 do heap[i] = {i} end", "3 << 20")))
  end)

  it("products take no memory that others need", function()
    local output = script [[
      local cuda = {device = "cuda"}
      local function products(n)
        local x = luma.ones(8, 8, cuda)
        for _ = 1, n do x = x:matmul(x) / 8 end
        assert(x:sum():item() == 64 and luma.cuda.stats().products_own == 0)
      end
      products(3)
      print(luma.memory "cuda".allocated >> 20)    -- the workspace of cuBLAS
      local keep = luma.empty(14 << 20, cuda)      -- 56 MB: in its place
      products(3)
      keep = nil
      for _ = 1, 20 do luma.empty(10 << 20, cuda) products(2) end
      collectgarbage()
      local m = luma.memory "cuda"
      print(m.ooms, m.allocated >> 20)
      products(1100)                               -- long after there is room again
      print(luma.memory "cuda".allocated >> 20)
      collectgarbage()
      luma.empty_cache "cuda"
      print(luma.memory "cuda".reserved == 0, luma.cuda.stats().reports)
      products(1)
      print(luma.memory "cuda".allocated >> 20)]]
    assert.equal("32\n0\t0\n32\ntrue\t0\n32\n", output)
  end)

  it("an operation of many steps gets its memory too", function()
    assert.equal("64\tfine\n", script [[
      local keep = luma.empty(10 << 20, {device = "cuda"})
      for i = 1, 30 do
        local x = luma.range(1, 1 << 17, {device = "cuda"}) -- 1 MB of int64
        local values, positions = x:sort(1, {descending = true})
        assert(values[1] == 1 << 17 and positions[1] == 1 << 17)
      end
      print(luma.cache_info "cuda".device_total >> 20, "fine")]])
  end)

  it("collects before it gives up what is cached", function()
    local output = script [[
      collectgarbage "stop"
      local log = {}
      luma.set_memory_callback(function(event, name, bytes)
        assert(name == "cuda:0")
        log[#log + 1] = event .. " " .. (bytes >> 20)
      end)
      for _ = 1, 3 do luma.empty(5 << 20, {device = "cuda"}) end
      local keep = luma.empty(9 << 20, {device = "cuda"})
      luma.set_memory_callback()
      print(table.concat(log, ", "))]]
    assert.equal("segment_alloc 20, alloc 20, segment_alloc 20, alloc 20, segment_alloc 20, " ..
      "alloc 20, free 20, freed 20, free 20, freed 20, free 20, freed 20, retry 36, " ..
      "segment_free 20, segment_free 20, segment_free 20, segment_alloc 36, alloc 36\n", output)
  end)

  it("says how much there was and goes on", function()
    local output = script [[
      local keep = luma.empty(10 << 20, {device = "cuda"})
      print(select(2, pcall(luma.empty, 10 << 20, {device = "cuda"})))
      print(luma.memory "cuda".ooms, luma.memory "cuda".storages)
      keep = nil
      local x = luma.empty(10 << 20, {device = "cuda"})
      print(luma.memory "cuda".ooms, luma.ones(3, {device = "cuda"}):sum():item())]]
    assert.matches("out of memory on cuda:0: tried to allocate 40%.00 MiB; 64%.00 MiB total, " ..
      "2%d%.%d%d MiB free, 40%.00 MiB allocated, 40%.00 MiB reserved, of which 0 bytes are " ..
      "unused\n1\t1\n1\t3%.0\n$", output)
  end)

  it("a limit is kept, as bytes or as a share", function()
    local output = script [[
      local cuda = {device = "cuda"}
      luma.set_memory_limit(0.5, "cuda")
      print(luma.memory "cuda".limit >> 20)
      local keep = luma.empty(5 << 20, cuda)
      print(select(2, pcall(luma.empty, 5 << 20, cuda)))
      for _ = 1, 10 do luma.empty(2 << 20, cuda) end
      collectgarbage()
      luma.set_memory_limit(24 << 20, "cuda")
      print(luma.memory "cuda".reserved <= 24 << 20, pcall(luma.empty, 2 << 20, cuda))
      luma.set_memory_limit(0, "cuda")
      print((pcall(luma.empty, 8 << 20, cuda)))
      luma.set_memory_limit(1e-300, "cuda")
      print(luma.memory "cuda".limit)]]
    assert.matches("^32\n.*, limit 32%.00 MiB\ntrue\tfalse\t.*out of memory.*\ntrue\n1\n$", output)
  end)

  it("every size of block, until it is full, and again", function()
    assert.equal("fine\n", script [[
      local state = 1
      local function random(n) state = state * 48271 % 2147483647 return state % n + 1 end
      for round = 1, 2 do
        local keep = {}
        repeat
          local n = random(3) == 1 and random(1 << 20) or random(2000)
          local ok, x = pcall(luma.empty, n, {device = "cuda"})
          if ok then
            keep[#keep + 1] = x
            x[1], x[-1] = #keep, #keep
          end
        until not ok
        assert(luma.memory "cuda".allocated > 48 << 20, luma.memory "cuda".allocated >> 20)
        for i = 1, 50 do
          local k = random(#keep)
          assert(keep[k][1] == k and keep[k][-1] == k)
        end
        keep = nil
        collectgarbage()
        luma.empty_cache "cuda"
        assert(luma.memory "cuda".reserved == 0, luma.memory "cuda".reserved)
      end
      print "fine"]])
  end)

  it("a driver that fails for once is asked again", function()
    for _, name in ipairs {"cuMemAlloc_v2:3", "cuMemAlloc_v2:4", "cuMemFree_v2:1", "cuMemFree_v2:2",
                           "cuMemGetInfo_v2:1", "cuMemGetInfo_v2:2"} do
      assert.equal("3.0\ttrue\t0\n", script([[
        for _ = 1, 40 do luma.empty(3 << 20, {device = "cuda"}) end
        local x = luma.ones(3, {device = "cuda"})
        local sum = x:sum():item()
        x = nil
        collectgarbage()
        luma.empty_cache()
        print(sum, luma.memory "cuda".reserved == 0, luma.memory "cuda".ooms)]],
        "LUMA_EMU_FAIL=" .. name))
    end
  end)

  it("without a cache every block is one of the driver's", function()
    local output = script([[
      local cuda = {device = "cuda"}
      local x, y = luma.ones(7, cuda), luma.zeros(1001, {device = "cuda", dtype = "int8"})
      local z = luma.zeros(0, cuda)
      local m = luma.memory "cuda"
      print(m.reserved, m.segments, m.storages, m.inactive_split)
      assert(x:sum():item() == 7)
      x, y = nil, nil
      collectgarbage()
      print(luma.memory "cuda".reserved)
      for _ = 1, 30 do luma.empty(4 << 20, cuda) end
      print(luma.memory "cuda".ooms, luma.cuda.stats().reports)]], "LUMA_CUDA_NO_CACHE=1")
    assert.equal("1030\t3\t3\t0\n1\n0\t0\n", output)
  end)

  it("two devices have memory of their own", function()
    local output = script([[
      local x = luma.empty(8 << 20, {device = "cuda:0"})
      local y = luma.empty(8 << 20, {device = "cuda:1"})
      print(luma.memory "cuda:0".storages, luma.memory "cuda:1".storages)
      print((pcall(luma.empty, 9 << 20, {device = "cuda:1"})))
      y = nil
      for _ = 1, 10 do -- read by one device while the other has new tensors
        local a = luma.full({10000}, 3, {device = "cuda:0"})
        local b = a:to "cuda:1"
        a:free()
        luma.full({10000}, 4, {device = "cuda:0"})
        assert(b:amax():item() == 3 and b:amin():item() == 3)
      end
      luma.empty_cache "cuda:1"
      print(luma.memory "cuda:0".reserved > 0, luma.cuda.stats().reports)]], "LUMA_EMU_DEVICES=2")
    assert.equal("1\t1\nfalse\ntrue\t0\n", output)
  end)
end)

describe("with memory to spare", function()
  it("temporaries stay within twice the live set and 64 MB", function()
    for _, mode in ipairs {"generational", "incremental"} do
      for _, case in ipairs {{"4", 1000, 3000}, {"1 << 20", 1 << 20, 100}, {"4 << 20", 2 << 20, 60},
                             {"4", 9 << 20, 10}} do
        local output = script(([[
          collectgarbage %q
          local x = luma.empty(%s, {device = "cuda"})
          local live = luma.memory "cuda".allocated
          for i = 1, %d do
            local y = luma.empty(%d, {device = "cuda"})
            local z = y["1:9"]
          end
          local m = luma.memory "cuda"
          print(m.peak_allocated <= 2 * live + (68 << 20), m.ooms, m.retries)]])
          :format(mode, case[1], case[3], case[2]), "LUMA_EMU_MEMORY=4G")
        assert.equal("true\t0\t0\n", output)
      end
    end
  end)

  it("what is released serves again, and the driver is left alone", function()
    assert.equal("1\t0\n", script([[
      local cuda = {device = "cuda"}
      local function work() for i = 1, 50 do luma.zeros(3000 + i, cuda):sum() end end
      work()
      collectgarbage()
      luma.reset_accumulated "cuda"
      for _ = 1, 5 do work() end
      local s = luma.memory_stats "cuda"
      print(s.small.segment.current, s.all.segment.allocated)]], "LUMA_EMU_MEMORY=4G"))
  end)
end)

describe("figures of a device", function()
  -- What must hold between them whatever happened.
  local function agree()
    collectgarbage "stop"
    local s, m, info = luma.memory_stats(D), luma.memory(D), luma.cache_info(D)
    for name, all in pairs(s.all) do
      for _, field in ipairs {"current", "allocated", "freed"} do
        assert.equal(all[field], s.small[name][field] + s.large[name][field], name .. field)
      end
      for _, pool in ipairs {"all", "small", "large"} do
        local f = s[pool][name]
        assert.equal(f.current, f.allocated - f.freed, name)
        assert.is_true(f.peak >= f.current and f.peak <= f.allocated and f.current >= 0, name)
      end
    end
    local a = s.all
    assert.is_true(a.requested_bytes.current <= a.active_bytes.current)
    assert.is_true(a.allocated_bytes.current <= a.active_bytes.current)
    assert.is_true(a.active_bytes.current + a.inactive_split_bytes.current <=
      a.reserved_bytes.current)
    assert.equal(a.reserved_bytes.current - a.active_bytes.current, info.free_cached)
    assert.equal(m.largest_free, info.largest_block)
    assert.equal(a.allocated_bytes.current, m.allocated)
    assert.equal(a.reserved_bytes.peak, m.peak_reserved)
    local seen = {segments = 0, reserved = 0, allocation = 0, inactive = 0, requested = 0}
    local largest = 0
    for _, segment in ipairs(luma.memory_snapshot(D)) do
      local at, blocks = segment.address, segment.blocks
      for i, block in ipairs(blocks) do
        assert.equal(at, block.address)
        at = at + block.size
        if block.state == "inactive" then
          assert.is_true(i == 1 or blocks[i - 1].state ~= "inactive")
          largest = math.max(largest, block.size)
          if #blocks > 1 then seen.inactive = seen.inactive + block.size end
        else
          seen.allocation = seen.allocation + 1
          seen.requested = seen.requested + block.requested_size
        end
      end
      assert.equal(segment.address + segment.total_size, at)
      assert.equal(segment.segment_type == "small" and 2 * MB or segment.total_size,
        segment.total_size)
      seen.segments = seen.segments + 1
      seen.reserved = seen.reserved + segment.total_size
    end
    assert.equal(a.segment.current, seen.segments)
    assert.equal(a.reserved_bytes.current, seen.reserved)
    assert.equal(a.allocation.current, seen.allocation)
    assert.equal(a.inactive_split_bytes.current, seen.inactive)
    assert.equal(a.requested_bytes.current, seen.requested)
    assert.equal(largest, info.largest_block)
    collectgarbage "restart"
  end

  it("agree", function()
    luma.zeros(1, {device = D})
    collectgarbage()
    luma.empty_cache(D)
    local before = luma.memory_stats(D)
    local keep = {} -- luacheck: ignore
    for i = 1, 400 do
      keep[math.random(60)] = luma.empty(math.random(i % 10 == 0 and MB or 9000), {device = D})
      if i % 20 == 0 then agree() end
    end
    keep = {} -- luacheck: ignore
    collectgarbage()
    agree()
    luma.empty_cache(D)
    agree()
    assert.equal(before.all.allocation.current, luma.memory_stats(D).all.allocation.current)
  end)

  it("begin anew when they are reset", function()
    do
      local x <close> = luma.empty(4 * MB, {device = D})
      assert.is_true(luma.memory(D).peak_allocated >= 16 * MB and x ~= nil)
    end
    luma.reset_peak(D)
    local m = luma.memory(D)
    assert.equal(m.allocated, m.peak_allocated)
    luma.reset_accumulated(D)
    local s = luma.memory_stats(D)
    assert.equal(0, s.all.allocation.allocated + s.small.segment.freed + s.retries + s.ooms)
    -- what comes after counts on from what is there, so sums no longer give what is there
    luma.zeros(1, {device = D}):free()
    assert.equal(1, luma.memory_stats(D).small.allocation.allocated)
  end)

  it("of devices that are not there", function()
    for _, name in ipairs {"memory", "memory_stats", "memory_snapshot", "cache_info", "reset_peak",
                           "reset_accumulated", "empty_cache"} do
      check.raises("no device 'cuda:99'", luma[name], "cuda:99")
      check.raises("device expected", luma[name], {})
    end
  end)
end)
