-- rules_spec.lua -- the language rule by rule, after language_spec.lua: integers and casts, floats,
-- what was decided, and what Lua cannot intercept.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"

local T, nan, inf = luma.tensor, 0 / 0, math.huge
local signed = {"int8", "int16", "int32", "int64"}
local least = {int8 = -128, int16 = -32768, int32 = -2147483648, int64 = math.mininteger}
local most = {uint8 = 255, int8 = 127, int16 = 32767, int32 = 2147483647, uint32 = 4294967295,
              int64 = math.maxinteger}

describe("integers and casts:", function()
  it("overflow wraps", function()
    for _, dtype in ipairs(check.integers) do
      local m = T({most[dtype]}, dtype)
      local low = least[dtype] or 0
      check.tensor({low}, dtype, m + 1)
      check.tensor({most[dtype]}, dtype, T({low}, dtype) - 1)
      check.tensor({low == 0 and most[dtype] - 1 or -2}, dtype, m * 2)
    end
    for _, dtype in ipairs(signed) do
      local m = T({least[dtype]}, dtype)
      check.tensor({least[dtype]}, dtype, -m)
      check.tensor({least[dtype]}, dtype, m:abs())
      check.tensor({least[dtype]}, dtype, m // -1)
      check.tensor({0}, dtype, m % -1)
    end
  end)

  it("division and modulo by zero are errors, and change nothing", function()
    for _, dtype in ipairs(check.integers) do
      local x, z = T({1, 2, 3}, dtype), T({1, 0, 1}, dtype)
      for _, name in ipairs {"floor_div", "remainder", "fmod", "trunc_div"} do
        check.raises(name, x[name], x, z)
        check.raises("bad argument #2", luma[name], x, 0)
        check.raises(name, x[name .. "_"], x, z)
        if not device.is_cpu then x = T({1, 2, 3}, dtype) end -- written when the error came
        check.tensor({1, 2, 3}, dtype, x)
      end
      check.raises("[2]", luma.floor_div, x, z)
    end
    check.tensor({inf, -inf}, "float32", T {1, -1} / 0)
    check.tensor({nan}, "float32", T {0} / 0)
    check.tensor({inf}, "float32", T({1}, "int32") / 0)
  end)

  it("div rounds as told; fmod has the sign of the dividend", function()
    local x, y = T({7, -7, 7, -7}, "int32"), T({2, 2, -2, -2}, "int32")
    check.tensor({3, -4, -4, 3}, "int32", x:div(y, {rounding = "floor"}))
    check.tensor({3, -3, -3, 3}, "int32", x:div(y, {rounding = "trunc"}))
    check.tensor({3.5, -3.5, -3.5, 3.5}, "float32", x:div(y))
    check.tensor({1, -1, 1, -1}, "int32", x:fmod(y))
    check.tensor({1, 1, -1, -1}, "int32", x:remainder(y))
    check.tensor({3, -4}, "float32", T {7, -7}:div(2, {rounding = "floor"}))
    local z = T({7, -7}, "int32")
    assert.is_true(rawequal(z, z:div_(2, {rounding = "floor"})))
    check.tensor({3, -4}, "int32", z)
    local out = luma.zeros(2, {dtype = "int32"})
    luma.div(z, 2, {rounding = "trunc", out = out})
    check.tensor({1, -2}, "int32", out)
    check.raises("rounding", z.div, z, 2, {rounding = "up"})
  end)

  it("sums of bool and integers are int64, means are float", function()
    for _, dtype in ipairs {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64"} do
      local x = luma.ones(300, {dtype = dtype})
      check.tensor(300, "int64", x:sum())
      check.tensor(1, "int64", x:prod())
      assert.equal("int64", x:cumsum().dtype)
      check.tensor(1, "float32", x:mean())
      check.tensor(0, "float32", x:var())
      check.tensor(0, "float32", x:std())
    end
    check.near(105.75, T({0, 100, 200, 123}, "uint8"):mean():item())
    check.near(5099.1875, T({0, 100, 200, 123}, "uint8"):var({correction = 0}):item())
  end)

  it("floats to integers truncate and saturate, NaN gives 0", function()
    local x = T({-0.9, 0.9, 255.9, 1.5, 2.5, nan, inf, -inf, -3, 300, 1e20}, "float64")
    check.tensor({0, 0, 255, 1, 2, 0, 255, 0, 0, 255, 255}, "uint8", x:to("uint8"))
    check.tensor({0, 0, 255, 1, 2, 0, 2147483647, -2147483648, -3, 300, 2147483647}, "int32",
      x:to("int32"))
    check.tensor({math.maxinteger, math.mininteger, 0}, "int64",
      T({1e300, -inf, nan}, "float64"):to("int64"))
    check.tensor({-1, -1, 1, 2147483520}, "int32", T {-1.9, -1.5, 1.9, 2147483520.0}:to("int32"))
  end)

  it("integer narrowing wraps", function()
    check.tensor({44, 255, 0}, "uint8", T({300, -1, 256}, "int32"):to("uint8"))
    check.tensor({-128, 127}, "int8", T({128, 127}, "int64"):to("int8"))
    check.tensor({true, false}, "bool", T({256, 0}, "int32"):to("bool"))
    check.tensor({true, true, false}, "bool", T {0.5, nan, 0}:to("bool"))
  end)

  it("small floats round to nearest even from the source", function()
    check.tensor({1, 1.015625, -1}, "bfloat16",
      T({1 + 2 ^ -8, 1 + 3 * 2 ^ -8, -(1 + 2 ^ -8)}, "bf16"))
    check.tensor({16, 20, 24, 448, -448, 448}, "float8_e4m3",
      T({17, 19, 25, 1e6, -inf, 464}, "f8e4m3"))
    check.tensor({nan}, "float8_e4m3", T({nan}, "f8e4m3"))
    -- one rounding: through float32 this would be a tie
    check.tensor({1 + 2 ^ -10}, "float16", T({1 + 2 ^ -11 + 2 ^ -40}, "float16"))
    check.tensor({1 + 2 ^ -10}, "float16", T({1 + 2 ^ -11 + 2 ^ -40}, "float64"):to("float16"))
  end)

  it("index tensors are integers; bool is a mask; another dtype is named as the index's", function()
    local x = T {10, 20, 30}
    for _, dtype in ipairs(check.integers) do
      check.tensor({30, 10}, "float32", x:index_select(1, T({3, 1}, dtype)))
      check.tensor({30, 10}, "float32", x[T({3, 1}, dtype)])
    end
    check.raises("index is float32", function() return x[T {1, 2}] end)
    check.raises("index", x.index_select, x, 1, T {1, 2})
    check.raises("index", x.index_select, x, 1, T {true, false, true})
    for _, bad in ipairs {0, 4, -1} do
      check.raises(tostring(bad), x.index_select, x, 1, T({1, bad}, "int64"))
      check.raises(tostring(bad), function() return x[T({1, bad}, "int64")] end)
      check.raises(tostring(bad), x.gather, x, 1, T({bad}, "int64"))
      check.raises(tostring(bad), x.take, x, T({bad}, "int64"))
    end
    check.tensor({10, 20, 30}, "float32", x)
  end)
end)

describe("floats:", function()
  it("small floats compute in float32 and accumulate wide", function()
    check.tensor(3000, "float16", luma.ones(3000, {dtype = "float16"}):sum())
    check.tensor(60000, "float16", luma.full({4}, 60000, {dtype = "float16"}):mean())
    check.tensor(300, "bfloat16", luma.ones(300, {dtype = "bfloat16"}):sum():to("bfloat16"))
    local x = luma.ones(1025)
    x[1] = 2 ^ 24
    check.value(16778240.0, x:sum():item())
  end)

  it("NaN is the greatest", function()
    for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
      local x = T({1, nan, 3, nan}, dtype)
      check.tensor(nan, dtype, x:max())
      check.tensor(nan, dtype, x:min())
      check.tensor(nan, dtype, x:amax(1))
      check.tensor(2, "int64", x:argmax())
      check.tensor(2, "int64", x:argmin())
      local v, p = x:sort()
      check.tensor({1, 3, nan, nan}, dtype, v)
      check.tensor({1, 3, 2, 4}, "int64", p)
      v, p = x:sort(1, {descending = true})
      check.tensor({nan, nan, 3, 1}, dtype, v)
      check.tensor({2, 4, 3, 1}, "int64", p)
      v, p = x:topk(2)
      check.tensor({nan, nan}, dtype, v)
      check.tensor({2, 4}, "int64", p)
      check.tensor({1, nan, 2, nan}, dtype, x:clamp(0, 2))
      check.tensor({nan, nan}, dtype, T({nan, 1}, dtype):maximum(T({1, nan}, dtype)))
      check.tensor({nan, nan}, dtype, T({nan, 1}, dtype):minimum(T({1, nan}, dtype)))
    end
  end)

  it("ties go to the first, sort is stable", function()
    check.tensor({2, 2}, "int64", T {{2, 3, 0, 3, 3}, {1, 3, 1, 3, 1}}:argmax(2))
    check.tensor({3, 1}, "int64", T {{2, 3, 0, 3, 3}, {1, 3, 1, 3, 1}}:argmin(2))
    check.tensor({2, 4, 7, 1, 3, 5, 9, 8, 6}, "int64", T {3, 1, 4, 1, 5, 9, 2, 6, 5}:argsort())
    check.tensor({6, 8, 5, 9, 3, 1, 7, 2, 4}, "int64",
      T {3, 1, 4, 1, 5, 9, 2, 6, 5}:argsort(1, {descending = true}))
    local _, p = T {2, 2, 2}:max(1)
    check.tensor(1, "int64", p)
  end)

  it("functions of integers give the default float dtype", function()
    for _, name in ipairs {"sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid"} do
      assert.equal("float32", T({1}, "int64")[name](T({1}, "int64")).dtype)
      assert.equal("float64", luma[name](T({1}, "float64")).dtype)
    end
    for _, name in ipairs {"floor", "ceil", "round", "abs", "sign", "relu", "trunc"} do
      check.tensor({3}, "int16", name == "sign" and T({3}, "int16"):sign() * 3
        or luma[name](T({3}, "int16")))
    end
    check.tensor({2}, "int16", T({3}, "int16"):clamp(0, 2))
    check.tensor({2}, "int16", T({3}, "int16"):clamp(nil, 2))
    check.tensor({5}, "int16", T({3}, "int16"):clamp(5))
  end)

  it("round is half to even", function()
    check.tensor({0, 2, 2, -0.0, -2}, "float32", T {0.5, 1.5, 2.5, -0.5, -1.5}:round())
  end)

  it("reductions of nothing", function()
    local e = luma.zeros(0, 3)
    for _, name in ipairs {"max", "min", "amax", "amin", "argmax", "argmin"} do
      check.raises(name, e[name], e)
      check.raises(name, e[name], e, 1)
    end
    check.tensor({}, "float32", (e:max(2)))
    check.tensor(0, "float32", e:sum())
    check.tensor(1, "float32", e:prod())
    check.tensor(nan, "float32", e:mean())
    assert.is_true(e:all())
    assert.is_false(e:any())
    check.tensor({{0, 0}, {0, 0}}, "float32", luma.ones(2, 0):matmul(luma.ones(0, 2)))
  end)

  it("random numbers", function()
    luma.manual_seed(31)
    local a, b = luma.rand(1000), luma.randn(7)
    local state = luma.get_rng_state(device.name)
    local c = luma.randint(1, 6, 1000)
    luma.manual_seed(31)
    assert.is_true(a:equal(luma.rand(1000)))
    assert.is_true(b:equal(luma.randn(7)))
    luma.set_rng_state(state)
    assert.is_true(c:equal(luma.randint(1, 6, 1000)))
    assert.is_true(a:ge(0):all() and a:lt(1):all())
    assert.is_true(c:min():item() == 1 and c:max():item() == 6)
    assert.equal("int64", c.dtype)
    check.tensor({{5, 5}}, "uint8", luma.randint(5, 5, 1, 2, {dtype = "uint8"}))
    check.raises("less than", luma.randint, 2, 1, 3)
    check.raises("does not fit", luma.randint, 0, 256, 3, {dtype = "uint8"})
    local p = luma.randperm(100)
    assert.equal("int64", p.dtype)
    assert.is_true((p:sort()):equal(luma.range(1, 100)))
    assert.is_false(p:equal(luma.range(1, 100)))
    assert.is_true(luma.rand(1000, {dtype = "float16"}):lt(1):all())
    check.raises("integer", luma.manual_seed, 2.5)
    local half = luma.full({2000}, 0.25):bernoulli()
    check.near(500, half:sum():item(), 0.2)
    check.tensor({0, 1}, "float32", T {0, 1}:bernoulli())
    check.raises("between 0 and 1", luma.bernoulli, T {2})
  end)

  it("multinomial draws by weight", function()
    luma.manual_seed(1)
    local w = T {0, 1, 3, 0}
    local s = w:multinomial(4000, {replacement = true})
    assert.equal("int64", s.dtype)
    check.near(3000, s:eq(3):sum():item(), 0.1)
    check.near(1000, s:eq(2):sum():item(), 0.2)
    local t = w:multinomial(2)
    check.tensor({2, 3}, "int64", (t:sort()))
    assert.same({5, 2}, luma.ones(5, 3):multinomial(2).shape)
    check.raises("positive weights", w.multinomial, w, 3)
    check.raises("not negative", luma.multinomial, T {-1}, 1)
  end)
end)

describe("decided:", function()
  it("bool in arithmetic counts as int64, bool matmul is an error", function()
    check.tensor({2}, "int64", T {true} + T {true})
    check.tensor({-1}, "int64", -T {true})
    check.raises("bool", luma.matmul, T {{true}}, T {{true}})
    check.tensor({{-128}}, "int8", T({{64, 64}}, "int8"):matmul(T({{1}, {1}}, "int8")))
  end)

  it("where, cat, stack, maximum promote; numbers are weak", function()
    local mask = T {true, false}
    check.tensor({1, 0}, "float32", luma.where(mask, 1, 0))
    check.tensor({1, 5}, "int16", luma.where(mask, T({1, 2}, "int16"), 5))
    check.tensor({1, 5}, "float32", mask:where(T({1, 2}, "int16"), T {5, 5}))
    check.tensor({1, 2}, "float64", luma.cat {T {1}, T({2}, "float64")})
    check.tensor({{1}, {2}}, "int16", luma.stack {T({1}, "int8"), T({2}, "uint8")})
    check.tensor({3, 4}, "float32", luma.maximum(T({3, 1}, "int32"), T {2, 4}))
    check.tensor({3, 2}, "int32", luma.maximum(T({3, 1}, "int32"), 2))
    check.raises("mask", luma.where, T {1}, 1, 2)
  end)

  it("in place: the kind may not rise, self is never broadcast, twins are few", function()
    local x = T {1, 2}
    x:add_(T({1, 1}, "float64"))
    check.tensor({2, 3}, "float32", x)
    check.raises("int32", function() T({1}, "int32"):add_(T {1}) end)
    check.raises("[2 x 2]", function() T {1, 2}:add_(T {{1, 2}, {3, 4}}) end)
    for _, name in ipairs {"eq_", "sum_", "cumsum_", "transpose_", "isnan_"} do
      check.raises("no method", function() return x[name] end)
      assert.is_nil(luma[name])
    end
  end)

  it("out may alias anything", function()
    local x = T {1, 2, 3, 4}
    luma.add(x["1:3"], x["2:4"], {out = x["2:4"]})
    check.tensor({1, 3, 5, 7}, "float32", x)
    local m = T {{1, 2}, {3, 4}}
    m:matmul(m, {out = m})
    check.tensor({{7, 10}, {15, 22}}, "float32", m)
    m:t():clone({out = m})
    check.tensor({{7, 15}, {10, 22}}, "float32", m)
    check.raises("overlaps itself", luma.add, T {1, 2}, 1, {out = luma.zeros(1):expand(2)})
  end)

  it("a table with [1] is dims or a shape, another one options, {} is all dims", function()
    local x = T {{1, 2}, {3, 4}}
    check.tensor(10, "float32", x:sum {})
    check.tensor({{10}}, "float32", x:sum {keepdim = true})
    check.tensor({4, 6}, "float32", x:sum {1})
    assert.same({4}, x:reshape({4}).shape)
    assert.same({4}, x:reshape(4).shape)
    assert.same({}, T {1}:reshape({}).shape)
    check.raises("no such argument", x.sum, x, {1}, {keepdim = true}, 3)
  end)

  it("default dims", function()
    local x = T {{3, 1, 2}, {6, 5, 4}}
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float32", (x:sort()))
    check.tensor({{2, 3, 1}, {3, 2, 1}}, "int64", x:argsort())
    check.tensor({{3}, {6}}, "float32", (x:topk(1)))
    check.tensor({{3, 4, 6}, {6, 11, 15}}, "float32", x:cumsum())
    check.near({1, 1}, x:softmax():sum(2))
    check.near({1, 1}, x:log_softmax():exp():sum(2))
    check.tensor(4, "int64", x:argmax())
  end)

  it("reshape and flatten view where they can, view raises", function()
    local x = T {{1, 2}, {3, 4}}
    assert.is_true(x:reshape(4):shares_storage(x))
    assert.is_true(x:flatten():shares_storage(x))
    assert.is_false(x:t():reshape(4):shares_storage(x))
    check.tensor({1, 3, 2, 4}, "float32", x:t():flatten())
    check.raises("reshape", function() return x:t():view(4) end)
    assert.is_true(x:view(-1):shares_storage(x))
    assert.is_true(rawequal(x, x:contiguous()))
    assert.is_false(x:t():contiguous():shares_storage(x))
  end)

  it("duplicates: sums in source order, the last write wins", function()
    local x = luma.zeros(3)
    check.tensor({0, 3, 4}, "float32", x:scatter_add(1, {2, 2, 3}, T {1, 2, 4}))
    check.tensor({0, 2, 4}, "float32", x:scatter(1, {2, 2, 3}, T {1, 2, 4}))
    check.tensor({5, 0, 5}, "float32", x:scatter(1, {1, 3}, 5))
    check.tensor({0, 0, 0}, "float32", x)
    x:index_add_(1, {1, 1}, T {1, 2})
    check.tensor({3, 0, 0}, "float32", x)
    x[T({1, 1}, "int64")] = T {7, 8}
    check.tensor({8, 0, 0}, "float32", x)
  end)

  it("tile repeats; split, chunk and unbind give lists", function()
    check.tensor({1, 2, 1, 2}, "float32", T {1, 2}:tile(2))
    local parts = T {1, 2, 3}:split(2)
    assert.equal(2, #parts)
    check.tensor({3}, "float32", parts[2])
    parts = T {1, 2, 3}:split({1, 2})
    check.tensor({2, 3}, "float32", parts[2])
    assert.equal(3, #T {1, 2, 3}:unbind())
    check.tensor(2, "float32", T {1, 2}:unbind()[2])
    assert.equal(2, #T {1, 2, 3}:chunk(2))
    parts[2][1] = 9
  end)

  it("copy_, fill_, zero_", function()
    local x = luma.zeros(2, 2)
    assert.is_true(rawequal(x, x:copy_(T {1, 2})))
    check.tensor({{1, 2}, {1, 2}}, "float32", x)
    x:copy_({{5, 6}, {7, 8}})
    check.tensor({{5, 6}, {7, 8}}, "float32", x)
    x:fill_(2)
    check.tensor({{2, 2}, {2, 2}}, "float32", x)
    x:zero_()
    check.tensor({{0, 0}, {0, 0}}, "float32", x)
    check.tensor({1, -2}, "int32", T({0, 0}, "int32"):copy_(T {1.9, -2.9}))
    check.raises("broadcast", x.copy_, x, luma.zeros(3))
  end)

  it("slice_set_ writes in place", function()
    local x = luma.zeros(2, 4)
    assert.is_true(rawequal(x, x:slice_set_(T {{1, 2}, {3, 4}}, 2, 2)))
    check.tensor({{0, 1, 2, 0}, {0, 3, 4, 0}}, "float32", x)
    x:slice_set_(T {{9, 9, 9, 9}}, 1, -1)
    check.tensor({{0, 1, 2, 0}, {9, 9, 9, 9}}, "float32", x)
    check.raises("slice_set_", x.slice_set_, x, T {{1, 2}}, 2, 4)
    check.raises("position 0", x.slice_set_, x, T {{1, 2}}, 1, 0)
    check.tensor({{5, 1, 2, 0}}, "float32", x["1:1"]:slice_set(T {{5}}, 2, 1))
  end)

  it("all and any without a dim are booleans, with one bool tensors", function()
    local x = T {{true, false}, {true, true}}
    assert.equal(false, x:all())
    assert.equal(true, x:any())
    check.tensor({true, false}, "bool", x:all(1))
    check.tensor({true, true}, "bool", x:any(2))
    check.tensor({{false}}, "bool", x:all({keepdim = true}))
    assert.equal(true, T {1, 2}:equal(T {1, 2}))
    assert.equal(true, T {1}:allclose(T {1 + 1e-7}))
    assert.equal(false, T {nan}:allclose(T {nan}))
    assert.equal(true, T {nan}:allclose(T {nan}, {equal_nan = true}))
    assert.equal(false, T {1}:allclose(T {1.1}, {rtol = 0.01}))
  end)

  it("is_tensor", function()
    assert.is_true(luma.is_tensor(T {1}))
    for _, v in ipairs {1, "x", {}, print, io.stdout} do assert.is_false(luma.is_tensor(v)) end
    assert.is_false(luma.is_tensor(nil))
    check.raises("value expected", luma.is_tensor)
  end)
end)

describe("what Lua does not ask about:", function()
  it("not, and, or see a value that is not nil", function()
    local x = luma.zeros(1)
    assert.is_false(not x)
    assert.equal(1, x and 1)
  end)

  it("== with a number is false; rawequal tells identity", function()
    local x, y = luma.zeros(2), luma.zeros(2)
    assert.is_false(x == 0) -- luacheck: ignore
    assert.is_true(x == y)
    assert.is_false(rawequal(x, y))
  end)

  it("ipairs ends in an error that names pairs", function()
    local seen = 0
    check.raises("pairs", function()
      for i, v in ipairs(T {5, 6}) do
        seen = seen + 1
        check.value(4.0 + i, v)
      end
    end)
    assert.equal(2, seen)
  end)
end)
