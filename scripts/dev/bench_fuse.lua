-- bench_fuse.lua -- functions that run in one pass against the same of PyTorch (the goal) and of luma, one
-- operation after another.
local luma = require "luma"
local task = ...
local relu, sigmoid, where, sqrt = luma.relu, luma.sigmoid, luma.where, luma.sqrt

-- expression, goal, the same of PyTorch, the same of luma in more passes
local programs = {
  {"relu(a * b + 1)", 2, "torch.relu(a * b + 1)", function(a, b) return relu(a * b + 1) end},
  {"a * sigmoid(b)", 1, "a * torch.sigmoid(b)", function(a, b) return a * sigmoid(b) end},
  {"where(a > b, a - b, 0)", 1, "torch.where(a > b, a - b, torch.zeros(()))",
    function(a, b) return where(a:gt(b), a - b, 0) end},
  {"a - 0.01 * b / (sqrt(b * b) + 1e-8)", 2, "a - 0.01 * b / (torch.sqrt(b * b) + 1e-8)",
    function(a, b) return a - 0.01 * b / (sqrt(b * b) + 1e-8) end},
}
local sizes = {[0] = "64K", "256K", "1M", "4M", "16M", "64M"}

for _, program in ipairs(programs) do
  local text, goal, torch, plain = table.unpack(program)
  for i = 0, #sizes do
    local n = 1 << 16 + 2 * i
    task(text .. ", " .. sizes[i], goal, {{"randn", n}, {"randn", n}}, luma.kernel({"a", "b"}, text),
      {torch = torch, plain = plain})
  end
end
