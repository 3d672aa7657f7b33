-- matmul_spec.lua -- matrix products against plain loops: every dtype, every layout, sizes around
-- the register tiles and the blocks, batches, vectors, errors, out, threads.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"

-- A reproducible stream of small whole numbers and of fractions.
local state = 1
local function draw(lo, hi)
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return lo + (state >> 8) % (hi - lo + 1)
end

local function same(x, y) check.tensor(x:totable(), x.dtype, y) end

-- A float32 tensor of fractions.
local function random(...)
  local shape, n, list = {...}, 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 1, n do list[i] = draw(-1000, 1000) / 999 end
  return luma.tensor(list):reshape(shape)
end

-- Values that each dtype holds exactly.
local function values(dtype, n)
  local list = {}
  for i = 1, n do
    if dtype:find "float" then
      list[i] = draw(-8, 8) / 8
    elseif dtype:find "^u" then
      list[i] = draw(0, 255)
    else
      list[i] = draw(-128, 127)
    end
  end
  return list
end

-- One matrix of r x c elements in each layout: f(values, dtype, r, c).
local layouts = {
  plain = function(v, dtype, r, c) return luma.tensor(v, dtype):reshape(r, c) end,
  transposed = function(v, dtype, r, c) return luma.tensor(v, dtype):reshape(c, r):t() end,
  stepped = function(v, dtype, r, c)
    local x = luma.zeros({2 * r + 1, 3 * c + 2}, {dtype = dtype})
    local view = x:slice(1, 2, 2 * r, 2):slice(2, 3, 3 * c, 3)
    view:copy_(luma.tensor(v, dtype):reshape(r, c))
    return view
  end,
  flipped = function(v, dtype, r, c) return luma.tensor(v, dtype):reshape(r, c):flip({1, 2}) end,
  row = function(v, dtype, r, c) -- one row for all
    return luma.tensor({table.unpack(v, 1, c)}, dtype):expand(r, c)
  end,
  column = function(v, dtype, r, c) -- one column for all
    return luma.tensor({table.unpack(v, 1, r)}, dtype):reshape(r, 1):expand(r, c)
  end,
}
local names = {"plain", "transposed", "stepped", "flipped", "row", "column"}

local function matrix(layout, dtype, r, c)
  if r == 0 or c == 0 then return luma.zeros({r, c}, {dtype = dtype}) end
  return layouts[layout](values(dtype, r * c), dtype, r, c)
end

-- Three loops. Integers wrap as Lua's; floats also give the sum of magnitudes.
local function naive(a, b, integer)
  local k, n, out, size = #b, b[1] and #b[1] or 0, {}, {}
  for i, row in ipairs(a) do
    out[i], size[i] = {}, {}
    for j = 1, n do
      local sum, magnitude = integer and 0 or 0.0, 0.0
      for p = 1, k do
        sum = sum + row[p] * b[p][j]
        magnitude = magnitude + math.abs(row[p] * b[p][j])
      end
      out[i][j], size[i][j] = sum, magnitude
    end
  end
  return out, size
end

local eps = check.eps

-- c must be the product of a and b, all tensors.
local function verify(a, b, c, what)
  local dtype = c.dtype
  local integer = not eps[dtype]
  local want, size = naive(a:totable(), b:totable(), integer)
  local k = a.shape[2]
  assert.same({a.shape[1], b.shape[2]}, c.shape)
  if #want == 0 or b.shape[2] == 0 then return end
  local got = c:totable()
  if integer then
    check.tensor(luma.tensor(want, "int64"):to(dtype):totable(), dtype, c)
    return
  end
  local unit = dtype == "float64" and eps.float64 or eps.float32
  for i, row in ipairs(want) do
    for j, v in ipairs(row) do
      local most = unit * (k + 2) * size[i][j] + eps[dtype] / 2 * math.abs(v)
      if dtype == "float8_e4m3" and math.abs(v) > 448 then v = v > 0 and 448 or -448 end
      local fine = math.abs(got[i][j] - v) <= most
      if not fine then
        error(("%s: element %d, %d is %.17g, not %.17g"):format(what, i, j, got[i][j], v), 2)
      end
    end
  end
end

local function product(ta, tb, la, lb, m, n, k)
  local a, b = matrix(la, ta, m, k), matrix(lb, tb, k, n)
  verify(a, b, a:matmul(b), ("%s %s %s %s %dx%dx%d"):format(ta, la, tb, lb, m, n, k))
end

describe("matmul", function()
  it("agrees with three loops at sizes around tiles", function()
    local sizes = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33}
    for _, m in ipairs(sizes) do
      for _, n in ipairs(sizes) do
        local k = sizes[draw(1, #sizes)]
        product("float32", "float32", names[draw(1, 4)], names[draw(1, 4)], m, n, k)
        k = sizes[draw(1, #sizes)]
        product("float64", "float64", names[draw(1, 6)], names[draw(1, 6)], m, n, k)
      end
    end
  end)

  it("reads every dtype in every layout", function()
    for _, dtype in ipairs {"uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3",
        "float16", "bfloat16", "float32", "float64"} do
      for _, la in ipairs(names) do
        for _, lb in ipairs(names) do
          product(dtype, dtype, la, lb, draw(1, 18), draw(1, 40), draw(1, 20))
        end
      end
      product(dtype, dtype, "plain", "transposed", 30, 70, 66)
      product(dtype, dtype, "stepped", "plain", 70, 33, 65)
    end
  end)

  it("crosses the blocks", function()
    product("float32", "float32", "plain", "plain", 2, 1100, 20)
    product("float32", "float32", "transposed", "plain", 180, 9, 400)
    product("float16", "float16", "plain", "transposed", 40, 20, 800)
    product("int16", "int16", "flipped", "stepped", 20, 20, 777)
  end)

  it("takes few rows or columns by another way", function()
    for _, dtype in ipairs {"float32", "bfloat16", "int32", "int64"} do
      for few = 1, 9 do
        local la, lb = names[draw(1, 4)], names[draw(1, 4)]
        product(dtype, dtype, la, lb, few, 133, 70)
        product(dtype, dtype, la, lb, 133, few, 70)
        product(dtype, dtype, "plain", "transposed", few, 6, 1030)
      end
    end
  end)

  it("lets two dtypes meet by the table", function()
    local pairs_of = {
      {"uint8", "int8", "int16"}, {"uint32", "int32", "int64"}, {"int8", "int64", "int64"},
      {"float16", "bfloat16", "float32"}, {"float8_e4m3", "float16", "float16"},
      {"int32", "float32", "float32"}, {"float32", "float64", "float64"},
      {"uint8", "bfloat16", "bfloat16"},
    }
    for _, p in ipairs(pairs_of) do
      for _, s in ipairs {{3, 4, 5}, {40, 50, 60}, {2, 100, 90}} do
        for _, order in ipairs {{1, 2}, {2, 1}} do
          local a = matrix("plain", p[order[1]], s[1], s[3])
          local b = matrix("transposed", p[order[2]], s[3], s[2])
          local c = a:matmul(b)
          assert.equal(p[3], c.dtype)
          verify(a, b, c, p[1] .. " " .. p[2])
        end
      end
    end
  end)

  it("sums 8- and 16-bit floats in float32", function()
    -- summed in the dtype itself, that many ones would stop short
    for dtype, n in pairs {float16 = 3000, bfloat16 = 300} do
      local want = luma.tensor({{n}}, dtype)
      assert.equal(n * 1.0, want:item())
      local function ones(...) return luma.ones({...}, {dtype = dtype}) end
      same(ones(1, n):matmul(ones(n, 1)), want)
      same(ones(20, n):matmul(ones(n, 30)), want:expand(20, 30))
    end
  end)

  it("cuts long sums", function()
    for _, k in ipairs {32768, 50001} do
      local v = luma.range(1, k):remainder(17)
      local want = 0
      for i = 1, k do want = want + (i % 17) ^ 2 end
      for _, dtype in ipairs {"float64", "int64"} do
        check.value(dtype == "int64" and want // 1 | 0 or want, v:to(dtype):dot(v:to(dtype)):item())
      end
      check.near(want, v:to("float32"):dot(v:to("float32")):item(), 1e-6)
      product("float32", "bfloat16", "plain", "transposed", 2, 3, k)
    end
  end)

  it("wraps integers at their own width", function()
    local function dot(v, w, dtype) return luma.tensor(v, dtype):dot(luma.tensor(w, dtype)) end
    local max = math.maxinteger
    check.tensor((200 * 200 + 100 * 100) & 255, "uint8", dot({200, 100}, {200, 100}, "uint8"))
    check.tensor(0, "int8", dot({-128, -128}, {-128, -128}, "int8"))
    check.tensor(-2, "int64", dot({max, 0}, {2, 5}, "int64"))
    check.tensor(1, "int64", dot({max}, {max}, "int64"))
    check.tensor((65537 * 65537 + (1 << 31)) & 0xffffffff, "uint32",
      dot({65537, 1 << 31}, {65537, 1}, "uint32"))
  end)

  it("keeps NaN and infinity where they belong", function()
    local nan, inf = 0 / 0, math.huge
    for _, n in ipairs {2, 20, 150} do
      local a, b = luma.ones(n, 70), luma.ones(70, n)
      a[{2, 1}], b[{3, 1}] = nan, inf
      local c = a:matmul(b)
      assert.equal(n, c:isnan():sum():item())
      assert.is_true(c:select(1, 2):isnan():all())
      assert.equal(n - 1, c:isinf():sum():item())
      assert.equal(70.0, c(1, 2))
    end
    local c = luma.tensor({{inf, 0}}):matmul(luma.tensor({{0}, {1}}))
    assert.is_true(c(1, 1) ~= c(1, 1))
  end)
end)

describe("batches", function()
  -- Each matrix of the product of a and b is the product of the matrices.
  local function verify_batch(a, b, c)
    local shape = {table.unpack(c.shape, 1, c.ndim - 2)}
    local function spread(x)
      local rows, columns = x.shape[x.ndim - 1], x.shape[x.ndim]
      local full = {table.unpack(shape)}
      full[#full + 1], full[#full + 2] = rows, columns
      return x:expand(full):force_contiguous():reshape(-1, rows, columns)
    end
    local aa, bb = spread(a), spread(b)
    local cc = c:reshape(-1, c.shape[c.ndim - 1], c.shape[c.ndim])
    for i = 1, #cc do verify(aa:select(1, i), bb:select(1, i), cc:select(1, i), "batch " .. i) end
  end

  it("broadcast", function()
    local shapes = {{{4}, {4}}, {{1}, {3}}, {{3}, {}}, {{}, {3}}, {{2, 1}, {3}}, {{2, 3}, {2, 3}},
      {{2, 1, 2}, {3, 1}}}
    for _, s in ipairs(shapes) do
      for _, size in ipairs {{3, 4, 5}, {17, 33, 9}, {1, 70, 80}} do
        local sa, sb = {table.unpack(s[1])}, {table.unpack(s[2])}
        sa[#sa + 1], sa[#sa + 2] = size[1], size[3]
        sb[#sb + 1], sb[#sb + 2] = size[3], size[2]
        local a, b = random(table.unpack(sa)), random(table.unpack(sb))
        local c = a:matmul(b)
        verify_batch(a, b, c)
        local ta, tb = a:transpose(-1, -2):contiguous():transpose(-1, -2), b:flip(-1)
        verify_batch(ta, tb, ta:matmul(tb))
      end
    end
  end)

  it("an expanded side", function()
    local a = luma.tensor({{1, 2}, {3, 4}}):expand(3, 2, 2)
    local b = luma.range(0, 11):to("float32"):reshape(3, 2, 2)
    check.tensor({{{4, 7}, {8, 15}}, {{16, 19}, {36, 43}}, {{28, 31}, {64, 71}}}, "float32",
      a:matmul(b))
    check.tensor({{{6, 10}, {8, 14}}, {{22, 26}, {32, 38}}, {{38, 42}, {56, 62}}}, "float32",
      luma.tensor({{1, 2}, {3, 4}}):t():expand(3, 2, 2):matmul(b))
    check.tensor({{{3, 4}, {11, 16}}, {{19, 28}, {27, 40}}, {{35, 52}, {43, 64}}}, "float32",
      b:matmul(a))
    local ones = luma.ones(1, 32, 32):expand(32, 32, 32):matmul(luma.ones(32, 32, 32))
    assert.equal(32768, ones:eq(32):sum():item())
    local other = luma.ones(32, 32, 32):matmul(luma.ones(1, 32, 32):expand(32, 32, 32))
    assert.equal(32768, other:eq(32):sum():item())
  end)

  it("an empty sum is zero", function()
    local stale = luma.full({64, 64}, 0 / 0)
    stale:free()
    check.tensor({{0, 0, 0}, {0, 0, 0}}, "float32", luma.zeros(2, 0):matmul(luma.zeros(0, 3)))
    same(luma.zeros(3, 2, 0):matmul(luma.zeros(3, 0, 3)), luma.zeros(3, 2, 3))
    check.tensor(0, "float32", luma.dot(luma.zeros(0), luma.zeros(0)))
    assert.same({0, 3}, luma.zeros(0, 2):matmul(luma.zeros(2, 3)).shape)
    assert.same({2, 0}, luma.zeros(2, 3):matmul(luma.zeros(3, 0)).shape)
    assert.same({0, 2, 3}, luma.zeros(0, 2, 4):matmul(luma.zeros(4, 3)).shape)
    local bytes = {dtype = "int8"}
    check.tensor({{0, 0}}, "int8", luma.zeros({1, 0}, bytes):matmul(luma.zeros({0, 2}, bytes)))
    local out = luma.full({4, 2}, 5)
    luma.zeros(2, 0):matmul(luma.zeros(0, 4), {out = out:t()})
    same(out, luma.zeros(4, 2))
  end)
end)

describe("forms", function()
  it("vectors lose their dim", function()
    local a, v = random(5, 7), random(7)
    assert.same({5}, a:matmul(v).shape)
    assert.same({5}, a:mv(v).shape)
    assert.same({7}, random(5):matmul(a).shape)
    assert.same({}, v:matmul(v).shape)
    verify(a, v:reshape(7, 1), a:mv(v):reshape(5, 1), "mv")
    verify(v:reshape(1, 7), a:t(), v:matmul(a:t()):reshape(1, 5), "vector by matrix")
    verify(v:reshape(1, 7), v:reshape(7, 1), v:dot(v):reshape(1, 1), "dot")
    assert.same({2, 3, 5}, random(2, 3, 5, 7):matmul(v).shape)
    assert.same({2, 3, 7}, random(5):matmul(random(2, 3, 5, 7)).shape)
    assert.same({3, 4, 6}, luma.bmm(random(3, 4, 5), random(3, 5, 6)).shape)
    assert.same({4, 6}, luma.mm(random(4, 5), random(5, 6)).shape)
  end)

  it("errors say both shapes", function()
    local z = luma.zeros
    local function raises(text, name, a, b)
      check.raises(("bad argument #%s to '%s' (%s"):format(text:sub(1, 1), name, text:sub(3)),
        luma[name], a, b)
    end
    raises("2 [2 x 3] by [4 x 5]: inner sizes 3 and 4 differ)", "matmul", z(2, 3), z(4, 5))
    raises("2 [3] by [4]: inner sizes 3 and 4 differ)", "dot", z(3), z(4))
    raises("2 [2 x 3] by [2]: inner sizes 3 and 2 differ)", "mv", z(2, 3), z(2))
    raises("2 [2 x 3 x 4] by [3 x 4 x 5]: the batch dims do not broadcast)", "matmul",
      z(2, 3, 4), z(3, 4, 5))
    raises("2 [1 x 3 x 4] by [3 x 4 x 5]: batch sizes 1 and 3 differ)", "bmm",
      z(1, 3, 4), z(3, 4, 5))
    raises("1 [2]: a matrix (2 dims) expected)", "mm", z(2), z(2, 2))
    raises("2 [2 x 2]: a vector (1 dim) expected)", "mv", z(2, 2), z(2, 2))
    raises("1 [2 x 2]: a vector (1 dim) expected)", "dot", z(2, 2), z(2))
    raises("2 [2 x 2]: a stack of matrices (3 dims) expected)", "bmm", z(2, 2, 2), z(2, 2))
    raises("2 a 0-d tensor: at least 1 dim expected)", "matmul", z(2, 2), z(2):sum())
    raises("1 bool has no matrix product: convert it to a number dtype first)", "matmul",
      z(2, 2):eq(0), z(2, 2))
    raises("2 ", "matmul", z(2, 2), 3)
  end)

  it("out may have any layout and alias the operands", function()
    local a, b = random(40, 30), random(30, 50)
    local want = a:matmul(b)
    local outs = {luma.zeros(40, 50), luma.zeros(50, 40):t(), luma.zeros(40, 50):flip({1, 2}),
      luma.zeros(40, 100):slice(2, 2, 100, 2)}
    for _, out in ipairs(outs) do
      assert.equal(out, a:matmul(b, {out = out}))
      check.near(want:totable(), out, 1e-5)
    end
    local s = random(33, 33)
    local square = s:matmul(s)
    s:matmul(s, {out = s})
    same(s, square)
    check.raises("out is float32, the result is float64", function()
      a:to("float64"):matmul(b, {out = luma.zeros(40, 50)})
    end)
    check.raises("out is [40 x 51], the result is [40 x 50]", function()
      a:matmul(b, {out = luma.zeros(40, 51)})
    end)
  end)

  it("gives the same bits on any number of threads", function()
    local shapes = {{300, 200, 500}, {1, 900, 700}, {700, 3, 900}, {90, 1100, 40}, {1, 1, 70000},
      {3, 5, 40000}}
    for _, s in ipairs(shapes) do
      for _, dtype in ipairs {"float32", "bfloat16", "float64"} do
        local a = random(s[1], s[3]):to(dtype)
        local b, bt = random(s[3], s[2]):to(dtype), random(s[2], s[3]):to(dtype):t()
        local results = {}
        for threads = 1, 3 do
          luma.set_num_threads(threads)
          results[threads] = {a:matmul(b), a:matmul(bt)}
        end
        luma.set_num_threads(2)
        for i = 1, 2 do
          same(results[1][i], results[2][i])
          same(results[1][i], results[3][i])
        end
      end
    end
  end)
end)
