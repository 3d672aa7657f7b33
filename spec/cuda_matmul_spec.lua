-- cuda_matmul_spec.lua -- matrix products on a CUDA device against the CPU's: every dtype and layout,
-- which way was taken (cuBLAS, luma's kernel, copies), the switches, and life without cuBLAS.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local program = require "program"

local there = luma.cuda.is_available()

-- A reproducible stream of fractions of 64 and of whole numbers that every dtype holds.
local state = 7
local function draw(lo, hi)
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return lo + (state >> 8) % (hi - lo + 1)
end

local function fresh(dtype, ...)
  local shape, n, list = {...}, 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 1, n do list[i] = dtype:find "float" and draw(-15, 15) / 8 or draw(0, 15) end
  if n == 0 then return luma.zeros(shape, {dtype = dtype, device = "cpu"}) end
  return luma.tensor(list, {dtype = dtype, device = "cpu"}):reshape(shape)
end

-- Layouts of the last two dims: name, a view of the same numbers, whether cuBLAS reads it.
local layouts = {
  {"plain", function(x) return x end, true},
  {"transposed", function(x) return x:transpose(-1, -2):contiguous():transpose(-1, -2) end, true},
  {"wide rows", function(x) return luma.cat({x, x, x}, -1):narrow(-1, 1, x.shape[x.ndim]) end, true},
  {"wide columns", function(x)
    local t = x:transpose(-1, -2)
    return luma.cat({t, t}, -1):narrow(-1, 1, x.shape[x.ndim - 1]):transpose(-1, -2)
  end, true},
  {"stepped rows", function(x)
    return luma.stack({x, x}, x.ndim):flatten(-3, -2):slice(-2, 1, 2 * x.shape[x.ndim - 1], 2)
  end, true},
  {"stepped", function(x)
    return luma.stack({x, x}, -1):flatten(-2, -1):slice(-1, 1, 2 * x.shape[x.ndim], 2)
  end, false},
  {"flipped", function(x) return x:flip(-1):contiguous():flip(-1) end, false},
  {"flipped rows", function(x) return x:flip(-2):contiguous():flip(-2) end, false},
}

-- What f took of each way, and its result.
local function ways(f, ...)
  local before = luma.cuda.stats()
  local result = f(...)
  local after = luma.cuda.stats()
  return {blas = after.products_blas - before.products_blas,
    own = after.products_own - before.products_own,
    copied = after.products_copied - before.products_copied}, result
end

local small = {float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float8_e4m3 = 2 ^ -3}

local function agree(want, got, what)
  assert.equal(want.dtype, got.dtype, what)
  assert.same(want.shape, got.shape, what)
  got = got:cpu()
  if not want.dtype:find "float" then
    assert.is_true(want == got, what)
    return
  end
  local unit = (small[want.dtype] or 2 ^ -20) * 1.01
  local fine = want:to("float64"):allclose(got:to("float64"), {rtol = unit, atol = unit})
  if not fine then error(what .. ": " .. luma.show(want) .. " became " .. luma.show(got), 2) end
end

local blas_dtypes = {"float16", "bfloat16", "float32", "float64"}
local own_dtypes = {"uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3"}

if not there then
  describe("products on CUDA", function()
    pending("need a device: LUMA_CUDA=emulate gives one")
  end)
  return
end

describe("products on CUDA", function()
  it("take each layout as it lies where that is possible", function()
    for _, dtype in ipairs(blas_dtypes) do
      for _, la in ipairs(layouts) do
        for _, lb in ipairs(layouts) do
          local m, n, k = draw(2, 9), draw(2, 9), draw(2, 9)
          local a, b = fresh(dtype, m, k), fresh(dtype, k, n)
          local x, y = la[2](a:cuda()), lb[2](b:cuda())
          local what = ("%s: %s by %s"):format(dtype, la[1], lb[1])
          local took, c = ways(luma.matmul, x, y)
          assert.same({blas = 1, own = 0, copied = (la[3] and 0 or 1) + (lb[3] and 0 or 1)}, took,
            what)
          agree(a:matmul(b), c, what)
        end
      end
    end
  end)

  it("of integers and float8 take luma's kernel, which copies nothing", function()
    for _, dtype in ipairs(own_dtypes) do
      for _, la in ipairs(layouts) do
        local lb = layouts[draw(1, #layouts)]
        local m, n, k = draw(1, 80), draw(1, 80), draw(1, 40)
        local a, b = fresh(dtype, m, k), fresh(dtype, k, n)
        local x, y = la[2](a:cuda()), lb[2](b:cuda())
        local what = ("%s: %s by %s"):format(dtype, la[1], lb[1])
        local took, c = ways(luma.matmul, x, y)
        assert.same({blas = 0, own = 1, copied = 0}, took, what)
        agree(a:matmul(b), c, what)
      end
    end
  end)

  it("of one row, one column or one term need no copy, whatever their strides", function()
    for _, s in ipairs {{1, 6, 5}, {5, 1, 6}, {6, 5, 1}, {1, 1, 7}, {7, 1, 1}, {1, 7, 1}, {1, 1, 1}} do
      local m, n, k = table.unpack(s)
      local a, b = fresh("float32", m, k), fresh("float32", k, n)
      for _, la in ipairs {layouts[1], layouts[2], layouts[3], layouts[5]} do
        local took, c = ways(luma.matmul, la[2](a:cuda()), la[2](b:cuda()))
        assert.same({blas = 1, own = 0, copied = 0}, took)
        agree(a:matmul(b), c, table.concat(s, " "))
      end
    end
    local v = fresh("float32", 12)
    local x = v:cuda():slice(1, 1, 12, 3)
    local took, c = ways(luma.dot, x, x)
    assert.same({blas = 1, own = 0, copied = 0}, took)
    agree(v:slice(1, 1, 12, 3):dot(v:slice(1, 1, 12, 3)), c, "stepped vectors")
  end)

  it("of rows that repeat or overlap are copied first", function()
    local b = fresh("float32", 4, 5)
    local row, long = fresh("float32", 1, 4), fresh("float32", 9)
    for _, make in ipairs {function(d) return row:to(d):expand(3, 4) end,
        function(d) return long:to(d):unfold(1, 4, 2) end,
        function(d) return row:to(d):t():expand(4, 3):t() end} do
      local took, c = ways(luma.matmul, make("cuda"), b:cuda())
      assert.same({blas = 1, own = 0, copied = 1}, took)
      agree(make("cpu"):matmul(b), c, "repeated")
    end
  end)

  it("write what is given as out as it lies where that is possible", function()
    local a, b = fresh("float32", 6, 4), fresh("float32", 4, 5)
    local want = a:matmul(b)
    local outs = {{luma.zeros({6, 5}, {device = "cuda"}), 0},
      {luma.zeros({5, 6}, {device = "cuda"}):t(), 0},
      {luma.zeros({6, 9}, {device = "cuda"}):narrow(2, 3, 5), 0},
      {luma.zeros({9, 6}, {device = "cuda"}):narrow(1, 2, 5):t(), 0},
      {luma.zeros({12, 5}, {device = "cuda"}):slice(1, 1, 12, 2), 0},
      {luma.zeros({6, 10}, {device = "cuda"}):slice(2, 1, 10, 2), 1},
      {luma.zeros({6, 5}, {device = "cuda"}):flip(1), 1}}
    for i, o in ipairs(outs) do
      local took, c = ways(luma.matmul, a:cuda(), b:cuda(), {out = o[1]})
      assert.equal(o[1], c)
      assert.same({blas = 1, own = 0, copied = o[2]}, took, "out " .. i)
      agree(want, c, "out " .. i)
    end
    local x, y = fresh("int32", 6, 4), fresh("int32", 4, 5)
    for i, o in ipairs(outs) do
      local out = o[1]:to("int32"):t():contiguous():t()
      luma.matmul(x:cuda(), y:cuda(), {out = out})
      agree(x:matmul(y), out, "out of int32 " .. i)
    end
  end)

  it("go over any batch dims", function()
    local shapes = {{{4}, {4}}, {{1}, {3}}, {{3}, {}}, {{}, {3}}, {{2, 1}, {3}}, {{2, 3}, {2, 3}},
      {{2, 1, 2}, {3, 1}}, {{2, 1, 2, 1}, {1, 3, 1, 2}}}
    for _, dtype in ipairs {"float32", "bfloat16", "int32", "float8_e4m3"} do
      for _, s in ipairs(shapes) do
        for _, la in ipairs(layouts) do
          local lb = layouts[draw(1, #layouts)]
          local sa, sb = {table.unpack(s[1])}, {table.unpack(s[2])}
          local m, n, k = draw(1, 6), draw(1, 6), draw(1, 6)
          sa[#sa + 1], sa[#sa + 2], sb[#sb + 1], sb[#sb + 2] = m, k, k, n
          local a, b = fresh(dtype, table.unpack(sa)), fresh(dtype, table.unpack(sb))
          agree(a:matmul(b), la[2](a:cuda()):matmul(lb[2](b:cuda())),
            ("%s [%s] by [%s] %s %s"):format(dtype, table.concat(sa, " "), table.concat(sb, " "),
              la[1], lb[1]))
        end
      end
    end
  end)

  it("take a stack that shares a matrix as one product", function()
    local a, b = fresh("float32", 3, 4, 5, 6), fresh("float32", 6, 7)
    local took, c = ways(luma.matmul, a:cuda(), b:cuda())
    assert.same({blas = 1, own = 0, copied = 0}, took)
    agree(a:matmul(b), c, "stack by matrix")
    -- heads side by side in a row
    local q, w = fresh("float32", 5, 3, 4), fresh("float32", 6, 3, 4)
    local function scores(x, y) return x:transpose(1, 2):matmul(y:permute(2, 3, 1)) end
    took, c = ways(scores, q:cuda(), w:cuda())
    assert.same({blas = 1, own = 0, copied = 0}, took)
    agree(scores(q, w), c, "heads")
    local out = luma.zeros({5, 3, 6}, {device = "cuda"})
    luma.matmul(q:cuda():transpose(1, 2), w:cuda():permute(2, 3, 1), {out = out:transpose(1, 2)})
    agree(scores(q, w), out:transpose(1, 2), "heads into rows")
  end)

  it("of nothing are zeros", function()
    for _, dtype in ipairs {"float32", "bfloat16", "int16"} do
      local options = {dtype = dtype, device = "cuda"}
      local stale = luma.ones({3, 4}, options)
      stale:free()
      agree(luma.zeros({3, 4}, {dtype = dtype, device = "cpu"}),
        luma.zeros({3, 0}, options):matmul(luma.zeros({0, 4}, options)), dtype)
      assert.same({0, 3}, luma.zeros({0, 2}, options):matmul(luma.zeros({2, 3}, options)).shape)
      assert.same({0, 2, 3}, luma.zeros({0, 2, 4}, options):matmul(luma.zeros({4, 3}, options)).shape)
    end
  end)

  it("of long sums are cut in pieces", function()
    for _, dtype in ipairs {"int32", "int64", "uint8", "float8_e4m3"} do
      for _, s in ipairs {{3, 2, 5001}, {1, 1, 20000}, {70, 3, 1100}} do
        local m, n, k = table.unpack(s)
        local a, b = fresh(dtype, m, k), fresh(dtype, k, n)
        local out = luma.zeros({n, m}, {dtype = dtype, device = "cuda"}):t()
        luma.matmul(a:cuda(), b:cuda(), {out = out})
        agree(a:matmul(b), out, dtype .. " of " .. k)
      end
    end
    local a, b = fresh("int16", 2, 1, 3, 3000), fresh("int16", 4, 3000, 2)
    agree(a:matmul(b), a:cuda():matmul(b:cuda()), "batches of long sums")
  end)

  it("let two dtypes meet as on the CPU", function()
    local all = {}
    for _, list in ipairs {blas_dtypes, own_dtypes} do
      for _, dtype in ipairs(list) do all[#all + 1] = dtype end
    end
    for _, da in ipairs(all) do
      for _, db in ipairs(all) do
        local a, b = fresh(da, 4, 5), fresh(db, 5, 3)
        agree(a:matmul(b), a:cuda():t():contiguous():t():matmul(b:cuda()), da .. " by " .. db)
      end
    end
    -- a whole number that float16 cannot hold, times what brings it back
    local big = luma.tensor({{100001}}, {dtype = "int32", device = "cpu"})
    local tiny = luma.tensor({{2 ^ -10}}, {dtype = "float16", device = "cpu"})
    agree(big:matmul(tiny), big:cuda():matmul(tiny:cuda()), "int32 by float16")
  end)

  it("keep NaN and infinity where they belong", function()
    for _, dtype in ipairs {"float32", "float16"} do
      local a, b = luma.ones({5, 40}, {dtype = dtype, device = "cpu"}),
        luma.ones({40, 6}, {dtype = dtype, device = "cpu"})
      a[{2, 1}], b[{3, 1}] = 0 / 0, math.huge
      local c = a:cuda():matmul(b:cuda()):cpu()
      assert.is_true(c:isnan() == a:matmul(b):isnan())
      assert.is_true(c:isinf() == a:matmul(b):isinf())
    end
  end)
end)

describe("precision", function()
  after_each(function()
    luma.cuda.allow_tf32(false)
    luma.cuda.allow_fp16_accumulate(false)
    luma.cuda.allow_bf16_reduced(false)
  end)

  it("is that of the dtype unless a switch allows less", function()
    for _, name in ipairs {"allow_tf32", "allow_fp16_accumulate", "allow_bf16_reduced"} do
      assert.is_false(luma.cuda[name]())
      luma.cuda[name](true)
      assert.is_true(luma.cuda[name]())
      luma.cuda[name](false)
      assert.is_false(luma.cuda[name]())
      check.raises("boolean", luma.cuda[name], 1)
    end
  end)

  it("of float32 is cut to TF32", function()
    local x = luma.tensor({{1 + 2 ^ -12}}, {device = "cuda", dtype = "float32"})
    local one = luma.ones({1, 1}, {device = "cuda"})
    assert.equal(1 + 2 ^ -12, x:matmul(one):item())
    luma.cuda.allow_tf32(true)
    assert.equal(1.0, x:matmul(one):item())
    local d = x:to("float64")
    assert.equal(1 + 2 ^ -12, d:matmul(one:to("float64")):item())
  end)

  it("of float16 sums is cut to float16", function()
    local x = luma.tensor({{2048, 1, 1, 1, 1}}, {dtype = "float16", device = "cuda"})
    local ones = luma.ones({5, 1}, {dtype = "float16", device = "cuda"})
    assert.equal(2052.0, x:matmul(ones):item())
    luma.cuda.allow_fp16_accumulate(true)
    assert.equal(2048.0, x:matmul(ones):item())
    luma.cuda.allow_fp16_accumulate(false)
    assert.equal(2052.0, x:matmul(ones):item())
  end)

  it("of bfloat16 stays where partial sums may be rounded", function()
    local x = luma.ones({1, 300}, {dtype = "bfloat16", device = "cuda"})
    luma.cuda.allow_bf16_reduced(true)
    assert.equal(300.0, x:matmul(x:t()):item())
  end)
end)

describe("cuBLAS", function()
  it("need not be there", function()
    local output, status = program.shell("LUMA_LIBCUBLAS=/nowhere/libcublas.so $LUMA -e " ..
      program.quote [[
        for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
          for _, s in ipairs {{3, 4, 5}, {70, 65, 90}, {1, 200, 3000}} do
            local m, n, k = table.unpack(s)
            local a = luma.range(1, m * k):remainder(7):sub(3):to(dtype):reshape(m, k)
            local b = luma.range(1, k * n):remainder(5):sub(2):to(dtype):reshape(n, k):t()
            local c = a:cuda():matmul(b:cuda())
            assert(c.dtype == dtype and c:cpu() == a:matmul(b), dtype)
          end
        end
        local s = luma.cuda.stats()
        print(s.products_blas, s.products_own, s.products_copied)]])
    assert.equal("0\t12\t0\n", output)
    assert.equal(0, status)
  end)

  it("may fail: an error with the cause, then the next product works", function()
    for _, f in ipairs {"cublasCreate", "cublasSetStream", "cublasSetWorkspace", "cublasSetMathMode",
        "cublasGemmStridedBatchedEx"} do
      local name = f .. ((f:find "Math" or f:find "Gemm") and "" or "_v2")
      local output, status = program.shell(("LUMA_EMU_FAIL=%s:1 $LUMA -e %s"):format(name,
        program.quote [[
          local x = luma.ones({2, 2}, {device = "cuda", dtype = "bfloat16"})
          print(pcall(luma.matmul, x, x))
          print(luma.matmul(x, x):sum():item())]]))
      assert.equal(("false\tmatmul: cuda:0: %s: CUBLAS_STATUS_EXECUTION_FAILED\n8.0\n"):format(f), output)
      assert.equal(0, status)
    end
  end)

  it("sees no rule broken", function()
    assert.equal(0, luma.cuda.stats().reports)
  end)
end)
