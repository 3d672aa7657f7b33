-- seed.lua -- where random cases of specs begin: LUMA_SPEC_SEED, or the clock. Failures name it.
local seed = {}
seed.value = math.tointeger(tonumber(os.getenv "LUMA_SPEC_SEED")) or os.time()

-- f as a case that starts the random numbers there.
function seed.seeded(f)
  return function()
    math.randomseed(seed.value)
    local ok, message = pcall(f)
    if not ok then error(("LUMA_SPEC_SEED=%d: %s"):format(seed.value, tostring(message)), 0) end
  end
end

return seed
