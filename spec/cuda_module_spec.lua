-- luma.cuda.module: kernels that scripts bring, what they take, what is said where it does not fit.
local luma = require "luma"
local check = require "spec.support.check"
local device = require "spec.support.device"
local program = require "spec.support.program"

local D = device.cuda

local HEADER = ".version 6.3\n.target sm_75\n.address_size 64\n"

-- What luma has too, so that the emulated device can run it: n elements of y become `element`. The
-- struct is lm_args_fill of kernels/cuda/args.h.
local FILL = HEADER .. [[
/* .entry in a comment */
.visible .entry fill_4(
    .param .align 8 .b8 p[256]
) {
    .reg .pred %q; .reg .b32 %r<5>; .reg .b64 %d<5>;
    ld.param.u64 %d1, [p+176];
    ld.param.u64 %d2, [p];
    ld.param.u32 %r1, [p+248];
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    cvt.u64.u32 %d3, %r2;
    setp.ge.u64 %q, %d3, %d2;
    @%q bra done;
    shl.b64 %d3, %d3, 2;
    add.u64 %d1, %d1, %d3;
    st.global.u32 [%d1], %r1;
done:
    ret;
}
]]

local i32, i64 = luma.cuda.i32, luma.cuda.i64

-- The struct for one dim of n elements, 4 bytes apart.
local function fill(y, n, element)
  local list = {i64(n), i32(1), i32(0)}
  for _ = 1, 3 * 8 do list[#list + 1] = i32(0) end
  for _ = 1, 8 do list[#list + 1] = i64(0) end
  list[#list + 1] = y
  for d = 1, 8 do list[#list + 1] = i64(d == 1 and 4 or 0) end
  list[#list + 1] = element
  return list
end

-- One parameter of every kind; does nothing.
local KINDS = HEADER .. [[
.visible .entry kinds(
    .param .u32 kinds_param_0, .param .f32 kinds_param_1,
    .param .u64 .ptr .align 1 kinds_param_2, .param .u64 kinds_param_3,
    .param .f64 kinds_param_4, .param .u16 kinds_param_5, .param .s8 kinds_param_6,
    .param .align 4 .b8 kinds_param_7[12]
) { ret; }
.entry _Z5saxpyfPf(.param .f32 a, .param .u64 y) { ret; }
.entry _Z5twicef(.param .f32 a) { ret; }
.entry _Z5twiced(.param .f64 a) { ret; }
.entry nothing { ret; }
]]

local function raises(text, f, ...) check.raises(text, f, ...) end

describe("luma.cuda.module", function()
  if not D then
    it("says that there is no device", function()
      raises(device.no_cuda, luma.cuda.module, FILL)
    end)
    return
  end

  local emulated = luma.cuda.name(D):find("emulated") ~= nil

  it("loads PTX and launches its kernels", function()
    local m = luma.cuda.module(FILL, {device = D})
    assert.same({"fill_4"}, m:names())
    assert.equal(FILL, m:ptx())
    assert.is_nil(m:log())
    assert.equal("CUDA module[cuda:0: 1 kernel]", tostring(m))
    local k = m:kernel "fill_4"
    assert.equal("CUDA kernel[cuda:0 fill_4: struct2048]", tostring(k))
    local x = luma.zeros(2, 3, {device = D})
    local before = luma.cuda.stats(D).launches
    k:launch({grid = 1, block = 32}, fill(x, 5, luma.cuda.f32(2.5)))
    assert.equal(1, luma.cuda.stats(D).launches - before)
    check.tensor({{2.5, 2.5, 2.5}, {2.5, 2.5, 0}}, "float32", x)
    -- a struct as bytes cannot hold an address, but whatever else
    raises("the string has 3 bytes, the struct 256", k.launch, k, {grid = 1, block = 1}, "abc")
    k:launch({grid = {0, 1, 1}, block = 32}, fill(x, 6, luma.cuda.f32(7)))
    check.tensor({{2.5, 2.5, 2.5}, {2.5, 2.5, 0}}, "float32", x)
  end)

  it("keeps modules by content and device as long as they are used", function()
    local a = luma.cuda.module(FILL, {device = D})
    assert.is_true(rawequal(a, luma.cuda.module(FILL, {device = D})))
    assert.is_true(rawequal(a, luma.cuda.module(FILL, {device = D, options = {}})))
    assert.is_false(rawequal(a, luma.cuda.module(FILL, {device = D, options = {"-DX"}})))
    assert.is_false(rawequal(a, luma.cuda.module(FILL .. "\n", {device = D})))
    local k = luma.cuda.module(FILL .. "\n\n", {device = D}):kernel "fill_4"
    collectgarbage()
    collectgarbage()
    local x = luma.zeros(2, {device = D}) -- the kernel holds its module
    k:launch({grid = 1, block = 2}, fill(x, 2, i32(1 << 30)))
    check.tensor({2, 2}, "float32", x)
  end)

  it("finds kernels by their names in the source", function()
    local m = luma.cuda.module(KINDS, {device = D})
    assert.equal("CUDA kernel[cuda:0 _Z5saxpyfPf: float32, int64]", tostring(m:kernel "saxpy"))
    raises("2 kernels are called 'twice'", m.kernel, m, "twice")
    assert.equal("CUDA kernel[cuda:0 _Z5twiced: float64]", tostring(m:kernel "_Z5twiced"))
    raises("bad argument #1 to 'kernel' (no kernel 'sax' in the module; there is 'kinds' and others)",
      function() return m:kernel "sax" end)
    raises("name expected, got number", m.kernel, m, 1)
  end)

  describe("checks what a kernel is given:", function()
    local m = luma.cuda.module(KINDS, {device = D})
    local kinds = m:kernel "kinds"
    local shape = {grid = 1, block = 1}
    local x = luma.zeros(4, 4, {device = D})
    local struct = {luma.cuda.i32(1), luma.cuda.f32(2), luma.cuda.u8(3)}
    local good = {7, 0.5, x, x, 1.5, 65535, -128, struct}

    local function with(i, value)
      local list = table.move(good, 1, #good, 1, {})
      list[i] = value
      return pcall(function() kinds:launch(shape, table.unpack(list, 1, #good)) end)
    end
    local function refused(i, value, text)
      local ok, message = with(i, value)
      assert.is_false(ok)
      assert.matches("bad argument #" .. i + 1 .. " to 'launch' (", message, 1, true)
      assert.matches(text, message, 1, true)
    end

    it("the emulated device says what it cannot run", function()
      local ok, message = with(1, 1)
      assert.equal(not emulated, ok)
      if emulated then
        assert.matches("the emulated device cannot run kernel 'kinds': it has those of luma only",
          message, 1, true)
      end
    end)

    it("numbers", function()
      for _, v in ipairs {-2147483648, 4294967295, 3.0, true, luma.cuda.u32(5)} do
        local _, message = with(1, v)
        assert.is_nil(message and message:find "bad argument")
      end
      refused(1, 4294967296, "4294967296 does not fit into an integer of 4 bytes")
      refused(1, 2.5, "2.5 has no integer representation")
      refused(1, luma.cuda.f32(1), "the kernel takes an integer of 4 bytes here, not f32")
      refused(1, x, "the kernel takes an integer of 4 bytes here, not a tensor")
      refused(1, "7", "not a string")
      refused(2, luma.cuda.f64(1), "the kernel takes a float of 4 bytes here, not f64")
      refused(2, true, "not a boolean")
      refused(2, x, "not a tensor")
      refused(5, luma.cuda.f32(1), "the kernel takes a float of 8 bytes here")
      refused(6, 65536, "does not fit into an integer of 2 bytes")
      refused(7, -129, "does not fit into an integer of 1 bytes")
    end)

    it("tensors", function()
      refused(3, 5, "the kernel takes a pointer here, not a number")
      refused(3, luma.cuda.u64(5), "the kernel takes a pointer here")
      refused(3, luma.zeros(2, {device = "cpu"}), "the tensor is on cpu, the kernel runs on " .. D)
      refused(4, x:t(), "the tensor is not contiguous")
      refused(4, luma.zeros(1, {device = D}):expand(3), "views = true")
      local gone = luma.zeros(3, {device = D})
      gone:free()
      refused(3, gone, "the tensor was released")
      local _, message = pcall(kinds.launch, kinds, {grid = 1, block = 1, views = true}, 7, 0.5,
        x:t(), x[2], 1.5, 1, 1, struct)
      assert.is_nil(message and message:find "bad argument")
    end)

    it("structs", function()
      refused(8, {luma.cuda.i32(1), luma.cuda.f32(2)}, "the list has 8 bytes, the struct 12")
      refused(8, {luma.cuda.i32(1), luma.cuda.f64(2)}, "more than the 12 bytes of the struct")
      refused(8, {1, 2, 3}, "[1]: a tensor or a number with its type")
      refused(8, {x}, "the list has 8 bytes, the struct 12")
      refused(8, 5, "the kernel takes a struct of 12 bytes here, not a number")
      local _, message = with(8, ("\0"):rep(12))
      assert.is_nil(message and message:find "bad argument")
    end)

    it("how many", function()
      raises("kernel 'kinds' takes 8 values, 1 are given", kinds.launch, kinds, shape, 1)
      local none = m:kernel "nothing"
      raises("takes 0 values, 1 are given", none.launch, none, shape, 1)
    end)

    it("the shape of the launch", function()
      local function shaped(options, text)
        raises(text, kinds.launch, kinds, options, table.unpack(good))
      end
      shaped({block = 1}, "option 'grid' is needed")
      shaped({grid = 1}, "option 'block' is needed")
      shaped({grid = 1, block = {1, 2, 3, 4}}, "one to three integers expected, got 4")
      shaped({grid = 1.5, block = 1}, "option 'grid'")
      shaped({grid = -1, block = 1}, "option 'grid': -1 blocks along dim 1, 0 to 2147483647 can be")
      shaped({grid = {1, 65536}, block = 1}, "along dim 2, 0 to 65535 can be")
      shaped({grid = 1, block = 0}, "option 'block': 0 threads along dim 1, 1 to 1024 can be")
      shaped({grid = 1, block = {32, 33}}, "1056 threads, at most 1024 can be")
      shaped({grid = 1, block = 1, shared = 1 << 30}, "option 'shared': 1073741824 bytes")
      shaped({grid = 1, block = 1, stream = 1}, "stream")
      raises("table of options expected", kinds.launch, kinds, 5)
    end)
  end)

  it("typed numbers are checked when they are made", function()
    raises("does not fit into an integer of 1 bytes", luma.cuda.u8, -1)
    raises("does not fit into an integer of 4 bytes", luma.cuda.i32, 1 << 31)
    raises("integer expected, got string", luma.cuda.u64, "1")
    raises("number expected, got boolean", luma.cuda.f32, true)
    raises("integer expected, got no value", luma.cuda.i8)
    luma.cuda.u64(-1) -- all bits
  end)

  it("refuses what is no module", function()
    raises("CUDA C or PTX as a string expected, got no value", luma.cuda.module)
    raises("zero byte", luma.cuda.module, FILL .. "\0", {device = D})
    raises("the module has no kernel", luma.cuda.module, HEADER, {device = D})
    raises("[1]: string expected", luma.cuda.module, FILL, {device = D, options = {1}})
    raises("[1]: the option has a zero byte", luma.cuda.module, FILL, {device = D, options = {"-DX\0"}})
    raises("a kernel of the module has no name", luma.cuda.module, HEADER .. ".entry (", {device = D})
    for size, text in pairs {["4294967300"] = "have too many bytes", ["99999999999999999999"] =
        "have too many bytes", ["0"] = "cannot be read", ["-4"] = "have too many bytes"} do
      raises("the parameters of kernel 'k' " .. text, luma.cuda.module,
        HEADER .. (".entry k(.param .b8 a[%s]) { ret; }"):format(size), {device = D})
    end
    raises("the parameters of kernel 'k' are too many: at most ", luma.cuda.module,
      HEADER .. ".entry k(" .. (".param .u32 a,"):rep(1000) .. ".param .u32 z) { ret; }", {device = D})
    raises("the parameters of kernel 'k' have no end", luma.cuda.module, HEADER .. ".entry k(.param .u32 a",
      {device = D})
    raises("cpu", luma.cuda.module, FILL, {device = "cpu"})
    raises("cuda:99", luma.cuda.module, FILL, {device = "cuda:99"})
    if emulated then
      raises("the emulated device has no compiler", luma.cuda.module, "__global__ void f() {}",
        {device = D})
    end
  end)

  it("says what its methods belong to, also after the end", function()
    local seen = {}
    local function call(f, ...) seen[#seen + 1] = select(2, pcall(f, ...)) end
    local m = luma.cuda.module(KINDS .. "// methods", {device = D})
    local kernel, names, find = m:kernel "nothing", m.names, m.kernel
    call(kernel.launch, 5)
    call(names)
    call(find, kernel, "nothing")
    -- the module is younger, so that it is closed before this finalizer runs
    local owner = setmetatable({}, {__gc = function(self)
      call(self.kernel.launch, self.kernel, {grid = 1, block = 1})
      call(tostring, self.kernel)
      call(names, self.module)
      call(find, self.module, "nothing")
    end})
    owner.module = luma.cuda.module(KINDS .. "// owned", {device = D})
    owner.kernel = owner.module:kernel "nothing"
    owner = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.same({
      "bad argument #1 to 'launch' (kernel expected, got number)",
      "bad argument #1 to 'names' (module expected, got no value)",
      "bad argument #1 to 'kernel' (module expected, got luma.cuda.kernel)",
      "launch: the module is closed", "tostring: the module is closed",
      "names: the module is closed", "kernel: the module is closed",
    }, seen)
  end)

  it("unloads what is collected", function()
    local text = FILL .. "\n// another"
    luma.cuda.module(text, {device = D})
    collectgarbage()
    collectgarbage()
    local ok = pcall(luma.cuda.module, text, {device = D})
    assert.is_true(ok)
    if emulated then assert.equal(0, luma.cuda.stats(D).reports) end
  end)
end)

-- NVRTC needs no GPU. Where it is installed, a luma of its own takes it beside the emulated device.
describe("luma.cuda.module with the compiler", function()
  local folder = os.getenv "CUDA_HOME" or "/usr/local/cuda"
  local library = folder .. "/lib64/libnvrtc.so"
  local file = io.open(library)
  if not file then
    pending("needs " .. library)
    return
  end
  file:close()

  local function run(text)
    return program.shell(("LUMA_CUDA=emulate LUMA_LIBNVRTC=%s $LUMA -e %s"):format(library,
      program.quote(text)))
  end

  it("compiles CUDA C for the device", function()
    local output = run [==[
      local m = luma.cuda.module([[
        #include <stdint.h>
        #include <stddef.h>
        #include <math.h>
        #include <limits.h>
        #include <float.h>
        #include <string.h>
        #include <stdbool.h>
        struct pair { float *y; int32_t n; };
        __global__ void saxpy(int n, float a, const float *x, pair p, double d, bool b) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n && i < p.n) p.y[i] = a * x[i] + (b ? INFINITY : (float)d);
        }]], {options = {"-DX=1"}})
      print(m:kernel "saxpy")
      print(m:ptx():match "%.target (%S+)")]==]
    assert.equal("CUDA kernel[cuda:0 _Z5saxpyifPKf4pairdb: int32, float32, int64, struct128, " ..
      "float64, int8]\nsm_90\n", output)
  end)

  it("an error has the log of the compiler", function()
    local output = run [[
      local ok, message = pcall(luma.cuda.module, "__global__ void f(float *x) {\n  x[0] = y; }")
      print(ok, message)]]
    assert.matches("^false\tmodule: NVRTC: NVRTC_ERROR_COMPILATION\n", output)
    assert.matches('kernel.cu(2): error: identifier "y" is undefined', output, 1, true)
  end)

  it("warnings are no error", function()
    local output = run [[
      local m = luma.cuda.module "__global__ void f(int *x) { int unused; x[0] = 1; }"
      print(m:log())]]
    assert.matches("unused", output)
  end)

  it("an option that the compiler does not know is an error", function()
    local output = run [[print(pcall(luma.cuda.module, "__global__ void f() {}",
      {options = {"--no-such"}}))]]
    assert.matches("^false\tmodule: NVRTC: NVRTC_ERROR", output)
  end)
end)
