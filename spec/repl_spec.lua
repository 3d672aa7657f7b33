-- The prompt in a terminal: tmux types and shows what a person would see.
local program = require "spec.support.program"

local function has_tmux()
    local pipe = io.popen("command -v tmux")
    local path = pipe:read("a")
    pipe:close()
    return path ~= ""
end

describe("the prompt in a terminal", function()
    if not program.is_luma or not has_tmux() then
        pending("needs the luma program and tmux")
        return
    end

    local socket, folder

    local function tmux(command)
        local output, status = program.shell(("tmux -L %s %s"):format(socket, command))
        return output, status
    end

    local function screen() return (tmux("capture-pane -p")) end

    -- Waits until the screen has the text; returns the screen.
    local function wait_for(text, plain)
        local seen
        for _ = 1, 100 do
            seen = screen()
            if seen:find(text, 1, plain ~= false) then return seen end
            program.shell("sleep 0.05")
        end
        error(("'%s' did not come; the screen:\n%s"):format(text, seen), 2)
    end

    local function type_keys(...)
        for _, keys in ipairs{...} do tmux("send-keys -l " .. program.quote(keys)) end
    end
    local function press(...)
        for _, key in ipairs{...} do tmux("send-keys " .. key) end
    end
    local function enter(line)
        type_keys(line)
        press("Enter")
    end

    local function start(width, environment, prompt)
        local command = ("-f /dev/null new-session -d -x %d -y 40 %s"):format(width or 80, program.quote(
            ("cd %s && XDG_STATE_HOME=%s/state XDG_CONFIG_HOME=%s %s exec %s"):format(
                program.quote(folder), folder, folder, environment or "",
                program.quote(program.absolute_path))))
        for _ = 1, 20 do -- the server of a session before may be about to end
            if select(2, tmux(command)) == 0 then break end
            program.shell("sleep 0.1")
        end
        wait_for("\n" .. (prompt or ">"))
    end

    local function stop()
        press("C-d")
        for _ = 1, 100 do
            local _, status = tmux("has-session")
            if status ~= 0 then return end
            program.shell("sleep 0.05")
        end
        tmux("kill-server")
        error("the program did not end")
    end

    before_each(function()
        folder = os.tmpname()
        os.remove(folder)
        program.shell("mkdir " .. folder)
        socket = "luma" .. folder:match("[%w]+$")
    end)

    after_each(function()
        tmux("kill-server")
        program.shell("rm -rf " .. folder)
    end)

    it("shows values, silences them after a semicolon, and keeps the last three", function()
        start()
        enter("luma.ones(2, 3)")
        wait_for("[float32 2x3 cpu]")
        enter("41 + 1;")
        enter("'v' .. _")
        wait_for("v42")
        enter("= ___.dtype .. __ .. _")
        wait_for("float3242v42")
        stop()
    end)

    it("goes on over lines until the chunk is whole, and gives it up at an empty line", function()
        start()
        enter("for i = 1, 2 do")
        wait_for("\n>>")
        enter("print('n' .. i) end")
        wait_for("n1\nn2")
        enter("x = {")
        press("Enter")
        enter("'back' .. 1")
        wait_for("back1")
        stop()
    end)

    it("completes names, fields, methods, options, modules and files", function()
        start()
        enter("long_name = luma.ones(2)")
        type_keys("long_na")
        press("Tab")
        type_keys(":logsu")
        press("Tab")
        type_keys("1, {keepd")
        press("Tab")
        enter("true})")
        wait_for("long_name:logsumexp(1, {keepdim = true})")
        wait_for("[float32 1 cpu]")
        type_keys("string.gma")
        press("Tab")
        wait_for("string.gmatch(")
        press("C-u")
        program.shell("touch " .. folder .. "/some_file.npy")
        type_keys('luma.load("some')
        press("Tab")
        wait_for('luma.load("some_file.npy"')
        press("C-u")
        type_keys("re" .. 'quire "lu')
        press("Tab")
        wait_for('require "luma"')
        press("C-u")
        type_keys("long_name:to('bfl")
        press("Tab")
        wait_for("long_name:to('bfloat16'")
        press("C-u")
        type_keys("luma.ones(2, {device = 'cp")
        press("Tab")
        wait_for("device = 'cpu'")
        press("C-u")
        type_keys("luma.plot(x, {ylab")
        press("Tab")
        wait_for("{ylabel =")
        press("C-u")
        type_keys("?cuda.synch")
        press("Tab")
        wait_for("?cuda.synchronize")
        press("C-u")
        type_keys(":wh")
        press("Tab")
        wait_for(":who")
        press("C-u")
        stop()
    end)

    it("names the line, the place and what may have been meant", function()
        start()
        enter("local a, b = luma.ones(2), luma.ones(3) return a * b")
        wait_for("\n" .. (" "):rep(51) .. "^")
        enter("pirnt(1)")
        wait_for("did you mean print?")
        enter("zeros(1)")
        local seen = wait_for("did you mean luma.zeros?")
        assert.is_nil(seen:find("traceback", 1, true))
        enter("luma.zers(1)")
        wait_for("(field 'zers')\n  luma.zers(1)\n       ^\ndid you mean luma.zeros?")
        enter("array{1}")
        wait_for("luma has no 'array'; write luma.tensor(values)")
        enter("luma.arange(3)")
        wait_for("luma has no 'arange'; write luma.range(first, last)")
        for _, pair in ipairs {
            {"x += 1", "write x = x + y"}, {"return x != 3", "write x ~= y"}, {"!x", "write not x"},
            {"x ** 2", "write x ^ y"}, {"x @ x", "write x:matmul(y)"}, {"x && x", "x & y of masks"},
            {"x || x", "x | y of masks"}, {"x[1, 2]", "write x[{1, 2}], x(1, 2)"},
            {"x[1:2]", "write x[\"2:5\"]"}, {"x[:, 1]", "text, from 1 on"},
            {"luma.sum(x, dim=1)", "f(x, {name = value})"}, {"x = [1, 2]", "written {1, 2, 3}"},
            {"x:repeat(2)", "write x:tile("}, {"import luma", "= require \"name\""},
            {"len(x)", "write #x"}, {"if (x = 3) then end", "write x == y"},
        } do
            enter(pair[1])
            wait_for(pair[2])
        end
        enter("x = luma.ones(2)")
        enter("x.sum()")
        wait_for("did you mean x:sum(?")
        enter("luma.sum()")
        assert.is_nil(wait_for("luma.sum()\n"):find("luma:sum", 1, true))
        enter("('s'):nosuch() -- of nothing that is known")
        wait_for("method 'nosuch'")
        enter("s = 's'")
        enter("s:gsubb('a')")
        wait_for("did you mean s:gsub?")
        enter("luma.image.load(1)")
        seen = wait_for("got number)\n  luma.image.load(1)\n" .. (" "):rep(18) .. "^")
        assert.is_nil(seen:find("traceback", 1, true))
        stop()
    end)

    it("shows the line of an earlier input that an error comes from", function()
        start()
        enter("function f(a) local b = a * luma.ones(7) return b end")
        enter("x = luma.ones(2)")
        enter("f(x) * 2")
        local seen = wait_for("input 3:1: in main chunk")
        assert.matches("\ninput 1:1: bad argument.-\n  function f%(a%) local b = a %* luma", seen)
        assert.is_truthy(seen:find("\n" .. (" "):rep(28) .. "^\n", 1, true))
        enter(":time f(x)")
        seen = wait_for("input 4:1: in ")
        assert.is_nil(seen:find("commands.lua", 1, true))
        stop()
    end)

    it("breaks long help between words", function()
        start(60)
        enter("?? running sum")
        enter("?")
        wait_for(" cuda.f64\n")
        for line in screen():gmatch("[^\n]+") do assert.is_true(#line <= 60) end
        enter("help(luma.sum)")
        wait_for("luma.sum(x")
        stop()
    end)

    it("gives up the line, or what runs, on Ctrl-C", function()
        start()
        type_keys("not to be run(")
        wait_for("run(")
        press("C-c")
        enter("while true do end")
        program.shell("sleep 0.2")
        press("C-c")
        wait_for("interrupted")
        enter("coroutine.wrap(function() while true do end end)()")
        program.shell("sleep 0.2")
        press("C-c")
        enter("'still ' .. 'here'")
        wait_for("still here")
        stop()
    end)

    it("gives up the line on Ctrl-C while it is busy with what was typed before", function()
        start()
        -- a key that comes in the instant of Ctrl-C may go with the line: one of the blanks
        tmux(("send-keys -l %s \\; send-keys C-c \\; send-keys -l '   40 + 2' \\; send-keys Enter")
            :format(("x"):rep(3000)))
        wait_for("\n42")
        stop()
    end)

    it("takes a paste of several lines as one chunk", function()
        start()
        program.shell(("printf 'for i = 1, 2 do\\nprint(\"p\" .. i)\\nend' | tmux -L %s load-buffer -")
            :format(socket))
        tmux("paste-buffer -p")
        press("Enter")
        wait_for("p1\np2")
        stop()
    end)

    it("remembers lines from one session to the next, each once", function()
        start()
        enter("'one'")
        enter("'two'")
        enter("'one'")
        wait_for("one\n> 'two'\ntwo\n> 'one'\none")
        stop()
        start()
        press("Up")
        wait_for("> 'one'")
        press("Up")
        wait_for("> 'two'")
        press("Up")
        program.shell("sleep 0.1")
        assert.is_truthy(screen():find("> 'two'", 1, true))
        press("C-u")
        stop()
    end)

    it("has commands", function()
        start()
        enter("kept = luma.ones(256)")
        enter(":who")
        wait_for("kept         Tensor[float32 256 cpu]  1.0 KiB")
        enter(":mem")
        wait_for("cpu: allocated")
        enter(":time kept + 1")
        wait_for(" of tensors each")
        assert.matches(", median of %d+; 1%.0 KiB of tensors each", screen())
        enter(":save saved.lua")
        wait_for("1 inputs written to saved.lua")
        enter("kept = nil")
        enter(":load saved.lua")
        enter("kept:numel()")
        wait_for("256")
        enter(":nonsense")
        wait_for("no command ':nonsense'")
        enter(":qut")
        wait_for("did you mean :quit?")
        enter("?? running sum")
        wait_for("cumsum")
        enter(":q")
        program.shell("sleep 0.3")
        local _, status = tmux("has-session")
        assert.is_not.equal(0, status)
    end)

    it("works in a narrow window and after a resize", function()
        start(40)
        enter("x = 'a line that is longer than the window is wide' return #x")
        wait_for("45")
        tmux("resize-window -x 100")
        enter("luma.config().columns")
        wait_for("100")
        stop()
    end)

    it("reads the user's init.lua, and not with -E", function()
        program.shell(("mkdir -p %s/luma && echo 'mine = 41 _PROMPT = \"me: \"' >%s/luma/init.lua")
            :format(folder, folder))
        start(80, nil, "me:")
        enter("mine + 1")
        wait_for("42")
        stop()
    end)

    it("does without readline", function()
        program.shell(("for f in libreadline.so.8 libreadline.so.7 libreadline.so; do echo bad >%s/$f; done")
            :format(folder)) -- what is no library ends the search for it
        start(80, "LD_LIBRARY_PATH=" .. folder)
        enter("x = luma.ones(2)")
        enter("for i = 1, 2 do")
        wait_for(">>")
        press("C-c")
        enter("x + 1")
        wait_for("{2.0, 2.0}\n[float32 2 cpu]")
        enter("while true do end")
        program.shell("sleep 0.3")
        press("C-c")
        wait_for("interrupted")
        enter("'still ' .. 'here'")
        wait_for("still here")
        local report = program.shell("LD_LIBRARY_PATH=" .. folder .. " $LUMA check")
        assert.matches("\nreadline +not there", report)
        stop()
    end)

    it("has no colour where none is wanted", function()
        start(80, "NO_COLOR=1")
        enter("luma.ones(2)")
        wait_for("[float32 2 cpu]")
        local seen = tmux("capture-pane -p -e")
        assert.is_nil(seen:find("\27%[2m"))
        stop()
    end)
end)
