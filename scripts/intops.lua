-- intops.lua: what integers do, shown: division and its signs, meeting floats, wrapping, sums,
-- division by zero, indexes, casts. With --compare every value must be exactly the one that the
-- manual's rules give; the exit status is 1 when one is not. On a device the output is the same.
--     scripts/luma scripts/intops.lua [device] [--compare]
local luma = require "luma"

local compare = false
for _, word in ipairs(arg) do
    if word == "--compare" then compare = true else luma.set_default_device(word) end
end

local function int(dtype, ...)
    return luma.tensor({...}, dtype)
end

local function number_text(v)
    if math.type(v) == "float" and v % 1 == 0 and math.abs(v) < 2 ^ 53 then
        return ("%.1f"):format(v)
    end
    return math.type(v) == "float" and ("%.17g"):format(v) or tostring(v)
end

-- What went wrong, not where: a device finds a division by zero only when it is waited for.
local function error_text(message)
    return message:match("attempt to perform '[^']*'") or message:match("%((.*)%)$") or
        (message:gsub("^[^:]*:%d+: ", ""))
end

-- "int64 3, -4" and "error: ...".
local function text_of(f)
    local texts = {}
    local good, result = pcall(function()
        local x = f()
        for i, v in ipairs(x:flatten():totable()) do texts[i] = number_text(v) end
        return x
    end)
    if not good then return "error: " .. error_text(result) end
    return result.dtype .. " " .. table.concat(texts, ", ")
end

local checked, wrong = 0, 0

-- Prints what f gives. An expected "error" stands for any error whose text has `word` in it.
local function show(name, f, expected, word)
    local got = text_of(f)
    print(("  %-34s %s"):format(name, got))
    if not compare then return end
    checked = checked + 1
    local good = got == expected
    if word then good = got:find("^error: ") ~= nil and got:find(word, 1, true) ~= nil end
    if not good then
        wrong = wrong + 1
        print(("  %-34s %s  <-- expected"):format("", word and "error with: " .. word or expected))
    end
end

print("division, the four combinations of signs: 7, -7, 7, -7 by 2, 2, -2, -2")
local a, b = int("int64", 7, -7, 7, -7), int("int64", 2, 2, -2, -2)
show("a / b", function() return a / b end, "float32 3.5, -3.5, -3.5, 3.5")
show("a // b", function() return a // b end, "int64 3, -4, -4, 3")
show("a:div(b, {rounding = 'trunc'})", function() return luma.div(a, b, {rounding = "trunc"}) end,
    "int64 3, -3, -3, 3")
show("a % b", function() return a % b end, "int64 1, 1, -1, -1")
show("a:fmod(b)", function() return luma.fmod(a, b) end, "int64 1, -1, 1, -1")

print("int64 meets floats")
local i = int("int64", 1, 2, 3)
show("i * 0.5", function() return i * 0.5 end, "float32 0.5, 1.0, 1.5")
show("i * 2.5", function() return i * 2.5 end, "float32 2.5, 5.0, 7.5")
show("i + 0.5", function() return i + 0.5 end, "float32 1.5, 2.5, 3.5")

print("2^24 + 1, the first integer that float32 lacks")
local big = int("int64", (1 << 24) + 1)
show("big + 1", function() return big + 1 end, "int64 16777218")
show("big + 1.0", function() return big + 1.0 end, "float32 16777216.0")
show("big + ones", function() return big + luma.ones(1) end, "float32 16777216.0")
show("big + ones of int64", function() return big + luma.ones(1, {dtype = "int64"}) end,
    "int64 16777218")

print("unsigned")
local u = int("uint32", 3)
show("uint32 3 - 5", function() return u - 5 end, "uint32 4294967294")
show("uint32 3 - 1.0", function() return u - 1.0 end, "float32 2.0")
show("uint32 3 - 4.0", function() return u - 4.0 end, "float32 -1.0")
show("uint8 200 + 100", function() return int("uint8", 200) + 100 end, "uint8 44")

print("sums are int64")
show("300 of uint8 200", function() return luma.full({300}, 200, {dtype = "uint8"}):sum() end,
    "int64 60000")
show("3 of uint32 4294967295",
    function() return luma.full({3}, 4294967295, {dtype = "uint32"}):sum() end, "int64 12884901885")
show("a mask of 300", function() return luma.ones(300, {dtype = "bool"}):sum() end, "int64 300")

print("overflow wraps")
local LIMITS = {
    {"uint8", 0, 255}, {"int8", -128, 127}, {"int16", -32768, 32767},
    {"int32", -2147483648, 2147483647}, {"uint32", 0, 4294967295},
    {"int64", math.mininteger, math.maxinteger},
}
for _, row in ipairs(LIMITS) do
    local dtype, least, greatest = table.unpack(row)
    show(dtype .. " MAX + 1", function() return int(dtype, greatest) + 1 end, dtype .. " " .. least)
end

print("division by zero, and the quotient that does not fit")
local seven, least = int("int64", 7), int("int64", math.mininteger)
show("7 / 0", function() return seven / 0 end, "float32 inf")
show("7 // 0", function() return seven // 0 end, nil, "attempt to perform 'n//0'")
show("7 % 0", function() return seven % 0 end, nil, "attempt to perform 'n%0'")
show("MIN // -1", function() return least // -1 end, "int64 -9223372036854775808")
show("MIN divided by -1, truncated",
    function() return luma.div(least, -1, {rounding = "trunc"}) end, "int64 -9223372036854775808")
show("MIN % -1", function() return least % -1 end, "int64 0")

print("indexes of every integer dtype")
local letters = int("int64", 10, 20, 30)
for _, row in ipairs(LIMITS) do
    show(row[1] .. " 3, 1", function() return letters[int(row[1], 3, 1)] end, "int64 30, 10")
end
show("float32 3, 1", function() return letters[luma.tensor{3, 1}] end, nil, "index")
show("argmax + int64", function() return letters:argmax() + int("int64", 1) end, "int64 4")

print("float to integer: -1.9, 1.9, 300, -3, 1e20, inf, -inf, NaN")
local floats = luma.tensor({-1.9, 1.9, 300, -3, 1e20, math.huge, -math.huge, 0 / 0}, "float64")
show("to uint8", function() return floats:to "uint8" end, "uint8 0, 1, 255, 0, 255, 255, 0, 0")
show("to int32", function() return floats:to "int32" end,
    "int32 -1, 1, 300, -3, 2147483647, 2147483647, -2147483648, 0")
show("to int64", function() return floats:to "int64" end,
    "int64 -1, 1, 300, -3, 9223372036854775807, 9223372036854775807, -9223372036854775808, 0")

if compare then
    print(("%d of %d as the rules say"):format(checked - wrong, checked))
    os.exit(wrong == 0, true)
end
