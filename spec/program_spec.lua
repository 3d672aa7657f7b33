-- The luma program: options, the prompt, errors, Ctrl-C.
local luma = require "luma"
local program = require "spec.support.program"

local run, shell = program.run, program.shell

describe("the luma program", function()
    if not program.is_luma then
        pending("is not what runs these specs")
        return
    end

    local function with_file(text, body)
        local name = os.tmpname()
        local file = assert(io.open(name, "w"))
        file:write(text)
        file:close()
        local good, message = pcall(body, name)
        os.remove(name)
        if not good then error(message, 0) end
    end

    it("runs -e, -l and scripts in the order of the command line", function()
        assert.same({"1\nok\n", 0}, {run{"-e", "x = 1", "-e", "print(x)", "-e", "print'ok'"}})
        assert.same({"table\n", 0}, {run{"-l", "s=string", "-e", "print(type(s))"}})
        assert.same({"7\n", 0}, {run({"-"}, "print(7)")})
        assert.same({"7\n", 0}, {run({}, "print(7)")})
    end)

    it("gives a script its arguments and the table arg", function()
        local text = "print(...) print(arg[0] == ..., arg[1], arg[2], #arg, arg[-1] ~= nil)"
        with_file(text, function(name)
            local output = run{name, "a b", "2"}
            assert.equal("a b\t2\nfalse\ta b\t2\t2\ttrue\n", output)
            assert.equal("-x\nfalse\t-x\tnil\t1\ttrue\n", (run{"--", name, "-x"}))
        end)
    end)

    it("has luma as the only extra global", function()
        local standard = {}
        for name in ([[_G _VERSION arg assert collectgarbage coroutine debug dofile error
            getmetatable io ipairs load loadfile luma math next os package pairs pcall print
            rawequal rawget rawlen rawset require select setmetatable string table tonumber
            tostring type utf8 warn xpcall]]):gmatch("%S+") do
            standard[#standard + 1] = name
        end
        local output = run{"-e", [[
            local names = {}
            for name in pairs(_G) do names[#names + 1] = name end
            table.sort(names)
            print(table.concat(names, " "))]]}
        assert.equal(table.concat(standard, " ") .. "\n", output)
        assert.same({"true\n", 0}, {run{"-e", "print(luma == require 'luma')"}})
    end)

    it("runs LUA_INIT, and not with -E", function()
        assert.equal("init\nx\n", (shell([[LUA_INIT='print "init"' $LUMA -e 'print "x"']])))
        assert.equal("x\n", (shell([[LUA_INIT='print "init"' $LUMA -E -e 'print "x"']])))
        local output, status = shell([[LUA_INIT='error "z"' $LUMA -e 'print "x"']])
        assert.equal(1, status)
        assert.matches("LUA_INIT:1: z", output)
    end)

    it("collects in generational mode", function()
        assert.equal("generational\n", (run{"-e", "print(collectgarbage 'incremental')"}))
    end)

    it("turns warnings on with -W", function()
        assert.equal("", (run{"-e", "warn 'w'"}))
        assert.equal("Lua warning: w\n", (run{"-W", "-e", "warn 'w'"}))
    end)

    it("shows versions with -v and the usage for a wrong option", function()
        assert.matches("^luma %d+%.%d+%.%d+ %(Lua 5%.4", (run{"-v"}))
        local output, status = run{"-x"}
        assert.equal(1, status)
        assert.matches("unrecognized option '%-x'\nusage: ", output)
        output, status = run{"-e"}
        assert.equal(1, status)
        assert.matches("'%-e' needs argument", output)
    end)

    it("shows CPU, threads and CUDA with --version, and starts no device", function()
        local output, status = shell("LUMA_THREADS=3 LUMA_CUDA=off $LUMA --version")
        assert.equal(0, status)
        assert.matches("^luma %d[%d.]+ %(Lua 5%.4.-%)\nCPU: %w+ %(this machine runs base[%w, ]*%), 3 "
            .. "threads\nCUDA: no CUDA driver %(LUMA_CUDA=off%)", output)
        assert.matches("\nCUDA: an emulated device", -- which would not start
            (shell("LUMA_CUDA=emulate LUMA_EMU_FAIL=cuInit:1 $LUMA --version")))
        output, status = run{"--help"}
        assert.equal(0, status)
        assert.matches("^usage: ", output)
    end)

    describe("check", function()
        it("reports what was found and tries the devices", function()
            local output, status = shell("LUMA_CUDA=off LUMA_LIBCURAND=/none $LUMA check")
            assert.equal(0, status)
            assert.matches("\nCPU +%w+ %(this machine runs base", output)
            assert.matches("\ncpu +[%d.]+ %w+ of memory, [%d.]+ %w+ free; computes %(", output)
            assert.matches("\nCUDA driver +no CUDA driver %(LUMA_CUDA=off%)\n", output)
            assert.matches("\ncuBLAS +not opened without a driver\n", output)
            assert.matches("\ncuRAND +no cuRAND %(LUMA_LIBCURAND=/none: ", output)
            for what in ("NVRTC emulator PTX readline libpng history init.lua package.path"):gmatch("%S+") do
                assert.is_truthy(output:find("\n" .. what .. " ", 1, true), what)
            end
            assert.matches("\nLUMA_CUDA +off\n.*what is there works\n$", output)
        end)

        it("tries an emulated device, and ends with status 1 where one does not compute", function()
            local output, status = shell("LUMA_CUDA=emulate $LUMA check")
            assert.equal(0, status)
            assert.matches("\nCUDA driver +emulated %(CUDA 13.0%)\ncuBLAS +emulated\ncuRAND +emulated\n"
                .. "NVRTC +emulated\n",
                output)
            assert.matches("\ncuda:0 +luma emulated device 0, compute capability 9.0, 4.0 GiB of memory, "
                .. "[%d.]+ GiB free; computes", output)
            output, status = shell("LUMA_CUDA=emulate LUMA_EMU_FAIL=cuLaunchKernel:1 $LUMA check")
            assert.equal(1, status)
            assert.matches("\ncuda:0 +PROBLEM: .*does not compute: ", output)
            assert.matches("1 problem\n$", output)
            output, status = shell("LUMA_CUDA=emul $LUMA check")
            assert.equal(1, status)
            assert.matches("PROBLEM: no CUDA driver %(LUMA_CUDA=emul: ", output)
        end)

        it("is a script's name after -- and with arguments", function()
            local output, status = run{"--", "check"}
            assert.equal(1, status)
            assert.matches("cannot open check", output)
        end)
    end)

    it("runs scripts that begin with #!", function()
        with_file("#!/usr/bin/env luma\nprint('line', debug.getinfo(1, 'l').currentline, ...)", function(name)
            assert.equal("line\t2\targument\n", (run{name, "argument"}))
        end)
    end)

    it("reads LUA_INIT_5_4 before LUA_INIT, and a file after @", function()
        with_file("print 'from a file'", function(name)
            assert.equal("from a file\nx\n",
                (shell("LUA_INIT_5_4=@" .. name .. " LUA_INIT='print 1' $LUMA -e 'print \"x\"'")))
        end)
    end)

    it("gives arg all of the command line", function()
        local text = "local t = {} for i = -6, 6 do if arg[i] then t[#t + 1] = i .. '=' .. arg[i] end end "
            .. "t[1] = t[1]:match('^[^=]*=') print(table.concat(t, ' '))"
        with_file(text, function(name)
            assert.equal(("-5= -4=-W -3=-e -2= -1=-- 0=%s 1=one 2=-two\n"):format(name),
                (run{"-W", "-e", "", "--", name, "one", "-two"}))
        end)
    end)

    it("starts in under 10 ms and 12 MB #slow", function()
        local best = math.huge
        for _ = 1, 40 do -- with the shell; the least of them, since others may keep the machine busy
            local start = luma.clock()
            shell("$LUMA -e ''")
            best = math.min(best, luma.clock() - start)
        end
        assert.is_true(best < 0.010, best .. " seconds")
        local output = run{"-e", "for line in io.lines '/proc/self/status' do print(line) end"}
        assert.is_true(tonumber(output:match("VmHWM:%s*(%d+) kB")) < 12 * 1024, output)
    end)

    it("names what is near a function that luma has not", function()
        local output, status = run{"-e", "luma.zers(2)"}
        assert.equal(1, status)
        assert.matches("nil value %(field 'zers'%)\nluma has no 'zers'; near it: zeros[^\n]*\nstack", output)
        output = run{"-e", "print(luma.zers) local t = {} t.foo()"}
        assert.matches("^nil\n.*nil value %(field 'foo'%)\nstack", output)
        output = run{"-e", "local luma = {} luma.zers(2)"}
        assert.matches("nil value %(field 'zers'%)\nstack", output)
        output = run{"-e", "package.loaded.luma = nil luma.zers(2)"}
        assert.matches("nil value %(field 'zers'%)\nstack", output)
    end)

    it("leaves frames of luma's own files out of tracebacks", function()
        local output = run{"-e", "local function f() luma.plot({1}, {titel = 1}) end f()"}
        assert.matches("'title'%?%)\nstack traceback:\n\t%(command line%):1: in local 'f'\n", output)
        output = run{"-e", "local function f() luma.plot.hist() end f()"}
        assert.matches("\nstack traceback:\n\t%(command line%):1: in local 'f'\n", output)
        output = run{"-e", "local function f() error 'no' end f()"}
        assert.matches("no\nstack traceback:\n\t%[C%]: in function 'error'\n", output)
    end)

    it("reports errors with a traceback and status 1", function()
        local output, status = run{"-e", "local function f() error 'no' end f()"}
        assert.equal(1, status)
        assert.matches("%(command line%):1: no\nstack traceback:\n.*%(command line%):1: in ", output)
        output, status = run{"-e",
            "error(setmetatable({}, {__tostring = function() return 'E' end}))"}
        assert.equal(1, status)
        assert.matches(": E\n$", output)
        output, status = run{"/no/such/file.lua"}
        assert.equal(1, status)
        assert.matches("cannot open /no/such/file.lua", output, 1, true)
        assert.same({"", 3}, {run{"-e", "os.exit(3)"}})
    end)

    it("loads C modules of Lua", function()
        assert.same({"directory\n", 0},
            {run{"-l", "lfs", "-e", "print(lfs.attributes('.', 'mode'))"}})
    end)

    it("prints values at the prompt, without banner and prompt in a pipe", function()
        local output, status = run({"-i"},
            "x = 42\nx\nx, nil, 's'\nfor i = 1, 2 do\nprint(i)\nend\n1 +\n2\n")
        assert.equal("42\n42\tnil\ts\n1\n2\n3\n", output)
        assert.equal(0, status)
    end)

    it("shows several values in a line each where one has several lines", function()
        assert.equal("1\t2\n1\n{1.0}\n[float32 1 cpu]\nnil\n",
            (run({"-i"}, "1, 2\n1, luma.ones(1), nil\n")))
    end)

    it("shows functions of luma with their call", function()
        local output = run({"-i"}, "luma.cumsum\nluma.ones(1).item\nprint\nfunction f() end\nf\n")
        assert.matches("^function: [%w:]*x?%w+  luma%.cumsum%(x %[, dim%]%)\nfunction: [^\n]*  x:item%(%)\n"
            .. "function: [^\n ]*\nfunction: [^\n ]*\n$", output)
    end)

    it("shows the expression behind the last semicolon", function()
        assert.equal("1\nb;c\t2\n1\n2\n4\n",
            (run({"-i"}, "x = 1; x\nx = 'b;c'; x, 2\nfor i = 1, 2 do print(i); x\n= 4 end\nx\nx = 5; x;\n")))
    end)

    it("tells of a name that was local to an earlier input", function()
        local output = run({"-i"}, "local one, two = 1, 2\ntwo()\n")
        assert.matches("\ntwo was local to its input: at the prompt, leave out 'local'\n", output)
    end)

    it("shows tables, tensors in them on one line", function()
        assert.equal('{1, "a", t = Tensor[float32 2x3 cpu]}\n',
            (run({"-i"}, "{1, 'a', t = luma.zeros(2, 3)}\n")))
    end)

    it("answers ?name as luma.help does", function()
        local output = run({"-i"}, "?softmax\nprint(luma.help 'softmax')\n")
        local half = #output // 2
        assert.matches("^luma.softmax", output)
        assert.equal(output:sub(1, half), output:sub(half + 1))
    end)

    it("goes on after errors at the prompt", function()
        local output, status = run({"-i"},
            "x = 1\nfunction f() error 'e1' end\nf()\n)\nerror {}\nx\nluma.zeros(2):nosuch()\nx\n")
        assert.equal(0, status)
        assert.matches("e1\n[^\n]*\nstack traceback:\n[^\n]*\n[^\n]*'f'\n", output)
        assert.matches("unexpected symbol near '%)'", output)
        assert.matches("error object is a table value", output)
        assert.matches("\n1\n.*\n1\n$", output)
    end)

    describe("on Ctrl-C", function()
        -- Runs a text that says ready() where Ctrl-C is to come; what it wrote but for that.
        local function interrupted(text)
            local output, status = shell([[
                out=$(mktemp)
                env --default-signal=INT $LUMA -e ]] .. program.quote(
                "local function ready() print('ready') io.stdout:flush() end " .. text) .. [[
                    >"$out" 2>&1 &
                until grep -q ready "$out"; do sleep 0.02; done
                sleep 0.1
                kill -INT $!
                wait $!
                status=$?
                cat "$out"
                rm "$out"
                exit $status]])
            return (output:gsub("^ready\n", "")), status
        end

        it("stops Lua code", function()
            local output = interrupted("ready() while true do end")
            assert.matches(": interrupted\nstack traceback:", output)
        end)

        it("stops Lua code in a coroutine", function()
            assert.matches("interrupted", (interrupted(
                "ready() coroutine.wrap(function() while true do end end)()")))
            assert.matches("^after\tfalse\t.*interrupted\n$", (interrupted([[
                local co = coroutine.create(function() ready() while true do end end)
                print('after', coroutine.resume(co))]])))
        end)

        it("stops a tensor operation, once", function()
            local output = interrupted([[
                local a = luma.ones(3000, 3000)
                local good, message = pcall(function() ready() while true do a:matmul(a) end end)
                print(good, message, a:sum():item())]])
            assert.matches("^false\t.*interrupted\t9000000", output)
        end)

        it("stops the making of a long tensor", function()
            assert.equal("false\tinterrupted\n", (interrupted(
                "ready() print(pcall(luma.linspace, 0, 1, 500000000, 'f16'))")))
        end)

        it("is one error for each press, where a script goes on and time passes", function()
            local output = shell([[
                out=$(mktemp)
                env --default-signal=INT $LUMA -e 'for i = 1, 2 do
                    local good, message = pcall(function()
                        print("ready" .. i) io.stdout:flush()
                        while true do end
                    end)
                    print(i, good, message:match "interrupted")
                end print "end"' >"$out" 2>&1 &
                for i in 1 2; do
                    until grep -q ready$i "$out"; do sleep 0.02; done
                    sleep 1.2
                    kill -INT $!
                done
                wait $!
                cat "$out"
                rm "$out"]])
            assert.equal("ready1\n1\tfalse\tinterrupted\nready2\n2\tfalse\tinterrupted\nend\n", output)
        end)

        it("ends the process as the signal does", function()
            local _, status = shell([[
                $LUMA -e 'while true do end' & pid=$!
                sleep 0.3; kill -INT $pid; wait $pid]])
            assert.equal(130, status)
        end)

        it("leaves the prompt usable, whatever was going on", function()
            if not os.execute("command -v script >/dev/null") then
                pending("needs script(1) for a terminal")
                return
            end
            local output = shell([[
                { pause() { sleep 0.4; printf '\003'; sleep 0.2; }
                  printf 'x = 42\n'; pause; printf 'half'; pause; printf 'for i = 1, 2 do\n'; pause
                  printf 'while true do end\n'; pause
                  printf 'a = luma.ones(2000, 2000) while true do a:matmul(a) end\n'; pause
                  printf 'print("x is", x)\n'; sleep 0.4; printf '\004'; } |
                script -qec "$LUMA" /dev/null]])
            assert.matches("x is\t42\r\n", output)
            assert.matches("input %d+:1: interrupted.*interrupted", output)
        end)
    end)
end)
