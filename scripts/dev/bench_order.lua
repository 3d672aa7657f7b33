-- bench_order.lua -- running results and order against the faster of NumPy and PyTorch.
local luma = require "luma"
local task = ...
local M = 1 << 20

local function along(op, goal, numpy, torch, shape, dim, int)
  local input = int and {"int", 100, table.unpack(shape)} or {"rand", table.unpack(shape)}
  local function f(x)
    if op == "diff" then return x:diff(1, dim) end
    return luma[op](x, dim)
  end
  task(("%s dim %d of %s %s"):format(op, dim, table.concat(shape, ", "), int and "int64" or "float32"), goal,
    {input}, f,
    {numpy = ("np.%s(a, axis=%d)"):format(numpy, dim - 1),
      torch = ("torch.%s(a, dim=%d)"):format(torch, dim - 1)})
end

for _, case in ipairs {{{1024, 1024}, 2}, {{1024, 1024}, 1}, {{64, 256, 64}, 2}, {{65536, 16}, 1},
                       {{65536, 16}, 2}, {{M}, 1}, {{M << 4}, 1}} do
  along("cumsum", 1.4, "cumsum", "cumsum", case[1], case[2])
end
along("cumsum", 1.4, "cumsum", "cumsum", {1024, 1024}, 2, true)
along("cumsum", 1.4, "cumsum", "cumsum", {1024, 1024}, 1, true)
for _, case in ipairs {{{1024, 1024}, 2}, {{1024, 1024}, 1}, {{M}, 1}} do
  along("cumprod", 1, "cumprod", "cumprod", case[1], case[2])
  along("cummax", 1, "maximum.accumulate", "cummax", case[1], case[2])
  along("logcumsumexp", 1, "logaddexp.accumulate", "logcumsumexp", case[1], case[2])
  along("diff", 1, "diff", "diff", case[1], case[2])
end

-- f(x, i): a million floats, as many of 1000 integers.
local function of_million(name, goal, f, numpy, torch)
  task(name .. ", 1M", goal, {{"rand", M}, {"int", 1000, M}}, f, {numpy = numpy, torch = torch})
end
of_million("argsort", 4, function(x) return x:argsort() end, "np.argsort(a, kind='stable')",
  "torch.argsort(a)")
of_million("sort", 1, function(x) return x:sort() end, nil, "torch.sort(a)")
of_million("median", 1, function(x) return x:median() end, nil, "torch.median(a)")
of_million("kthvalue 1000", 1, function(x) return x:kthvalue(1000) end, "np.partition(a, 999)[999]",
  "torch.kthvalue(a, 1000)")
of_million("quantile 0.3", 1, function(x) return x:quantile(0.3) end, "np.quantile(a, 0.3)",
  "torch.quantile(a, 0.3)")
of_million("unique of 1000 int64", 1, function(_, i) return i:unique() end, "np.unique(b)", "torch.unique(b)")
of_million("unique of floats, inverse, counts", 1, function(x)
  return x:unique {return_inverse = true, return_counts = true}
end, "np.unique(a, return_inverse=True, return_counts=True)",
  "torch.unique(a, return_inverse=True, return_counts=True)")
of_million("bincount", 1, function(_, i) return i:bincount() end, "np.bincount(b)", "torch.bincount(b)")
of_million("histc", 1, function(x) return x:histc() end, "np.histogram(a, 100)", "torch.histc(a)")
task("searchsorted, 1M in 64K", 1, {{"sorted", 65536}, {"rand", M}}, luma.searchsorted,
  {numpy = "np.searchsorted(a, b)", torch = "torch.searchsorted(a, b)"})
task("mode rows of 1024", 1, {{"int", 50, 256, 1024}}, function(x) return x:mode() end,
  {torch = "torch.mode(a)"})
task("median rows of 1024", 1, {{"rand", 1024, 1024}}, function(x) return x:median(2) end,
  {torch = "torch.median(a, 1)"})
