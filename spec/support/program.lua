-- program.lua -- runs the luma program that runs the specs, in a process of its own.
local M = {}

-- The interpreter of this process: the lowest entry of arg.
local function interpreter()
    local i = 0
    while arg and arg[i - 1] do i = i - 1 end
    return arg and arg[i] or "lua"
end

M.path = interpreter()
M.absolute_path = M.path:sub(1, 1) == "/" and M.path or os.getenv("PWD") .. "/" .. M.path
M.is_luma = M.path:find("luma$") ~= nil

function M.quote(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- Runs a shell command in which $LUMA is the program. Returns its output, stderr included, and its
-- exit status (128 + n for signal n).
function M.shell(command)
    local pipe = assert(io.popen(("LUMA=%s; { %s ; } 2>&1"):format(M.quote(M.path), command)))
    local output = pipe:read("a")
    local _, what, code = pipe:close()
    return output, what == "signal" and 128 + code or code
end

-- luma with these arguments and this text on stdin.
function M.run(arguments, stdin)
    local words = {}
    for i, a in ipairs(arguments) do words[i] = M.quote(a) end
    return M.shell(("printf %%s %s | $LUMA %s"):format(M.quote(stdin or ""),
        table.concat(words, " ")))
end

-- Runs text as a script of its own. Returns output and status.
function M.script(text)
    return M.run({"-"}, text)
end

return M
