-- bench_norm.lua -- normalisation and attention against PyTorch.
local luma = require "luma"
local task = ...

for _, shape in ipairs {{1024, 1024}, {4096, 768}, {65536, 64}, {256, 32000}} do
  local m, n = table.unpack(shape)
  local size = ("rows %d x %d"):format(m, n)
  task("layer_norm " .. size, 1.3, {{"rand", m, n}, {"rand", n}, {"rand", n}},
    function(x, w, b) return x:layer_norm(n, w, b) end, {torch = ("F.layer_norm(a, (%d,), b, c)"):format(n)})
  task("softmax " .. size, 1.3, {{"rand", m, n}}, function(x) return x:softmax(2) end,
    {torch = "torch.softmax(a, 1)"})
end
local planes, channels = {"rand", 16, 64, 56, 56}, {"rand", 64}
task("group_norm 16 x 64 x 56 x 56, 8", 0, {planes, channels, channels},
  function(x, w, b) return x:group_norm(8, w, b) end, {torch = "F.group_norm(a, 8, b, c)"})
for _, training in ipairs {true, false} do
  local options = {training = training}
  task("batch_norm 16 x 64 x 56 x 56" .. (training and ", training" or ""), 0,
    {planes, channels, channels, {"zeros", 64}, {"rand", 64}},
    function(x, w, b, mean, var) return x:batch_norm(mean, var, w, b, options) end,
    {torch = "F.batch_norm(a, d, e, b, c, training=" .. (training and "True)" or "False)")})
end

for _, case in ipairs {{128, 128, 1.5}, {1024, 1024, 0}, {1, 4096, 0}} do
  local l, s, goal = table.unpack(case)
  task(("attention %d tokens x 12 heads of 64%s"):format(l, s ~= l and ", keys " .. s or ""), goal,
    {{"randn", 1, 12, l, 64}, {"randn", 1, 12, s, 64}, {"randn", 1, 12, s, 64}},
    luma.scaled_dot_product_attention, {torch = "torch.softmax(a @ b.transpose(-2, -1), -1) @ c"})
end
local HALVES = "x, y = a[..., :32], a[..., 32:]; torch.cat((x * b - y * c, x * c + y * b), -1)"
local PAIRS = "x, y = a[..., ::2], a[..., 1::2]; torch.stack((x * b - y * c, x * c + y * b), -1).flatten(-2)"
local THD = HALVES:gsub("%f[%w][bc]%f[%W]", "%0[:, None]")
for _, case in ipairs {{"half", HALVES}, {"interleaved", PAIRS}, {"thd", THD}} do
  local layout, options = case[1], {layout = case[1]}
  task("rope " .. layout .. " 8 x 12 x 128 x 64", 0,
    {layout == "thd" and {"randn", 8, 128, 12, 64} or {"randn", 8, 12, 128, 64}, {"randn", 128, 32},
      {"randn", 128, 32}},
    function(x, c, s) return x:rope(c, s, options) end, {torch = case[2]})
end
task("dropout 1M", 0, {{"randn", 1 << 20}}, function(x) return x:dropout(0.1) end,
  {torch = "F.dropout(a, 0.1)"})
