-- device.lua -- the device on which the specs make their tensors: LUMA_SPEC_DEVICE of the
-- environment, the CPU without it. .busted names this file as busted's helper, so that it runs first.
local luma = require "luma"

local M = {name = os.getenv "LUMA_SPEC_DEVICE" or "cpu"}

luma.set_default_device(M.name)
M.is_cpu = M.name == "cpu"

-- The CUDA device of specs that need one: nil where there is none, and why.
local there, why = luma.cuda.is_available()
M.cuda = there and (M.is_cpu and "cuda:0" or M.name) or nil
M.no_cuda = why

-- As pcall; an error that a device finds while it works belongs to the call too.
function M.pcall(f, ...)
    local results = table.pack(pcall(f, ...))
    if M.is_cpu then return table.unpack(results, 1, results.n) end
    local good, message = pcall(luma.cuda.synchronize, M.name)
    if results[1] and not good then return false, message end
    return table.unpack(results, 1, results.n)
end

-- Whether the error came late: what was written in place by then may be written in part.
function M.is_late(message)
    return type(message) == "string" and message:find("queued on", 1, true) ~= nil
end

-- An expected text that says "cpu", for the device.
function M.text(expected)
    return (expected:gsub("cpu%]", M.name .. "]"))
end

-- An error that a test leaves on the device would be raised in another.
if not M.is_cpu then
  local busted = require "busted"
  busted.subscribe({"test", "end"}, function(test)
    local good, message = pcall(luma.cuda.synchronize, M.name)
    if not good then
      busted.publish({"failure", test.descriptor}, test, busted.context.parent(test), message, {})
    end
    return nil, true
  end)
end

return M
