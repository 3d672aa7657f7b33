-- fused_spec.lua -- luma.kernel and luma.fuse: random programs give the bits, dtypes, shapes and errors
-- of their operations called one after the other, for any dtypes, views and numbers.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local device = require "spec.support.device"

local dtypes = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3", "float16",
                "bfloat16", "float32", "float64"}
local seed = require "seed".value

local function pick(list) return list[math.random(#list)] end

-- ---- random programs ----

local unary, tests, binary, bits = {}, {}, {}, {}
for _, row in ipairs(luma.ops) do
  local list = ({unary = unary, test = tests, binary = binary})[row.row]
  if list then table.insert((row.takes == "ints" or row.takes == "bits") and bits or list, row) end
end
local operators = {add = "+", sub = "-", mul = "*", div = "/", floor_div = "//", remainder = "%",
                   bitwise_and = "&", bitwise_or = "|", bitwise_xor = "~"}
local comparisons = {lt = "<", le = "<=", gt = ">", ge = ">=", eq = "==", ne = "~="}
local numerals = {"0", "1", "2", "3", "7", "0.5", "2.0", "-1", "1e3", "200", "0x10", "-0.25"}

-- Two texts of one program, that of luma.kernel and that of Lua; and whether it has a parameter.
local number, mask

local function call(name, ...)
  local own, plain, any = {}, {}, false
  for i, part in ipairs{...} do
    own[i], plain[i], any = part[1], part[2], any or part[3]
  end
  return {("%s(%s)"):format(name, table.concat(own, ", ")),
          ("luma.%s(%s)"):format(name, table.concat(plain, ", ")), any}
end

local function infix(symbol, a, b)
  return {("(%s %s %s)"):format(a[1], symbol, b[1]), ("(%s %s %s)"):format(a[2], symbol, b[2]),
          a[3] or b[3]}
end

local function parameter(names)
  local name = pick(names)
  return {name, name, true}
end

local function with_parameter(depth, names, make)
  local v = make(depth, names)
  return v[3] and v or parameter(names)
end

function number(depth, names)
  if depth == 0 then
    local n = pick(numerals)
    return math.random(4) > 1 and parameter(names) or {n, n, false}
  end
  local what = math.random(10)
  if what <= 3 then
    return call(pick(unary).name, with_parameter(depth - 1, names, number))
  elseif what <= 7 then
    local row = pick(binary)
    local a, b = number(depth - 1, names), number(depth - 1, names)
    if operators[row.name] then return infix(operators[row.name], a, b) end
    if not a[3] then a = parameter(names) end
    return call(row.name, a, b)
  elseif what == 8 then
    local a, b = number(depth - 1, names), number(depth - 1, names)
    if math.random(4) == 1 then return infix("^", a, b) end
    local row = pick(bits)
    if not a[3] then a = parameter(names) end
    if row.row == "unary" then return call(row.name, a) end
    return operators[row.name] and infix(operators[row.name], a, b) or call(row.name, a, b)
  elseif what == 9 then
    return call("where", mask(depth - 1, names), number(depth - 1, names), number(depth - 1, names))
  end
  local x = with_parameter(depth - 1, names, number)
  local p, q = pick(numerals), pick(numerals)
  return call(pick{"clamp", "affine"}, x, {p, p}, {q, q})
end

function mask(depth, names)
  local what = math.random(6)
  if depth == 0 or what <= 3 then
    local name = pick{"lt", "le", "gt", "ge", "eq", "ne"}
    local a = with_parameter(math.max(depth - 1, 0), names, number)
    local b = number(math.max(depth - 1, 0), names)
    return {("(%s %s %s)"):format(a[1], comparisons[name], b[1]),
            ("luma.%s(%s, %s)"):format(name, a[2], b[2]), true}
  elseif what == 4 then
    return call(pick(tests).name, with_parameter(depth - 1, names, number))
  elseif what == 5 then
    return infix(pick{"&", "|", "~"}, mask(depth - 1, names), mask(depth - 1, names))
  end
  local a = mask(depth - 1, names)
  return {("(~%s)"):format(a[1]), ("(~%s)"):format(a[2]), a[3]}
end

-- ---- random arguments ----

local function values(dtype, ...)
  local x = luma.randint(-9, 9, ...)
  if dtype == "bool" then return x:gt(0) end
  if dtype:find("float") then x = x:to("float64"):mul(luma.rand(..., {dtype = "float64"})) end
  return x:to(dtype)
end

-- A tensor whose shape broadcasts to `shape`, through some view.
local function operand(dtype, shape)
  local sizes = {}
  for d, n in ipairs(shape) do sizes[d] = math.random(5) == 1 and 1 or n end
  for _ = 1, math.random(3) == 1 and math.random(0, #sizes) or 0 do table.remove(sizes, 1) end
  if #sizes == 0 then return values(dtype, {1}):reshape({}) end
  local how = math.random(6)
  if how == 1 then
    return values(dtype, sizes):flip(math.random(#sizes))
  elseif how == 2 then
    local d = math.random(#sizes)
    local more = {table.unpack(sizes)}
    more[d] = 2 * more[d] + 1
    return values(dtype, more):slice(d, 2, more[d] - (more[d] > 1 and 1 or 0), 2):narrow(d, 1, sizes[d])
  elseif how == 3 and #sizes > 1 then
    local order, other = {}, {}
    for d = 1, #sizes do order[d], other[d] = d, sizes[d] end
    order[1], order[#sizes], other[1], other[#sizes] = #sizes, 1, sizes[#sizes], sizes[1]
    return values(dtype, other):permute(order)
  elseif how == 4 then
    local d = math.random(#sizes)
    local less = {table.unpack(sizes)}
    less[d] = math.min(1, less[d])
    return values(dtype, less):expand(sizes)
  end
  return values(dtype, sizes)
end

local shapes = {{}, {1}, {7}, {64}, {257}, {3, 5}, {17, 33}, {2, 3, 4}, {1, 1030}, {5, 1, 67}, {0}, {3, 0},
                {2, 1, 2, 1, 2, 1, 2, 3}, {70, 66}, {2111}}

local function arguments(names, shape)
  local list, any = {}, false
  local same = math.random(3) == 1 and pick(dtypes)
  for i = 1, #names do
    if math.random(7) == 1 and (any or i < #names) then
      list[i] = pick{0, 1, -2, 3.5, true, 0.1, 300}
    else
      list[i], any = operand(same or pick(dtypes), shape), true
    end
  end
  return list
end

-- ---- comparing ----

local function run(f, args)
  local r = f(table.unpack(args))
  -- which NaN comes of two depends on the order in which the processor has them
  local same = luma.is_tensor(r) and r.dtype:find("float") and luma.where(r:isnan(), 0, r) or r
  if luma.is_tensor(r) then
    local nan = r:isnan()
    return {r.dtype, table.concat(r.shape, "x"), same:tobytes() .. nan:tobytes()}
  end
  return {r}
end

local function plain(message)
  return (tostring(message):gsub("^[^:]*:%d+: ", ""))
end

local function told(args)
  local words = {}
  for i, x in ipairs(args) do
    words[i] = luma.is_tensor(x) and ("%s[%s]"):format(x.dtype, table.concat(x.shape, "x")) or tostring(x)
  end
  return table.concat(words, ", ")
end

local function has_number(args)
  for _, x in ipairs(args) do
    if not luma.is_tensor(x) then return true end
  end
  return false
end

-- Both ways, which must agree in all they say.
local function compare(kernel, eager, args, text)
  local a, want = device.pcall(run, eager, args)
  local b, got = device.pcall(run, kernel, args)
  local where = ("seed %d: %s of %s"):format(seed, text, told(args))
  if not a or not b then
    if has_number(args) then return false end -- of numbers alone Lua says other things, or nothing
    assert(not a and not b, ("%s: %s / %s"):format(where, plain(want), plain(got)))
    -- Lua's own, of numbers alone, come while a function is traced
    local by_lua = not got:find("bad argument", 1, true) and not got:find("queued on", 1, true)
    if not by_lua then assert.equal(plain(want), plain(got), where) end
    return false
  end
  if want[1] == nil or not want[2] then return false end -- numbers alone
  assert.equal(want[1], got[1], where)
  assert.equal(want[2], got[2], where)
  assert(want[3] == got[3], where .. ": other bits")
  return true
end

local function compile(program, names)
  local text = ("local luma = ...; return function(%s) return %s end"):format(
    table.concat(names, ", "), program[2])
  return assert(load(text))(luma)
end

describe("fused programs", function()
  local function random_programs(n, depth, make)
    local ran, passes = 0, 0
    n = device.is_cpu and n or n // 4
    for i = 1, n do
      math.randomseed(seed * 1000 + i)
      luma.manual_seed(seed * 1000 + i)
      local names = {"x", "y", "z"}
      for k = 1, math.random(0, 2) do table.remove(names, k) end
      local program = number(depth, names)
      if program[3] then
        local eager = compile(program, names)
        local made, kernel = pcall(make, program, names, eager)
        for _ = 1, made and 3 or 0 do
          local shape = pick(shapes)
          if compare(kernel, eager, arguments(names, shape), program[1]) then ran = ran + 1 end
        end
        if made then passes = passes + kernel:passes() end
      end
    end
    -- of few runs most may be of more values than fit
    if device.is_cpu and ran > 20 then assert(passes >= ran / 4, ran .. " runs, in one pass " .. passes) end
    return ran
  end

  it("of luma.kernel are their operations", function()
    local ran = random_programs(600, 3, function(program, names)
      return luma.kernel(names, program[1])
    end)
    assert(ran > (device.is_cpu and 300 or 60), "only " .. ran .. " programs ran")
  end)

  it("of luma.fuse are their operations", function()
    local ran = random_programs(300, 3, function(_, _, eager) return luma.fuse(eager) end)
    assert(ran > (device.is_cpu and 150 or 30), "only " .. ran .. " programs ran")
  end)

  it("may be long", function()
    random_programs(40, 7, function(program, names) return luma.kernel(names, program[1]) end)
  end)
end)

describe("luma.kernel", function()
  local x, y = luma.tensor{1, -2, 3}, luma.tensor{0.5, 2, -1}

  it("takes its parameters in the order in which they first stand, or as they are given", function()
    assert.same((y - x):totable(), luma.kernel("a - b")(y, x):totable())
    assert.same((x - y):totable(), luma.kernel({"b", "a"}, "a - b")(y, x):totable())
    assert.same(x:totable(), luma.kernel({"a", "unused"}, "a")(x, y):totable())
  end)

  it("binds operators as Lua does", function()
    for text, want in pairs{["-x ^ 2"] = -x ^ 2, ["2 ^ x ^ y"] = 2 ^ x ^ y, ["x + y * x"] = x + y * x,
                            ["(x + y) * x"] = (x + y) * x, ["x - y - x"] = x - y - x,
                            ["x // y % x"] = x // y % x, ["-x * -y"] = -x * -y,
                            ["1e3 * x + 0x10 - .5"] = 1e3 * x + 0x10 - .5,
                            ["x * math.pi"] = x * math.pi, ["luma.exp(x)"] = x:exp()} do
      local kernel = luma.kernel(text)
      local got = text:find("y") and kernel(x, y) or kernel(x)
      assert.same(want:totable(), got:totable(), text)
    end
    assert.same(luma.lt(x + 1, y):bitwise_and(x:ge(1)):totable(),
                luma.kernel("(x + 1 < y) & (x >= 1)")(x, y):totable())
    assert.same(luma.lt(x, y):bitwise_or(y:gt(0)):totable(),
                luma.kernel("(x < y) | (y > 0)")(x, y):totable())
  end)

  it("takes numbers for any parameter but all", function()
    assert.same((x * 3):totable(), luma.kernel("x * n")(x, 3):totable())
    assert.same({1, 0, 2}, luma.kernel("clamp(x, lo, hi)")(x, 0, 2):totable())
    assert.equal("int32", luma.kernel("x * n")(x:to("int32"), 3).dtype)
    assert.equal("float32", luma.kernel("x * n")(x:to("int32"), 3.0).dtype)
    -- numbers among themselves are Lua's
    assert.same((x + 7 // 2):totable(), luma.kernel("x + a // b")(x, 7, 2):totable())
    assert.same(luma.where(x:gt(0), x, 0):totable(),
                luma.kernel("where(x > lo, x, n - n)")(x, 0, 2):totable())
    assert.has_error(function() luma.kernel("x + a // b")(x, 7, 0) end)
    assert.has_error(function() luma.kernel("x * 2")(3) end,
                     "kernel: none of what the result is made of is a tensor")
    assert.has_error(function() luma.kernel("clamp(x, y, 1)")(x, y) end,
                     "bad argument #2 to 'clamp' (a number expected, got a tensor)")
  end)

  it("writes into out, which may be an argument", function()
    local kernel, out = luma.kernel("x * y + x"), luma.zeros(3)
    local want = (x * y + x):totable()
    assert(rawequal(out, kernel(x, y, {out = out})))
    assert.same(want, out:totable())
    local z = x:clone()
    kernel(z, y, {out = z})
    assert.same(want, z:totable())
    local both = luma.range(1, 6):to("float32")
    local a, b = both:narrow(1, 1, 5), both:narrow(1, 2, 5)
    want = (a * b + a):totable()
    kernel(a, b, {out = b})
    assert.same(want, b:totable())
    assert.has_error(function() kernel(x, y, {out = luma.zeros(4)}) end)
    assert.has_error(function() kernel(x, y, {out = luma.zeros(3, {dtype = "float64"})}) end)
    assert.has_error(function() kernel(x, y, {to = out}) end)
  end)

  it("leaves out as it was when an integer is refused", function()
    local a, b = luma.tensor({1, 2, 3}, "int32"), luma.tensor({1, 0, 2}, "int32")
    local out = luma.tensor({7, 7, 7}, "int32")
    local good, message = device.pcall(luma.kernel("a + a // (b + 0)"), a, b, {out = out})
    assert.is_false(good)
    assert(message:find("attempt to perform 'n//0'", 1, true), message)
    if device.is_cpu then assert.same({7, 7, 7}, out:totable()) end
    assert.is_false((device.pcall(luma.kernel("pow(a, b - 1)"), a, b)))
    assert.is_false((device.pcall(luma.kernel("lshift(a, b - 1)"), a, b)))
    local none = luma.zeros(2, 0, {dtype = "int32"})
    assert.same({2, 0}, luma.kernel("a // b")(none, none:narrow(1, 1, 1)).shape)
    -- the quotient has elements, though the result has none
    none = luma.zeros(0, 3, {dtype = "int32"})
    assert.is_false((device.pcall(luma.kernel("a // (b - b) * c"), a, b, none)))
  end)

  -- Bits, with one NaN for all.
  local function bits_of(v) return luma.where(v:isnan(), 0, v):tobytes() .. v:isnan():tobytes() end

  local function eager_of(text)
    return assert(load("local luma, a, b = ...; local relu, sqrt, square, exp = luma.relu, luma.sqrt, " ..
      "luma.square, luma.exp; return " .. text))
  end

  it("keeps what only the next operation reads, in any length and view", function()
    local many = {"a * b"}
    for i = 1, 20 do many[#many + 1] = ("%s %d"):format(i % 2 == 0 and "+" or "*", i) end
    local texts = {"relu(a * b + 1)", "a - 0.01 * b / (sqrt(b * b) + 1e-8)", "-(a - b) / b * a",
                   "1 - (2 - (a - b))", "b - (a - (b - a * 3))", "3 / (b / (a / 2))", "square(a + b) - b",
                   "(a + b) * (a + b) - 1", "relu(-a) - exp(a * b - 1) * 2 / b",
                   "sqrt(a * a) - a * b * (a - b)",
                   "(a * b + 1) * (a * b) - relu(b)", "relu(a) - relu(-b) * a", "-relu(-relu(a))",
                   "a + b", "(2 + a) * b + (a - 5)", table.concat(many, " ")}
    local special = {0.0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1e-40, 3e38, -1}
    local lengths = {255, 256, 257, 383, 512, 640, 2047, 2048, 2049, 5000, 33333}
    for _, text in ipairs(texts) do
      local kernel, eager = luma.kernel({"a", "b"}, text), eager_of(text)
      local function check(a, b, out, what)
        local want = bits_of(eager(luma, a, b))
        local got
        if out then got = kernel(a, b, {out = out}) else got = kernel(a, b) end
        assert(want == bits_of(got), text .. ", " .. what)
      end
      for i, n in ipairs(device.is_cpu and lengths or {300, 2049}) do
        local dtype = i % 3 == 0 and "float64" or "float32"
        local a, b = luma.randn(n + 1, {dtype = dtype}), luma.randn(n + 1, {dtype = dtype})
        for k, v in ipairs(special) do
          a[(k - 1) * (n // 8) + 1] = v
          b[k * (n // 8)] = special[k % 5 + 1]
        end
        a, b = a:narrow(1, 2, n), b:narrow(1, 1, n) -- not aligned to vectors
        check(a, b, nil, n)
        check(a, a, nil, n .. ", one tensor")
        if pcall(eager, luma, a, 0.75) then check(a, 0.75, nil, n .. ", a number") end
        check(a, b:narrow(1, 3, 1), nil, n .. ", one element")
        check(b:narrow(1, 3, 1), a, nil, n .. ", one element first")
        check(a, b, luma.zeros(n, 3, {dtype = dtype}):select(2, 2), n .. ", out of every third")
        check(a:clone():expand(3, n), luma.randn(3, 1, {dtype = dtype}), nil, "rows of " .. n)
        local c = a:clone()
        check(c, b, c, n .. ", out a")
        c = b:clone()
        check(a, c, c, n .. ", out b")
      end
      assert(not device.is_cpu or kernel:passes() > 0)
    end
  end)

  it("runs large tensors, which pass the caches by, on any number of threads", function()
    local n = device.is_cpu and (1 << 22) + 77 or 5000
    local a, b = luma.randn(n), luma.randn(n)
    local kernel, exact = luma.kernel("relu(a * b + 1)"), luma.kernel("a * b < 0.25")
    local half = luma.kernel("a * b * 2")
    local want = luma.relu(a * b + 1)
    local threads = luma.config().threads
    for _, t in ipairs{1, 2} do
      luma.set_num_threads(t)
      assert(kernel(a, b):equal(want))
      assert(exact(a, b):equal(luma.lt(a * b, 0.25)))
      local c, d = a:to("float16"), b:to("float16")
      assert(half(c, d):equal(c * d * 2))
      assert(kernel(a:flip(1), b):equal(luma.relu(a:flip(1) * b + 1)))
    end
    luma.set_num_threads(threads)
  end)

  it("takes up to 64 parameters", function()
    local terms, args = {}, {}
    for i = 1, 64 do terms[i], args[i] = "p" .. i, luma.randn(5) end
    for _, n in ipairs{8, 9, 10, 11, 64} do
      local kernel = luma.kernel(table.concat(terms, " + ", 1, n))
      local want = args[1]
      for i = 2, n do want = want + args[i] end
      assert(kernel(table.unpack(args, 1, n)):equal(want))
    end
    terms[65] = "p65"
    assert.has_error(function() luma.kernel(table.concat(terms, " + ")) end)
  end)

  it("says what is wrong with an expression", function()
    for text, message in pairs{
      ["x +"] = "unexpected the end", ["(x"] = "')' expected near 'the end'", ["x y"] = "unexpected 'y'",
      ["x and y"] = "'and' is not here: use & of masks, or where(mask, a, b)",
      ["not x"] = "'not' is not here: use logical_not(x)",
      ["x << 2"] = "'<<' is not here: use lshift(x, y)",
      ["x = y"] = "'=' is not here: use ==", ["x != y"] = "'!=' is not here: use ~=",
      ["sigmoit(x)"] = "there is no function 'sigmoit'; near it: sigmoid",
      ["sum(x)"] = "'sum' is not elementwise",
      ["x?"] = "unexpected '?'", ["1x"] = "malformed number near '1x'",
      ["a.b"] = "'a.b' is no name of a parameter",
      [""] = "unexpected the end",
      ["3"] = "kernel: result #1 is a number that does not come of the arguments",
      ["exp(x, x)"] = "bad argument #2 to 'exp' (no such argument)",
      ["exp(1)"] = "bad argument #1 to 'exp' (tensor expected, got number)",
    } do
      local good, got = pcall(luma.kernel, text)
      assert.is_false(good, text)
      assert.equal(("bad argument #1 to 'kernel' (\"%s\": %s)"):format(text, message), got)
    end
    assert.is_false((pcall(luma.kernel, ("("):rep(1000) .. "x" .. (")"):rep(1000))))
    assert.is_false((pcall(luma.kernel, ("x + "):rep(10000) .. "x")))
    assert.is_false((pcall(luma.kernel, ("exp("):rep(90) .. "x" .. (")"):rep(89))))
    for _, wrong in ipairs{{}, {1}, {true}, {{"x", "x"}, "x"}, {{"1"}, "x"}, {{1}, "x"}, {{"y"}, "x"},
                           {"x", {title = "x"}}, {"x", {name = 3}}, {"x", 3}} do
      assert.is_false((pcall(luma.kernel, table.unpack(wrong))))
    end
  end)

  it("says what is wrong with arguments", function()
    local kernel = luma.kernel("x + y", {name = "plus"})
    local function says(message, ...)
      local good, got = pcall(kernel, ...)
      assert.is_false(good)
      assert.equal(message, plain(got))
    end
    says("plus takes 2 arguments, got 1", x)
    says("plus takes 2 arguments, got 3", x, y, x)
    says("bad argument #2 to 'plus' (tensor or number expected, got string)", x, "1")
    says("bad argument #2 to 'add' ([3] and [4] do not broadcast: sizes 3 and 4 differ)", x, luma.zeros(4))
    local z = luma.ones(3)
    z:free()
    says("bad argument #1 to 'plus' (the tensor was released)", z, x)
  end)

  it("has a text and help", function()
    local kernel = luma.kernel("x + y", {name = "plus"})
    assert.equal("luma.kernel: plus(x, y) = x + y", tostring(kernel))
    assert(kernel:help():find("= x + y", 1, true))
    assert.equal(kernel:help(), luma.help(kernel))
    assert.is_false(getmetatable(kernel))
  end)

  it("is unharmed by a lack of memory", function()
    local kernel = luma.kernel("relu(x * y + 1)")
    kernel(x, y)
    for n = 0, 4 do
      luma.fail_after(n)
      local good, r = pcall(kernel, x, y)
      luma.fail_after(nil)
      if good then assert.same(luma.relu(x * y + 1):totable(), r:totable()) end
    end
    assert.same(luma.relu(x * y + 1):totable(), kernel(x, y):totable())
  end)
end)

describe("luma.fuse", function()
  local x, y = luma.tensor{1, -2, 3}, luma.tensor{0.5, 2, -1}

  it("traces once for the dtypes and ranks of its arguments", function()
    local runs = 0
    local f = luma.fuse(function(a, b)
      runs = runs + 1
      if a.dtype == "int32" then return a + b end
      return a.ndim == 2 and a * b or a - b
    end)
    for _ = 1, 3 do assert.same((x - y):totable(), f(x, y):totable()) end
    assert.equal(1, runs)
    assert.same((x:to("int32") + y):totable(), f(x:to("int32"), y):totable())
    assert.same((x:view(1, 3) * y):totable(), f(x:view(1, 3), y):totable())
    assert.equal(3, runs)
    f(x, 2)
    f(x, 3)
    assert.equal(4, runs)
    f(x, 2.5)
    assert.equal(5, runs)
    f(x, y)
    f(x:to("int32"), y)
    assert.equal(5, runs)
  end)

  it("gives several results", function()
    local f = luma.fuse(function(a, b)
      local s = a + b
      return s, s * a, s:lt(0)
    end)
    local p, q, r = f(x, y)
    assert.same({(x + y):totable(), ((x + y) * x):totable(), (x + y):lt(0):totable()},
                {p:totable(), q:totable(), r:totable()})
    local a, b, c = x:clone(), luma.zeros(3), luma.zeros(3, {dtype = "bool"})
    p, q, r = f(a, y, {out = {a, b, c}})
    assert(rawequal(p, a) and rawequal(q, b) and rawequal(r, c))
    assert.same({(x + y):totable(), ((x + y) * x):totable(), (x + y):lt(0):totable()},
                {a:totable(), b:totable(), c:totable()})
    assert.has_error(function() f(x, y, {out = {a, b}}) end)
    assert.has_error(function() f(x, y, {out = {a, b, b}}) end)
    assert.has_error(function() f(x, y, {out = a}) end)
  end)

  it("holds operations by function, method and operator, kernels and other fused functions", function()
    local scaled = luma.kernel("a * s")
    local inner = luma.fuse(function(a) return a:relu(), -a end)
    local f = luma.fuse(function(a, b)
      local p, q = inner(a)
      return scaled(luma.clamp(p, -1, 1):exp(), 3) + q / b + a ^ 2 + luma.where(b:gt(0), b, 0)
    end)
    local want = luma.clamp(x:relu(), -1, 1):exp() * 3 + -x / y + x ^ 2 + luma.where(y:gt(0), y, 0)
    assert.same(want:totable(), f(x, y):totable())
    if device.is_cpu then assert.equal(1, f:passes()) end
  end)

  it("refuses what needs values", function()
    local other = luma.tensor{1}
    for name, f in pairs{
      ["use x:lt(y)"] = function(a) if a < 1 then return a end return -a end,
      ["x:eq(y)"] = function(a, b) if a == b then return a end return -a end,
      ["no element can be looked at"] = function(a) return a * a[1] end,
      ["nor their shape"] = function(a) return a * #a end,
      ["there is no 'shape'"] = function(a) return a * a.shape[1] end,
      ["'sum' is not elementwise"] = function(a) return a - a:sum() end,
      ["'cat' is not elementwise"] = function(a) return luma.cat(a, 1) end,
      ["writes in place"] = function(a) a:add_(1) return a end,
      ["cannot assign"] = function(a) a[1] = 3 return a end,
      ["make it an argument"] = function(a) return a + other end,
      ["cannot become text"] = function(a) error("is " .. a) end,
      ["got value of a fused function"] = function(a) return a * a:item() end,
      ["there is no 'foo'"] = function(a) return a:foo() end,
      ["dtype"] = function(a) return (a + 1).dtype == "float32" and a or -a end,
      ["no result"] = function() end,
      ["result #2 is a number"] = function(a) return a, 2 end,
      ["result #1 is a userdata"] = function() return other end,
      ["no such argument"] = function(a) return luma.exp(a, 1) end,
      ["unknown option 'out'"] = function(a) return luma.exp(a, {out = other}) end,
    } do
      local good, message = pcall(luma.fuse(f), x, y)
      assert.is_false(good, name)
      assert(message:find(name, 1, true), name .. ": " .. message)
    end
    local leaked
    local f = luma.fuse(function(a) leaked = a return a + 1 end)
    f(x)
    assert.is_false((pcall(function() return leaked + 1 end)))
    assert.is_false((pcall(luma.fuse(function(a) return a + leaked end), x)))
    assert.is_false((pcall(luma.fuse, 3)))
    assert.is_false((pcall(luma.fuse, print, {bad = 1})))
    assert.equal("value of a fused function", (function()
      local text
      luma.fuse(function(a) text = tostring(a) return a end)(x)
      return text
    end)())
  end)

  it("is unharmed by errors while it is traced", function()
    local wrong = true
    local f = luma.fuse(function(a) if wrong then error("oops") end return a + 1 end)
    assert.is_false((pcall(f, x)))
    assert.is_false((pcall(f, x)))
    wrong = false
    assert.same((x + 1):totable(), f(x):totable())
  end)
end)
