-- patterns.lua -- the string functions of the sandbox (the argument) give what Lua's own give, on random
-- patterns and texts. Run by spec/c/sandbox_test.c.
local own = ...
local PARTS = {"a", "b", ".", "%a", "%d", "%w", "%s", "[ab]", "[^b]", "[%a%-x]", "[a-c]", "%.", "c", "(",
  ")", "()", "(a)", "%1", "%2", "%b()", "%f[%w]", "*", "+", "-", "?", "$", "^", "%", "[", "]", "[]a]", "\0",
  "[^%s]", "%S", "(.-)"}
local LETTERS = {"a", "b", "c", "(", ")", " ", "1", ".", "-", "\0", "x"}

local function draw(list, n)
  local t = {}
  for i = 1, math.random(0, n) do t[i] = list[math.random(#list)] end
  return table.concat(t)
end

local function show(...)
  local t = table.pack(...)
  for i = 1, t.n do t[i] = type(t[i]) == "function" and "f" or ("%q"):format(t[i]) end
  return table.concat(t, ", ")
end

local function same(name, ...)
  local a, b = table.pack(pcall(own[name], ...)), table.pack(pcall(string[name], ...))
  local good = a.n == b.n and a[1] == b[1]
  for i = 2, a[1] and a.n or 1 do good = good and a[i] == b[i] end
  if not good then
    error(("%s(%s): %s but %s"):format(name, show(...), show(table.unpack(a, 1, a.n)),
      show(table.unpack(b, 1, b.n))))
  end
end

local function all(f, s, p, i)
  local t = {}
  for a, b in f(s, p, i) do t[#t + 1] = tostring(a) .. "," .. tostring(b) end
  return table.concat(t, ";")
end

for _ = 1, 20000 do
  local s, p = draw(LETTERS, 12), draw(PARTS, 6)
  local from = math.random(-15, 15)
  same("find", s, p)
  same("find", s, p, from)
  same("find", s, p, from, true)
  same("match", s, p, from)
  same("gsub", s, p, "<%0>")
  same("gsub", s, p, "%1", 3)
  same("gsub", s, p, draw({"%", "1", "x", "0"}, 3))
  same("gsub", s, p, {a = 1, b = "bb", c = false})
  same("gsub", s, p, function(x) return x ~= "a" and x end)
  local x, a = pcall(all, own.gmatch, s, p, from)
  local y, b = pcall(all, string.gmatch, s, p, from)
  if x ~= y or x and a ~= b then error(("gmatch(%s): %q but %q"):format(show(s, p, from), a, b)) end
end
