-- einsum_spec.lua -- einsum and tensordot against one loop over all letters: drawn equations over every
-- dtype and layout, each kind of contraction, what is copied, errors that point at the letter.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local check = require "check"
local equation = require "equation"
local layouts = require "layouts"
local model = require "model"
local oracle = require "oracle"

-- Up to how many products of -1, 0 and 1 a dtype sums exactly, whatever it rounds on the way.
local exact = {float8_e4m3 = 16, bfloat16 = 256, float16 = 2000}
local numbers = {}
for _, name in ipairs(oracle.names) do
  if name ~= "bool" then numbers[#numbers + 1] = name end
end

local function numel(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

local function promoted(dtypes)
  local x = luma.zeros(1, {dtype = dtypes[1]})
  for i = 2, #dtypes do x = x + luma.zeros(1, {dtype = dtypes[i]}) end
  return x.dtype
end

-- Tensors of the shapes, and the same as lists.
local function make(random, shapes, dtypes, most)
  local tensors, lists = {}, {}
  for i, shape in ipairs(shapes) do
    local values = {}
    for k = 1, numel(shape) do
      values[k] = random(dtypes[i]:find "^u" and 0 or -most, most)
    end
    tensors[i] = equation.tensor(random, shape, values, dtypes[i])
    lists[i] = {shape = shape, values = values}
  end
  return tensors, lists
end

-- What lists of whole numbers come to in a dtype, where integers wrap.
local function wrapped(values, dtype)
  if #values == 0 then return values end
  return layouts.flat(luma.tensor(values, "int64"):to(dtype))
end

local function compare(text, want_shape, want, dtype, y)
  local fine = y.dtype == dtype and table.concat(y.shape, " ") == table.concat(want_shape, " ")
  local got = fine and layouts.flat(y) or {}
  for i, v in ipairs(want) do fine = fine and got[i] == v end
  if not fine then
    error(("%s: %s of [%s] expected, got %s\n%s"):format(text, dtype, table.concat(want_shape, " "), y,
      table.concat(want, " ")), 2)
  end
end

local function run(seed)
  local random = model.random(seed)
  local dtypes, volume = {}, 1500
  local first = numbers[random(1, #numbers)]
  for i = 1, 5 do dtypes[i] = random(1, 3) == 1 and numbers[random(1, #numbers)] or first end
  for _, dtype in ipairs(dtypes) do volume = math.min(volume, exact[dtype] or volume) end
  local text, shapes = equation.draw(random, volume)
  for i = #dtypes, #shapes + 1, -1 do dtypes[i] = nil end
  local dtype = promoted(dtypes)
  local tensors, lists = make(random, shapes, dtypes, exact[dtype] and 1 or 3)
  local place = ("seed %d, luma.einsum(%q) of %s"):format(seed, text, table.concat(dtypes, " "))
  local shape, values = equation.einsum(text, lists)
  local want = wrapped(values, dtype)
  compare(place, shape, want, dtype, luma.einsum(text, table.unpack(tensors)))
  if seed % 3 == 0 then -- into a tensor, here one with its dims in another order
    local dims = {}
    for d = 1, #shape do dims[d] = #shape + 1 - d end
    local out = luma.zeros(shape, {dtype = dtype}):permute(dims):force_contiguous():permute(dims)
    assert.equal(out, luma.einsum(text, tensors, {out = out}))
    compare(place, shape, want, dtype, out)
  end
end

it("drawn equations over every dtype and layout", function()
  local first = tonumber(os.getenv "LUMA_SPEC_SEED") or 1
  for seed = first, first + (tonumber(os.getenv "LUMA_SEEDS") or 500) - 1 do run(seed) end
end)

-- One product, of whole numbers, in every layout.
local function holds(text, shapes, dtype)
  local random = model.random(#text)
  local dtypes = {}
  for i = 1, #shapes do dtypes[i] = dtype or "float32" end
  for _ = 1, 4 do
    local tensors, lists = make(random, shapes, dtypes, 3)
    local shape, values = equation.einsum(text, lists)
    compare(text, shape, wrapped(values, dtypes[1]), dtypes[1], luma.einsum(text, table.unpack(tensors)))
  end
end

it("every kind of product", function()
  for _, dtype in ipairs {"float32", "int32"} do
    holds("ij,jk->ik", {{5, 7}, {7, 3}}, dtype)
    holds("ij,jk->ki", {{5, 7}, {7, 3}}, dtype)
    holds("ji,kj->ik", {{7, 5}, {3, 7}}, dtype)
    holds("ij,ij->", {{5, 7}, {5, 7}}, dtype)
    holds("ij,ji->", {{5, 7}, {7, 5}}, dtype)
    holds("i,i->", {{200}, {200}}, dtype)
    holds("bi,bi->b", {{6, 5}, {6, 5}}, dtype)
    holds("bi,bi->b", {{3, 150}, {3, 150}}, dtype)
    holds("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, dtype)
    holds("bij,bjk->ikb", {{2, 3, 4}, {2, 4, 5}}, dtype)
    holds("bqhd,bkhd->bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}}, dtype)
    holds("bhqk,bkhd->bqhd", {{2, 4, 3, 6}, {2, 6, 4, 5}}, dtype)
    holds("ijkl,klmn->ijmn", {{2, 3, 4, 5}, {4, 5, 3, 2}}, dtype)
    holds("ijkl,lkmn->minj", {{2, 3, 4, 5}, {5, 4, 3, 2}}, dtype)
    holds("ikjl,klmn->imjn", {{2, 4, 3, 5}, {4, 5, 3, 2}}, dtype)
    holds("abcdefg,gfedcbh->ha", {{2, 2, 2, 2, 2, 2, 3}, {3, 2, 2, 2, 2, 2, 2}}, dtype)
    holds("abcdefgh,abcdefgh->abcdefg", {{2, 2, 2, 2, 2, 2, 2, 3}, {2, 2, 2, 2, 2, 2, 2, 3}}, dtype)
    holds("abcdefgh,hgbcdefa->gfedcba", {{2, 1, 2, 2, 2, 2, 2, 3}, {3, 2, 1, 2, 2, 2, 2, 2}}, dtype)
    holds("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}, dtype)
    holds("ij,kj,lj->ikl", {{2, 3}, {4, 3}, {5, 3}}, dtype)
    holds("i,j,k->kij", {{2}, {3}, {4}}, dtype)
    holds("ii->i", {{4, 4}}, dtype)
    holds("iii->", {{3, 3, 3}}, dtype)
    holds("ii,ij->j", {{4, 4}, {4, 3}}, dtype)
    holds("ijk->kj", {{2, 3, 4}}, dtype)
    holds("ij,j->ij", {{2, 3}, {1}}, dtype)
    holds("ij,jk->ik", {{4, 1}, {3, 5}}, dtype)
    holds("ij,jk->ik", {{4, 0}, {0, 5}}, dtype)
    holds("ij,jk->ik", {{0, 3}, {3, 5}}, dtype)
    holds(",ij->ji", {{}, {2, 3}}, dtype)
    holds("...,...", {{}, {}}, dtype)
    holds("...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}}, dtype)
    holds("i...j,j...->...i", {{2, 3, 4}, {4, 3}}, dtype)
    holds("...i->...", {{2, 3, 4}}, dtype)
    holds("b...->b", {{2, 3, 4}}, dtype)
    holds("ba", {{2, 3}}, dtype)
    holds("ij,jk", {{2, 3}, {3, 4}}, dtype)
  end
end)

it("two stacks of matrices, however their dims stand", function()
  local sizes = {i = 3, j = 4, k = 5, b = 2, c = 3}
  local function shape_of(labels)
    local shape = {}
    for letter in labels:gmatch "." do shape[#shape + 1] = sizes[letter] end
    return shape
  end
  for _, batch in ipairs {"", "b", "bc"} do
    for _, a in ipairs {batch .. "ij", batch .. "ji", "ij" .. batch, batch .. "i", batch .. "iji"} do
      for _, b in ipairs {batch .. "jk", batch .. "kj", batch:reverse() .. "jk", batch .. "jj"} do
        for _, out in ipairs {batch .. "ik", batch .. "ki", batch:reverse() .. "ik", batch .. "ij"} do
          local known = a .. b
          if not out:find("[^" .. known .. "]") then
            holds(a .. "," .. b .. "->" .. out, {shape_of(a), shape_of(b)})
            holds(b .. "," .. a .. "->" .. out, {shape_of(b), shape_of(a)}, "float16")
          end
        end
      end
    end
  end
  local x = luma.rand(4, 4)
  local want = x:matmul(x:t())
  luma.einsum("ij,kj->ik", x, x, {out = x})
  assert.is_true(x:equal(want))
end)

it("sums of integers wrap in their dtype before they meet floats or wider ones", function()
  local x = luma.full({300}, 100, {dtype = "uint8"})
  check.tensor(48, "uint8", luma.einsum("i->", x))
  check.tensor({30000}, "float32", luma.einsum("i,j->j", x, luma.ones(1)))
  check.tensor({60000}, "int32", luma.einsum("i,j->j", x, luma.full({1}, 2, {dtype = "int32"})))
end)

it("nan counts, and the result is a copy", function()
  local x = luma.tensor {{1, 0 / 0}, {3, 4}}
  assert.is_true(luma.einsum("ij,j->i", x, luma.tensor {1, 0}):isnan():equal(luma.tensor {true, false}))
  local y = luma.einsum("ij->ij", x)
  y:fill_(7)
  assert.equal(1, x[{1, 1}])
  luma.einsum("ij->ji", x, {out = x})
  assert.equal(3, x[{1, 2}])
end)

it("views that merge are multiplied as they are", function()
  local function copies(f)
    local before = luma.copy_counts()
    f()
    local after, n = luma.copy_counts(), 0
    for kind, count in pairs(after) do
      if kind ~= "shared" then n = n + count - before[kind] end
    end
    return n
  end
  local a, b = luma.rand(4, 5, 6), luma.rand(4, 6, 7)
  assert.equal(0, copies(function() luma.einsum("bij,bjk->bik", a, b) end))
  assert.equal(0, copies(function() luma.einsum("bij,bjk->bki", a, b) end))
  assert.equal(0, copies(function() luma.einsum("bij,bkj->bik", a, b:transpose(2, 3)) end))
end)

it("errors point at the letter", function()
  local a, b = luma.ones(2, 3), luma.ones(3, 4)
  local function raises(text, ...)
    local args = table.pack(...)
    check.raises(text, function() return luma.einsum(table.unpack(args, 1, args.n)) end)
  end
  raises("bad argument #1 to 'einsum' ('ij,jk->il': 'l' at 9 stands in no term of a tensor)",
    "ij,jk->il", a, b)
  raises("'ij,jk->iki': 'i' at 10 stands twice in the result", "ij,jk->iki", a, b)
  -- looks like one product of matrices
  raises("'ij,ji->ii': 'i' at 9 stands twice in the result", "ij,ji->ii", luma.ones(2, 2), luma.ones(2, 2))
  raises("'i j,j;k': ';' at 6, where", "i j,j;k", a, b)
  raises("'ij,jk-ik': 'i' at 7, where '>' was expected", "ij,jk-ik", a, b)
  raises("'ij,jk-' ends where '>' was expected", "ij,jk-", a, b)
  raises("'ij->i->j': '-' at 6, where nothing more was expected", "ij->i->j", a)
  raises("'......': '.' at 4", "......", a)
  raises("'i.j': '.' at 2", "i.j", a)
  raises("'i\u{e9}': '?' at 2", "i\u{e9}", a)
  raises("'ij' has 1 term for 2 tensors", "ij", a, b)
  raises("'ij,jk,kl' has 3 terms for 2 tensors", "ij,jk,kl", a, b)
  raises("bad argument #3 to 'einsum' ([3 x 4]: size 4 of 'j' (5 in 'ij,kj') differs from 3 in [2 x 3])",
    "ij,kj", a, b)
  raises("size 2 of '...'", "...,...j", a, b:t():narrow(2, 1, 2):t())
  raises("bad argument #2 to 'einsum' ([2 x 3] has 2 dims, its term in 'ijk' has 3)", "ijk", a)
  raises("its term in '...ijk' has at least 3", "...ijk", a)
  raises("bad argument #2 to 'einsum' ([2 x 3]: dims 1 and 2 are both 'i' (1 in 'ii') and differ)", "ii", a)
  raises("dims 1 and 2 are both 'i'", "ii", luma.ones(1, 3))
  raises("bad argument #3 to 'einsum' (bool has no products", "ij,ij", a, a:gt(0))
  raises("more than 8 dims", "abcdefgh,i->abcdefghi", luma.ones(1, 1, 1, 1, 1, 1, 1, 1), luma.ones(2))
  local five = luma.ones(2, 2, 2, 2, 2)
  raises("a product on the way has 10 dims: at most 8", "abcde,fghij,abcde,fghij", five, five, five, five)
  raises("bad argument #1 to 'einsum'", a, b)
  raises("bad argument #2 to 'einsum'", "ij")
  raises("bad argument #3 to 'einsum'", "ij,jk", a, 3)
  raises("out is [2 x 3], the result is [2 x 4]", "ij,jk->ik", a, b, {out = luma.zeros(2, 3)})
  check.raises("a tensor has no method 'einsum'; write luma.einsum(equation, ...)", function()
    return a.einsum
  end)
end)

it("tensordot: the last and first dims, or pairs", function()
  local random = model.random(5)
  local tensors, lists = make(random, {{2, 3, 4}, {3, 4, 5}}, {"float32", "float32"}, 3)
  local a, b = tensors[1], tensors[2]
  local function same(text, y)
    local shape, values = equation.einsum(text, lists)
    compare(text, shape, wrapped(values, "float32"), "float32", y)
  end
  same("ijk,jkl->il", a:tensordot(b))
  same("ijk,jkl->il", luma.tensordot(a, b, 2))
  same("ijk,jkl->il", luma.tensordot(a, b, {2, 3}, {1, 2}))
  same("ijk,jkl->il", luma.tensordot(a, b, {{3, 2}, {2, 1}}))
  same("ijk,lkm->ijlm", luma.tensordot(a, b, {-1}, {2}))
  same("ijk,lmn->ijklmn", luma.tensordot(a, b, 0))
  local out = luma.zeros(2, 5)
  assert.equal(out, luma.tensordot(a, b, 2, {out = out}))
  same("ijk,jkl->il", out)
  check.tensor(6, "int64", luma.tensordot(luma.tensor(2, "int64"), luma.tensor(3, "int64"), 0))
  check.raises("bad argument #3 to 'tensordot'", function() return luma.tensordot(a, b, 4) end)
  check.raises("bad argument #3 to 'tensordot'", function() return luma.tensordot(a, b, {1, 1}, {1, 2}) end)
  check.raises("sizes 2 and 5 differ", function() return luma.tensordot(a, b, {1}, {3}) end)
  check.raises("bad argument #4 to 'tensordot' (2 dims of a and 1 of b)", function()
    return luma.tensordot(a, b, {1, 2}, {1})
  end)
  check.raises("0", function() return luma.tensordot(a, b, {0}, {1}) end)
  check.raises("bad argument #2 to 'tensordot' (bool", function() return luma.tensordot(a, b:gt(0)) end)
end)
