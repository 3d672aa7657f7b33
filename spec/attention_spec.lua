-- attention_spec.lua -- scaled_dot_product_attention, rope and dropout against plain references: every
-- float dtype and layout, masks, causal order, grouped heads, random shapes, long sequences, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local lines = require "lines"
local layouts = require "layouts"
local check = require "check"
local device = require "spec.support.device"

local seed = require "seed".value
local random = function(lo, hi) return math.random(lo, hi) end
local inf = math.huge
-- relative to the greatest value
local tolerance = {float8_e4m3 = 2 ^ -3.9, float16 = 2 ^ -10, bfloat16 = 2 ^ -7, float32 = 2 ^ -19,
  float64 = 2 ^ -46}
local attend = luma.scaled_dot_product_attention

local function draw(shape, dtype, width)
  local n, list = 1, {}
  for _, s in ipairs(shape) do n = n * s end
  for i = 1, n do list[i] = (math.random() - 0.5) * (width or 3) end
  if n == 0 then return luma.zeros(shape, {dtype = dtype}) end
  return luma.tensor(list, "float64"):reshape(shape):to(dtype or "float32")
end

local function flat(x) return x:reshape(-1):to("float64"):totable() end

local views = {
  contiguous = function(x) return x end,
  transposed = layouts.turned,
  stepped = layouts.stepped,
  reversed = layouts.reversed,
  heads_last = function(x) -- (b, l, h, e) seen as (b, h, l, e)
    return x.ndim < 3 and x or x:transpose(-3, -2):force_contiguous():transpose(-3, -2)
  end,
}
local view_names = {"contiguous", "transposed", "stepped", "reversed", "heads_last"}

local function near(expected, y, dtype, what)
  local got, room = flat(y), tolerance[dtype]
  assert.equal(#expected, #got)
  local greatest = 0.25
  for _, e in ipairs(expected) do if e == e then greatest = math.max(greatest, math.abs(e)) end end
  for i, e in ipairs(expected) do
    if not (math.abs(got[i] - e) <= room * greatest or e ~= e and got[i] ~= got[i]) then
      error(("%s, seed %d: element %d is %.17g, not %.17g"):format(what, seed, i, got[i], e), 0)
    end
  end
end

-- q (b, h, l, e), k (b, hk, s, e), v (b, hk, s, ev); mask broadcasts to (b, h, l, s).
local function expect(q, k, v, options)
  local b, h, l, e = table.unpack(q.shape)
  local hk, s, ev = k.shape[2], k.shape[3], v.shape[4]
  local fq, fk, fv, out = flat(q), flat(k), flat(v), {}
  local mask = options.mask and options.mask:expand(b, h, l, s)
  local fm = mask and (mask.dtype == "bool" and mask:reshape(-1):totable() or flat(mask))
  local scale = options.scale or 1 / math.sqrt(e)
  local function cut(list, from, n) return table.move(list, from + 1, from + n, 1, {}) end
  for batch = 0, b - 1 do
    for head = 0, h - 1 do
      local shared = batch * hk + head // (h // hk)
      local base = (batch * h + head) * l * s
      local y = lines.attention(cut(fq, (batch * h + head) * l * e, l * e), cut(fk, shared * s * e, s * e),
        cut(fv, shared * s * ev, s * ev), l, s, e, ev, scale, function(i, j)
          if options.causal and j > i then return -inf end
          local m = fm and fm[base + (i - 1) * s + j]
          return (m == nil or m == true) and 0 or m or -inf
        end)
      table.move(y, 1, #y, #out + 1, out)
    end
  end
  return out
end

local function check_attention(q, k, v, options, what)
  local y = attend(q, k, v, options.mask, {is_causal = options.causal, scale = options.scale,
    enable_gqa = options.gqa})
  local b, h, l = table.unpack(q.shape)
  assert.same({b, h, l, v.shape[4]}, y.shape)
  near(expect(q, k, v, options), y, y.dtype, what)
end

describe("scaled_dot_product_attention", function()
  setup(function() math.randomseed(seed) end)

  for _, dtype in ipairs(check.floats) do
    it("is right in every layout: " .. dtype, function()
      local q, k, v = draw({2, 2, 5, 4}, dtype), draw({2, 2, 7, 4}, dtype), draw({2, 2, 7, 3}, dtype)
      for name, view in pairs(views) do
        check_attention(view(q), view(k), view(v), {}, name)
        check_attention(view(q), k, view(v), {causal = true, scale = 0.75}, name .. ", causal")
        local mask = draw({2, 1, 5, 7}, dtype):gt(-0.5)
        check_attention(q, view(k), v, {mask = view(mask)}, name .. ", bool mask")
        check_attention(q, k, v, {mask = view(draw({2, 5, 7}, "float32")):unsqueeze(1)},
          name .. ", float mask")
      end
    end)
    it("takes tiles of every width: " .. dtype, function()
      for _, case in ipairs {{1, 1, 1, 1}, {33, 31, 2, 5}, {64, 65, 17, 16}, {65, 300, 8, 9}, {3, 129, 64,
        65}} do
        local l, s, e, ev = table.unpack(case)
        local q, k, v = draw({1, 1, l, e}, dtype), draw({1, 1, s, e}, dtype), draw({1, 1, s, ev}, dtype)
        check_attention(q, k, v, {}, table.concat(case, " "))
        check_attention(q, k, v, {causal = true}, table.concat(case, " ") .. ", causal")
      end
    end)
  end

  it("is right for random shapes, layouts and masks", function()
    for _ = 1, 40 do
      local hk, groups = random(1, 3), random(1, 3)
      local b, h, l, s = random(1, 3), hk * groups, random(1, 40), random(1, 40)
      local e, ev, dtype = random(1, 20), random(1, 20), ({"float32", "float64", "bfloat16"})[random(1, 3)]
      local function any(x) return views[view_names[random(1, #view_names)]](x) end
      local options = {gqa = true, causal = random(1, 2) == 1, scale = random(1,
        3) == 1 and math.random() or nil}
      if random(1, 2) == 1 then
        local shape = {({1, b})[random(1, 2)], ({1, h})[random(1, 2)], ({1, l})[random(1, 2)], ({1,
          s})[random(1, 2)]}
        local mask = draw(shape)
        options.mask = any(random(1,
          2) == 1 and mask:gt(-1) or mask:to(dtype == "float64" and "float32" or dtype))
      end
      check_attention(any(draw({b, h, l, e}, dtype)), any(draw({b, hk, s, e}, dtype)), any(draw({b, hk, s,
        ev}, dtype)),
        options, ("%d %d/%d %d %d %d %d"):format(b, h, hk, l, s, e, ev))
    end
  end)

  it("takes 2 to 8 dims and broadcasts batches", function()
    local q, k, v = draw {5, 4}, draw {6, 4}, draw {6, 3}
    local y = attend(q, k, v)
    assert.same({5, 3}, y.shape)
    near(expect(q:reshape(1, 1, 5, 4), k:reshape(1, 1, 6, 4), v:reshape(1, 1, 6, 3), {}), y, "float32",
      "2 dims")
    local many = attend(q:expand(1, 2, 1, 1, 1, 3, 5, 4), k, v:expand(2, 1, 6, 3))
    assert.same({1, 2, 1, 1, 2, 3, 5, 3}, many.shape)
    near(flat(y:expand(12, 5, 3)), many, "float32", "8 dims")
    local mask = draw({5, 6}):gt(-1)
    near(flat(attend(q, k, v, mask):expand(12, 5, 3)), attend(q:expand(1, 2, 1, 1, 1, 3, 5, 4), k,
      v:expand(2, 1, 6, 3), mask),
      "float32", "8 dims, masked")
    local seven = attend(draw {1, 1, 1, 2, 4, 5, 4}, draw {1, 1, 1, 2, 2, 6, 4}, draw {2, 2, 6, 3}, mask,
      {enable_gqa = true})
    assert.same({1, 1, 1, 2, 4, 5, 3}, seven.shape)
  end)

  it("reads keys once for few queries", function()
    for l = 1, 9 do
      for _, dtype in ipairs {"float32", check.floats[l % 5 + 1]} do
        local q, k, v = draw({2, 4, l, 19}, dtype), draw({2, 2, 261, 19}, dtype), draw({2, 2, 261, 33}, dtype)
        local mask = draw({2, 1, l, 261}):gt(-1)
        check_attention(q, k, v, {gqa = true}, l .. " queries")
        check_attention(q, views.transposed(k), views.stepped(v), {gqa = true, mask = mask},
          l .. " queries, masked")
        check_attention(q, k, v, {gqa = true, causal = true}, l .. " queries, causal")
      end
    end
    local q, k, v = draw {1, 6, 1, 16}, draw {1, 2, 40, 16}, draw {1, 2, 40, 16}
    check_attention(q, k, v, {gqa = true, mask = draw {1, 6, 1, 40}}, "one query of each head")
    check_attention(q, k, v, {gqa = true, mask = draw {1, 1, 1, 40}}, "one query of each head, one mask")
    assert.is_true(attend(q, k, v, {enable_gqa = true}) == attend(q, k, v, nil, {enable_gqa = true}))
  end)

  it("keeps large scores apart", function()
    local q, k, v = draw({1, 1, 40, 8}, "float32", 60), draw({1, 1, 300, 8}, "float32", 60), draw {1, 1,
      300, 4}
    local y = attend(q, k, v)
    local wide = attend(q:to "float64", k:to "float64", v:to "float64")
    assert.is_true(y:isfinite():all())
    check.near(expect(q, k, v, {}), wide:reshape(-1), 1e-10) -- scores of thousands
    check.near(0, (y:to "float64" - wide):abs():max():item(), 1e-3)
  end)

  it("gives NaN for what sees no key, 0 where there are no keys", function()
    local q, k, v = draw {3, 4}, draw {5, 4}, draw {5, 2}
    local mask = luma.ones(3, 5, {dtype = "bool"})
    mask[2] = false
    for _, m in ipairs {mask, luma.where(mask, 0, -inf)} do
      local y = attend(q, k, v, m)
      assert.same({{false, false}, {true, true}, {false, false}}, y:isnan():totable())
    end
    assert.same({{0, 0}, {0, 0}, {0, 0}}, attend(q, luma.zeros(0, 4), luma.zeros(0, 2)):totable())
    assert.same({3, 0}, attend(q, k, luma.zeros(5, 0)).shape)
    assert.same({0, 2}, attend(luma.zeros(0, 4), k, v).shape)
    assert.same({0, 3, 2}, attend(luma.zeros(0, 3, 4), k, v).shape)
    near(flat(v:mean(1):expand(3, 2)), attend(luma.zeros(3, 0), luma.zeros(5, 0), v), "float32",
      "no elements in heads")
  end)

  it("hands NaN and infinities on", function()
    local q, k, v = draw {3, 4}, draw {5, 4}, draw {5, 2}
    q[2][1] = 0 / 0
    local y = attend(q, k, v)
    assert.same({{false, false}, {true, true}, {false, false}}, y:isnan():totable())
    v[4][2] = 0 / 0
    assert.same({{false, true}, {true, true}, {false, true}}, attend(q, k, v):isnan():totable())
  end)

  it("composes heads that are too wide for a kernel", function()
    local q, k, v = draw({2, 2, 9, 200}, "float32", 1), draw({2, 1, 11, 200}, "float32", 1), draw({2, 1, 11,
      300})
    check_attention(q, k, v, {gqa = true, causal = true}, "wide heads")
    local mask = draw({9, 11}):gt(-1)
    check_attention(q, k, v, {gqa = true, mask = mask}, "wide heads, bool mask")
    check_attention(q:narrow(3, 2, 1), k, v, {gqa = true, mask = mask:narrow(1, 2, 1)},
      "wide heads, one query")
    check_attention(q:to "float16", k:to "float16", v:to "float16", {gqa = true, mask = draw {2, 1, 9, 11}},
      "wide heads, float mask")
  end)

  it("has no room for scores whose number is none", function()
    if device.is_cpu then return end -- its kernel keeps none
    local q, k = luma.zeros(2 ^ 12 | 0, 1, 129), luma.zeros(1, 1, 129):expand(1, 2 ^ 52 | 0, 129)
    check.raises("too large", attend, q, k, k)
  end)

  it("takes operands of several dtypes", function()
    local q, k, v = draw({3, 4}, "float16"), draw({5, 4}, "bfloat16"), draw({5, 2}, "float16")
    local y = attend(q, k, v)
    assert.equal("float32", y.dtype)
    near(flat(attend(q:to "float32", k:to "float32", v:to "float32")), y, "float32", "mixed")
  end)

  it("gives the same bits from one thread and two", function()
    local q, k, v = luma.randn(2, 3, 150, 16), luma.randn(2, 3, 200, 16), luma.randn(2, 3, 200, 16)
    local threads = luma.config().threads
    luma.set_num_threads(1)
    local y = attend(q, k, v)
    luma.set_num_threads(2)
    assert.is_true(y == attend(q, k, v))
    luma.set_num_threads(threads)
  end)

  it("writes into out, which may be an input", function()
    local q, k, v = draw {2, 6, 4}, draw {2, 6, 4}, draw {2, 6, 4}
    local y, out = attend(q, k, v), luma.zeros(4, 6, 2):permute(3, 2, 1)
    assert.is_true(rawequal(out, attend(q, k, v, nil, {out = out})))
    assert.is_true(y == out)
    attend(q, k, v, nil, {out = q})
    assert.is_true(y == q)
  end)

  it("names what is wrong", function()
    local q, k, v = draw {2, 3, 4}, draw {2, 5, 4}, draw {2, 5, 6}
    local raises = check.raises
    local to = "to 'scaled_dot_product_attention' ("
    raises("#2 " .. to .. "key is [2 x 5 x 3], query [2 x 3 x 4]: their last sizes differ)", attend,
      q, draw {2, 5, 3}, v)
    raises("#3 " .. to .. "value is [2 x 4 x 6], key [2 x 5 x 4]: they are not as many)", attend, q, k,
      draw {2, 4, 6})
    raises("the batch dims do not broadcast (heads: enable_gqa)", attend, q, draw {3, 5, 4}, v)
    raises("bad argument #1 to 'scaled_dot_product_attention' ([4]: at least 2 dims expected)", attend,
      draw {4}, k, v)
    raises("(int64: a float dtype expected)", attend, q, k:to "int64", v)
    raises("#4 to 'scaled_dot_product_attention' (int64: bool or a float dtype expected)", attend, q, k, v,
      luma.ones(3, 5, {dtype = "int64"}))
    raises("([4 x 5] does not broadcast to the scores, [2 x 3 x 5])", attend, q, k, v, draw {4, 5})
    raises("does not broadcast to the scores", attend, q, k, v, draw {7, 2, 3, 5})
    raises("its heads do not divide those of query", attend, draw {3, 3, 4}, k, v, nil, {enable_gqa = true})
    raises("their heads differ in number", attend, draw {4, 3, 4}, k, draw {1, 5, 6}, nil,
      {enable_gqa = true})
    raises("with enable_gqa 3 to 7 dims expected", attend, draw {3, 4}, k, v, nil, {enable_gqa = true})
    raises("out is [2 x 3 x 4], the result is [2 x 3 x 6]", attend, q, k, v, nil, {out = luma.zeros(2, 3, 4)})
    if not device.is_cpu then
      raises("a tensor on cpu, where query is on " .. device.name, attend, q, k:cpu(), v)
    end
  end)
end)

describe("rope", function()
  setup(function() math.randomseed(seed + 1) end)

  -- tables for n positions of heads of d
  local function tables(n, d, dtype)
    local at = luma.range(0, n - 1):to "float64":unsqueeze(2)
    local angle = at * (10000.0 ^ (luma.range(0, d // 2 - 1):to "float64" * (-2 / d)))
    return angle:cos():to(dtype or "float32"), angle:sin():to(dtype or "float32")
  end

  local function check_rope(x, cos, sin, layout, what)
    local y = x:rope(cos, sin, {layout = layout})
    local n, t = x.shape[x.ndim], layout == "thd" and x.shape[x.ndim - 2] or x.shape[x.ndim - 1]
    local h = layout == "thd" and x.shape[x.ndim - 1] or 1
    local fc, fs = flat(cos), flat(sin)
    local expected = lines.rope(flat(x), n, layout == "interleaved", function(row, i)
      local at = row // h % t * (n // 2) + i
      return fc[at], fs[at]
    end)
    assert.equal(x.dtype, y.dtype)
    assert.same(x.shape, y.shape)
    near(expected, y, x.dtype, what)
  end

  for _, dtype in ipairs(check.floats) do
    it("turns pairs in every layout: " .. dtype, function()
      for _, layout in ipairs {"half", "interleaved", "thd"} do
        for _, shape in ipairs {{2, 3, 5, 8}, {1, 7, 2, 6}, {1, 2, 1, 34}} do
          local x, t = draw(shape, dtype), layout == "thd" and shape[2] or shape[3]
          local cos, sin = tables(t, shape[4], dtype == "float64" and dtype or nil)
          for name, view in pairs(views) do check_rope(view(x), view(cos), sin, layout,
            layout .. " " .. name) end
        end
      end
    end)
  end

  it("takes 2 to 8 dims, long rows, tables of other dtypes and of batches", function()
    local cos, sin = tables(3, 4)
    check_rope(draw {3, 4}, cos, sin, "half", "2 dims")
    check_rope(draw {2, 1, 2, 1, 1, 2, 3, 4}, cos:to "float16", sin:to "float16", "interleaved", "8 dims")
    check_rope(draw {2, 1, 2, 1, 1, 3, 2, 4}, cos, sin, "thd", "8 dims, thd")
    local wide_cos, wide_sin = tables(2, 4100)
    check_rope(draw {2, 4100}, wide_cos, wide_sin, "half", "long rows")
    check_rope(draw({2, 4100}, "float16"), wide_cos, wide_sin, "half", "long rows of float16")
    check_rope(draw({2, 4100}, "float16"), wide_cos, wide_sin, "interleaved",
      "long rows of float16, interleaved")
    local x = draw {2, 3, 3, 4}
    local many = luma.stack({cos, cos * 2}, 1):unsqueeze(2)
    local y = x:rope(many, luma.stack({sin, sin * 2}, 1):unsqueeze(2))
    near(flat(x[2]:rope(cos, sin) * 2), y[2], "float32", "batches")
  end)

  it("takes tensors without elements and writes into out", function()
    assert.same({0, 3, 4}, luma.zeros(0, 3, 4):rope(tables(3, 4)).shape)
    assert.same({2, 0}, luma.zeros(2, 0):rope(luma.zeros(2, 0), luma.zeros(2, 0)).shape)
    local x, cos, sin = draw {5, 4}, tables(5, 4)
    local y = x:rope(cos, sin)
    luma.rope(x, cos, sin, {out = x})
    assert.is_true(x == y)
  end)

  it("names what is wrong", function()
    local x, cos, sin = draw {2, 3, 4}, tables(3, 4)
    local raises = check.raises
    raises("bad argument #1 to 'rope' ([2 x 3 x 5]: an even last size expected)", luma.rope, draw {2, 3, 5},
      cos, sin)
    raises("bad argument #2 to 'rope' ([4 x 2], where [3 x 2], or what broadcasts to it, is expected)",
      luma.rope, x,
      (tables(4, 4)), (tables(4, 4)))
    raises("bad argument #3 to 'rope' ([4 x 2], where the cosines are [3 x 2])", luma.rope, x, cos,
      (tables(4, 4)))
    raises("#1 to 'rope' (int64: a float dtype expected)", luma.rope, x:to "int64", cos, sin)
    raises("#2 to 'rope' (int64: a float dtype expected)", luma.rope, x, cos:to "int64", sin)
    raises("at least 3 dims expected", luma.rope, draw {3, 4}, cos, sin, {layout = "thd"})
    raises("half", luma.rope, x, cos, sin, {layout = "quarter"})
  end)
end)

describe("dropout", function()
  it("scales what it keeps, repeatably", function()
    for _, dtype in ipairs(check.floats) do
      luma.manual_seed(5)
      local x = luma.ones(100, 100, {dtype = dtype})
      local y = x:dropout(0.5)
      local kept = y:ne(0)
      check.near(5000, kept:sum():item(), 0.06)
      assert.is_true(y == luma.where(kept, luma.full({}, 2, {dtype = dtype}), 0 * x))
      luma.manual_seed(5)
      assert.is_true(y == x:t():dropout(0.5))
    end
    luma.manual_seed(6)
    local y = luma.ones(40000):dropout(0.9)
    check.near(4000, y:ne(0):sum():item(), 0.1)
    check.near(10, y:max():item(), 1e-5)
  end)

  it("leaves everything or nothing at the ends", function()
    local x = luma.tensor {1, 0 / 0, inf, -2}
    assert.same({1, inf, -2}, luma.tensor {1, inf, -2}:dropout(0):totable())
    assert.same({0, 0, 0, 0}, x:dropout(1):totable())
    local y = luma.rand(5)
    assert.is_true(y == y:dropout(0.7, {training = false}))
    assert.is_false(rawequal(y, y:dropout(0)))
    assert.same({0, 3}, luma.zeros(0, 3):dropout().shape)
    assert.same({}, luma.tensor(2.0):dropout().shape)
  end)

  it("writes in place, into out and into views", function()
    luma.manual_seed(7)
    local x = luma.ones(20, 30)
    local y = x:dropout(0.25)
    luma.manual_seed(7)
    assert.is_true(rawequal(x, x:dropout_(0.25)))
    assert.is_true(x == y)
    luma.manual_seed(7)
    local out = luma.zeros(30, 20):t()
    luma.ones(20, 30):dropout(0.25, {out = out})
    assert.is_true(out == y)
  end)

  it("names what is wrong and takes draws back", function()
    local x, raises = luma.ones(4), check.raises
    raises("bad argument #2 to 'dropout' (p is 1.5: 0 to 1 expected)", luma.dropout, x, 1.5)
    raises("0 to 1 expected", luma.dropout, x, -0.1)
    raises("0 to 1 expected", luma.dropout, x, 0 / 0)
    raises("bad argument #1 to 'dropout' (int64: a float dtype expected)", luma.dropout, x:to "int64")
    luma.manual_seed(3)
    raises("out is [2]", luma.dropout, x, 0.5, {out = luma.zeros(2)})
    local y = luma.rand(3)
    luma.manual_seed(3)
    assert.is_true(y == luma.rand(3))
  end)
end)
