-- view_spec.lua -- every view against a model without strides: values, what a write through it
-- changes, ranges, lists, errors.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local model = require "model"

local function counted(shape) return luma.range(1, model.numel(shape)):reshape(shape) end

-- Tensors of the shape that hold 1, 2, 3, ... in every layout.
local function layouts(shape)
  local x, n = counted(shape), #shape
  local list = {contiguous = x,
    offset = luma.cat{luma.range(-2, 0), x:reshape(-1)}:slice(1, 4):view(shape)}
  if n == 0 then return list end
  local wide, order, back = {}, {}, {}
  for d = 1, n do
    wide[d], order[d], back[d] = 2 * shape[d] + 1, n + 1 - d, n + 1 - d
  end
  list.transposed = x:permute(order):contiguous():permute(back)
  list.reversed = x:flip{}:contiguous():flip{}
  local stepped = luma.zeros(wide, {dtype = "int64"})
  for d = 1, n do
    if shape[d] == 0 then stepped = stepped:narrow(d, 2, 0) else stepped = stepped:slice(d, 2,
      2 * shape[d], 2) end
  end
  list.stepped = stepped:copy_(x)
  return list
end

-- shape, what to do with a tensor, what to do with the model
local views = {
  {"view", {2, 6}, function(x) return x:view(3, -1) end,
    function(m) return model.reshape(m, {3, 4}) end,
   contiguous_only = true},
  {"view {}", {1, 1}, function(x) return x:view{} end, function(m) return model.reshape(m, {}) end},
  {"view of ones", {3, 2}, function(x) return x:view(1, 3, 1, 2, 1) end,
   function(m) return model.reshape(m, {1, 3, 1, 2, 1}) end},
  {"squeeze", {1, 3, 1}, function(x) return x:squeeze() end,
    function(m) return model.reshape(m, {3}) end},
  {"squeeze 1", {1, 3, 1}, function(x) return x:squeeze(1) end,
    function(m) return model.reshape(m, {3, 1}) end},
  {"squeeze 2", {1, 3, 1}, function(x) return x:squeeze{2, -1} end,
    function(m) return model.reshape(m, {1, 3}) end},
  {"unsqueeze", {2, 3}, function(x) return x:unsqueeze(2) end,
    function(m) return model.unsqueeze(m, 2) end},
  {"unsqueeze -1", {2, 3}, function(x) return x:unsqueeze(-1) end,
    function(m) return model.unsqueeze(m, 3) end},
  {"unsqueeze 0-d", {}, function(x) return x:unsqueeze(1) end,
    function(m) return model.unsqueeze(m, 1) end},
  {"transpose", {2, 3, 4}, function(x) return x:transpose(1, -1) end,
    function(m) return model.transpose(m, 1, 3) end},
  {"t", {2, 3}, function(x) return x:t() end, function(m) return model.transpose(m, 1, 2) end},
  {"t of a vector", {3}, function(x) return x:t() end, function(m) return m end},
  {"permute", {2, 3, 4}, function(x) return x:permute(3, 1, 2) end,
    function(m) return model.permute(m, {3, 1, 2}) end},
  {"movedim", {2, 3, 4}, function(x) return x:movedim(1, 3) end,
    function(m) return model.permute(m, {2, 3, 1}) end},
  {"movedim lists", {2, 3, 4, 5}, function(x) return x:movedim({1, 4}, {2, 1}) end,
   function(m) return model.permute(m, {4, 1, 2, 3}) end},
  {"select", {2, 3}, function(x) return x:select(2, -1) end,
    function(m) return model.select(m, 2, 3) end},
  {"narrow", {4, 3}, function(x) return x:narrow(1, 2, 2) end,
    function(m) return model.slice(m, 1, 2, 2, 1) end},
  {"narrow to none", {4, 3}, function(x) return x:narrow(1, 5, 0) end,
    function(m) return model.slice(m, 1, 5, 0, 1) end},
  {"slice", {5, 2}, function(x) return x:slice(1, 2, 4) end,
    function(m) return model.slice(m, 1, 2, 3, 1) end},
  {"slice -2", {2, 6}, function(x) return x:slice(2, -1, 1, -2) end,
    function(m) return model.slice(m, 2, 6, 3, -2) end},
  {"slice whole", {3}, function(x) return x:slice(1) end, function(m) return m end},
  {"expand", {3, 1}, function(x) return x:expand(2, 3, 4) end,
    function(m) return model.expand(m, {2, 3, 4}) end},
  {"expand -1", {3, 1}, function(x) return x:expand(-1, 2) end,
    function(m) return model.expand(m, {3, 2}) end},
  {"expand to none", {3, 1}, function(x) return x:expand(3, 0) end,
    function(m) return model.expand(m, {3, 0}) end},
  {"broadcast_to", {1, 3}, function(x) return x:broadcast_to(4, 3) end,
    function(m) return model.expand(m, {4, 3}) end},
  {"diagonal", {3, 4}, function(x) return x:diagonal() end,
    function(m) return model.diagonal(m, 0, 1, 2) end},
  {"diagonal off", {2, 3, 4}, function(x) return x:diagonal{offset = -1, dim1 = 3, dim2 = 1} end,
   function(m) return model.diagonal(m, -1, 3, 1) end},
  {"diagonal away", {3, 4}, function(x) return x:diagonal{offset = 4} end,
    function(m) return model.diagonal(m, 4, 1, 2) end},
  {"unfold", {2, 7}, function(x) return x:unfold(2, 3, 2) end,
    function(m) return model.unfold(m, 2, 3, 2) end},
  {"flip", {2, 3}, function(x) return x:flip{1, 2} end,
    function(m) return model.flip(model.flip(m, 1), 2) end},
  {"flip all", {2, 3}, function(x) return x:flip{} end,
    function(m) return model.flip(model.flip(m, 1), 2) end},
  {"unflatten", {2, 6}, function(x) return x:unflatten(2, {2, -1}) end,
    function(m) return model.reshape(m, {2, 2, 3}) end},
  {"detach", {2, 2}, function(x) return x:detach() end, function(m) return m end},
  {"reshape", {2, 6}, function(x) return x:reshape(4, -1) end,
    function(m) return model.reshape(m, {4, 3}) end,
   copies = true},
  {"flatten", {2, 3, 2}, function(x) return x:flatten() end,
    function(m) return model.reshape(m, {12}) end, copies = true},
  {"flatten 2 3", {2, 3, 2}, function(x) return x:flatten(2, 3) end,
    function(m) return model.reshape(m, {2, 6}) end,
   copies = true},
  {"flatten 0-d", {}, function(x) return x:flatten() end,
    function(m) return model.reshape(m, {1}) end},
  {"of none", {0, 3}, function(x) return x:transpose(1, 2):flip(1):slice(1, 1, 3,
    2):unsqueeze(1) end,
   function(m) return model.reshape(m, {1, 2, 0}) end},
  {"view of none", {0, 3}, function(x) return x:view(3, 0, 5) end,
    function() return model.make({3, 0, 5}) end},
}

describe("views", function()
  for _, case in ipairs(views) do
    local name, shape, see, expect = table.unpack(case)
    it(name, function()
      local m = expect(model.count(shape))
      for layout, x in pairs(layouts(shape)) do
        if not (case.contiguous_only and not x:is_contiguous()) then
          local y = see(x)
          assert.same(m, model.of(y), layout)
          assert.equal(#m.shape, y.ndim)
          assert.same(m, model.of(y:contiguous()), layout)
        end
      end
    end)

    it(name .. " shares its elements", function()
      if case.copies then return end
      local x, seen = counted(shape), {}
      for _, position in ipairs(expect(model.count(shape))) do seen[position] = true end
      local y = see(x)
      if pcall(y.fill_, y, -1) then
        for i, v in ipairs(model.of(x)) do assert.equal(seen[i] and -1 or i, v) end
      else -- the view overlaps itself: look the other way
        x:fill_(-1)
        for _, v in ipairs(model.of(y)) do assert.equal(-1, v) end
      end
    end)
  end

  it("compose at random", function()
    for seed = 1, 400 do
      local random = model.random(seed)
      local shape = {}
      for d = 1, random(1, 4) do shape[d] = random(1, 5) end
      local x, m, trail = model.random_view(counted(shape), model.count(shape), random,
        random(1, 5), true)
      assert.same(m, model.of(x), trail)
      assert.same(m, model.of(x:clone()), trail)
      assert.same({shape = {#m}, table.unpack(m)}, model.of(x:reshape(-1)), trail)
      if x:is_contiguous() and #m > 0 then
        assert.same({shape = {#m}, table.unpack(m)}, model.of(x:view(-1)), trail)
      end
    end
  end)

  it("write through a random view just what it shows", function()
    for seed = 1, 200 do
      local random = model.random(seed)
      local shape = {}
      for d = 1, random(1, 4) do shape[d] = random(1, 5) end
      local base, start = counted(shape), model.count(shape)
      local x, m, trail = model.random_view(base, start, random, random(1, 5), false)
      x:fill_(0)
      for _, position in ipairs(m) do start[position] = 0 end
      assert.same(start, model.of(base), trail)
    end
  end)

  it("view refuses what strides do not allow, reshape copies", function()
    local x = counted{2, 3}
    assert.has_error(function() x:t():view(6) end,
      "bad argument #1 to 'view' ([3 x 2] to [6]: the strides do not allow it; "
      .. "reshape copies where it must)")
    assert.same({shape = {6}, 1, 4, 2, 5, 3, 6}, model.of(x:t():reshape(6)))
    assert.same({shape = {2, 2, 3}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6},
      model.of(x:expand(2, 2, 3):view(2, 2, 3)))
    assert.same({4, 3}, x:expand(2, 2, 3):reshape(4, 3).shape)
  end)

  it("as_strided stays within its storage", function()
    local x = counted{12}
    assert.same({shape = {2, 3}, 2, 4, 6, 5, 7, 9}, model.of(x:as_strided({2, 3}, {3, 2}, 1)))
    assert.same({shape = {3}, 12, 11, 10}, model.of(x:as_strided({3}, {-1}, 11)))
    assert.same({shape = {2, 0}}, model.of(x:as_strided({2, 0}, {1 << 62, 1 << 62}, 12)))
    assert.same({shape = {}, 3}, model.of(x:as_strided({}, {}, 2)))
    local top = math.maxinteger
    for _, bad in ipairs {{{13}, {1}, 0}, {{2}, {12}, 0}, {{3}, {-1}, 1}, {{1}, {1}, 12},
      {{1}, {1}, -1}, {{0}, {1}, 13},
                          {{2}, {top}, 0}, {{3}, {top}, 0}, {{2, 2}, {top, 1}, 0},
                            {{2}, {math.mininteger}, 5},
                          {{1}, {1}, top}, {{2}, {1}, top}, {{2}, {-1}, math.mininteger},
                            {{-1}, {1}, 0},
                          {{1 << 40, 1 << 40}, {0, 0}, 0}, {{2}, {1, 1}, 0}} do
      assert.has_error(function() x:as_strided(table.unpack(bad)) end)
    end
    assert.same({shape = {12}, table.unpack(model.of(x))}, model.of(x))
  end)

  it("ranges: ends included, never clamped, {a, a-1} empty, no other against its step", function()
    local x = counted{5}
    local function list(...) return {table.unpack(model.of(x:slice(1, ...)))} end
    assert.same({1, 2, 3, 4, 5}, list())
    assert.same({2, 3}, list(2, 3))
    assert.same({4, 5}, list(-2, -1))
    assert.same({1, 3, 5}, list(nil, nil, 2))
    assert.same({5, 4, 3, 2, 1}, list(nil, nil, -1))
    assert.same({5, 3, 1}, list(-1, 1, -2))
    assert.same({4}, list(4, 5, math.maxinteger))
    assert.same({4}, list(4, 1, math.mininteger))
    assert.same({}, list(1, 0))
    assert.same({}, list(6, 5))
    assert.same({}, list(3, 2, 2))
    for _, bad in ipairs {{0}, {7}, {6, 6}, {1, 6}, {-6, 5}, {3, 1}, {1, 3, -1}, {1, 5, 0}, {2, 0},
      {7, 6}, {1, 0, -1}} do
      assert.has_error(function() list(table.unpack(bad)) end)
    end
    assert.has_error(function() x:slice(1, 3, 1) end,
      "bad argument #3 to 'slice' (the range 3 to 1 runs against its step 1)")
    assert.has_error(function() x:slice(1, 2, 9) end,
      "bad argument #3 to 'slice' (position 9 is out of range: dim 1 of [5] has size 5)")
    local none = luma.zeros(0)
    assert.same({0}, none:slice(1).shape)
    assert.same({0}, none:slice(1, nil, nil, -1).shape)
    assert.same({0}, none:slice(1, 1, 0).shape)
    assert.has_error(function() none:slice(1, 1, 1) end)
  end)

  it("errors name shapes, positions and dims as the caller counts", function()
    local x = counted{2, 3}
    local function says(text, f, ...)
      local good, message = pcall(f, ...)
      assert.is_false(good)
      assert.is_truthy(message:find(text, 1, true), message)
    end
    says("dim 5 is out of range: [2 x 3] has 2 dims", x.select, x, 5, 1)
    says("dim -3 is out of range", x.select, x, -3, 1)
    says("position 4 is out of range: dim 2 of [2 x 3] has size 3", x.select, x, 2, 4)
    says("position -3 is out of range: dim 1 of [2 x 3] has size 2", x.select, x, 1, -3)
    says("[2 x 3] to [4 x 2]: the number of elements differs", x.reshape, x, 4, 2)
    says("two sizes of [-1 x -1] are -1", x.reshape, x, -1, -1)
    says("the size -1 could be any", luma.zeros(0).reshape, luma.zeros(0), 0, -1)
    says("size -2 in [-2 x 3] is negative", x.reshape, x, -2, 3)
    says("[2 x 3] does not expand to [2 x 4]: sizes 3 and 4 differ", x.expand, x, 2, 4)
    says("fewer dims", x.expand, x, 3)
    says("is too big", luma.zeros(1, 1).expand, luma.zeros(1, 1), 1 << 40, 1 << 40)
    says("dim 2 is given twice", x.permute, x, 2, 2)
    says("3 dims to order [2 x 3], which has 2", x.permute, x, 1, 2, 3)
    says("length 3 from position 2 is out of range: dim 2 of [2 x 3] has size 3", x.narrow, x, 2,
      2, 3)
    says("does not split dim 2 of [2 x 3]: its size is 3", x.unflatten, x, 2, {2, 2})
    says("windows of 4: dim 2 of [2 x 3] has size 3", x.unfold, x, 2, 4, 1)
    says("step 0 is not positive", x.unfold, x, 2, 1, 0)
    says("a diagonal needs two dims", x.diagonal, x, {dim1 = 1, dim2 = 1})
    says("out of range", luma.tensor(1).select, luma.tensor(1), 1, 1)
    says("a matrix, a vector", luma.zeros(1, 2, 3).t, luma.zeros(1, 2, 3))
  end)

  it("at most 8 dims", function()
    local x = luma.zeros(1, 1, 1, 1, 1, 1, 1, 1)
    local text = "9 dims: a tensor has at most 8"
    for _, f in ipairs {function() return x:unsqueeze(1) end,
      function() return x:reshape(1, 1, 1, 1, 1, 1, 1, 1, 1) end,
                        function() return x:expand(1, 1, 1, 1, 1, 1, 1, 1, 1) end,
                        function() return x:unfold(1, 1, 1) end,
                          function() return x:unflatten(1, {1, 1}) end} do
      local good, message = pcall(f)
      assert.is_false(good)
      assert.is_truthy(message:find(text, 1, true), message)
    end
    assert.same({}, x:squeeze().shape)
  end)
end)

describe("lists of views", function()
  local x = counted{7, 2}
  local function sizes(list, dim)
    local out = {}
    for i, y in ipairs(list) do out[i] = y.shape[dim] end
    return out
  end

  it("split by a size and by sizes", function()
    assert.same({3, 3, 1}, sizes(x:split(3), 1))
    assert.same({2, 0, 5}, sizes(x:split({2, 0, 5}), 1))
    assert.same({1, 1}, sizes(x:split(1, 2), 2))
    assert.same({7}, sizes(x:split(9), 1))
    assert.same({0}, sizes(luma.zeros(0):split(2), 1))
    assert.same({shape = {1, 2}, 13, 14}, model.of(x:split(3)[3]))
    assert.has_error(function() x:split({3, 3}) end,
      "bad argument #1 to 'split' (the sizes sum to 6, but dim 1 of [7 x 2] has size 7)")
    assert.has_error(function() x:split(0) end)
    assert.has_error(function() x:split({8, -1}) end)
    assert.has_error(function() luma.tensor(1):split(1) end)
  end)

  it("chunk and unbind", function()
    assert.same({3, 3, 1}, sizes(x:chunk(3), 1))
    assert.same({2, 2, 2, 1}, sizes(x:chunk(5), 1))
    assert.same({0, 0}, sizes(luma.zeros(0):chunk(2), 1))
    assert.has_error(function() x:chunk(0) end)
    local rows = x:unbind()
    assert.equal(7, #rows)
    assert.same({shape = {2}, 5, 6}, model.of(rows[3]))
    assert.same({shape = {7}, 2, 4, 6, 8, 10, 12, 14}, model.of(x:unbind(2)[2]))
    assert.same({}, luma.zeros(0, 3):unbind())
    rows[1]:fill_(0)
    assert.equal(0, x(1, 2))
  end)
end)
