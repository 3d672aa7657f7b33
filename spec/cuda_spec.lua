-- luma.cuda and the ways between devices: what there is, moves, numbers that cross, errors that name
-- both devices.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"
local program = require "spec.support.program"

local D = device.cuda

describe("without a driver", function()
  local function run(text)
    local output, status = program.shell("LUMA_CUDA=off $LUMA -e " .. program.quote(text))
    assert.equal(0, status, output)
    return output
  end

  it("is_available is no error and says why", function()
    assert.equal("false\tno CUDA driver (LUMA_CUDA=off)\n", run "print(luma.cuda.is_available())")
    assert.equal("0\n", run "print(luma.cuda.device_count())")
  end)

  it("everything that needs a device says what was tried", function()
    for _, call in ipairs {"luma.ones(2):cuda()", "luma.cuda.name()", "luma.cuda.synchronize()",
                           "luma.ones(2, {device = 'cuda'})", "luma.memory('cuda:0')",
                           "luma.set_default_device('cuda')", "luma.cuda.set_device(0)"} do
      assert.matches("no CUDA driver %(LUMA_CUDA=off%)",
        run(("print(pcall(function() return %s end))"):format(call)))
    end
  end)

  it("a device that cannot run luma's kernels is none", function()
    local output = program.shell("LUMA_CUDA=emulate LUMA_EMU_CC=70 $LUMA -e " .. program.quote [[
      print(luma.cuda.is_available())
      print(pcall(luma.zeros, 2, {device = "cuda"}))]])
    assert.equal("false\tno CUDA device (cuda:0 has compute capability 7.0: at least 7.5 is needed)\n" ..
      "false\tzeros: cuda:0 has compute capability 7.0: at least 7.5 is needed\n", output)
  end)

  it("a library that is no driver is named", function()
    local output = program.shell("LUMA_LIBCUDA=/nowhere/libcuda.so $LUMA -e " ..
      program.quote "print(luma.cuda.is_available())")
    assert.matches("^false\tno CUDA driver %(LUMA_LIBCUDA=/nowhere/libcuda%.so: ", output)
  end)

  it("LUMA_CUDA names one of three", function()
    local output = program.shell("LUMA_CUDA=yes $LUMA -e " ..
      program.quote "print(luma.cuda.is_available())")
    assert.matches("auto, off or emulate expected", output)
  end)
end)

describe("the default device", function()
  after_each(function() luma.set_default_device(device.name) end)

  it("is where new tensors are", function()
    luma.set_default_device "cpu"
    assert.equal("cpu", luma.get_default_device())
    assert.equal("cpu", luma.ones(2).device)
    assert.equal("cpu", luma.config().default_device)
  end)

  it("is a device that is there", function()
    check.raises("bad argument #1 to 'set_default_device' (no device 'tpu'",
      luma.set_default_device, "tpu")
    check.raises("device expected, got number", luma.set_default_device, 1)
    assert.equal(device.name, luma.get_default_device())
  end)
end)

if not D then
  describe("luma.cuda", function() pending("needs a device: " .. device.no_cuda) end)
  return
end

local function T(values, dtype)
  return luma.tensor(values, {dtype = dtype, device = D})
end

describe("luma.cuda", function()
  it("says what there is", function()
    assert.is_true(luma.cuda.is_available())
    assert.is_true(luma.cuda.device_count() >= 1)
    assert.equal("string", type(luma.cuda.name()))
    assert.equal(luma.cuda.name(D), luma.cuda.name(tonumber(D:match "%d+")))
    local major, minor = luma.cuda.capability(D)
    assert.equal("integer", math.type(major))
    assert.equal("integer", math.type(minor))
    local free, total = luma.cuda.memory(D)
    assert.is_true(0 < free and free <= total)
    local stats = luma.cuda.stats(D)
    assert.is_true(stats.launches >= 0 and stats.copies >= 0 and stats.synchronisations >= 0)
    assert.is_nil(luma.cuda.synchronize(D))
  end)

  it("refuses what is no CUDA device", function()
    check.raises("a CUDA device expected, got 'cpu'", luma.cuda.name, "cpu")
    check.raises("no device 'cuda:77'", luma.cuda.memory, 77)
    check.raises("device expected, got table", luma.cuda.stats, {})
    check.raises("no integer representation", luma.cuda.name, 0.5)
    check.raises("bad argument #1 to 'set_device' (device expected, got no value)", luma.cuda.set_device)
  end)

  it("has a current device, which 'cuda' means", function()
    local before = luma.cuda.current()
    luma.cuda.set_device(D)
    assert.equal(D, luma.cuda.current())
    assert.equal(D, luma.ones(1, {device = "cuda"}).device)
    assert.equal(D, luma.ones(1, {device = "cpu"}):cuda().device)
    luma.cuda.set_device(before)
    check.raises("no device 'cuda:77'", luma.cuda.set_device, 77)
    assert.equal(before, luma.cuda.current())
  end)

  it("takes the tensor as x:cuda() does", function()
    local x = luma.ones(2, {device = "cpu"})
    assert.equal("cuda:0", luma.cuda(x, 0).device)
    assert.equal("cuda:0", x:cuda(0).device)
  end)
end)

describe("random numbers", function()
  local kinds = {
    rand = function(n, options) return luma.rand({n}, options) end,
    randn = function(n, options) return luma.randn({n}, options) end,
    randint = function(n, options) return luma.randint(-7, 100, {n}, options) end,
  }
  local dtypes = {
    rand = {"float32", "float64", "float16", "bfloat16", "float8_e4m3"},
    randn = {"float32", "float64", "float16", "bfloat16"},
    randint = {"int64", "int32", "int8", "float32"},
  }
  after_each(function() luma.cuda.use_curand(false) end)

  local function agree(n, skipped)
    for kind, f in pairs(kinds) do
      for _, dtype in ipairs(dtypes[kind]) do
        luma.manual_seed(n)
        luma.rand(skipped, {device = "cpu"})
        local expected = f(n, {device = "cpu", dtype = dtype})
        local state = luma.get_rng_state "cpu"
        luma.manual_seed(n)
        luma.rand(skipped, {device = D})
        local x = f(n, {device = D, dtype = dtype})
        assert.equal(D, x.device)
        assert.is_true(x:cpu() == expected, ("%s %s %d %d"):format(kind, dtype, n, skipped))
        assert.same(state, luma.get_rng_state(D))
      end
    end
  end

  it("are those of the CPU", function()
    for skipped = 0, 3 do agree(1001, skipped) end
  end)

  it("have their words from cuRAND where that is wanted", function()
    assert.is_false(luma.cuda.use_curand())
    check.raises("boolean expected, got number", luma.cuda.use_curand, 1)
    if not pcall(luma.cuda.use_curand, true) then return pending "cuRAND is not there" end
    assert.is_true(luma.cuda.use_curand())
    for skipped = 0, 3 do agree(65536 + 3, skipped) end
    local n = (4 << 20) + 1000 -- more than one piece
    luma.manual_seed(9)
    local expected = luma.rand({n}, {device = "cpu"})
    luma.manual_seed(9)
    assert.is_true(luma.rand({n}, {device = D}):cpu() == expected)
    assert.equal(0, luma.cuda.stats(D).reports)
    local output = program.shell("LUMA_CUDA=emulate LUMA_EMU_FAIL=curandGenerate:1 $LUMA -e " ..
      program.quote [[
        luma.cuda.use_curand(true)
        luma.rand(100, {device = "cuda"}) -- not worth it
        print(pcall(luma.rand, 70000, {device = "cuda"}))
        print(luma.rand(70000, {device = "cuda"}):lt(1):all())]])
    assert.equal("false\trand: cuda:0: curandGenerate: CURAND_STATUS_LAUNCH_FAILURE\ntrue\n", output)
  end)

  it("cannot have them from where it is not", function()
    local output = program.shell("LUMA_CUDA=emulate LUMA_LIBCURAND=/nowhere/libcurand.so $LUMA -e " ..
      program.quote "print(pcall(luma.cuda.use_curand, true)) print(luma.cuda.use_curand())")
    assert.matches("^false\tuse_curand: no cuRAND %(LUMA_LIBCURAND=/nowhere/libcurand%.so: .*\nfalse\n$",
      output)
  end)
end)

describe("moves", function()
  it("give the same elements, in one dtype or another", function()
    local host = luma.tensor({{1, 2, 3}, {4, 5, 6}}, {dtype = "int32", device = "cpu"})
    local x = host:to(D)
    assert.equal(D, x.device)
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "int32", x)
    assert.is_true(x:cpu() == host)
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float16", host:to(D, "float16"))
    check.tensor({{1, 2, 3}, {4, 5, 6}}, "float64", x:to("float64", "cpu"))
    assert.is_true(rawequal(x, x:to(D)))
    assert.is_false(rawequal(x, x:to(D, {copy = true})))
  end)

  it("take a view's elements only", function()
    local host = luma.range(1, 24, {device = "cpu"}):reshape(4, 6)
    for name, view in pairs {transposed = host:t(), rows = host["2:3"], columns = host[":, 3"],
                             reversed = host["::-1"],
                             empty = host["2:1"], scalar = host:select(1, 1):select(1, 1),
                             expanded = host["2"]:expand(3, 6)} do
      local x = view:to(D)
      assert.is_true(x:is_contiguous(), name)
      assert.same(view:totable(), x:totable(), name)
      assert.is_true(x:cpu() == view, name)
    end
    local x = host:to(D)
    assert.is_true(x:t():cpu() == host:t())
    assert.is_true(x["::2, 2:5"]:cpu() == host["::2, 2:5"])
  end)

  it("write into tensors that are there", function()
    local x, host = luma.zeros(2, 3, {device = D}), luma.ones(3, {device = "cpu"})
    x:copy_(host)
    check.tensor({{1, 1, 1}, {1, 1, 1}}, "float32", x)
    x[{1, {}}] = {4, 5, 6}
    x[2] = host * 7
    check.tensor({{4, 5, 6}, {7, 7, 7}}, "float32", x)
    x[{2, 2}] = -1
    x[1][3] = 0.5
    check.tensor({{4, 5, 0.5}, {7, -1, 7}}, "float32", x)
    local back = luma.zeros(3, 2, {device = "cpu"})
    back:copy_(x:t())
    check.tensor({{4, 7}, {5, -1}, {0.5, 7}}, "float32", back)
  end)

  it("go through files, bytes and tables", function()
    local x = T({{1.5, 2}, {3, 4}}):t()
    local path = os.tmpname() .. ".npy"
    luma.save(path, x)
    assert.same(x:totable(), luma.load(path):totable())
    os.remove(path)
    assert.equal(x:cpu():tobytes(), x:tobytes())
    check.tensor({{1.5, 3}, {2, 4}}, "float32",
      luma.frombytes(x:tobytes(), "float32", 2, 2):to(D))
  end)

  it("have no way between two devices but these", function()
    local x, host = luma.ones(2, {device = D}), luma.ones(2, {device = "cpu"})
    local index = luma.tensor({1}, {dtype = "int64", device = "cpu"})
    for name, f in pairs {
      add = function() return x + host end,
      where = function() return luma.where(x:gt(0), x, host) end,
      cat = function() return luma.cat {x, host} end,
      index_select = function() return x:index_select(1, index) end,
      gather = function() return x:gather(1, index) end,
      index = function() return x[index] end,
      masked_select = function() return x:masked_select(host:gt(0)) end,
      masked_fill = function() return x:masked_fill(host:gt(0), 1) end,
      index_add = function() return x:index_add(1, T({1, 2}, "int64"), host) end,
      matmul = function() return x:matmul(host) end,
      equal = function() return x == host end,
      out = function() return luma.add(x, x, {out = host}) end,
    } do
      local ok, message = pcall(f)
      assert.is_false(ok, name)
      assert.is_truthy(message:find(D, 1, true), name .. ": " .. message)
      assert.is_truthy(message:find("cpu", 1, true), name .. ": " .. message)
    end
  end)
end)

describe("a 0-d CPU tensor", function()
  it("acts as a number of its dtype", function()
    local x = T({1, 2}, "uint8")
    local function scalar(v, dtype) return luma.tensor(v, {dtype = dtype, device = "cpu"}) end
    check.tensor({4, 5}, "uint8", x + scalar(3, "uint8"))
    check.tensor({301, 302}, "int16", x + scalar(300, "int16"))
    check.tensor({1.5, 2.5}, "float32", x + scalar(0.5))
    check.tensor({1.5, 2.5}, "float64", scalar(0.5, "float64") + x)
    check.tensor({true, false}, "bool", x:eq(scalar(1, "int64")))
    check.tensor({1, 9}, "int64", luma.where(x:eq(1), x, scalar(9, "int64")))
    check.tensor({9, 2}, "uint8", x:masked_fill(x:eq(1), scalar(9, "uint8")))
    x:add_(scalar(1, "uint8"))
    check.tensor({2, 3}, "uint8", x)
    assert.equal(D, (x + scalar(1)).device)
    assert.is_true(T(5, "int64") == scalar(5, "int64"))
    assert.is_true(luma.allclose(T({5, 5}), scalar(5)))
    check.raises(D, function() return scalar(1):add_(T(1)) end)
  end)
end)

describe("options", function()
  it("keep the device where they do not name one", function()
    local x = T {1, 2}
    assert.equal(D, luma.tensor(x, {dtype = "int8"}).device)
    assert.equal(D, luma.tensor(x, "int8").device)
    assert.equal(D, luma.zeros_like(x, {dtype = "int8"}).device)
    assert.equal("cpu", luma.zeros_like(x, {device = "cpu"}).device)
    assert.equal("cpu", luma.tensor(x, {device = "cpu"}).device)
  end)

  it("put every constructor on the device", function()
    local o = {device = D}
    for name, x in pairs {
      zeros = luma.zeros(2, o), full = luma.full({2}, 3, o), eye = luma.eye(2, o), empty = luma.empty(2, o),
      range = luma.range(1, 3, o), linspace = luma.linspace(0, 1, 3, o),
      logspace = luma.logspace(0, 1, 3, o), rand = luma.rand(2, o), randn = luma.randn(2, o),
      randint = luma.randint(1, 5, 3, o), randperm = luma.randperm(5, o),
      tril = luma.tril(luma.ones(2, 2, o)), diag = luma.diag(luma.ones(2, o)),
    } do
      assert.equal(D, x.device, name)
    end
    check.tensor({{1, 0, 0}, {1, 1, 0}}, "float32", luma.tril(luma.ones(2, 3, o)))
    check.tensor({{0, 1}, {0, 0}}, "float32", luma.triu(luma.ones(2, 2, o), {diagonal = 1}))
    check.tensor({1, 2, 3}, "int64", (luma.sort(luma.randperm(3, o))))
  end)
end)

describe("printing", function()
  it("names the device and reads only what is shown", function()
    assert.equal(("{1.0, 2.5}\n[float32 2 %s]"):format(D), tostring(T {1, 2.5}))
    assert.equal("3.0", tostring(T(3)))
    assert.equal(("{Tensor[float32 2 %s]}"):format(D), luma.show {T {1, 2}})
    local x = luma.tensor({{1}}, {device = D}):expand(4194304, 4194304) -- 64 TB if it were copied
    assert.matches("%[float32 4194304x4194304 " .. D .. "%]$", tostring(x))
  end)
end)
