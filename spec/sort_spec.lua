-- sort_spec.lua -- sort, argsort and topk against a plain Lua sort: every dtype and layout, lengths
-- around each change of method, ties, NaN, signed zeros.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"

local T, nan, inf = luma.tensor, 0 / 0, math.huge
math.randomseed(21)

local function rank(v) return v == true and 1 or v == false and 0 or v end

-- Positions of the list in order: NaN greatest, ties by position.
local function order(list, descending)
  local p = {}
  for i = 1, #list do p[i] = i end
  table.sort(p, function(i, j)
    local a, b = rank(list[i]), rank(list[j])
    if descending then a, b = b, a end
    local less = a < b or a == a and b ~= b
    local more = b < a or b == b and a ~= a
    if less or more then return less end
    return i < j
  end)
  return p
end

local function draw(n, dtype)
  local list = {}
  for i = 1, n do
    local v = math.random(-99, 99)
    if dtype == "bool" then
      v = v > 0
    elseif dtype:find("uint") then
      v = v + 99
    elseif dtype:find("float") then
      v = v % 11 == 0 and nan or v % 12 == 0 and inf or v % 13 == 0 and -inf or v / 8
      if v == 0 then v = math.random(2) == 1 and 0.0 or -0.0 end
    end
    list[i] = v
  end
  return list
end

-- The list as a row of x along dim 1, in every layout.
local function layouts(list, dtype)
  local x, n = T(list, dtype), #list
  if n == 0 then x = luma.zeros(0, {dtype = dtype}) end
  local wide = luma.zeros(2 * n + 1, {dtype = dtype}):slice(1, 2, 2 * n + 1, 2)
  local column = luma.zeros(n, 3, {dtype = dtype}):select(2, 2)
  return {contiguous = x, stepped = wide:copy_(x), column = column:copy_(x),
    reversed = x:flip(1):contiguous():flip(1),
    offset = luma.cat {luma.zeros(3, {dtype = dtype}), x}:narrow(1, 4, n)}
end

local function bits(v) return v == 0 and 1 / v or v end

-- values and positions are those of the first k in the order p, to the sign of zeros.
local function check_row(list, p, k, values, positions)
  local got = positions:totable()
  assert.equal(k, #got)
  for i = 1, k do
    if got[i] ~= p[i] then error(("place %d: position %d, not %d"):format(i, got[i], p[i]), 0) end
  end
  if not values then return end
  for i, v in ipairs(values:totable()) do
    local e = list[p[i]]
    if not (bits(v) == bits(e) or v ~= v and e ~= e) then
      error(("place %d: %s, not %s"):format(i, tostring(v), tostring(e)), 0)
    end
  end
end

local function check_all(n, dtype)
  local list = T(draw(n, dtype), dtype):totable() -- as the dtype holds them
  local orders = {[false] = order(list, false), [true] = order(list, true)}
  for name, x in pairs(layouts(list, dtype)) do
    for descending, order_of in pairs(orders) do
      local ok, message = pcall(function()
        local options = {descending = descending}
        local v, p = x:sort(1, options)
        assert.equal(dtype, v.dtype)
        assert.equal("int64", p.dtype)
        check_row(list, order_of, n, v, p)
        check_row(list, order_of, n, nil, x:argsort(options))
        for _, k in ipairs {0, 1, n // 5, n} do
          if k <= n then
            v, p = x:topk(k, 1, {largest = descending})
            check_row(list, order_of, k, v, p)
          end
        end
      end)
      if not ok then
        error(("%s %d %s %s: %s"):format(dtype, n, name, tostring(descending), message), 0)
      end
    end
  end
end

describe("a row", function()
  for _, dtype in ipairs(check.dtypes) do
    it("of " .. dtype, function()
      for n = 1, 18 do check_all(n, dtype) end
      for _, n in ipairs {31, 32, 33, 199, 200, 201, 255, 256, 257, 1023, 1024, 1025} do
        check_all(n, dtype)
      end
    end)
  end

  it("of several thousand", function()
    for _, dtype in ipairs {"float32", "int64", "uint8"} do check_all(5000, dtype) end
  end)

  it("of all bit patterns of the small floats", function()
    for _, dtype in ipairs {"float8_e4m3", "float16", "bfloat16"} do
      local step, bytes = dtype == "float8_e4m3" and 1 or 37, {}
      for i = 0, dtype == "float8_e4m3" and 255 or 65535, step do
        bytes[#bytes + 1] = string.pack(step == 1 and "<B" or "<I2", i)
      end
      local x = luma.frombytes(table.concat(bytes), dtype, {#bytes})
      local list = x:totable()
      check_row(list, order(list, false), #list, x:sort())
      check_row(list, order(list, true), #list, x:sort {descending = true})
    end
  end)

  it("of the extremes", function()
    local most, least = math.maxinteger, math.mininteger
    local v, p = T({0, least, most, -1, 1, least}, "int64"):sort()
    check.tensor({least, least, -1, 0, 1, most}, "int64", v)
    check.tensor({2, 6, 4, 1, 5, 3}, "int64", p)
    check.tensor({2, 1, 3}, "int64", T({1 << 31, 0, (1 << 32) - 1}, "uint32"):argsort())
    local tiny = 2.0 ^ -149
    check.tensor({4, 3, 2, 1, 5}, "int64", T({inf, tiny, -tiny, -inf, nan}):argsort())
    v = T {-nan, 1, nan, -inf}:sort {descending = true}
    check.tensor({nan, nan, 1, -inf}, "float32", v)
  end)
end)

describe("a dim", function()
  it("of any number, negative ones from the end", function()
    local shape = {3, 5, 4}
    for _, dtype in ipairs {"float32", "int16", "float64"} do
      local base = T(draw(60, dtype), dtype):reshape(shape)
      for _, x in ipairs {base, base:permute(3, 1, 2):contiguous():permute(2, 3, 1),
          base:flip {1, 3}:contiguous():flip {1, 3}} do
        for dim = 1, 3 do
          for _, k in ipairs {shape[dim], 2} do
            local v, p = x:topk(k, dim - 4, {largest = false})
            local moved, mv, mp = x:movedim(dim, 3), v:movedim(dim, 3), p:movedim(dim, 3)
            for i = 1, moved.shape[1] do
              for j = 1, moved.shape[2] do
                local list = moved[{i, j}]:totable()
                check_row(list, order(list, false), k, mv[{i, j}], mp[{i, j}])
              end
            end
          end
        end
      end
    end
  end)

  it("defaults to the last", function()
    local x = T {{3, 1, 2}, {4, 6, 5}}
    local v, p = x:sort()
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float32", v)
    check.tensor({{2, 3, 1}, {1, 3, 2}}, "int64", p)
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float32", (x:sort(2)))
    check.tensor({{3, 1, 2}, {4, 6, 5}}, "float32", (x:sort(1)))
    v, p = x:topk(1)
    check.tensor({{3}, {6}}, "float32", v)
    check.tensor({{1}, {2}}, "int64", p)
  end)

  it("may be empty, or not there", function()
    for _, dtype in ipairs(check.dtypes) do
      for _, shape in ipairs {{0}, {3, 0}, {0, 3}, {2, 0, 2}} do
        local x = luma.zeros(shape, {dtype = dtype})
        for dim = 1, #shape do
          local v, p = x:sort(dim)
          assert.same(shape, v.shape)
          assert.same(shape, p.shape)
          assert.same(shape, x:argsort(dim).shape)
          assert.same(shape, x:topk(shape[dim], dim).shape)
        end
      end
    end
    local v, p = T(5):sort()
    check.tensor(5, "float32", v)
    check.tensor(1, "int64", p)
    check.tensor(1, "int64", T(5):argsort(1))
    v, p = T(5):topk(1)
    check.tensor(5, "float32", v)
    check.tensor(1, "int64", p)
  end)
end)

it("ties stay in order, both ways", function()
  local x = T({3, 1, 4, 1, 5, 9, 2, 6, 5}, "int64")
  check.tensor({2, 4, 7, 1, 3, 5, 9, 8, 6}, "int64", x:argsort())
  check.tensor({6, 8, 5, 9, 3, 1, 7, 2, 4}, "int64", x:argsort {descending = true})
  for _, dtype in ipairs {"int32", "float32", "float64", "uint8"} do
    local p = luma.range(0, 2999):remainder(3):to(dtype):argsort()
    check.tensor({1, 4, 7, 10}, "int64", p["1:4"])
    check.tensor({2998, 2, 5, 8}, "int64", p["1000:1003"])
    check.tensor({2994, 2997, 3000}, "int64", p["2998:3000"])
  end
end)

describe("the first of equals", function()
  it("for argmax and argmin", function()
    local x = T {{2, 3, 0, 3, 3}, {1, 3, 1, 3, 1}}
    check.tensor({2, 2}, "int64", x:argmax(2))
    check.tensor({3, 1}, "int64", x:argmin(2))
    check.tensor({2, 2}, "int64", x:t():contiguous():t():argmax(2))
    check.tensor(1, "int64", luma.zeros(2001):argmax())
    check.tensor(1, "int64", luma.zeros(2001):argmin())
    check.tensor(2, "int64", T {0, 1}:tile(600):argmax())
    check.tensor(2, "int64", T {1, 0}:tile(600):argmin())
    check.tensor(2, "int64", T {false, true, true}:argmax())
    check.tensor(1, "int64", T {-0.0, 0.0}:argmax())
    check.tensor(1, "int64", T {-0.0, 0.0}:argmin())
  end)

  it("for topk", function()
    local v, p = luma.zeros(2001):topk(3)
    check.tensor({0, 0, 0}, "float32", v)
    check.tensor({1, 2, 3}, "int64", p)
    v, p = T {0, 1}:tile(600):topk(3)
    check.tensor({1, 1, 1}, "float32", v)
    check.tensor({2, 4, 6}, "int64", p)
    local _, q = T {0.0, -0.0, 0.0}:topk(2, 1, {largest = false})
    check.tensor({1, 2}, "int64", q)
  end)
end)

it("topk refuses a k that is not there", function()
  check.raises("k is 4: 0 to 3, the size of dim 1, expected", luma.topk, luma.zeros(3), 4)
  check.raises("k is -1", luma.topk, luma.zeros(3), -1)
  check.raises("k is 3: 0 to 2, the size of dim 2", luma.topk, luma.zeros(3, 2), 3)
  check.raises("dim", luma.sort, luma.zeros(3), 2)
end)

it("results go where out says, over the input too", function()
  local x, p = T {3, 1, 2}, luma.zeros(3, {dtype = "int64"})
  local v, q = x:sort(1, {out = {x, p}})
  assert.equal(x, v)
  assert.equal(p, q)
  check.tensor({1, 2, 3}, "float32", x)
  check.tensor({2, 3, 1}, "int64", p)
  x = T({3, 1, 2}, "int64")
  check.tensor({2, 3, 1}, "int64", x:argsort {out = x})
  local wide = luma.zeros(6, {dtype = "int64"})
  T {3, 1, 2}:argsort {out = wide["5:1:-2"]}
  check.tensor({1, 0, 3, 0, 2, 0}, "int64", wide)
  x = T({5, 4}, "int64")
  check.raises("overlap", luma.sort, x, {out = {x, x}})
  check.raises("out is", luma.sort, x, {out = {x, luma.zeros(3, {dtype = "int64"})}})
  check.tensor({5, 4}, "int64", x)
end)

it("threads change nothing; long rows are in order", function()
  local threads = luma.config().threads
  local n = 200000
  local x = luma.range(1, n):mul(48271):remainder(65537):to("float32")
  local rows = x:reshape(1000, 200)
  local results = {}
  for k = 1, 2 do
    luma.set_num_threads(k)
    local v, p = x:sort()
    local tv, tp = x:topk(1000)
    results[k] = {v, p, tv, tp, x:to("float64"):argsort(), rows:argsort(1), rows:argsort(2)}
  end
  luma.set_num_threads(threads)
  for i, r in ipairs(results[1]) do assert.is_false(r:ne(results[2][i]):any()) end
  local v, p = results[1][1], results[1][2]
  assert.is_true(v["2:"]:ge(v[{{1, n - 1}}]):all())
  assert.is_true(x:take(p):eq(v):all())
  local same = v["2:"]:eq(v[{{1, n - 1}}])
  assert.is_true(p["2:"]:gt(p[{{1, n - 1}}]):masked_select(same):all())
  check.tensor(luma.range(1, n):totable(), "int64", (p:sort()))
end)
