-- errors_spec.lua -- what is said when something is wrong: the form of messages, the numbers of
-- arguments, that nothing changes, and that no argument ends the process.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local device = require "device"

local T, nan, inf = luma.tensor, 0 / 0, math.huge

describe("messages:", function()
  local a, b = luma.zeros(2, 3), luma.zeros(4, 5)

  local function message(f, ...)
    local ok, text = pcall(f, ...)
    assert.is_false(ok)
    return text
  end

  it("have the stock form, with shapes", function()
    assert.equal("bad argument #2 to 'matmul' ([2 x 3] by [4 x 5]: inner sizes 3 and 4 differ)",
      message(luma.matmul, a, b))
    check.raises("bad argument #2 to 'add' ([2 x 3] and [4 x 5]", luma.add, a, b)
    check.raises("bad argument #2 to 'add'", function() return a + b end)
    check.raises("bad argument #2 to 'sum' (dim 3", luma.sum, a, 3)
    check.raises("bad argument #1 to 'sum' (tensor expected, got table)", luma.sum, {})
    check.raises("bad argument #1 to 'sum' (tensor expected, got no value)", luma.sum)
    check.raises("bad argument #1 to 'zeros'", luma.zeros, "x")
  end)

  it("number the arguments of methods as Lua does", function()
    check.raises("bad argument #1 to 'matmul'", function() return a:matmul(b) end)
    check.raises("bad argument #1 to 'sum'", function() return a:sum(3) end)
    check.raises("bad argument #2 to 'transpose'", function() return a:transpose(1, 3) end)
    check.raises("calling 'item' on bad self", function() return a:item() end)
    check.raises("bad argument #1 to 'item'", a.item, a)
  end)

  it("blame the argument that names a device, a size, an option", function()
    local there = luma.cuda.is_available()
    local why = there and "no device 'cuda:99'" or "no CUDA d" -- driver, device
    if not there then check.raises("cuda: " .. why, function() return a:cuda() end) end
    check.raises("bad argument #1 to 'cuda' (" .. why, function() return a:cuda(99) end)
    check.raises("bad argument #2 to 'cuda' (" .. why, luma.cuda, a, 99)
    check.raises("bad argument #2 to 'to' (" .. why, luma.to, a, "cuda:99", "f64")
    check.raises("bad argument #3 to 'to' (" .. why, luma.to, a, "f64", "cuda:99")
    check.raises("bad argument #1 to 'eye'", luma.eye, -1, 2)
    check.raises("bad argument #2 to 'eye'", luma.eye, 2, -1)
    check.raises("bad argument #2 to 'tril' (options stand in a table", luma.tril, a, "f32")
    check.raises("bad argument #3 to 'multinomial' (options expected", luma.multinomial, T {1}, 1, "f64")
  end)

  it("say where in the script", function()
    check.raises("errors_spec.lua:", function() return a + b end)
    check.raises("errors_spec.lua:", function() return luma.zeros(-1) end)
  end)

  it("name dtypes by their long names, positions from 1", function()
    check.raises("float32", function() return T {1} & T {2} end)
    check.raises("bfloat16", function() return ~T({1}, "bf16") end)
    check.raises("position 7 is out of range: dim 1 of [2 x 3] has size 2",
      function() return a[7] end)
    check.raises("at [2]", function() return T({1, 1}, "int32") // T({1, 0}, "int32") end)
  end)

  it("name both shapes of joins, stacks, products and reshapes", function()
    check.raises("[2 x 3]", luma.cat, {luma.zeros(2, 3), luma.zeros(2, 4)}, 1)
    check.raises("[2 x 4]", luma.cat, {luma.zeros(2, 3), luma.zeros(2, 4)}, 1)
    check.raises("[2]", luma.cat, {luma.zeros(2, 3), luma.zeros(2)})
    local x, y = luma.zeros(1, 4, 8, 8), luma.zeros(1, 5, 9, 9)
    check.raises("[1 x 4 x 8 x 8]", luma.stack, {x, y}, 2)
    check.raises("[1 x 5 x 9 x 9]", luma.stack, {x, y}, 2)
    check.raises("[6]", luma.reshape, luma.zeros(6), 4, 2)
    check.raises("[4 x 2]", luma.reshape, luma.zeros(6), 4, 2)
    check.raises("dim 5", luma.sum, luma.zeros(2, 3), 5)
  end)

  it("an unknown method gets the nearest name", function()
    check.raises("did you mean 'reshape'?", function() return a:reshap(6) end)
    check.raises("did you mean 'transpose'?", function() return a.transpoes end)
    check.raises("did you mean 'shape'?", function() return a.shap end)
    check.raises("did you mean 'softmax'?", function() return a:sofmax() end)
    check.raises("did you mean 'transpose'?", function() return a.transp end)
    check.raises("no method or field 'qqqq'", function() return a.qqqq end)
    assert.is_nil(select(2, pcall(function() return a.qqqq end)):find("mean"))
    check.raises("did you mean 'add_'?", function() return a:addd_(1) end)
    assert.is_nil(luma.sofmax)
  end)

  it("names of NumPy and PyTorch are told what to write", function()
    check.raises("no method or field 'clip'; write x:clamp(", function() return a:clip(0, 1) end)
    check.raises("no method or field 'T'; write x:t()", function() return a.T end)
    check.raises("write x:to(\"int64\")", function() return a:long() end)
    check.raises("luma has no 'arange'; write luma.range(", function() return luma.arange(3) end)
    check.raises("gradients and layers are not there yet", function() return luma.nn.Linear end)
    assert.is_nil(luma.no_such_name)
    assert.is_nil(luma[1])
    assert.equal("luma has no 'arange'; write luma.range(first, last), which includes its end",
      luma.help "arange")
    assert.equal("luma has no 'luma.clip'; write x:clamp(least, greatest)", luma.help "luma.clip")
    assert.equal("average            not in luma; write x:mean(dim)", luma.help_search "Average")
    assert.matches("^cumsum +Running", luma.help_search "running sum")
    assert.equal("nothing about 'qqqq'", luma.help_search "qqqq")
    check.raises("#1 to 'help_search' (words expected, got nil)", luma.help_search)
  end)

  it("what they are told works, and they are no names of luma", function()
    local file <close> = assert(io.open "bindings/foreign.c")
    local text = file:read "a"
    local function works(advice) -- with matrices or with vectors of positions
      for _, shown in ipairs {luma.rand(3, 3), luma.range(1, 3)} do
        local env = {luma = luma, math = math, x = shown, y = shown:clone(), a = shown, b = shown,
          dim = 1, d1 = 1, d2 = 2, source = 1, destination = 2, n = 3, weight = 0.5, classes = 3,
          least = 1, greatest = 3, first = 1, last = 3, mean = 0, deviation = 1, shape = {2, 3},
          values = {1}, dtype = "float32", index = shown:argsort(), positions = {1, 1, 2},
          string = "ab", name = "a"}
        for cut = #advice, 1, -1 do -- up to where it is an expression
          local f = load("return " .. advice:sub(1, cut), "advice", "t", env)
          if f and (cut == #advice or advice:find("^[,%s]", cut + 1)) then
            if (advice:find("path") or advice:find("set_print")) then return true end
            if advice:find("frombytes") then env.dtype, env.shape = "uint8", {2} end
            local good, result = pcall(f)
            if good and type(result) == "userdata" and not luma.is_tensor(result) then
              luma.from_dlpack(result) -- or the handle is never given back
            end
            if good then return true end
            break
          end
        end
      end
    end
    local count = 0
    for name, instead in text:gmatch '\n    {"([%w_]+)", ([^\n]+)},' do
      count = count + 1
      assert.is_nil(rawget(luma, name), name)
      local good, said = pcall(function() return a[name] end)
      assert.is_false(good, name)
      assert.equal("a tensor has no method or field '" .. name .. "'; ",
        said:match "a tensor.*'; ", name)
      local advice = instead:match '^WRITE "(.*)"'
      if advice then assert.is_true(works(advice:gsub('\\"', '"')), name .. ": " .. advice) end
    end
    assert.is_true(count > 100)
  end)

  it("an unknown option gets the nearest name", function()
    check.raises("'dim' stands before the options: sum(x, dims, {keepdim =})", luma.sum, a, {dim = 1})
    check.raises("'axis' stands before the options: cumsum(x, dim)", luma.cumsum, a, {axis = 1})
    check.raises("'min' stands before the options: clamp(x, min, max)", luma.clamp, a, {min = 1})
    check.raises("'dim' stands before the options: cat(", luma.cat, {a, a}, {dim = 1})
    check.raises("option 'dtyp'; did you mean 'dtype'?", luma.zeros, 2, {dtyp = "f32"})
    check.raises("unknown option 'kep'; did you mean 'keepdim'?", luma.sum, a, 1, {kep = true})
    check.raises("unknown option 'zzz'; there are keepdim, out", luma.sum, a, 1, {zzz = true})
    check.raises("did you mean 'descending'?", luma.sort, a, {decending = true})
    check.raises("option 'keepdim': boolean expected", luma.sum, a, {keepdim = 1})
    check.raises("have names", luma.sum, a, {[2] = 1})
    check.raises("option 'out': tensor expected", luma.sum, a, {out = 1})
    check.raises("option 'device'", luma.zeros, 2, {device = 1})
    check.raises("no device 'tpu'", luma.zeros, 2, {device = "tpu"})
  end)

  it("booleans and strings of PyTorch belong into options", function()
    check.raises("options stand in a table", luma.sum, a, 1, true)
    check.raises("options stand in a table", luma.sort, a, 1, true)
    check.raises("no such argument: exp(x)", luma.exp, a, true)
    check.raises("no such argument: add(x, y)", luma.add, a, 1, 2)
    check.raises("no such argument: triu(x, {diagonal =})", luma.triu, a, 1)
    check.raises("no such argument: var(x, dims, {correction =, keepdim =})", luma.var, a, 1, 0)
    check.raises("as in {rounding = ...}", luma.div, a, 2, "floor")
    check.raises("no such argument: div(x, y, {rounding =})", luma.div, a, 2, 1)
    check.raises("values stand in a table", luma.tensor, 1, 2, 3)
    check.raises("to walk dim 1: for i, row in pairs(x) do", function()
      for row in a do assert(row) end
    end)
    check.raises("an integer dtype expected, such as int64", function() return a[T {1}] end)
    check.raises("got string", luma.sum, a, "mean")
  end)

  it("dims, sizes, steps and seeds are whole", function()
    for _, bad in ipairs {1.999, nan, inf, 2.0 ^ 63, 2.5} do
      check.raises("no integer representation", luma.sum, a, bad)
      check.raises("no integer representation", luma.zeros, bad)
      check.raises("no integer representation", luma.zeros, {2, bad})
      check.raises("no integer representation", luma.manual_seed, bad)
      check.raises("no integer representation", luma.narrow, a, 1, bad, 1)
      check.raises("no integer representation", luma.unfold, a, 1, 1, bad)
      check.raises("no integer representation", luma.reshape, a, bad)
      check.raises("no integer representation", luma.topk, a, bad)
      check.raises("no integer representation", luma.randint, 1, bad, 2)
    end
    assert.same({3}, a:sum(1.0).shape)
    assert.same({2}, luma.zeros(2.0).shape)
  end)

  it("hide the metatable", function()
    assert.equal(false, getmetatable(a))
    assert.is_false(pcall(setmetatable, a, {}))
  end)
end)

describe("an argument that is not given", function()
  local many = {}
  for i = 1, 100 do many[i] = 1 end

  it("is not read from what the call keeps of a list of positions", function()
    local x = luma.ones(3, 3)
    for _, name in ipairs {"scatter", "scatter_add", "index_add", "index_copy"} do
      local ok, message = pcall(luma[name], x, 1, {1, 1, 1})
      assert.is_false(ok, name)
      assert.truthy(message:find("got no value", 1, true), message)
    end
  end)

  it("is not read from what the call keeps of a long list", function()
    assert.equal(100, #luma.zeros(100):split(many))
    assert.equal(100, #luma.zeros(100):split(many, 1))
    for _, make in ipairs {luma.zeros, luma.rand} do
      local _, message = pcall(make, many)
      assert.truthy(message:find("100 dims: at most 8", 1, true), message)
      _, message = pcall(make, table.unpack(many))
      assert.truthy(message:find("100 dims: at most 8", 1, true), message)
    end
  end)
end)

describe("a text of the user in a message", function()
  it("ends where Lua says, not at a zero byte", function()
    local x = luma.ones(2, 2)
    for i, f in ipairs {
      function() luma.zeros(2, {dtype = "float32\0"}) end,
      function() luma.set_default_dtype "float64\0" end,
      function() luma.einsum("ij,jk->ik\0", x, x) end,
      function() luma.zeros(2, {device = "cpu\0"}) end,
      function() x:to "cpu\0" end,
      function() x:gelu {approximate = "tanh\0"} end,
      function() x:scatter_reduce(1, luma.tensor {{1, 1}}, x, {reduce = "sum\0"}) end,
      function() x:norm "fro\0" end,
      function() luma.meshgrid(x[1], x[1], {indexing = "ij\0"}) end,
      function() luma.get_rng_state "cpu\0" end,
      function() luma.save("t.safetensors", {x = x}, {metadata = {a = "b\0c"}}) end,
      function() luma.conv1d(luma.ones(1, 1, 3), luma.ones(1, 1, 2), {padding = "same\0"}) end,
      function() luma.load "a\0b.npy" end,
      function() luma.set_default_device "cpu\0" end,
    } do
      check.raises(i <= 2 and "" or "zero byte", f)
    end
  end)

  it("is cut, and stays on one line", function()
    local long = ("é"):rep(5000)
    local attempts = {
      function() return T({1}, long) end, function() return T({1}):to(long) end,
      function() return luma.ones(2, {[long] = 1}) end, function() return luma.ones(2, {dtype = long}) end,
      function() return T({1})[long] end, function() return T({1})[{long}] end,
      function() return T({1})[{("9"):rep(5000)}] end, function() T({1})[long] = 1 end,
      function() return luma.ones(2, {device = long}) end, function() return luma.op(long) end,
      function() return T({1}):sum(1, {[long] = 1}) end,
      function() return luma.load(long) end, function() return luma.save(long, T {1}) end}
    for n, f in ipairs(attempts) do
      local ok, message = pcall(f)
      assert.is_false(ok, "attempt " .. n)
      assert.is_true(#message < 400, ("attempt %d: %d bytes"):format(n, #message))
      assert.is_truthy(utf8.len(message), message)
    end
    check.raises("'a b'", luma.ones, 2, {dtype = "a\nb"})
  end)
end)

describe("after an error", function()
  it("every tensor is as it was", function()
    local x, out = luma.range(1, 6):reshape(2, 3), luma.zeros(2, 3, {dtype = "int64"})
    local before, before_out = x:tobytes(), out:tobytes()
    local zero = T({{1, 1, 0}, {1, 1, 1}}, "int64")
    local attempts = {
      function() x:floor_div_(zero) end, function() x:remainder_(0) end,
      function() luma.floor_div(x, zero, {out = out}) end, function() x:add_(0.5) end,
      function() x:pow_(-1) end, function() x[{{}, T({1, 9}, "int64")}] = 0 end,
      function() x[1] = {7, 8} end, function() x[1] = {7, 8, "9"} end,
      function() x[T({1, 0}, "int64")] = 5 end, function() x:fill_(2.5) end,
      function() x:copy_(luma.zeros(5)) end, function() x:add_(luma.zeros(5, 2, 3)) end,
      function() x:index_add_(1, {1, 3}, x) end, function() x:scatter_(2, {{1}, {4}}, x) end,
      function() luma.matmul(x, x, {out = out}) end, function() x:lshift_(-1) end,
      function() luma.add(x, 1, {out = out[1]}) end, function() x:masked_fill_(zero, 1) end}
    for n, f in ipairs(attempts) do
      local ok, message = device.pcall(f)
      assert.is_false(ok, "attempt " .. n)
      if device.is_late(message) then
        x:copy_(luma.range(1, 6):reshape(2, 3))
        out:zero_()
      end
      assert.equal(before, x:tobytes(), "attempt " .. n)
      assert.equal(before_out, out:tobytes(), "attempt " .. n)
    end
  end)
end)

describe("no argument ends the process:", function()
  local state = 12345
  local function random(n)
    state = (state * 1103515245 + 12345) % (1 << 31)
    return state // 65536 % n + 1
  end

  local pool
  local function refill()
    pool = {
      T {1, 2, 3}, T {{1, 2}, {3, 4}}, T {{1, 2}, {3, 4}}:t(), luma.zeros(0, 2), T(1), T(true),
      T {true, false, true}, T({3, 1, 2}, "int64"), T({1, 0}, "uint8"), T({{-1, 200}}, "int16"),
      luma.range(1, 24):reshape(2, 3, 4), luma.ones(1):expand(3, 3), T({1.5, nan, -inf}, "float16"),
      T({0.5, 0.25}, "bfloat16"), T({0.5, 448}, "float8_e4m3"), luma.ones(3, 4)["::-1, ::2"],
      luma.ones(2, 2, {dtype = "float64"}), luma.zeros(1, 1, 1, 1, 1, 1, 1, 1),
      0, 1, -1, 2, 3, 2.5, nan, inf, -0.0, 1 << 40, math.mininteger, math.maxinteger,
      true, false, "float32", "int64", "cpu", "x", "", "::2", "2, ...", print, {}, {1}, {2, 1},
      {1, 2, 3}, {1, nil, 3}, {{1, 2}, {3, 4}}, {{1}, {2, 3}}, {x = 1}, {keepdim = true},
      {descending = true}, {dtype = "int8"}, {rounding = "floor"}, {correction = 0}, {value = 1},
      {T {1, 2}, T {3}}, {T {1, 2}, 5}, {out = T {1, 2, 3}}, io.stdout, coroutine.create(print),
    }
    local gone = T {1}
    gone:free()
    pool[#pool + 1] = gone
    pool[#pool + 1] = {gone, gone}
  end

  -- What would print, wait, or change the whole process.
  local skip = {help = true, show = true, set_num_threads = true, set_memory_limit = true,
                fail_after = true, fail_lua_after = true, set_default_dtype = true,
                set_default_device = true, set_memory_callback = true, set_op_callback = true,
                set_print = true, load = true, save = true, config = true}

  it("functions", function()
    local names = {}
    for name, f in pairs(luma) do
      if type(f) == "function" and not skip[name] then names[#names + 1] = name end
    end
    table.sort(names)
    luma.set_memory_limit(1 << 30)
    local worked = 0
    for _, name in ipairs(names) do
      for _ = 1, 120 do
        if random(20) == 1 or not pool then refill() end
        local args = {}
        for i = 1, random(5) - 1 do args[i] = pool[random(#pool)] end
        if random(3) > 1 then args[1] = pool[random(18)] end
        local ok, message = device.pcall(luma[name], table.unpack(args, 1, 5))
        if ok then
          worked = worked + 1
          if name == "dlpack" then luma.from_dlpack(message) end -- or it is never given back
        else
          assert.equal("string", type(message), name)
          assert.is_nil(message:find("%.c:%d"), message)
        end
      end
    end
    luma.set_memory_limit()
    assert.is_true(worked > 1000)
  end)

  it("operators and indexing", function()
    local binary = {
      function(x, y) return x + y end, function(x, y) return x - y end,
      function(x, y) return x * y end, function(x, y) return x / y end,
      function(x, y) return x // y end, function(x, y) return x % y end,
      function(x, y) return x ^ y end, function(x, y) return x & y end,
      function(x, y) return x | y end, function(x, y) return x ~ y end,
      function(x, y) return x == y end, function(x, y) return x < y end,
      function(x, y) return x .. y end, function(x, y) return x[y] end,
      function(x, y) return x(y) end, function(x, y, z) return x(y, z) end,
      function(x, y, z) x[y] = z end, function(x, y, z) return x[{y, z}] end,
      function(x, y, z) x[{y, z}] = 1 end, function(x) return -x end, function(x) return ~x end,
      function(x) return #x end, function(x) return pairs(x)(x, 0) end,
      function(x, y, z) return x[{y, z, 1}] end, function(x, y, z) return x[{{y, z}}] end}
    for n, f in ipairs(binary) do
      for _ = 1, 400 do
        if random(40) == 1 then refill() end
        local ok, message = device.pcall(f, pool[random(18)], pool[random(#pool)], pool[random(#pool)])
        if not ok then assert.equal("string", type(message), "operator " .. n) end
      end
    end
  end)

  it("the module's own parts", function()
    local next_row = pairs(T {1})
    for _, v in ipairs {1, "x", {}, print, io.stdout} do
      assert.is_false(pcall(next_row, v, 0))
      assert.is_false(pcall(T {1}.free, v))
      assert.is_false(pcall(T {1}.size, v))
    end
  end)
end)
