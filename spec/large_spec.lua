-- large_spec.lua -- 2^31 + 8 elements of uint8 on the CPU: views, copies, elementwise, reductions,
-- indexing; and every example of the registry with its tensors at the far end of such memory.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"

if not device.is_cpu then return end

local N = (1 << 31) + 8
local enough = luma.cache_info("cpu").device_free > 3 * N -- of memory, not to make others wait for it

describe("2^31 + 8 elements #slow #once", function()
  local x, y
  local it = enough and it or pending

  setup(function()
    if not enough then return end
    x = luma.full({N}, 3, {dtype = "uint8"})
    y = luma.empty(N, {dtype = "uint8"})
  end)
  teardown(function()
    if not enough then return end
    x:free()
    y:free()
    luma.empty_cache()
  end)
  before_each(function()
    if not enough then return end
    x:fill_(3)
    x[N] = 200
    x[N - 1] = 1
  end)

  it("reduce", function()
    assert.equal(N, x:numel())
    assert.equal(N, x:nbytes())
    assert.equal(3 * (N - 2) + 201, x:sum():item())
    assert.equal(200, x:amax():item())
    assert.equal(1, x:amin():item())
    assert.equal(N, x:argmax():item())
    check.near((3 * (N - 2) + 201) / N, x:mean():item())
    assert.is_true(x:all())
    x[N] = 0
    assert.is_false(x:all())
    x:fill_(0)
    assert.is_false(x:any())
    x[N] = 5
    assert.is_true(x:any())
    local rows = luma.ones(1, {dtype = "uint8"}):expand(N)
    assert.equal(N, rows:sum():item())
  end)

  it("along dims of a matrix", function()
    local m = x:view(2, N // 2)
    local sums = m:sum(2):totable()
    assert.same({3 * (N // 2), 3 * (N // 2 - 2) + 201}, sums)
    assert.same({1, N // 2}, m:argmax(2):totable())
    assert.same({3, 3, 200}, m:amax(1)[{{-3, -1}}]:totable()) -- 3 and 3, 3 and 1, 3 and 200
    local tall = x:view(N // 2, 2)
    assert.same({3 * (N // 2 - 1) + 1, 3 * (N // 2 - 1) + 200}, tall:sum(1):totable())
  end)

  it("are written, copied, compared", function()
    y:copy_(x)
    assert.equal(200, y(N))
    assert.equal(1, y(N - 1))
    assert.is_true(x == y)
    y[N] = 7
    assert.is_false(x == y)
    y:copy_(x:flip(1))
    assert.same({200, 1, 3}, y[{{1, 3}}]:totable())
    assert.equal(3, y(N))
    y:view(2, N // 2):copy_(x:view(N // 2, 2):t())
    assert.equal(200, y(N))
    assert.equal(1, y(N // 2))
    assert.equal(3, y(N - 1))
    y:slice(1, 1, N, 2):copy_(x:slice(1, N, 1, -2))
    assert.equal(200, y(1))
    assert.equal(3, y(N - 1))
    y:view({N // 8, 8}):narrow(1, N // 8, 1):fill_(9)
    assert.same({9, 9, 9, 9, 9, 9, 9, 9}, y[{{-8, -1}}]:totable())
    assert.equal(3, y(N - 9))
  end)

  it("are computed with", function()
    x:add_(2)
    assert.same({5, 5, 3, 202}, x[{{-4, -1}}]:totable())
    assert.equal(5, x(1))
    luma.mul(x, 2, {out = y})
    assert.same({10, 10, 6, 148}, y[{{-4, -1}}]:totable())
    luma.add(x, y:flip(1), {out = y}) -- over its input, the other way round
    assert.equal(5 + 148, y(1))
    assert.equal((202 + 10) % 256, y(N))
    luma.where(luma.ones(1, {dtype = "bool"}):expand(N), x, y, {out = y})
    assert.is_true(x == y)
    luma.maximum(x, luma.tensor(7, "uint8"), {out = y})
    assert.same({7, 7, 7, 202}, y[{{-4, -1}}]:totable())
  end)

  it("are indexed at their end", function()
    local far = luma.tensor({N, 1, N - 1}, "int64")
    assert.same({200, 3, 1}, x:index_select(1, far):totable())
    assert.same({200, 3, 1}, x:take(far):totable())
    assert.same({200, 3, 1}, x:gather(1, far):totable())
    assert.same({200, 3, 1}, x[far]:totable())
    x[far] = luma.tensor({11, 12, 13}, "uint8")
    assert.same({3, 13, 11}, x[{{-3, -1}}]:totable())
    assert.equal(12, x(1))
    x:index_add_(1, far, luma.tensor({1, 1, 1}, "uint8"))
    assert.same({3, 14, 12}, x[{{-3, -1}}]:totable())
    x:scatter_(1, far, luma.tensor({21, 22, 23}, "uint8"))
    assert.same({3, 23, 21}, x[{{-3, -1}}]:totable())
    check.raises(("index %d"):format(N + 1), x.index_select, x, 1, luma.tensor({N + 1}, "int64"))
    check.raises("past the last one", function() return x[N + 1] end)
    assert.equal(21, x:select(1, -1):item())
    assert.same({23, 21}, luma.cat({x:narrow(1, N - 1, 2), x:narrow(1, N - 1, 2)}):narrow(1, 3, 2):totable())
    local windows = x:unfold(1, 4, 2)
    assert.equal((N - 4) // 2 + 1, windows:size(1))
    assert.same({3, 3, 23, 21}, windows[-1]:totable())
  end)
end)

-- ---- far away ----

-- Memory for views that begin past 2^31 elements, of each dtype; its pages are those that are touched.
local ends = {}
local function place(t)
  local dtype, n = t.dtype, t:numel()
  if ends[dtype] == nil then
    local room = N + (1 << 16)
    local good, memory = pcall(luma.empty, room, {dtype = dtype})
    ends[dtype] = good and {memory = memory, next = room} or false
  end
  local e = ends[dtype]
  if not e or n == 0 then return t end
  if e.next - n <= N then e.next = N + (1 << 16) end -- what was there is of no use any more
  e.next = e.next - n
  local view = e.memory:narrow(1, e.next + 1, n)
  return view:view(t.shape):copy_(t)
end

-- The last dim backward, and apart.
local function scatter(t)
  local shape = t.shape
  if #shape == 0 or t:numel() == 0 then return place(t) end
  shape[#shape] = 2 * shape[#shape]
  local wide = place(luma.zeros(shape, {dtype = t.dtype}))
  return wide:slice(#shape, shape[#shape], 2, -2):copy_(t)
end

-- luma whose new tensors are moved.
local function moved(move)
  local makers = {}
  for _, op in ipairs(luma.ops) do
    if op.row == "make" then
      makers[op.name] = function(...)
        local t = luma[op.name](...)
        return luma.is_tensor(t) and move(t) or t
      end
    end
  end
  return setmetatable(makers, {__index = luma})
end

local function show(v)
  if luma.is_tensor(v) then return v.dtype .. table.concat(v.shape, "x") .. v:tobytes() end
  if type(v) ~= "table" then return tostring(v) end
  local out = {}
  for i = 1, v.n or #v do out[i] = show(v[i]) end
  return table.concat(out, "|")
end

local function result_of(code, library)
  luma.manual_seed(3)
  return show(table.pack(assert(load("return " .. code, "=example", "t", {luma = library}))()))
end

describe("past 2^31 elements of other memory #slow #once", function()
  teardown(function()
    for _, e in pairs(ends) do
      if e then e.memory:free() end
    end
    ends = {}
    collectgarbage()
    luma.empty_cache()
  end)

  for name, move in pairs {["side by side"] = place, ["backward"] = scatter} do
    it("every example holds, " .. name, function()
      local far, count = moved(move), 0
      for _, op in ipairs(luma.ops) do
        local code = luma.help(op.name):match "\n    example: ([^\n]+)"
        if code and op.row ~= "make" and op.name ~= "as_strided" then
          local good, want = pcall(result_of, code, luma)
          if good then
            assert.equal(want, result_of(code, far), op.name)
            count = count + 1
          end
        end
      end
      assert.is_true(count > 150, tostring(count))
    end)
  end

  it("rows change their first tensor in place", function()
    local plain = luma.range(1, 12):to("float32"):reshape(3, 4)
    for _, op in ipairs(luma.ops) do
      local twin = luma[op.name .. "_"]
      if op.inplace and twin and (op.row == "unary" or op.row == "binary") and op.takes ~= "ints" and
         op.takes ~= "bits" then
        local x, y = plain:clone(), scatter(plain)
        local other = op.row == "binary" and place(plain:flip(1)) or nil
        twin(x, other and plain:flip(1))
        twin(y, other)
        assert.equal(show(x), show(y), op.name)
      end
    end
  end)
end)
