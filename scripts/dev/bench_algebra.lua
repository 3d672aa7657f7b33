-- bench_algebra.lua -- einsum against what it equals in luma (the goal), PyTorch's and NumPy's; norms and
-- scatters against PyTorch.
local luma = require "luma"
local task = ...

-- shapes: of the operands; plain(...) is what the equation equals.
local function equation(text, shapes, plain)
  local inputs, sizes, names = {}, {}, ("a, b, c"):sub(1, 3 * #shapes - 2)
  for i, shape in ipairs(shapes) do
    inputs[i] = {"rand", table.unpack(shape)}
    sizes[i] = table.concat(shape, "x")
  end
  task(text .. " " .. table.concat(sizes, " "), 1, inputs, function(...) return luma.einsum(text, ...) end,
    {plain = plain, against = "plain", torch = ("torch.einsum('%s', %s)"):format(text, names),
      numpy = ("np.einsum('%s', %s, optimize=True)"):format(text, names)})
end

-- so small that it matters how they are called: both from a function of Lua, both looked up in luma
equation("ij,jk->ik", {{8, 8}, {8, 8}}, function(...) return luma.matmul(...) end)
equation("ij,jk->ik", {{512, 512}, {512, 512}}, luma.matmul)
equation("ij,kj->ik", {{512, 512}, {512, 512}}, function(a, b) return a:matmul(b:t()) end)
equation("ij,jk->ki", {{512, 512}, {512, 512}}, function(a, b) return a:matmul(b):t():contiguous() end)
equation("bti,io->bto", {{64, 64, 128}, {128, 256}}, luma.matmul)
equation("bqhd,bkhd->bhqk", {{4, 128, 12, 64}, {4, 128, 12, 64}}, function(a, b)
  return a:permute(1, 3, 2, 4):matmul(b:permute(1, 3, 4, 2))
end)
equation("bhqk,bkhd->bqhd", {{4, 12, 128, 128}, {4, 128, 12, 64}}, function(a, b)
  return a:matmul(b:permute(1, 3, 2, 4)):permute(1, 3, 2, 4):contiguous()
end)
equation("ij,jk,kl->il", {{256, 256}, {256, 256}, {256, 256}}, function(a, b, c)
  return a:matmul(b):matmul(c)
end)
equation("ij,ij->", {{1024, 1024}, {1024, 1024}}, function(a, b) return a:reshape(-1):dot(b:reshape(-1)) end)
equation("bi,bi->b", {{65536, 16}, {65536, 16}}, function(a, b) return (a * b):sum(2) end)
equation("ij,j->i", {{1024, 1024}, {1024}}, luma.mv)
equation("ij->j", {{1024, 1024}}, function(a) return a:sum(1) end)

-- f(x, index, to): a million elements and where they go of 64K.
local function of_million(name, f, torch)
  task(name, 0, {{"rand", 1 << 20}, {"int", 1 << 16, 1 << 20}, {"zeros", 1 << 16}}, f, {torch = torch})
end
of_million("norm 2, 1M", function(x) return x:norm() end, "torch.norm(a)")
of_million("norm 1, 1M", function(x) return x:norm(1) end, "torch.norm(a, 1)")
of_million("norm 3, 1M", function(x) return x:norm(3) end, "torch.norm(a, 3)")
of_million("nansum, 1M", function(x) return x:nansum() end, "torch.nansum(a)")
of_million("count_nonzero, 1M", function(x) return x:count_nonzero() end, "torch.count_nonzero(a)")
of_million("var_mean, 1M", function(x) return x:var_mean() end, "torch.var_mean(a)")
for _, reduce in ipairs {"sum", "prod", "mean", "amax"} do
  of_million("scatter_reduce " .. reduce .. ", 1M to 64K",
    function(x, i, to) return to:scatter_reduce(1, i, x, {reduce = reduce}) end,
    ("c.scatter_reduce(0, b, a, '%s')"):format(reduce))
end
of_million("index_put accumulate, 1M to 64K",
  function(x, i, to) return to:index_put({i}, x, {accumulate = true}) end,
  "c.index_put((b,), a, accumulate=True)")
