-- bench_norm.lua -- normalisation and attention against PyTorch: bench_torch.lua.
-- usage: scripts/luma scripts/dev/bench_norm.lua [pattern]
local luma = require "luma"

local tasks = {}
local function task(name, goal, setup, py, stmt)
  tasks[#tasks + 1] = {name = name, goal = goal, setup = setup, py = py, stmt = stmt}
end

for _, shape in ipairs {{1024, 1024}, {4096, 768}, {65536, 64}, {256, 32000}} do
  local m, n = shape[1], shape[2]
  local py = ("x = torch.rand(%d, %d); w = torch.rand(%d); b = torch.rand(%d)"):format(m, n, n, n)
  local size = (" %d x %d"):format(m, n)
  task("layer_norm" .. size, 1.3, function()
    local x, w, b = luma.rand(m, n), luma.rand(n), luma.rand(n)
    return function() local _ = x:layer_norm(n, w, b) end
  end, py, ("F.layer_norm(x, (%d,), w, b)"):format(n))
  task("softmax" .. size, 1.3, function()
    local x = luma.rand(m, n)
    return function() local _ = x:softmax(2) end
  end, py, "torch.softmax(x, 1)")
end
local planes = "x = torch.rand(16, 64, 56, 56); w = torch.rand(64); b = torch.rand(64)"
task("group_norm 16 x 64 x 56 x 56, 8", 0, function()
  local x, w, b = luma.rand(16, 64, 56, 56), luma.rand(64), luma.rand(64)
  return function() local _ = x:group_norm(8, w, b) end
end, planes, "F.group_norm(x, 8, w, b)")
for _, training in ipairs {true, false} do
  task("batch_norm 16 x 64 x 56 x 56" .. (training and ", training" or ""), 0, function()
    local x, w, b = luma.rand(16, 64, 56, 56), luma.rand(64), luma.rand(64)
    local mean, var = luma.zeros(64), luma.ones(64)
    return function() local _ = x:batch_norm(mean, var, w, b, {training = training}) end
  end,
    planes .. "; m = torch.zeros(64); v = torch.ones(64)",
    ("F.batch_norm(x, m, v, w, b, training=%s)"):format(training and "True" or "False"))
end

for _, case in ipairs {{12, 128, 64, 1.5}, {12, 1024, 64, 0}, {12, 1, 64, 0, 4096}} do
  local h, l, e, s = case[1], case[2], case[3], case[5] or case[2]
  task(("attention %d tokens x %d heads of %d%s"):format(l, h, e, s ~= l and ", keys " .. s or ""), case[4],
    function()
    local q, k, v = luma.randn(1, h, l, e), luma.randn(1, h, s, e), luma.randn(1, h, s, e)
    return function() local _ = luma.scaled_dot_product_attention(q, k, v) end
  end,
    ("q = torch.randn(1, %d, %d, %d); k = torch.randn(1, %d, %d, %d); v = torch.randn(1, %d, %d, %d)"):format(
    h, l, e, h, s, e, h, s, e), "torch.softmax(q @ k.transpose(-2, -1), -1) @ v")
end
for _, layout in ipairs {"half", "interleaved", "thd"} do
  local half = "a, b = x[..., :32], x[..., 32:]; torch.cat((a * c - b * s, a * s + b * c), -1)"
  task("rope " .. layout .. " 8 x 12 x 128 x 64", 0, function()
    local x = layout == "thd" and luma.randn(8, 128, 12, 64) or luma.randn(8, 12, 128, 64)
    local c, s = luma.randn(128, 32), luma.randn(128, 32)
    return function() local _ = x:rope(c, s, {layout = layout}) end
  end,
    layout == "thd" and "x = torch.randn(8, 128, 12, 64); c, s = torch.randn(2, 128, 1, 32)"
    or "x = torch.randn(8, 12, 128, 64); c, s = torch.randn(2, 128, 32)",
    layout == "interleaved" and
    "a, b = x[..., ::2], x[..., 1::2]; torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)" or half)
end
task("dropout 1M", 0, function()
  local x = luma.randn(1 << 20)
  return function() local _ = x:dropout(0.1) end
end, "x = torch.randn(1 << 20)", "F.dropout(x, 0.1)")

dofile "scripts/dev/bench_torch.lua"(tasks, arg[1] or "")
