-- index_lua_spec.lua -- x[...], x(...), assignment, and walking: the whole of the language's
-- section on indexing.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"

local T, nan, inf = luma.tensor, 0 / 0, math.huge

local function get(x, k) return function() return x[k] end end
local function set(x, k, v) return function() x[k] = v end end

-- 3 x 4, counted in rows.
local function grid() return luma.range(1, 12):to("float32"):reshape(3, 4) end

describe("one position:", function()
  it("counts from 1, from the end when negative; 0 is an error", function()
    local x = T {10, 20, 30}
    check.value(10.0, x[1])
    check.value(30.0, x[3])
    check.value(30.0, x[-1])
    check.value(10.0, x[-3])
    check.value(20.0, x[2.0])
    check.raises("position 0", get(x, 0))
    check.raises("position 0", get(x, 0.0))
    check.raises("past the last", get(x, 4))
    check.raises("position 5 is out of range: dim 1 of [3] has size 3", get(x, 5))
    check.raises("-4", get(x, -4))
  end)

  it("must be a whole number", function()
    local x = T {10, 20}
    for _, bad in ipairs {1.999, nan, inf, 2.0 ^ 63} do
      check.raises("no integer representation", get(x, bad))
      check.raises("no integer representation", set(x, bad, 1))
      check.raises("no integer representation", get(x, {bad}))
    end
    check.raises("index expected, got boolean", get(x, true))
    check.raises("index expected, got nil", function() return x[nil] end)
    check.raises("index expected, got function", get(x, print))
    check.raises("out of range", get(x, math.maxinteger))
    check.raises("out of range", get(x, math.mininteger))
  end)

  it("selects along dim 1, as a view", function()
    local x = grid()
    check.tensor({5, 6, 7, 8}, "float32", x[2])
    assert.is_true(x[2]:shares_storage(x))
    check.value(6.0, x[2][2])
    x[2][2] = 60
    check.value(60.0, x[2][2])
    check.value(60.0, x(2, 2))
  end)

  it("gives integers, booleans and floats", function()
    for _, dtype in ipairs(check.integers) do check.value(7, T({7}, dtype)[1]) end
    for _, dtype in ipairs(check.floats) do check.value(7.0, T({7}, dtype)[1]) end
    check.value(true, T {true}[1])
    check.tensor(7, "int64", T({7}, "int64"):select(1, 1))
  end)

  it("of a 0-d tensor there is none", function()
    check.raises("0 dims", get(T(1), 1))
    check.value(1.0, T(1)[{}])
  end)

  it("works through every layout", function()
    local x = grid()
    check.value(7.0, x:t()[3][2])
    check.value(7.0, x:t()(3, 2))
    check.value(11.0, x:flip({1, 2})(1, 2))
    check.value(3.0, x[1]:expand(5, 4)(5, 3))
    check.value(10.0, x["::2"]["2"]["2"])
  end)
end)

describe("one entry for each dim:", function()
  it("select, range, stepped range, one kept dim, all", function()
    local x = grid()
    check.value(7.0, x[{2, 3}])
    check.tensor({2, 3}, "float32", x[{1, {2, 3}}])
    check.tensor({1, 3}, "float32", x[{1, {1, 4, 2}}])
    check.tensor({4, 3, 2, 1}, "float32", x[{1, {4, 1, -1}}])
    check.tensor({4, 2}, "float32", x[{1, {4, 1, -2}}])
    check.tensor({{5, 6, 7, 8}}, "float32", x[{{2}}])
    check.tensor({{9, 10, 11, 12}}, "float32", x[{{-1}}])
    check.tensor({2, 6, 10}, "float32", x[{{}, 2}])
    check.tensor({3, 4}, "float32", x[{1, {3, -1}}])
    check.tensor({2, 3}, "float32", x[{1, {-3, -2}}])
  end)

  it("fewer entries mean all of the rest", function()
    local x = grid()
    check.tensor({1, 2, 3, 4}, "float32", x[{1}])
    assert.is_true(x[{}]:equal(x))
    assert.is_true(x[{}]:shares_storage(x))
    check.raises("3 indices for [3 x 4], which has 2 dims", get(x, {1, 2, 3}))
    check.raises("2 indices for [2], which has 1 dim", get(T {1, 2}, {1, {}}))
  end)

  it("ranges are views and are not clamped", function()
    local x = grid()
    assert.is_true(x[{{2, 3}}]:shares_storage(x))
    check.raises("position 4 is out of range: dim 1 of [3 x 4] has size 3", get(x, {{2, 4}}))
    check.raises("position 5 is out of range: dim 2 of [3 x 4] has size 4", get(x, {1, {5, 6}}))
    check.raises("-5", get(x, {1, {-5, 2}}))
    check.raises("position 0", get(x, {{0, 2}}))
    check.raises("out of range", get(x, {{1, 0, -1}}))
    check.raises("step is zero", get(x, {{1, 2, 0}}))
    check.raises("{first, last, step}", get(x, {{1, 2, 3, 4}}))
    check.raises("integer", get(x, {{1, 2.5}}))
    check.raises("integer expected, got string", get(x, {{"1", 2}}))
  end)

  it("{a, a - 1} is empty, other ranges against their step are errors", function()
    local x = T {1, 2, 3}
    check.tensor({}, "float32", x[{{1, 0}}])
    check.tensor({}, "float32", x[{{2, 1}}])
    check.tensor({}, "float32", x[{{4, 3}}])
    check.tensor({}, "float32", x["4:3"])
    check.tensor({}, "float32", luma.zeros(0)[{{1, 0}}])
    check.tensor({}, "float32", luma.zeros(0)[":"])
    check.raises("against its step", get(x, {{3, 1}}))
    check.raises("against its step", get(x, {{1, 3, -1}}))
    check.raises("out of range", get(x, {{5, 4}}))
    assert.same({0, 4}, grid()[{{1, 0}}].shape)
  end)

  it("holes and other keys are errors", function()
    local x = grid()
    check.raises("key 2", get(x, {[2] = 1}))
    check.raises("key x", get(x, {1, x = 2}))
    check.raises("key 1.5", get(x, {1, [1.5] = 2}))
    check.raises("holes", get(luma.zeros(2, 2, 2), {1, nil, 1}))
    check.raises("key", get(x, {{1, x = 2}}))
    check.raises("got boolean", get(x, {1, true}))
  end)
end)

describe("a string:", function()
  it("holds the same forms", function()
    local x = grid()
    check.tensor({{6, 7}, {10, 11}}, "float32", x["2:3, 2:3"])
    check.tensor({3, 7, 11}, "float32", x[":, 3"])
    check.tensor({4, 8, 12}, "float32", x[":,-1"])
    check.tensor({{1, 3}, {9, 11}}, "float32", x["::2,::2"])
    check.tensor({{9, 10, 11, 12}, {5, 6, 7, 8}, {1, 2, 3, 4}}, "float32", x["::-1"])
    check.tensor({2, 3, 4}, "float32", x["1, 2:"])
    check.tensor({1, 2}, "float32", x["1, :2"])
    check.tensor({4, 2}, "float32", x["1, 4:1:-2"])
    check.tensor({3, 2, 1}, "float32", x["1, 3::-1"])
    check.tensor({4, 3}, "float32", x["1, :3:-1"])
    check.value(7.0, x["2,3"])
    check.value(7.0, x[" 2 , 3 "])
    check.tensor({5, 6, 7, 8}, "float32", x["2"])
    check.tensor({5, 6, 7, 8}, "float32", x["-2"])
  end)

  it("... stands for the rest, + for a new dim", function()
    local x = luma.range(1, 24):reshape(2, 3, 4)
    assert.is_true(x["..., 1"]:equal(x[{{}, {}, 1}]))
    assert.is_true(x["1, ..."]:equal(x[1]))
    assert.is_true(x["1, ..., 1"]:equal(x[{1, {}, 1}]))
    assert.is_true(x["..."]:equal(x))
    assert.same({1, 2, 3, 4}, x["+"].shape)
    assert.same({2, 1, 3, 4}, x[":, +"].shape)
    assert.same({2, 3, 4, 1}, x["..., +"].shape)
    assert.same({1, 3, 1, 4}, x["+, 1, :, +"].shape)
    check.raises("twice", get(x, "..., ..."))
    check.raises("more than 8", get(x, "+,+,+,+,+,+"))
  end)

  it("anything else in it is an error; a letter begins a name", function()
    local x = grid()
    for _, bad in ipairs {"1;2", "", "1,", ",1", "1 2", "1:2:3:4", "1.5", "+1", "--1", "1:x", "..",
                          "1\0"} do
      check.raises("index", get(x, bad))
    end
    check.raises("too large", get(x, "99999999999999999999"))
    check.raises("position 0", get(x, "0"))
    check.raises("no method or field 'foo'", get(x, "foo"))
    check.raises("no method or field '_x'", get(x, "_x"))
  end)

  it("may stand in a table and in a call", function()
    local x = grid()
    check.tensor({6, 7}, "float32", x[{2, "2:3"}])
    check.tensor({6, 7}, "float32", x(2, "2:3"))
    check.tensor({5, 9}, "float32", x("2:3", 1))
    check.value(7.0, x(2, 3))
    check.value(12.0, x(-1, -1))
    check.tensor({{2}, {6}, {10}}, "float32", x(":", {2}))
    assert.is_true(x():equal(x))
    check.raises("out of range", function() return x(4, 1) end)
    check.raises("3 indices", function() return x(1, 1, 1) end)
    check.raises("position 0", function() return x(1, 0) end)
    check.raises("got nil", function() return x(1, nil) end)
  end)
end)

describe("masks and index tensors:", function()
  it("gather copies", function()
    local x = T {10, 20, 30, 40}
    local m = x:gt(15) & x:lt(35)
    check.tensor({20, 30}, "float32", x[m])
    assert.is_false(x[m]:shares_storage(x))
    check.tensor({40, 10, 10}, "float32", x[T({4, 1, 1}, "int64")])
    check.tensor({{40, 10}, {20, 20}}, "float32", x[T({{4, 1}, {2, 2}}, "int64")])
    check.tensor({}, "float32", x[x:lt(0)])
    check.tensor({}, "float32", x[luma.zeros(0, {dtype = "int64"})])
    check.tensor(30, "float32", x[T(3, "int64")])
  end)

  it("stand within a table", function()
    local x = grid()
    local i, j = T({1, 3}, "int64"), T({4, 2}, "int64")
    check.tensor({{1, 2, 3, 4}, {9, 10, 11, 12}}, "float32", x[i])
    check.tensor({{4, 2}, {8, 6}, {12, 10}}, "float32", x[{{}, j}])
    check.tensor({4, 10}, "float32", x[{i, j}])
    check.tensor({{4, 2}, {12, 10}}, "float32", x[{i:unsqueeze(2), j}])
    check.tensor({2, 10}, "float32", x[{i, 2}])
    check.tensor({{2, 3}, {10, 11}}, "float32", x[{i, {2, 3}}])
    check.tensor({4, 2}, "float32", x[{1, j}])
    check.tensor({4, 2}, "float32", x(1, j))
    check.tensor({{3, 1}, {11, 9}}, "float32", x[{T {true, false, true}, {3, 1, -2}}])
    check.tensor({1, 11}, "float32", x[{T {true, false, true}, T({1, 3}, "int64")}])
  end)

  it("a mask of k dims consumes k dims", function()
    local x = luma.range(1, 8):reshape(2, 2, 2)
    local m = T {{true, false}, {false, true}}
    check.tensor({{1, 2}, {7, 8}}, "int64", x[m])
    check.tensor({1, 7}, "int64", x[{m, 1}])
    check.tensor({{1, 4}, {5, 8}}, "int64", x[{{}, m}])
    check.tensor({7, 8}, "int64", x[x:gt(6)])
    check.raises("mask of [2 x 2] does not fit dim 1 of [3 x 4]", get(grid(), m))
    check.raises("3 indices", get(grid(), {m, 1}))
    check.raises("0-d mask", get(x, T(true)))
  end)

  it("place their dims as PyTorch does", function()
    local x = luma.range(1, 2 * 3 * 4 * 5):reshape(2, 3, 4, 5)
    local i, j = T({{1, 2, 1}}, "int64"), T({{3}, {4}}, "int64")
    assert.same({2, 3, 4, 5}, x[{{}, i:reshape(3):narrow(1, 1, 3)}].shape)
    assert.same({2, 2, 3, 5}, x[{{}, i, j}].shape)
    assert.same({2, 3, 3, 5}, x[{i, {}, j}].shape)
    for a = 1, 2 do
      for b = 1, 3 do
        check.value(x(1, i(1, b), j(a, 1), 2), x[{{}, i, j}](1, a, b, 2))
        check.value(x(i(1, b), 3, j(a, 1), 2), x[{i, {}, j}](a, b, 3, 2))
      end
    end
    check.raises("broadcast", get(x, {T({1, 2}, "int64"), T({1, 2, 3}, "int64")}))
  end)

  it("read views of every layout", function()
    local x = grid()
    local i, j = T({1, 3}, "int64"), T({2, 1}, "int64")
    check.tensor({5, 3}, "float32", x:t()[{i, j}])
    check.tensor({{5, 1}, {7, 3}}, "float32", x:t()[{i:unsqueeze(2), j}])
    check.tensor({8, 2}, "float32", x:flip({1, 2})[{T({2, 3}, "int64"), i}])
    check.tensor({9, 5}, "float32", x["::2, ::2"][{T({2, 1}, "int64"), 1}] - T {0, -4})
    check.tensor({1, 1}, "float32", x[1]:expand(3, 4)[{i, T({1, 1}, "int64")}])
  end)

  it("out of range, 0 and wrong dtypes are errors", function()
    local x = grid()
    for _, bad in ipairs {0, -1, 4, 1 << 40} do
      local i = T({1, bad}, "int64")
      check.raises(tostring(bad), get(x, i))
      check.raises(tostring(bad), get(x, {i, T({1, 1}, "int64")}))
      check.raises(tostring(bad), set(x, i, 0))
      check.raises(tostring(bad), set(x, {i, T({1, 1}, "int64")}, 0))
    end
    check.raises("index is float32", get(x, T {1}))
    check.raises("index is float32", get(x, {1, T {1}}))
    -- a device has written the other places when it finds a wrong one
    if device.is_cpu then assert.is_true(x:equal(grid())) end
  end)
end)

describe("assignment:", function()
  it("takes numbers, tables and tensors that broadcast", function()
    local x = luma.zeros(2, 3)
    x[1] = 5
    check.tensor({{5, 5, 5}, {0, 0, 0}}, "float32", x)
    x[{2, 3}] = 7
    x[{{}, 1}] = T {8, 9}
    check.tensor({{8, 5, 5}, {9, 0, 7}}, "float32", x)
    x[2] = {1, 2, 3}
    check.tensor({{8, 5, 5}, {1, 2, 3}}, "float32", x)
    x["..."] = T {{1}, {2}}
    check.tensor({{1, 1, 1}, {2, 2, 2}}, "float32", x)
    x["1, ::2"] = 0
    check.tensor({{0, 1, 0}, {2, 2, 2}}, "float32", x)
    x[{}] = 4
    check.tensor({{4, 4, 4}, {4, 4, 4}}, "float32", x)
    local z = T(1)
    z[{}] = 3
    check.tensor(3, "float32", z)
    local b = T {true, true}
    b[1] = false
    check.tensor({false, true}, "bool", b)
    b[1] = 5
    check.tensor({true, true}, "bool", b)
  end)

  it("casts tensors, checks numbers", function()
    local x = T({1, 2, 3}, "uint8")
    x["1:2"] = T {4.9, 300}
    check.tensor({4, 255, 3}, "uint8", x)
    for _, bad in ipairs {2.7, 300, -1, nan, inf} do
      check.raises("does not fit into uint8", set(x, 1, bad))
      check.raises("does not fit into uint8", set(x, "1:2", bad))
      check.raises("does not fit into uint8", set(x, T {true, false, false}, bad))
      check.raises("does not fit into uint8", set(x, "1:2", {1, bad}))
    end
    x[1] = 2.0
    check.tensor({2, 255, 3}, "uint8", x)
    local f = T({1}, "float16")
    f[1] = 0.1
    check.value(0.0999755859375, f[1])
    local long = T({0}, "int64")
    long[1] = math.maxinteger
    check.value(math.maxinteger, long[1])
    check.raises("number, table or tensor expected, got string", set(x, 1, "5"))
    check.raises("number, table or tensor expected, got nil", set(x, 1, nil))
  end)

  it("shapes must fit", function()
    local x = grid()
    check.raises("broadcast", set(x, 1, luma.zeros(3)))
    check.raises("broadcast", set(x, 1, luma.zeros(2, 4)))
    check.raises("[2]: number expected, got string", set(x, 1, {1, "x", 3, 4}))
    check.raises("out of range", set(x, 5, 0))
    check.raises("no field 'foo'", set(x, "foo", 1))
    check.raises("no field 'shape'", set(x, "shape", {1}))
    assert.is_true(x:equal(grid()))
  end)

  it("through masks fills or scatters", function()
    local x = T {10, 20, 30, 40}
    x[x:gt(25)] = 0
    check.tensor({10, 20, 0, 0}, "float32", x)
    x[T {true, false, false, true}] = T {1, 2}
    check.tensor({1, 20, 0, 2}, "float32", x)
    x[T {true, true, false, false}] = {7, 8}
    check.tensor({7, 8, 0, 2}, "float32", x)
    x[x:lt(0)] = 5
    check.tensor({7, 8, 0, 2}, "float32", x)
    check.raises("", set(x, T {true, true, false, false}, T {1, 2, 3}))
    local y = grid()
    y[{{}, T {true, false, false, true}}] = 0
    check.tensor({{0, 2, 3, 0}, {0, 6, 7, 0}, {0, 10, 11, 0}}, "float32", y)
    y[{2, T {false, true, true, false}}] = T {1, 2}
    check.tensor({0, 1, 2, 0}, "float32", y[2])
    local i = T({1, 2}, "int32")
    i[T {true, false}] = 9
    check.tensor({9, 2}, "int32", i)
  end)

  it("through index tensors, of one dim and several", function()
    local x = grid()
    x[T({1, 3}, "int64")] = 0
    check.tensor({{0, 0, 0, 0}, {5, 6, 7, 8}, {0, 0, 0, 0}}, "float32", x)
    x[{T({1, 2}, "int64"), T({4, 1}, "int64")}] = T {1, 2}
    check.tensor({{0, 0, 0, 1}, {2, 6, 7, 8}, {0, 0, 0, 0}}, "float32", x)
    x[{{}, T({2, 3}, "int64")}] = T {{5}, {6}, {7}}
    check.tensor({{0, 5, 5, 1}, {2, 6, 6, 8}, {0, 7, 7, 0}}, "float32", x)
    local t = grid()
    t:t()[{T({1, 4}, "int64"), T({2, 3}, "int64")}] = -1
    check.tensor({{1, 2, 3, 4}, {-1, 6, 7, 8}, {9, 10, 11, -1}}, "float32", t)
    local u = luma.zeros(2, 3, 2)
    u[{T({1, 2}, "int64"), {}, T({1, 2}, "int64")}] = T {{1, 2, 3}, {4, 5, 6}}
    check.tensor({{{1, 0}, {2, 0}, {3, 0}}, {{0, 4}, {0, 5}, {0, 6}}}, "float32", u)
    local r = T {1, 2, 3}
    r[T({1, 2, 3}, "int64")] = r:flip(1)
    check.tensor({3, 2, 1}, "float32", r)
  end)

  it("reads sources before it writes over them", function()
    local x = T {0, 1, 2, 3, 4, 5}
    x[":"] = x["::-1"]
    check.tensor({5, 4, 3, 2, 1, 0}, "float32", x)
    x["2:"] = x[":5"]
    check.tensor({5, 5, 4, 3, 2, 1}, "float32", x)
    local m = T {{1, 2}, {3, 4}}
    m["..."] = m:t()
    check.tensor({{1, 3}, {2, 4}}, "float32", m)
    local y = T {10, 11, 12, 13, 14, 13, 12, 11}
    y["2:"]:div_(y[":7"])
    check.near({10, 1.1, 1.0909091, 1.0833333, 1.0769231, 0.92857143, 0.92307692, 0.91666667}, y)
    local z = luma.range(1, 8)
    z["2:"]:add_(z[":7"])
    check.tensor({1, 3, 5, 7, 9, 11, 13, 15}, "int64", z)
    local w = T {10, 11, 12, 13, 14, 13, 12, 11}
    w[":7"]:sub_(w["2:"])
    check.tensor({-1, -1, -1, -1, 1, 1, 1, 11}, "float32", w)
  end)

  it("into memory that overlaps itself is an error", function()
    local e = luma.zeros(1):expand(3)
    check.raises("overlap", set(e, ":", 1))
    check.raises("overlap", set(e, ":", T {1, 2, 3}))
    check.raises("overlap", set(e, T {true, true, false}, 1))
    check.raises("overlap", function() e:add_(1) end)
    check.raises("overlap", function() e:fill_(1) end)
    check.raises("overlap", function() T {1, 2, 3}:unfold(1, 2, 1):zero_() end)
    check.value(0.0, e[1])
  end)
end)

describe("walking dim 1:", function()
  it("pairs gives positions with numbers or rows", function()
    local seen = {}
    for i, v in pairs(T({5, 6, 7}, "int64")) do seen[i] = v end
    assert.same({5, 6, 7}, seen)
    local x = grid()
    for i, row in pairs(x) do
      assert.is_true(row:shares_storage(x))
      row[1] = -i
    end
    check.tensor({-1, -2, -3}, "float32", x[":, 1"])
    for _ in pairs(luma.zeros(0, 2)) do error("walked") end
    check.raises("0-d", pairs, T(1))
  end)

  it("next fails on what is no tensor", function()
    local f = pairs(T {1})
    check.raises("tensor expected", f, {}, 0)
    assert.is_nil((f(T {1}, 1)))
    assert.is_nil((f(T {1}, -1)))
  end)
end)
