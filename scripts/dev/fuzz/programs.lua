-- programs.lua -- runs random programs over everything that luma has: odd shapes, dtypes, views, aliases and
-- wrong arguments. What must hold: nothing crashes (sanitizers see to the rest), errors are texts that
-- name no C file, tensors stay whole, out = gives the same whatever it overlaps, no memory is left.
--     luma scripts/dev/fuzz/programs.lua [--seconds N] [--seed N] [--device NAME] [--last FILE]
-- A program is made of its seed: --seed N runs that one and shows it. FILE has the seed that runs, for
-- what a crash leaves behind. Without --seed the first is drawn, and printed.
local luma = require "luma"

local DTYPES = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float8_e4m3", "float16",
  "bfloat16", "float32", "float64"}
local BYTES = {bool = 1, uint8 = 1, int8 = 1, int16 = 2, int32 = 4, uint32 = 4, int64 = 8, float8_e4m3 = 1,
  float16 = 2, bfloat16 = 2, float32 = 4, float64 = 8}
local SIZES = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33}
local NUMBERS = {0, 1, -1, 2, 3, -3, 0.5, -0.0, 1.5, 127, 128, 255, 256, -129, 2 ^ 31, 2 ^ 53, 1e300, -1e-300,
  1 / 0, -1 / 0, 0 / 0, math.maxinteger, math.mininteger, true, false}
local HUGE = {1 << 31, 1 << 32, 1 << 40, 1 << 62, math.maxinteger, math.mininteger, -(1 << 40)}
local SLICES = {":", "1:2", "2:", ":-1", "::2", "::-1", "3:1:-1", "1", "-1", "0", "...", "new", ":, 1",
  "2:, :", "..., 1",
  "1:0", "5:9", "::0", "1:2:3:4", ",", "", "a", "1,1,1,1,1,1,1,1,1", "-3:-1", ": , :", "9223372036854775807"}

local options = {}
for i = 1, #arg, 2 do options[arg[i]:match("^%-%-(%w+)$") or error("what is " .. arg[i])] = arg[i + 1] end
local DEVICE = options.device
local WILD = tonumber(options.wild or 0.1) -- how often an argument is anything

local random = math.random
local function pick(list) return list[random(#list)] end
local function chance(p) return random() < p end

local pool, trace

local function show(v)
  if luma.is_tensor(v) then
    for i, x in ipairs(pool) do if rawequal(x, v) then return "t" .. i end end
    return "tensor"
  end
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) ~= "table" then return tostring(v) end
  local parts, seen = {}, {}
  for i, e in ipairs(v) do parts[i], seen[i] = show(e), true end
  for k, e in pairs(v) do
    if not seen[k] then parts[#parts + 1] = tostring(k) .. " = " .. show(e) end
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- ---- values ----

local function shape(most)
  local list = {}
  for i = 1, random(0, most or 4) do list[i] = pick(SIZES) end
  local n = 1
  for _, size in ipairs(list) do n = n * math.max(size, 1) end
  return n <= 5000 and list or shape(2)
end

local function device() return DEVICE and chance(0.7) and DEVICE or nil end

local function fresh(dims, dtype)
  dtype = dtype or pick(DTYPES)
  local x = luma.randn(dims or shape()) * pick {0, 1, 1, 3, 100, 1e6}
  x = x:to(dtype)
  if chance(0.1) then x:fill_(pick {0, 1, 100}) end
  local where = device()
  return where and x:to(where) or x
end

-- A view of x, of any kind.
local function view(x)
  local kind = random(7)
  if kind == 1 and x.ndim > 0 then return x:flip {random(x.ndim)} end
  if kind == 2 and x.ndim > 1 then return x:transpose(random(x.ndim), random(x.ndim)) end
  if kind == 3 and x.ndim > 0 and x:size(1) > 1 then return x["::2"] end
  if kind == 4 and x.ndim < 7 then return x:unsqueeze(1):expand(table.unpack {pick {1, 2, 3},
    table.unpack(x.shape)}) end
  if kind == 5 and x.ndim > 0 and x:size(-1) > 2 then return x:narrow(x.ndim, 2, x:size(-1) - 1) end
  if kind == 6 and x.ndim > 1 and x:size(1) > 0 then return x[random(x:size(1))] end
  if kind == 7 and x.ndim > 1 then return x:diagonal() end
  return x
end

local function tensor()
  if #pool == 0 or chance(0.3) then return fresh() end
  local x = pick(pool)
  return chance(0.3) and view(x) or x
end

-- One that may broadcast with x.
local function like(x)
  if chance(0.3) then return tensor() end
  local dims = {}
  for i, size in ipairs(x.shape) do dims[i] = chance(0.2) and 1 or size end
  while #dims > 0 and chance(0.2) do table.remove(dims, 1) end
  return fresh(dims, chance(0.5) and x.dtype or nil)
end

local function integer()
  return chance(0.1) and pick(HUGE) or random(-4, 6)
end

local function anything()
  return pick {
    function() return nil end, function() return pick(NUMBERS) end, function() return pick(HUGE) end, tensor,
    function() return pick(SLICES) end, function() return {} end, function() return {1, {2}, "x"} end, shape,
    function() return pick(DTYPES) end, function() return print end, function()
      return {device = "cuda:9"} end,
    function() return coroutine.running() end, function() return {[2] = 1} end, function()
      return "\0\255" end,
  }()
end

local function list_of(f, least, most)
  local list = {}
  for i = 1, random(least, most) do list[i] = f() end
  return list
end

local function dim_of(x, more)
  local n = (x and x.ndim or 3) + (more or 0)
  if n < 1 or chance(0.1) then return integer() end
  local d = random(n)
  return chance(0.3) and d - n - 1 or d
end

local function index_for(x)
  local n = x.ndim > 0 and x:size(random(x.ndim)) or 1
  local dtype = pick {"int64", "int64", "int32", "uint8"}
  local low = dtype == "uint8" and 1 or -1
  local dims = chance(0.5) and {random(0, 6)} or chance(0.5) and x.shape or shape(2)
  local i = luma.randint(chance(0.1) and low or 1, math.max(1, n + (chance(0.05) and 1 or 0)), dims):to(dtype)
  local where = device()
  return where and i:to(where) or i
end

-- By what a signature says of a parameter; x is the first tensor of the call.
local MAKE = {
  tensor = function(x) return x and like(x) or tensor() end,
  operand = function(x) return chance(0.4) and pick(NUMBERS) or x and like(x) or tensor() end,
  mask = function(x) return fresh(x and chance(0.8) and x.shape or nil, "bool") end,
  index = function(x) return chance(0.2) and list_of(function() return random(1, 3) end, 0, 4)
    or index_for(x) end,
  number = function() return pick(NUMBERS) end,
  bool = function() return chance(0.5) end,
  int = integer,
  position = function(x) return x.ndim > 0 and chance(0.8) and random(-x:size(1), x:size(1)) or integer() end,
  dim = function(x) return dim_of(x) end,
  newdim = function(x) return dim_of(x, 1) end,
  dims = function(x) return chance(0.3) and dim_of(x) or list_of(function() return dim_of(x) end, 0, 3) end,
  shape = function(x)
    if x and chance(0.4) then return x.shape end
    if x and chance(0.3) then return {-1} end
    if x and chance(0.3) then return {pick {1, 2, 3}, table.unpack(x.shape)} end
    return shape()
  end,
  list = function(x)
    return list_of(function() return chance(0.03) and pick(HUGE) or random(-2, 4) end, 0, x and 2 * x.ndim
      or 4)
  end,
  sizes = function() return chance(0.5) and random(0, 4) or list_of(function() return random(0, 4) end, 0,
    4) end,
  padding = function() return pick {"same", "valid", "other", 1, 0, -1, {1, 2}, {0, 1, 1, 0}} end,
  text = function() return pick {"ij,jk->ik", "ii", "...i->...", "a->", "x", ""} end,
  tensors = function()
    local x = tensor()
    return list_of(function() return chance(0.8) and luma.zeros_like(x) or tensor() end, 0, 4)
  end,
}

-- "x, dim:dim?, {descending:bool}" as a list of {name, kind, optional, option}
local function parameters(signature)
  local list, braces = {}, false
  for word in signature:gmatch("[^%s,]+") do
    if word:find("^{") then braces = true end
    local name, kind = word:gsub("[{}]", ""):match("^([%w_.]+)%??:?([%w_|]*)")
    if name then
      list[#list + 1] = {name = name, kind = kind ~= "" and kind or "tensor",
        optional = word:find("%?") ~= nil,
        option = braces}
    end
  end
  return list
end

-- "mean|sum|none": makes one of the words, seldom another.
local function word_of(kind)
  local words = {"rubbish"}
  for word in kind:gmatch("[^|]+") do
    for _ = 1, 4 do words[#words + 1] = word end
  end
  return function() return pick(words) end
end

local function arguments(row)
  local args, n, x, named = {}, 0, nil, nil
  for _, p in ipairs(parameters(row.signature)) do
    local make = MAKE[p.kind] or p.kind:find("|") and word_of(p.kind) or anything
    if not x and p.kind ~= "tensors" and p.kind ~= "tensor" and p.kind ~= "operand" and p.kind ~= "mask" then
      x = tensor() end
    local v
    if chance(WILD) then v = anything() else v = make(x) end
    if p.option then
      if chance(0.4) then
        named = named or {}
        named[p.name] = v
      end
    else
      n = n + 1
      if not (p.optional and chance(0.5)) then args[n] = v end
      if luma.is_tensor(v) then x = x or v end
    end
  end
  while n > 0 and args[n] == nil do n = n - 1 end
  return args, n, named
end

-- Makers and what is in no row: values of every kind.
local function loose()
  local n = random(0, 4)
  local args = {}
  for i = 1, n do
    args[i] = pick {tensor, tensor, integer, shape, anything, function() return pick(DTYPES) end,
      function() return random(0, 5) end, function() return {dtype = pick(DTYPES), device = device()} end}()
  end
  return args, n
end

-- ---- calls ----

local SKIP = {free = true, set_num_threads = true, set_default_device = true, fail_after = true,
  fail_lua_after = true, save = true,
  load = true, set_memory_callback = true, set_memory_limit = true, progress = true, profile = true,
  set_op_callback = true, help = true, set_print = true, plot = true, set_default_dtype = true}
local FUNCTIONS, METHODS = {}, {}
for name, f in pairs(luma) do
  if type(f) == "function" and not SKIP[name] then FUNCTIONS[#FUNCTIONS + 1] = name end
end
for text in luma.help():match("other methods: ([^\n]*)"):gmatch("[%w_]+") do
  if text ~= "free" and text ~= "dlpack" then METHODS[#METHODS + 1] = text end
end
table.sort(FUNCTIONS)
table.sort(METHODS)

local OPERATORS = {
  ["+"] = function(a, b) return a + b end, ["-"] = function(a, b) return a - b end,
  ["*"] = function(a, b) return a * b end, ["/"] = function(a, b) return a / b end,
  ["//"] = function(a, b) return a // b end, ["%"] = function(a, b) return a % b end,
  ["^"] = function(a, b) return a ^ b end, ["&"] = function(a, b) return a & b end,
  ["|"] = function(a, b) return a | b end, ["~"] = function(a, b) return a ~ b end,
  ["<<"] = function(a, b) return a << b end, [">>"] = function(a, b) return a >> b end,
  ["=="] = function(a, b) return a == b end, ["<"] = function(a, b) return a < b end,
  [".."] = function(a, b) return a .. b end, ["#"] = function(a) return #a end, ["-x"] = function(a)
    return -a end,
}
local SIGNS = {}
for sign in pairs(OPERATORS) do SIGNS[#SIGNS + 1] = sign end
table.sort(SIGNS)

local function key_for(x)
  local function one()
    return pick {function() return pick(SLICES) end, function() return random(-3, 4) end, function()
      return {} end,
      function() return {random(-3, 4), random(-3, 4)} end, function() return index_for(x) end, anything,
      function() return fresh(x.shape, "bool") end, function() return {1, 2} end}()
  end
  return chance(0.5) and one() or list_of(one, 0, 3)
end

local problems = 0
local function problem(text, ...)
  problems = problems + 1
  error({("problem: " .. text):format(...)}, 0)
end

local function check_error(message)
  if type(message) ~= "string" then problem("an error that is a %s", type(message)) end
  if message:find("%.c:%d") or message:find("(null)", 1, true) or message:find("assertion", 1, true)
      or message == "" then
    problem("an error that says: %s", message)
  end
end

-- The tables of a tensor without elements may be too many.
local function places(x)
  local n = 1
  for _, size in ipairs(x.shape) do
    n = n * math.max(size, 1)
    if n > 20000 then break end
  end
  return n
end

local function keep(v)
  if type(v) == "table" then
    for _, e in ipairs(v) do keep(e) end
  elseif luma.is_tensor(v) and places(v) <= 20000 then
    for _, x in ipairs(pool) do
      if rawequal(x, v) then return end
    end
    if #pool < 12 then pool[#pool + 1] = v else pool[random(#pool)] = v end
  end
end

local function call(text, f, args, n)
  if trace then
    local shown = {}
    for i = 1, n do shown[i] = show(args[i]) end
    trace(("%s(%s)"):format(text, table.concat(shown, ", ")))
  end
  local results = table.pack(pcall(f, table.unpack(args, 1, n)))
  if not results[1] then
    check_error(results[2])
    if trace then trace("  --> " .. tostring(results[2])) end
    return nil
  end
  for i = 2, results.n do keep(results[i]) end
  return results[2]
end

-- out = over a part of what x lies in gives what a new tensor would.
local function check_alias(row, args, n, named)
  local x = args[1]
  if not luma.is_tensor(x) or n > 3 or x:numel() == 0 then return end
  local good, wanted = pcall(luma[row.name], table.unpack(args, 1, n))
  if named or not good or not luma.is_tensor(wanted) or wanted.dtype ~= x.dtype or wanted.device ~= x.device
      or wanted:shares_storage(x) then
    return
  end
  local m, k = x:numel(), wanted:numel()
  if m > 2000 or k > 2000 then return end
  local base = luma.zeros(m + k + 8, {dtype = x.dtype, device = x.device})
  local at = random(m + 8)
  local again = base:narrow(1, 5, m):view(x.shape)
  if chance(0.3) and x.ndim == 2 then again = base:narrow(1, 5,
    m):view(x:t().shape):t() end
  again:copy_(x)
  local out = base:narrow(1, at, k):view(wanted.shape)
  local values = {again, table.unpack(args, 2, n)}
  local seed = random(1000)
  luma.manual_seed(seed) -- dropout and the like draw the same twice
  -- in the same layout, through which sums and products go the same way
  wanted = luma[row.name](table.unpack(values, 1, n)):clone()
  values[n + 1] = {out = out}
  luma.manual_seed(seed)
  good = pcall(luma[row.name], table.unpack(values, 1, n + 1))
  -- a device tells of wrong indices late
  local read, there, expected = pcall(function() return out:tobytes(), wanted:tobytes() end)
  if good and read and there ~= expected then
    problem("%s into what overlaps its input at %d: %s but %s", row.name, at - 5, luma.show(out),
      luma.show(wanted))
  end
end

local function step()
  local kind = random(20)
  if kind <= 11 then
    local row = pick(luma.ops)
    local args, n, named = arguments(row)
    if row.row == "make" then
      args, n = loose()
    elseif chance(0.15) and row.row ~= "view" then
      check_alias(row, args, n, named)
    end
    if named then
      n = n + 1
      args[n] = named
    elseif chance(0.1) then
      n = n + 1
      args[n] = {out = tensor()}
    end
    local name = row.name
    if row.inplace and chance(0.2) and luma.is_tensor(args[1]) and args[1][name .. "_"] then
      name = name .. "_"
      call("x:" .. name, args[1][name], args, n)
    else
      call("luma." .. name, luma[name], args, n)
    end
  elseif kind <= 13 then
    local sign = pick(SIGNS)
    local x = tensor()
    local y = chance(0.3) and pick(NUMBERS) or like(x)
    if chance(0.2) and type(y) ~= "boolean" then x, y = y, x end
    call(sign, OPERATORS[sign], {x, y}, 2)
  elseif kind <= 15 then
    local x = tensor()
    call("index", function(a, k) return a[k] end, {x, key_for(x)}, 2)
  elseif kind <= 17 then
    local x = tensor()
    call("assign", function(a, k, v) a[k] = v end, {x, key_for(x), MAKE.operand(x)}, 3)
  elseif kind == 18 then
    local args, n = loose()
    local name = pick(FUNCTIONS)
    call("luma." .. name, luma[name], args, n)
  elseif kind == 19 then
    local args, n = loose()
    local name = pick(METHODS)
    local x = tensor()
    table.insert(args, 1, x)
    call("x:" .. name, x[name], args, n + 1)
  elseif chance(0.3) then
    call("dlpack", function(x) return luma.from_dlpack(x:dlpack()) end, {tensor()}, 1)
  elseif chance(0.2) and #pool > 0 then
    local i = random(#pool)
    call("free", function(x) x:free() end, {pool[i]}, 1)
    table.remove(pool, i)
  end
end

-- Every tensor can be read whole.
local function check_pool()
  for i, x in ipairs(pool) do
    local good, message = pcall(function()
      local n = 1
      for d = 1, x.ndim do n = n * x:size(d) end
      if n ~= x:numel() then error "numel" end
      if #x:tobytes() ~= n * BYTES[x.dtype] then error "bytes" end
      return tostring(x)
    end)
    if not good and not message:find "released" and not message:find "^%w+: .*at position" then
      problem("t%d cannot be read: %s", i, message)
    end
  end
end

local function synchronize()
  if DEVICE and DEVICE ~= "cpu" then pcall(luma.cuda.synchronize) end
end

local function run(seed)
  math.randomseed(seed)
  luma.manual_seed(seed)
  pool = {}
  for _ = 1, random(2, 5) do pool[#pool + 1] = fresh() end
  for _ = 1, random(10, 40) do step() end
  synchronize()
  check_pool()
end

local function allocated()
  pool = {}
  collectgarbage()
  collectgarbage()
  luma.empty_cache() -- with what a device keeps for products
  return luma.memory("cpu").allocated + (DEVICE and luma.memory(DEVICE).allocated or 0)
end

local function attempt(seed)
  local good, message = pcall(run, seed)
  if good then return true end
  if type(message) == "table" then message = message[1] end
  io.stderr:write(("seed %d: %s\n"):format(seed, tostring(message)))
  return false
end

luma.set_memory_limit(256 << 20, "cpu")
if DEVICE then luma.set_memory_limit(256 << 20, DEVICE) end
if options.seed then
  trace = print
  os.exit(attempt(tonumber(options.seed)) and 0 or 1, true)
end

local seed = tonumber(options.first) or os.time() * 1000 % 1000000007
local last = options.last and assert(io.open(options.last, "w"))
local stop = luma.clock() + tonumber(options.seconds or 10)
local before, above, count, bad = allocated(), 0, 0, 0
print("first seed " .. seed)
while luma.clock() < stop and bad < 10 do
  if last then
    last:seek "set"
    last:write(("%-20d\n"):format(seed))
    last:flush()
  end
  if not attempt(seed) then bad = bad + 1 end
  count = count + 1
  if count % (tonumber(options.every) or 50) == 0 then
    -- what stays is a leak; something may be held for a while
    local now = allocated()
    above = now > before and above + 1 or 0
    if above == 3 then
      io.stderr:write(("%d bytes are left behind by seed %d\n"):format(now - before, seed))
      bad = bad + 1
    end
    if above == 0 or above == 3 then before, above = now, 0 end
  end
  seed = seed + 1
end
print(("%d programs, %d with problems"):format(count, bad))
os.exit(bad == 0 and 0 or 1, true)
