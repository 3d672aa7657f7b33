-- ops_spec.lua -- every elementwise row of the registry x every dtype x every layout, against the
-- formula in the row, evaluated by spec/support/oracle.lua.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local layouts = require "layouts"

local lengths = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025}

-- What the spec's own reference may be off by, in ulp of float64, where it is not libm itself.
local slack = {gelu = 12, erf = 6, tanh = 4, sigmoid = 3, silu = 3, rsqrt = 1, exp = 1, log = 1,
               sin = 1, cos = 1, pow = 1, exp2 = 1, expm1 = 3, log1p = 3, log2 = 1, log10 = 1, sinh = 4,
               cosh = 4, tan = 1, asin = 1, acos = 1, atan = 1, atan2 = 1, asinh = 6, acosh = 8,
               atanh = 5, cbrt = 3, lgamma = 16, digamma = 16, erfc = 12, erfinv = 16, logit = 5,
               sinc = 3, gelu_tanh = 24, selu = 4, elu = 4, celu = 5, mish = 4, softplus = 4,
               logsigmoid = 4, hypot = 2, logaddexp = 4, hardswish = 1, hardsigmoid = 1}

-- Division by zero, negative exponents and shift counts are errors of integers, tested elsewhere.
local nonzero = {floor_div = true, trunc_div = true, remainder = true, fmod = true}
local small = {lshift = true, rshift = true, pow = true}


-- The dtype a row computes in, nil where it refuses.
local function compute(op, dtype)
  local kind = oracle.dtypes[dtype].kind
  if op.takes == "floats" then return kind == "float" and dtype or "float32" end
  if op.takes == "numbers" then return kind == "bool" and "int64" or dtype end
  if op.takes == "ints" then return kind == "int" and dtype or nil end
  if op.takes == "bits" then return kind ~= "float" and dtype or nil end
  return dtype
end

local params = {affine = {2, 3}, clamp = {1, 4}, elu = {1.5}, celu = {2}, leaky_relu = {0.25},
                hardtanh = {-1, 2}, softplus = {2, 9}}

-- Below 0 these are the difference of two terms, and have zeros.
local oscillates = {lgamma = true, digamma = true}

-- Which of two zeros is the greater is left open.
local signless = {maximum = true, minimum = true}

-- Quotients are rounded before they are floored or truncated.
local function rounded_quotient(op, c)
  local finish = op.name == "floor_div" and oracle.env.floor or oracle.env.trunc
  local round = (c == "float64") and "float64" or "float32"
  return function(x, y) return finish(oracle.cast(round, x / y)) end
end

local function reference(op, c)
  local kind = oracle.dtypes[c].kind
  if kind == "float" and (op.name == "floor_div" or op.name == "trunc_div") then
    return rounded_quotient(op, c)
  end
  local f = oracle.compile(op.formula)
  if op.name == "popcount" and kind == "int" then -- of as many bits as c has
    return function(x) return f(x & (-1 >> (64 - oracle.dtypes[c].bits))) end
  end
  return f
end

local function show(v) return math.type(v) == "float" and ("%.17g"):format(v) or tostring(v) end

-- An element of the result against the formula at x, y, z. Returns a message when it is wrong.
local function judge(op, f, c, got, x, y, z)
  local p = params[op.name] or {}
  local want = f(x, y, z, p[1], p[2])
  if want == true then want = 1 elseif want == false then want = 0 end
  local kind = oracle.dtypes[c].kind
  local ok
  if op.row == "compare" or op.row == "test" then
    ok = got == want
  elseif kind == "float" then
    if op.name == "copysign" and y ~= y then want = got == -want and got or want end
    if signless[op.name] and want == 0 then want = got == 0 and got or want end
    ok = oracle.close(c, got, want * 1.0, op.ulp, c == "float64" and slack[op.name] or 0)
    ok = ok or oscillates[op.name] and x < 0 and math.abs(got - want) < 1e-15
  else
    want = kind == "bool" and want & 1 or oracle.cast(c, want)
    ok = got == want and math.type(got) == "integer"
  end
  if ok then return nil end
  return ("%s(%s, %s, %s) gives %s, expected %s"):format(op.name, show(x), show(y), show(z),
                                                         show(got), show(want))
end

local function inputs(op, dtype, c, n, seed)
  local d = oracle.dtypes[dtype]
  local lo, hi = op.lo, op.hi
  local function draw(s, specials) return oracle.values(dtype, n, lo, hi, s, specials) end
  if op.row == "ternary" then
    return {oracle.values("bool", n, 0, 1, seed), draw(seed + 1, true), draw(seed + 2, false)}
  end
  local x = draw(seed, op.row ~= "unary_p" or d.kind ~= "float")
  if op.inputs == 1 then return {x} end
  local y = draw(seed + 1, false)
  local integers = oracle.dtypes[c].kind ~= "float"
  if integers and small[op.name] then
    for i, v in ipairs(y) do y[i] = math.min(v < 0 and 0 or v, d.max) end
    for i, v in ipairs {0, d.bits - 1, d.bits, d.max} do
      if op.name ~= "pow" and i <= n and v <= d.max then y[i] = v end
    end
  elseif integers and nonzero[op.name] then
    for i, v in ipairs(y) do if v == 0 then y[i] = 1 end end
    if d.signed then for i = 1, math.min(n, 4) do y[i] = ({-1, -2, 3, -1})[i] end end
  else -- the extremes of one against ordinary values of the other, and the other way round
    local z = draw(seed + 2, true)
    for i = 1, n do if i % 2 == 0 then x[i], y[i] = y[i], z[i] end end
  end
  return {x, y}
end

-- Values that went through a layout (expanded changes them) as the dtype the formula sees.
local function seen(values, c)
  local list = {}
  for i, v in ipairs(values) do list[i] = oracle.cast(c, v) end
  return list
end

local function run(op, tensors)
  local p = params[op.name]
  if p then return luma[op.name](tensors[1], p[1], p[2]) end
  return luma[op.name](table.unpack(tensors))
end

local function check(op, f, dtype, c, n, which, seed)
  local lists, tensors, masks = inputs(op, dtype, c, n, seed), {}, op.row == "ternary"
  local shape
  for i, values in ipairs(lists) do
    -- each operand in another layout, the first in `which`; a transposed one shapes the others
    local k = (which + (i - 1) * 2 - 1) % #layouts.list + 1
    local x = layouts.list[k][2](values, masks and i == 1 and "bool" or dtype)
    if not x then return nil end
    if x.ndim == 2 then shape = x.shape end
    tensors[i] = x
  end
  if shape then
    for i, x in ipairs(tensors) do
      if x.ndim == 1 then
        tensors[i] = x:is_contiguous() and x:reshape(shape) or x:reshape(shape[1], shape[2])
      end
    end
  end
  local result = run(op, tensors)
  local want = (op.row == "compare" or op.row == "test") and "bool" or c
  if result.dtype ~= want then return op.name .. " gives " .. result.dtype .. ", not " .. want end
  local got = layouts.flat(result)
  if #got ~= n then return ("%d elements, not %d"):format(#got, n) end
  local cast = {}
  for i, values in ipairs(lists) do
    cast[i] = seen(values, (masks and i == 1) and "bool" or c)
    if masks and i == 1 then for k, v in ipairs(cast[1]) do cast[1][k] = v ~= 0 end end
  end
  for i = 1, n do
    local message = judge(op, f, c, got[i], cast[1][i], cast[2] and cast[2][i], cast[3] and cast[3][i])
    if message then
      return ("%s at %d of %d, %s"):format(message, i, n, layouts.list[which][1])
    end
  end
end

for _, op in ipairs(luma.ops) do
  if op.inputs > 0 then
    describe(op.name, function()
      for _, dtype in ipairs(oracle.names) do
        local c = compute(op, dtype)
        if c then
          it(dtype, function()
            local f = reference(op, c)
            for i, n in ipairs(lengths) do
              for which = 1, #layouts.list do
                -- long lists in one layout each, short ones in all
                if n < 64 or (i + which) % 2 == 0 then
                  local message = check(op, f, dtype, c, n, which, n * 10 + which)
                  if message then error(message, 0) end
                end
              end
            end
          end)
        else
          it(dtype .. " is refused", function()
            local x = layouts.make({1, 0, 1}, dtype)
            local arguments = op.inputs == 1 and {x} or {x, x}
            local ok, message = pcall(luma[op.name], table.unpack(arguments))
            assert.is_false(ok)
            assert.matches(dtype, message, 1, true)
          end)
        end
      end

      it("takes 0-d and broadcasts", function()
        if op.inputs ~= 2 or op.takes == "bits" then return end
        local dtype = op.takes == "ints" and "int32" or "float32"
        local a = luma.full({2, 1}, 3, {dtype = dtype})
        local b = luma.full({3}, 2, {dtype = dtype})
        local c = luma.full({}, 2, {dtype = dtype})
        assert.same({2, 3}, luma[op.name](a, b).shape)
        assert.same({}, luma[op.name](c, c).shape)
        assert.same(luma[op.name](a, b):select(2, 1):reshape(-1):totable(),
                    luma[op.name](a, c):reshape(-1):totable())
        assert.same(luma[op.name](a, b):totable(), luma[op.name](a, 2):expand(2, 3):totable())
      end)

      it("has a twin and out= that give the same", function()
        local dtype = (op.takes == "bits" or op.takes == "ints") and "int32" or "float32"
        local lists = inputs(op, dtype, dtype, 100, 5)
        local tensors = {}
        for i, values in ipairs(lists) do
          tensors[i] = layouts.make(values, op.row == "ternary" and i == 1 and "bool" or dtype)
        end
        local p = params[op.name] or {}
        local arguments = {tensors[1], tensors[2] or p[1], tensors[3] or p[2]}
        local want = luma[op.name](table.unpack(arguments))
        local bits = want:tobytes()
        local out = luma.zeros(200, {dtype = want.dtype}):slice(1, 1, 200, 2)
        arguments[#arguments + 1] = {out = out}
        assert.equal(out, luma[op.name](table.unpack(arguments)))
        assert.equal(bits, out:tobytes())
        arguments[#arguments] = nil
        local twin = luma[op.name .. "_"]
        if op.row == "compare" or op.row == "test" or op.row == "ternary" then
          assert.is_nil(rawget(luma, op.name .. "_"))
        else
          local self = tensors[1]:clone()
          arguments[1] = self
          assert.is_true(rawequal(self, twin(table.unpack(arguments))))
          assert.equal(bits, self:tobytes())
        end
      end)
    end)
  end
end
