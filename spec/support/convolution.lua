-- convolution.lua -- convolutions, im2col and col2im over flat lists in row-major order, each as its
-- definition says, one product at a time. Knows nothing of luma.
--
-- A case p: n spatial dims, batch, channels, filters, groups, and lists of n: size, kernel, stride,
-- dilation, before, after (padding), more (output padding of transposed ones).
local M = {}

-- Positions 0-based, the last dim fastest: calls f with the flat position and a list that changes.
local function each(shape, f)
  local at, count = {}, 1
  for d, s in ipairs(shape) do
    at[d] = 0
    count = count * s
  end
  for flat = 0, count - 1 do
    f(flat, at)
    local d = #shape
    while d > 0 do
      at[d] = at[d] + 1
      if at[d] < shape[d] then break end
      at[d] = 0
      d = d - 1
    end
  end
end

local function product(list)
  local n = 1
  for _, s in ipairs(list) do n = n * s end
  return n
end
M.product = product

-- Sizes of the result.
function M.sizes(p)
  local out = {}
  for d = 1, p.n do
    local reach = p.dilation[d] * (p.kernel[d] - 1)
    if p.transposed then
      out[d] = (p.size[d] - 1) * p.stride[d] - p.before[d] - p.after[d] + reach + p.more[d] + 1
    else
      out[d] = (p.size[d] + p.before[d] + p.after[d] - reach - 1) // p.stride[d] + 1
    end
  end
  return out
end

-- Calls f(position of the smaller side, flat tap, position of the bigger side, which is padded) for
-- all pairs that meet; flat positions. Of a transposed convolution the bigger side is the result.
local function meet(p, small, big, f)
  each(small, function(i, at)
    each(p.kernel, function(k, tap)
      local j = 0
      for d = 1, p.n do
        local place = at[d] * p.stride[d] + tap[d] * p.dilation[d] - p.before[d]
        if place < 0 or place >= big[d] then return end
        j = j * big[d] + place
      end
      f(i, k, j)
    end)
  end)
end

-- The result as a flat list, and the sums of magnitudes behind its elements; zero: 0 or 0.0.
function M.conv(p, x, w, bias, zero)
  local out = M.sizes(p)
  local nx, ny, nk = product(p.size), product(out), product(p.kernel)
  local cg, og = p.channels // p.groups, p.filters // p.groups
  local y, magnitude, pairs_of = {}, {}, {}
  meet(p, p.transposed and p.size or out, p.transposed and out or p.size, function(i, k, j)
    pairs_of[#pairs_of + 1] = p.transposed and {j, k, i} or {i, k, j} -- of y, tap, of x
  end)
  for n = 0, p.batch - 1 do
    for o = 0, p.filters - 1 do
      local group, base = o // og, (n * p.filters + o) * ny
      for i = 1, ny do
        y[base + i] = bias and bias[o + 1] or zero
        magnitude[base + i] = bias and math.abs(bias[o + 1]) or 0
      end
      for c = 0, cg - 1 do
        local from = (n * p.channels + group * cg + c) * nx + 1
        local taps = 1 + nk * (p.transposed and (group * cg + c) * og + o % og or o * cg + c)
        for _, m in ipairs(pairs_of) do
          local v = x[from + m[3]] * w[taps + m[2]]
          y[base + m[1] + 1] = y[base + m[1] + 1] + v
          magnitude[base + m[1] + 1] = magnitude[base + m[1] + 1] + math.abs(v)
        end
      end
    end
  end
  return y, magnitude
end

-- x (batch, channels, size...) to (batch, channels * taps, positions).
function M.im2col(p, x, zero)
  local out = M.sizes(p)
  local nx, ny, nk = product(p.size), product(out), product(p.kernel)
  local y = {}
  for i = 1, p.batch * p.channels * nk * ny do y[i] = zero end
  for c = 0, p.batch * p.channels - 1 do
    meet(p, out, p.size, function(i, k, j) y[(c * nk + k) * ny + i + 1] = x[c * nx + j + 1] end)
  end
  return y
end

-- The opposite: columns added where they came from.
function M.col2im(p, columns, zero)
  local out = M.sizes(p)
  local nx, ny, nk = product(p.size), product(out), product(p.kernel)
  local x = {}
  for i = 1, p.batch * p.channels * nx do x[i] = zero end
  for c = 0, p.batch * p.channels - 1 do
    meet(p, out, p.size, function(i, k, j)
      x[c * nx + j + 1] = x[c * nx + j + 1] + columns[(c * nk + k) * ny + i + 1]
    end)
  end
  return x
end

return M
