-- language_spec.lua -- the language rule by rule: the module, dtypes, construction, operators,
-- integers, floats. Indexing, errors and memory have specs of their own.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"
local program = require "program"

local T, nan, inf = luma.tensor, 0 / 0, math.huge

describe("modules and names:", function()
  it("the module makes no globals; the program has one", function()
    local output = program.script([[
      local known = {_G = 1, _VERSION = 1, arg = 1, assert = 1, collectgarbage = 1, dofile = 1,
        error = 1, getmetatable = 1, ipairs = 1, load = 1, loadfile = 1, next = 1, pairs = 1,
        pcall = 1, print = 1, rawequal = 1, rawget = 1, rawlen = 1, rawset = 1, require = 1,
        select = 1, setmetatable = 1, tonumber = 1, tostring = 1, type = 1, warn = 1, xpcall = 1,
        coroutine = 1, debug = 1, io = 1, math = 1, os = 1, package = 1, string = 1, table = 1,
        utf8 = 1}
      local luma = require "luma"
      local t = luma.tensor {1, 2} + 1
      tostring(t)
      for k in pairs(_G) do if not known[k] then io.write(k, " ") end end]])
    assert.is_true(output == "luma " or output == "", output)
  end)

  it("every operation is a function and a method", function()
    local x = T {1, 2}
    for _, row in ipairs(luma.ops) do
      assert.equal("function", type(luma[row.name]), row.name)
      if row.row ~= "make" and not row.signature:find("^list") and not row.signature:find("^equation") then
        assert.equal(luma[row.name], x[row.name], row.name)
      end
      if row.inplace then
        assert.equal("function", type(luma[row.name .. "_"]), row.name)
        assert.equal(luma[row.name .. "_"], x[row.name .. "_"])
      end
    end
  end)

  it("a trailing underscore changes and returns self, nothing else changes", function()
    local x = T {1, 2}
    assert.is_true(rawequal(x, x:add_(1)))
    check.tensor({2, 3}, "float32", x)
    x:add(1)
    check.tensor({2, 3}, "float32", x)
    assert.is_true(rawequal(x, luma.mul_(x, 2)))
    check.tensor({4, 6}, "float32", x)
  end)

  it("out is written into, and returned", function()
    local x, r = T {1, 2}, luma.zeros(2)
    assert.is_true(rawequal(r, x:add(1, {out = r})))
    check.tensor({2, 3}, "float32", r)
    check.raises("out is [2], the result is [3]", luma.add, T {1, 2, 3}, 1, {out = r})
    check.raises("out is float32, the result is int64", luma.add, luma.range(1, 2), 1, {out = r})
    assert.is_true(rawequal(x, x:mul(x, {out = x})))
    check.tensor({1, 4}, "float32", x)
  end)

  it("in place never changes the dtype", function()
    check.raises("int32", function() T({1}, "int32"):add_(0.5) end)
  end)

  it("options stand in a trailing table", function()
    local x = T {{1, 2}, {3, 4}}
    assert.same({2, 1}, x:sum(2, {keepdim = true}).shape)
    assert.same({1, 1}, x:sum({keepdim = true}).shape)
    assert.same({1, 2}, x:sum({1}, {keepdim = true}).shape)
    check.raises("{keepdim = ...}", x.sum, x, 1, true)
    check.raises("did you mean 'keepdim'", x.sum, x, 1, {keepdims = true})
    check.raises("boolean expected", x.sum, x, 1, {keepdim = 1})
  end)

  it("dims are 1-based, from the end when negative, and may be lists", function()
    local x = T {{1, 2, 3}, {4, 5, 6}}
    check.tensor({5, 7, 9}, "float32", x:sum(1))
    check.tensor({6, 15}, "float32", x:sum(-1))
    check.tensor(21, "float32", x:sum({1, 2}))
    check.tensor(21, "float32", x:sum({}))
    check.raises("dim 0", x.sum, x, 0)
    check.raises("dim 3", x.sum, x, 3)
    check.raises("dim -3", x.sum, x, -3)
    check.raises("integer", x.sum, x, 1.5)
    check.tensor({{1, 4}, {2, 5}, {3, 6}}, "float32", x:transpose(1, 2))
    check.tensor({{2, 3}, {5, 6}}, "float32", x:narrow(2, 2, 2))
    check.tensor({{1, 3}, {4, 6}}, "float32", x:index_select(2, {1, 3}))
    check.tensor({{3}, {4}}, "float32", x:gather(2, {{3}, {1}}))
  end)

  it("pairs come as two results", function()
    local x = T {{3, 1, 2}, {4, 6, 5}}
    local v, p = x:max(2)
    check.tensor({3, 6}, "float32", v)
    check.tensor({1, 2}, "int64", p)
    assert.equal(1, select("#", x:max()))
    check.tensor(6, "float32", x:max())
    check.tensor(1, "float32", x:min())
    v, p = x:sort()
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float32", v)
    check.tensor({{2, 3, 1}, {1, 3, 2}}, "int64", p)
    v, p = x:topk(2)
    check.tensor({{3, 2}, {6, 5}}, "float32", v)
    check.tensor({{1, 3}, {2, 3}}, "int64", p)
    local a, b = luma.zeros(2), luma.zeros(2, {dtype = "int64"})
    local r, s = x:max(2, {out = {a, b}})
    assert.is_true(rawequal(a, r) and rawequal(b, s))
    check.tensor({3, 6}, "float32", a)
    check.tensor({1, 2}, "int64", b)
    r, s = x:max(2, {out = a})
    assert.is_true(rawequal(a, r))
    check.tensor({1, 2}, "int64", s)
    assert.is_true(rawequal(a, (x:sort(2)[{{}, 1}]:sort({out = a}))))
    assert.equal(1, select("#", x:max({out = luma.zeros {}})))
    check.tensor({4, 6}, "float32", x:amax({2}) + T {1, 0})
    assert.equal(1, select("#", x:amax(2)))
    check.raises("maximum", x.max, x, x)
    check.raises("minimum", luma.min, x, x)
  end)

  it("var and std correct by 1 unless told", function()
    local x = T {1, 2, 3, 4}
    check.near(5 / 3, x:var():item())
    check.near(1.25, x:var({correction = 0}):item())
    check.near(math.sqrt(5 / 3), x:std():item())
  end)

  it("clock, config, threads, version", function()
    local t = luma.clock()
    assert.is_true(luma.clock() >= t)
    assert.equal("float", math.type(t))
    local c = luma.config()
    assert.equal(luma.version, c.version)
    assert.equal("cpu", c.devices[1])
    luma.set_num_threads(1)
    assert.equal(1, luma.config().threads)
    luma.set_num_threads(c.threads)
    check.raises("1 to 256", luma.set_num_threads, 0)
    check.raises("1 to 256", luma.set_num_threads, 257)
    check.raises("integer", luma.set_num_threads, 2.5)
  end)
end)

describe("dtypes and devices:", function()
  it("dtypes are strings, short forms are read", function()
    assert.equal("float32", luma.float32)
    assert.equal("float8_e4m3", luma.float8_e4m3)
    for short, long in pairs {f32 = "float32", i64 = "int64", u8 = "uint8", bf16 = "bfloat16",
                              f8e4m3 = "float8_e4m3", f64 = "float64", u32 = "uint32",
                              i8 = "int8", i16 = "int16", i32 = "int32", f16 = "float16"} do
      assert.equal(long, luma.zeros(1, {dtype = short}).dtype)
    end
    check.raises("unknown dtype 'flot32'; did you mean 'float32'?", luma.zeros, 1, {dtype = "flot32"})
    check.raises("unknown dtype 'complex64'", luma.zeros, 1, {dtype = "complex64"})
    for name, dtype in pairs {half = "float16", float = "float32", double = "float64", byte = "uint8",
                              short = "int16", int = "int32", long = "int64", float8 = "float8_e4m3"} do
      assert.equal(dtype, luma.zeros(1, {dtype = name}).dtype)
    end
  end)

  it("fields and methods that describe", function()
    local x = luma.zeros(2, 3)
    assert.same({2, 3}, x.shape)
    assert.equal("float32", x.dtype)
    assert.equal(device.name, x.device)
    assert.equal(2, x.ndim)
    assert.equal(3, x:size(2))
    assert.equal(3, x:size(-1))
    assert.same({2, 3}, x:size())
    assert.equal(3, x:stride(1))
    assert.same({3, 1}, x:stride())
    assert.equal(6, x:numel())
    assert.is_true(x:is_contiguous())
    assert.is_false(x:t():is_contiguous())
    assert.equal(0, x:storage_offset())
    assert.equal(3, x[2]:storage_offset())
    assert.equal(4, x:itemsize())
    assert.equal(24, x:nbytes())
    assert.is_true(x:shares_storage(x[1]))
    assert.is_false(x:shares_storage(x:clone()))
  end)

  it("promotion between tensors is by kind, then width", function()
    local wider = {"bool", "uint8", "int16", "int32", "int64"}
    for i, a in ipairs(wider) do
      for j, b in ipairs(wider) do
        assert.equal(wider[math.max(i, j)], luma.promote_types(a, b))
      end
    end
    for _, c in ipairs {{"uint8", "int8", "int16"}, {"uint32", "int8", "int64"},
                        {"uint32", "int32", "int64"}, {"uint32", "uint8", "uint32"},
                        {"float16", "bfloat16", "float32"}, {"float8_e4m3", "float16", "float16"},
                        {"float8_e4m3", "bfloat16", "bfloat16"}, {"int64", "float16", "float16"},
                        {"int64", "float8_e4m3", "float8_e4m3"}, {"bool", "bfloat16", "bfloat16"},
                        {"float32", "float64", "float64"}} do
      assert.equal(c[3], luma.promote_types(c[1], c[2]))
      assert.equal(c[3], luma.promote_types(c[2], c[1]))
      if c[1] ~= "bool" then
        assert.equal(c[3], (luma.ones(1, {dtype = c[1]}) + luma.ones(1, {dtype = c[2]})).dtype)
      end
    end
  end)

  it("numbers are weak: they raise the kind only", function()
    assert.equal("float16", (T({1}, "float16") + 2.5).dtype)
    assert.equal("float16", (T({1}, "float16") + 2).dtype)
    assert.equal("int32", (T({1}, "int32") + 2).dtype)
    assert.equal("uint8", (T({1}, "uint8") + 2).dtype)
    assert.equal("float32", (T({1}, "int32") + 0.5).dtype)
    assert.equal("float32", (T({1}, "int32") + 2.0).dtype)
    assert.equal("int64", (T {true} + 1).dtype)
    assert.equal("float32", (T {true} + 0.5).dtype)
    check.raises("does not fit into int32", function() return T({1}, "int32") + (1 << 40) end)
    check.raises("does not fit into uint8", function() return T({1}, "uint8") - 300 end)
    check.tensor({0}, "uint8", T({255}, "uint8"):lshift(1 << 40))
  end)

  it("the default float dtype can be set", function()
    luma.set_default_dtype("float64")
    local x, y = T {1}, T({1}, "int32") + 0.5
    luma.set_default_dtype("float32")
    assert.equal("float64", x.dtype)
    assert.equal("float64", y.dtype)
    check.raises("float dtype", luma.set_default_dtype, "int64")
  end)

  it("int64 crosses exactly", function()
    for _, v in ipairs {10151188881778163, (1 << 53) + 1, math.maxinteger, math.mininteger} do
      local x = T({v}, "int64")
      check.value(v, x[1])
      check.value(v, x:item())
      check.value(v, x:totable()[1])
      check.value(v, luma.full({1}, v, {dtype = "int64"})[1])
      check.value(v, x:sum():item())
      check.value(v, x:max():item())
      check.value(v, x:cumsum()[1])
      check.value(true, (x:eq(v))[1])
      check.value(v, luma.frombytes(x:tobytes(), "int64", {1})[1])
      x:fill_(1)
      x[1] = v
      check.value(v, x[1])
    end
    assert.is_false(T({(1 << 53) + 1}, "int64"):equal(T({1 << 53}, "int64")))
    check.value(9223372036854775807, T({1 << 62, (1 << 62) - 2, 1}, "int64"):sum():item())
    check.tensor({(1 << 53), (1 << 53) + 1, (1 << 53) + 2}, "int64",
      T({1 << 53, 1, 1}, "int64"):cumsum())
  end)

  it("integers compare exactly with numbers, floats round the number first", function()
    local x = T({0, 1, 255}, "uint8")
    check.tensor({true, true, true}, "bool", x:lt(300))
    check.tensor({false, false, false}, "bool", x:eq(1.5))
    check.tensor({true, true, true}, "bool", x:ne(256))
    check.tensor({false, false, true}, "bool", x:gt(1.5))
    check.tensor({true, true, false}, "bool", x:le(1.5))
    check.tensor({false, false, false}, "bool", x:lt(nan))
    check.tensor({true}, "bool", T {0.1}:eq(0.1))
    check.tensor({true}, "bool", T({0.1}, "float16"):eq(0.1))
    check.tensor({true, false}, "bool", T {true, false}:eq(1))
    check.tensor({true, true}, "bool", T {true, false}:lt(2))
  end)

  it("strings are never numbers", function()
    check.raises("got string", function() return T {1} + "1" end)
    check.raises("got string", T, {"1"})
    check.raises("got string", luma.zeros, "2")
    check.raises("got string", luma.full, {2}, "1")
    check.raises("got string", function() T {1}:fill_("1") end)
    check.raises("got string", T {1}.sum, T {1}, "1")
  end)

  it("to changes dtype or device", function()
    local x = T {1.5, 2}
    assert.equal("float64", x:to("float64").dtype)
    assert.equal("int64", x:to("i64").dtype)
    assert.is_true(rawequal(x, x:to(device.name)))
    assert.is_true(rawequal(x, x:to("float32")))
    assert.is_true(rawequal(x, x:to(device.name, "f32")))
    x = x:cpu()
    assert.is_true(rawequal(x, x:cpu()))
    local y = x:to("float32", {copy = true})
    assert.is_false(x:shares_storage(y))
    check.tensor({1.5, 2}, "float32", y)
    check.tensor({1, 2}, "int32", x:to("cpu", "int32"))
    check.raises("neither a dtype nor a device", x.to, x, "gpu")
    check.raises("two dtypes", x.to, x, "f32", "f64")
    check.raises("dtype or device expected", x.to, x)
  end)
end)

describe("construction:", function()
  it("nested tables, numbers and booleans", function()
    check.tensor({{1, 2}, {3, 4}}, "float32", T {{1, 2}, {3, 4}})
    check.tensor({1, 2.5}, "float32", T {1, 2.5})
    check.tensor({true, false}, "bool", T {true, false})
    check.tensor(3, "float32", T(3))
    check.tensor(true, "bool", T(true))
    check.tensor({1, 2}, "int16", T({1, 2.0}, "int16"))
    check.tensor({1, 2}, "int16", T({1, 2}, {dtype = "i16", device = "cpu"}))
    check.tensor({true, false, true}, "bool", T({2, 0, nan}, "bool"))
    assert.same({0}, T({}).shape)
    assert.same({2, 0}, T {{}, {}}.shape)
    assert.same({2, 3, 1}, T {{{1}, {2}, {3}}, {{4}, {5}, {6}}}.shape)
  end)

  it("a long list in every dtype", function()
    for _, dtype in ipairs(check.dtypes) do
      local list = {}
      for i = 1, 1025 do
        if dtype == "bool" then list[i] = i % 3 == 0 else list[i] = i % 16 end
      end
      local x = T(list, dtype)
      check.tensor(list, dtype, x)
      assert.equal(1025, #x:totable())
    end
  end)

  it("ragged tables are errors that name the path", function()
    check.raises("ragged table: 2 entries at [1] but 1 at [2]", T, {{1, 2}, {3}})
    check.raises("2 entries at [1][1] but 3 at [2][1]", T, {{{1, 2}}, {{3, 4, 5}}})
    check.raises("[2][1]: number expected, got table", T, {{1, 2}, {{3}, 4}})
    check.raises("[2]: table expected, got number", T, {{1, 2}, 3})
    check.raises("[2][2]: number expected, got string", T, {{1, 2}, {3, "x"}})
    check.raises("[2]: number expected, got nil", T, {1, nil, 3})
    check.raises("keys", T, {1, 2, x = 3})
    check.raises("[3]: number expected, got boolean", T, {1, 2, true})
    check.raises("[2]: boolean expected, got number", T, {true, 1})
    check.raises("deeper than 8", T, {{{{{{{{{1}}}}}}}}})
    local loop = {}
    loop[1] = loop
    check.raises("deeper than 8", T, loop)
  end)

  it("an integer that float32 cannot hold is an error", function()
    check.raises("16777217 is not exact in float32", T, {1, 16777217})
    check.raises("int64", T, {(1 << 53) + 1})
    check.tensor({16777216, -16777216, 1 << 62}, "float32", T {16777216, -16777216, 1 << 62})
    check.tensor({16777216}, "float32", T({16777217}, "float32"))
    check.tensor({16777217}, "float64", T({16777217}, "float64"))
    check.near(16777217, T {16777217.0}[1], 1e-7)
  end)

  it("numbers must fit into integers, and are rounded into floats", function()
    check.raises("300 does not fit into uint8", T, {300}, "uint8")
    check.raises("-1 does not fit into uint8", T, {-1}, "uint8")
    check.raises("2.7 does not fit into int32", T, {2.7}, "int32")
    check.raises("does not fit", T, {nan}, "int32")
    check.raises("does not fit", T, {inf}, "int64")
    check.raises("does not fit", luma.full, {2}, 1e20, {dtype = "int64"})
    check.raises("does not fit", function() T({1}, "uint8"):fill_(256) end)
    check.tensor({0.0999755859375}, "float16", T({0.1}, "float16"))
    check.tensor({true}, "bool", T {true}:fill_(7))
  end)

  it("tensors are copied, tables of them are not taken", function()
    local x = T {1, 2}
    local y = T(x)
    y[1] = 5
    check.tensor({1, 2}, "float32", x)
    check.tensor({1, 2}, "float64", T(x, "float64"))
    check.raises("stack", T, {x, x})
  end)

  it("zeros and its kin take sizes or a list", function()
    check.tensor({{0, 0, 0}, {0, 0, 0}}, "float32", luma.zeros(2, 3))
    check.tensor({{0, 0, 0}, {0, 0, 0}}, "int32", luma.zeros({2, 3}, {dtype = "int32"}))
    check.tensor({1, 1}, "float32", luma.ones(2))
    check.tensor({7, 7}, "float32", luma.full({2}, 7))
    check.tensor({true}, "bool", luma.full({1}, true))
    assert.same({2, 2}, luma.empty(2, 2).shape)
    assert.same({3}, luma.rand(3).shape)
    assert.same({3, 1}, luma.randn({3, 1}, {dtype = "float64"}).shape)
    check.tensor({{1, 0}, {0, 1}}, "float32", luma.eye(2))
    check.tensor({{1, 0, 0}, {0, 1, 0}}, "int64", luma.eye(2, 3, {dtype = "int64"}))
    check.tensor(0, "float32", luma.zeros({}))
    assert.same({0, 3}, luma.zeros(0, 3).shape)
    for _, name in ipairs {"zeros", "ones", "empty", "rand", "randn"} do
      check.raises("shape expected", luma[name])
      check.raises("negative", luma[name], 2, -1)
      check.raises("no integer", luma[name], 2.5)
      check.raises("too large", luma[name], 1 << 40, 1 << 40)
      check.raises("at most 8", luma[name], 1, 1, 1, 1, 1, 1, 1, 1, 1)
      check.raises("no such argument", luma[name], {1}, {dtype = "f32"}, 3)
    end
    check.raises("too large", luma.zeros, 0, 1 << 62, 1 << 62)
    check.raises("negative", luma.eye, -1)
    check.raises("too large", luma.eye, 1 << 40)
  end)

  it("the _like forms", function()
    local x = T({{1, 2}}, "int16")
    check.tensor({{0, 0}}, "int16", luma.zeros_like(x))
    check.tensor({{1, 1}}, "int16", x:ones_like())
    check.tensor({{5, 5}}, "int16", luma.full_like(x, 5))
    check.tensor({{0, 0}}, "float64", luma.zeros_like(x, {dtype = "f64"}))
    assert.same({1, 2}, luma.empty_like(x).shape)
    assert.same({1, 2}, luma.rand_like(x, {dtype = "float32"}).shape)
    check.raises("float dtype", luma.randn_like, x)
    check.raises("does not fit", luma.full_like, x, 1 << 20)
  end)

  it("range counts as for does", function()
    check.tensor({1, 2, 3}, "int64", luma.range(1, 3))
    check.tensor({5, 3, 1}, "int64", luma.range(5, 1, -2))
    check.tensor({}, "int64", luma.range(1, 0))
    check.tensor({0, 0.25, 0.5}, "float32", luma.range(0, 0.5, 0.25))
    check.tensor({1, 2}, "float32", luma.range(1, 2.0))
    check.tensor({1e300}, "float64", luma.range(1e300, 1e300, 1, "float64"))
    assert.equal(1001, luma.range(1e16, 1e16 + 100, 0.1):numel())
    check.tensor({1, 2}, "int8", luma.range(1, 2, {dtype = "int8"}))
    check.tensor({math.maxinteger}, "int64", luma.range(math.maxinteger, math.maxinteger))
    check.tensor({math.maxinteger - 1, math.maxinteger}, "int64",
      luma.range(math.maxinteger - 1, math.maxinteger))
    local x = luma.range(0, 1, 0.1, {dtype = "float64"})
    assert.equal(11, #x)
    for i = 1, 11 do
      assert.is_true(math.abs(x[i] - (i - 1) / 10) < 2e-16)
      assert.is_true(x[i] <= 1)
    end
    check.tensor({0, 0.1, 0.2}, "float64", luma.range(0, 0.3, 0.1, {dtype = "float64"}))
    local long = luma.range(0, 100000, 0.1, {dtype = "float64"})
    assert.equal(100000.0, long[-1])
    check.raises("step is zero", luma.range, 1, 5, 0)
    check.raises("finite", luma.range, 0, inf)
    check.raises("too long", luma.range, math.mininteger, math.maxinteger)
    check.raises("does not fit", luma.range, 1, 300, {dtype = "uint8"})
  end)

  it("linspace and logspace end where they should", function()
    check.tensor({0, 0.25, 0.5, 0.75, 1}, "float32", luma.linspace(0, 1, 5))
    check.tensor({0}, "float32", luma.linspace(0, 1, 1))
    check.tensor({}, "float32", luma.linspace(0, 1, 0))
    check.tensor({5, 5, 5}, "float32", luma.linspace(5, 5, 3))
    check.tensor({1, 0.5, 0}, "float32", luma.linspace(1, 0, 3))
    assert.equal(99.78730976641236, luma.linspace(0, 99.78730976641236, 100, {dtype = "f64"})[-1])
    assert.equal(T {2.8459014}[1], luma.linspace(-2.3328583, 2.8459014, 10)[-1])
    check.near({1, 10, 100}, luma.logspace(0, 2, 3))
    check.near({1, 2, 4}, luma.logspace(0, 2, 3, {base = 2}))
    check.raises("negative", luma.linspace, 0, 1, -1)
  end)

  it("triangles, diagonals and grids", function()
    local x = T {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}
    check.tensor({{1, 0, 0}, {4, 5, 0}, {7, 8, 9}}, "float32", luma.tril(x))
    assert.same({1 << 40, 0}, luma.tril(luma.zeros(1, 0):expand {1 << 40, 0}).shape)
    check.tensor({{0, 2, 3}, {0, 0, 6}, {0, 0, 0}}, "float32", x:triu({diagonal = 1}))
    check.tensor({{1, 2, 0}, {4, 5, 6}, {7, 8, 9}}, "float32", x:tril({diagonal = 1}))
    check.tensor({1, 5, 9}, "float32", x:diag())
    check.tensor({2, 6}, "float32", x:diag({diagonal = 1}))
    check.tensor({{1, 0}, {0, 2}}, "float32", T {1, 2}:diag())
    check.tensor({{0, 0}, {3, 0}}, "float32", T {3}:diag({diagonal = -1}))
    check.tensor({{true, false}, {true, true}}, "bool", luma.tril(luma.full({2, 2}, true)))
    local a, b = luma.meshgrid(T {1, 2}, T {3, 4, 5})
    check.tensor({{1, 1, 1}, {2, 2, 2}}, "float32", a)
    check.tensor({{3, 4, 5}, {3, 4, 5}}, "float32", b)
    a, b = luma.meshgrid(T {1, 2}, T {3, 4, 5}, {indexing = "xy"})
    check.tensor({{1, 2}, {1, 2}, {1, 2}}, "float32", a)
    check.tensor({{3, 3}, {4, 4}, {5, 5}}, "float32", b)
  end)

  it("bytes, tables, items, clones", function()
    for _, dtype in ipairs(check.dtypes) do
      local x = T({{0, 1, 1}, {1, 0, 1}}, dtype)
      local bytes = x:tobytes()
      assert.equal(6 * x:itemsize(), #bytes)
      assert.is_true(luma.frombytes(bytes, dtype, {2, 3}):equal(x))
      assert.equal(x:t():clone():tobytes(), x:t():tobytes())
      assert.same({6}, luma.frombytes(bytes, dtype).shape)
    end
    check.raises("3 bytes are not [2] of int16", luma.frombytes, "abc", "int16", {2})
    check.raises("neither 0 nor 1", luma.frombytes, "\2", "bool", {1})
    local x = T {{1, 2}, {3, 4}}
    assert.same({{1.0, 3.0}, {2.0, 4.0}}, x:t():totable())
    check.value(4.0, x[2][2])
    check.value(1.0, T {1}:item())
    check.value(7, T({{7}}, "int8"):item())
    check.value(true, T {true}:item())
    check.value(0.5, T({0.5}, "bfloat16"):item())
    check.raises("one element", x.item, x)
    local y = x:clone()
    y[1] = 0
    check.tensor({{1, 2}, {3, 4}}, "float32", x)
    check.value(2.5, T(2.5):totable())
  end)

  it("0-d and empty tensors are first class", function()
    local z = T(2)
    check.tensor(5, "float32", z + 3)
    check.tensor({3, 4}, "float32", z + T {1, 2})
    assert.same({}, z.shape)
    assert.equal(0, z.ndim)
    local e = luma.zeros(0, 3)
    assert.same({0, 3}, (e + 1).shape)
    assert.same({0, 3}, e:exp().shape)
    assert.same({3, 0}, e:t().shape)
    check.tensor(0, "float32", e:sum())
    check.tensor({0, 0, 0}, "float32", e:sum(1))
    assert.same({}, e:totable())
  end)
end)

describe("operators:", function()
  local a, b = T {6, -7}, T {2, 2}

  it("arithmetic", function()
    check.tensor({8, -5}, "float32", a + b)
    check.tensor({4, -9}, "float32", a - b)
    check.tensor({12, -14}, "float32", a * b)
    check.tensor({3, -3.5}, "float32", a / b)
    check.tensor({-6, 7}, "float32", -a)
    check.tensor({3, -4}, "float32", a // b)
    check.tensor({0, 1}, "float32", a % b)
    check.tensor({7, -6}, "float32", 1 + a)
    check.tensor({-5, 8}, "float32", 1 - a)
    check.tensor({{3, 4}, {4, 5}}, "float32", T {1, 2} + T {{2}, {3}})
  end)

  it("/ is always float, also of integers", function()
    check.tensor({3.5}, "float32", T({7}, "int32") / 2)
    check.tensor({0.5}, "float32", 1 / T({2}, "int64"))
  end)

  it("// and % as Lua, of integers and floats", function()
    for _, dtype in ipairs {"int8", "int32", "int64", "float32", "float64"} do
      local x = T({7, -7, 7, -7}, dtype)
      local y = T({2, 2, -2, -2}, dtype)
      check.tensor({3, -4, -4, 3}, dtype, x // y)
      check.tensor({1, 1, -1, -1}, dtype, x % y)
    end
    check.value(10.0, (T({1}, "f64") // 0.1)[1])
    local r = (T({-1.0}, "f64") % 1.0)[1]
    assert.is_true(r == 0 and 1 / r == -inf)
  end)

  it("^ is a float power, pow keeps integers", function()
    check.tensor({8}, "float32", T({2}, "int32") ^ 3)
    check.tensor({8}, "float32", 2 ^ T({3}, "int64"))
    check.tensor({8}, "float32", T({2}, "int32") ^ T({3}, "int32"))
    check.tensor({1, 0}, "float32", T {true, false} ^ 1)
    check.tensor({0.5}, "float32", T({2}, "int32") ^ -1)
    check.tensor({8}, "int32", T({2}, "int32"):pow(3))
    check.raises("negative power", function() return T({2}, "int32"):pow(-1) end)
  end)

  it("& | ~ are logical on bool, bitwise on integers, errors on floats", function()
    local x, y = T {true, true, false, false}, T {true, false, true, false}
    check.tensor({true, false, false, false}, "bool", x & y)
    check.tensor({true, true, true, false}, "bool", x | y)
    check.tensor({false, true, true, false}, "bool", x ~ y)
    check.tensor({false, false, true, true}, "bool", ~x)
    check.tensor({2}, "uint8", T({6}, "uint8") & 3)
    check.tensor({7}, "int16", T({6}, "int16") | T({3}, "int16"))
    check.tensor({5}, "int64", T({6}, "int64") ~ 3)
    check.tensor({-7}, "int32", ~T({6}, "int32"))
    check.raises("float32", function() return T {1} & 1 end)
    check.raises("float32", function() return ~T {1} end)
    check.raises("float", function() return T({1}, "int32") | 1.5 end)
  end)

  it("shifts have no operator", function()
    check.raises("lshift", function() return T({1}, "int32") << 1 end)
    check.raises("rshift", function() return 1 >> T({1}, "int32") end)
    check.tensor({8}, "int32", T({1}, "int32"):lshift(3))
    check.tensor({-1}, "int32", T({-8}, "int32"):rshift(3))
    check.tensor({0, -1}, "int8", T({1, -1}, "int8"):rshift(8))
    check.tensor({0}, "uint8", T({255}, "uint8"):lshift(8))
    check.raises("negative shift", function() return T({1}, "int32"):lshift(-1) end)
  end)

  it("== is one boolean", function()
    assert.is_true(T {1, 2} == T {1, 2})
    assert.is_false(T {1, 2} == T {1, 3})
    assert.is_false(T {1, 2} == T {{1, 2}})
    assert.is_true(T {1, 2} ~= T {1, 3})
    assert.is_true(T({1, 2}, "int32") == T {1, 2})
    assert.is_false(T {nan} == T {nan})
    assert.is_false(T {1} == io.stdout)
    assert.is_true(T {1, 2}:equal(T {1, 2}))
    check.tensor({true, false}, "bool", T {1, 2}:eq(T {1, 3}))
    check.tensor({false, true}, "bool", T {1, 2}:ne(1))
    check.tensor({true, false}, "bool", T {1, 2}:lt(2))
    check.tensor({true, true}, "bool", T {1, 2}:le(2))
    check.tensor({false, false}, "bool", T {1, 2}:gt(2))
    check.tensor({false, true}, "bool", T {1, 2}:ge(2))
  end)

  it("< and its kin are errors that say what to use", function()
    for _, f in ipairs {function() return a < b end, function() return a <= b end,
                        function() return a > b end, function() return a >= b end,
                        function() return a < 1 end, function() return 1 < a end} do
      check.raises("lt", f)
      check.raises("item", f)
    end
  end)

  it("# and ..", function()
    assert.equal(2, #a)
    assert.equal(3, #luma.zeros(3, 5))
    check.raises("0-d", function() return #T(1) end)
    assert.equal("x = 2.0", "x = " .. T(2))
    assert.equal("2.0!", T(2) .. "!")
    check.raises("luma.cat", function() return a .. b end)
    check.raises("concatenate", function() return a .. {} end)
  end)

  it("matmul is a method, * is elementwise", function()
    local m = T {{1, 2}, {3, 4}}
    check.tensor({{1, 4}, {9, 16}}, "float32", m * m)
    check.tensor({{7, 10}, {15, 22}}, "float32", m:matmul(m))
    check.tensor({{10, 14}, {14, 20}}, "float32", m:t():matmul(m))
    check.tensor({5, 11}, "float32", m:matmul(T {1, 2}))
    assert.same({5, 2, 2}, luma.ones(5, 2, 3):matmul(luma.ones(3, 2)).shape)
    check.raises("bool", function() return T {{true}}:matmul(T {{true}}) end)
  end)
end)
