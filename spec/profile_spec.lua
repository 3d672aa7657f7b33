-- luma.profile, luma.set_op_callback and LUMA_LOG: what ran, on what, which way, where.
local luma = require "luma"
local device = require "spec.support.device"
local program = require "spec.support.program"

-- "add x 2, mul x 1": operations with their calls, a ! behind those that failed.
local function names(report)
    local list = {}
    for _, op in ipairs(report.operations) do
        list[#list + 1] = ("%s x %d%s"):format(op.operation, op.calls, op.failed and "!" or "")
    end
    table.sort(list)
    return table.concat(list, ", ")
end

-- The row of an operation, which must be the only one of that name.
local function row(report, name)
    local found
    for _, op in ipairs(report.operations) do
        if op.operation == name then
            assert(not found, "several rows of " .. name)
            found = op
        end
    end
    return assert(found, "no row of " .. name)
end

describe("luma.profile", function()
    local a, b
    before_each(function()
        a, b = luma.ones(4, 6), luma.ones(4, 6)
        assert.is_nil((debug.gethook()))
    end)
    after_each(function() assert.is_nil((debug.gethook())) end)

    it("gives operations with calls, shapes, dtypes, bytes, times and lines, and the results", function()
        local line = debug.getinfo(1, "l").currentline
        local report, one, two, three = luma.profile(function(x, y)
            for _ = 1, 3 do local _ = x + y end
            return x:to("float64"), nil, 7
        end, a, b)
        assert.equal("float64", one.dtype)
        assert.is_nil(two)
        assert.equal(7, three)
        assert.equal("add x 3, to x 1", names(report))
        local add = row(report, "add")
        assert.equal("4x6 4x6 -> 4x6", add.shapes)
        assert.equal("float32", add.dtypes)
        assert.equal(3 * 3 * 24 * 4, add.bytes)
        assert.equal(a.device, add.device)
        assert.matches("profile_spec.lua:" .. line + 2 .. "$", add.line)
        assert.equal("float32 -> float64", row(report, "to").dtypes)
        assert.is_true(add.time > 0 and report.time >= add.time and report.total >= report.time)
        assert.equal(4, report.calls)
    end)

    it("sees every kind of operation", function()
        local report = luma.profile(function()
            local c = luma.zeros(3)
            c[2] = 1
            c["1:2"] = 3
            c:add_(1):fill_(2)
            assert(-c and c[{{1, 2}}] and c["::2"] and c[c:gt(1)] and c(1) and c == c:clone())
            luma.cat({a, b}, 1)
            luma.stack{a, b}
            luma.where(a:gt(0), a, 0)
            a:matmul(b:t())
            a:sort()
            a:split(2)
            luma.add(a, b, {out = a})
            luma.rand(3)
            a:sum():item()
            a:totable()
            luma.tensor{1, 2}
            luma.equal(a, b)
            for _, r in pairs(a) do local _ = r end
            luma.multinomial(luma.ones(3), 2)
            luma.triu(a)
        end)
        local seen = {}
        for _, op in ipairs(report.operations) do
            seen[op.operation] = true
            assert.is_true(op.path ~= "" and op.shapes ~= "" and op.line ~= "", op.operation)
        end
        for name in ([[zeros newindex add_ fill_ neg index gt call equal clone cat stack where matmul t sort
            split add rand sum item totable tensor pairs ones multinomial triu]]):gmatch("%S+") do
            assert.is_true(seen[name], name)
        end
    end)

    it("tells nothing of metadata and of looking up methods", function()
        local report = luma.profile(function()
            return a.shape, a:numel(), #a, a:stride(), a.dtype, a:is_contiguous(), luma.is_tensor(a)
        end)
        assert.equal(0, report.calls)
        assert.matches("^calls%s+time.*\n0 calls, ", tostring(report))
    end)

    it("sees functions that were fetched before and Lua functions of luma by the caller's line", function()
        local add, help = luma.add, luma.show
        local report = luma.profile(function()
            add(a, b)
            help(a)
        end)
        for _, op in ipairs(report.operations) do
            assert.matches("profile_spec.lua:%d+$", op.line)
        end
        row(report, "add")
    end)

    it("names the path that was taken", function()
        local report = luma.profile(function()
            a:t()
            a:t():contiguous()
            a:reshape(24)
            luma.cat({a, b}, 1)
            a:exp()
        end)
        local transposes = {}
        for _, op in ipairs(report.operations) do
            if op.operation == "t" then transposes[#transposes + 1] = op end
        end
        assert.equal("view", transposes[1].path)
        assert.equal(0, transposes[1].bytes)
        assert.matches("^strided", row(report, "contiguous").path)
        assert.equal("shared", row(report, "reshape").path)
        assert.matches("^memcpy x 2", row(report, "cat").path)
        assert.equal(device.is_cpu and luma.config().cpu or "kernel", row(report, "exp").path)
    end)

    it("counts what failed and goes on", function()
        local report = luma.profile(function()
            pcall(luma.add, a, luma.ones(5))
            pcall(function() return a * luma.ones(5) end)
            coroutine.wrap(function() pcall(luma.sub, a, luma.ones(5)) end)()
            local _ = a / 2
            pcall(luma.matmul, a, a)
        end)
        assert.equal("add x 1!, div x 1, matmul x 1!, mul x 1!, ones x 1, ones x 1, ones x 1, sub x 1!",
            names(report))
    end)

    it("finds errors of a device where they are made, and those of before at the first operation", function()
        if device.is_cpu then return pending("needs a device") end
        local x, zeros = luma.range(1, 4), luma.zeros(4, {dtype = "int64"})
        local message
        local report = luma.profile(function()
            local line = debug.getinfo(1, "l").currentline
            local good
            good, message = pcall(function() return x // zeros end)
            assert.is_false(good)
            assert.matches(("profile_spec.lua:%d: attempt to perform 'n//0'"):format(line + 2), message)
            local _ = x + 1
        end)
        assert.equal("add x 1, floor_div x 1!", names(report))
        local _ = x // zeros
        local good
        good, message = pcall(luma.profile, function() return x + 1 end)
        assert.is_false(good)
        assert.matches("profile_spec.lua:%d+: attempt to perform 'n//0'", message)
        assert.equal(14, (x + 1):sum():item())
    end)

    it("passes on errors and leaves nothing behind", function()
        local good, message = pcall(luma.profile, function()
            local _ = a + 1
            error({"mine"})
        end)
        assert.is_false(good)
        assert.equal("mine", message[1])
        assert.is_nil((debug.gethook()))
        assert.has_error(function() luma.profile(3) end,
            "bad argument #1 to 'profile' (function expected, got number)")
    end)

    it("nests: the outer one hears what the inner one does", function()
        local inner
        local outer = luma.profile(function()
            local _ = a + 1
            inner = luma.profile(function() local _ = a * 2 end)
            _ = a - 1
        end)
        assert.equal("mul x 1", names(inner))
        assert.equal("add x 1, mul x 1, sub x 1", names(outer))
    end)

    it("follows coroutines, and does not hear while its own one is suspended", function()
        local old = coroutine.create(function()
            while true do coroutine.yield(a + 1) end
        end)
        coroutine.resume(old)
        assert.equal("add x 2, neg x 1", names(luma.profile(function()
            coroutine.resume(old)
            coroutine.wrap(function() luma.neg(a) end)()
            coroutine.resume(old)
        end)))
        coroutine.resume(old)
        assert.is_nil((debug.gethook(old)))
        local report
        local mine = coroutine.wrap(function()
            report = luma.profile(function()
                local _ = a + 1
                coroutine.yield()
                _ = a * 2
            end)
        end)
        mine()
        local _ = a / 2
        mine()
        assert.equal("add x 1, mul x 1", names(report))
    end)

    it("is gone with a coroutine that is given up", function()
        coroutine.wrap(function() luma.profile(coroutine.yield) end)()
        collectgarbage()
        collectgarbage()
        local _ = a + 1
        assert.is_nil((debug.gethook()))
    end)

    it("stands for the hook that is there, but for one that counts", function()
        local lines = 0
        local function hook() lines = lines + 1 end
        debug.sethook(hook, "l")
        local report = luma.profile(function()
            local _ = a + 1
            _ = a + 2
        end)
        local there, mask = debug.gethook()
        debug.sethook()
        assert.equal("add x 1, add x 1", names(report))
        assert.is_true(lines > 5)
        assert.equal(hook, there)
        assert.equal("l", mask)
        debug.sethook(function() end, "", 100000)
        local good, message = pcall(luma.profile, function() end)
        debug.sethook()
        assert.is_false(good)
        assert.matches("^operations cannot be watched: a hook counts instructions", message)
    end)
end)

describe("luma.set_op_callback", function()
    it("calls a function after every operation until nil", function()
        local a, heard = luma.ones(3), {}
        luma.set_op_callback(function(record) heard[#heard + 1] = record end)
        local _ = a + 1
        a:sum()
        luma.set_op_callback(nil)
        _ = a + 1
        assert.equal(2, #heard)
        assert.equal("add", heard[1].operation)
        assert.equal("3 -> 3", heard[1].shapes)
        assert.equal("sum", heard[2].operation)
        assert.is_nil((debug.gethook()))
    end)

    it("ends with its first error, which the operation raises", function()
        local a = luma.ones(3)
        luma.set_op_callback(function(record) error("heard " .. record.operation, 0) end)
        local good, message = pcall(function() return a + 1 end)
        assert.is_false(good)
        assert.equal("heard add", message)
        assert.equal(6, (a + 1):sum():item())
        assert.is_nil((debug.gethook()))
    end)
end)

describe("LUMA_LOG=ops", function()
    if not program.is_luma then
        pending("needs the luma program")
        return
    end

    it("writes a line for each operation to stderr", function()
        local text = "local x = luma.ones(2, 3, {device = 'cpu'}) print((x + 1):sum():item())"
        local output, status = program.shell("LUMA_LOG=ops $LUMA -e " .. program.quote(text)
            .. " 2>&1 >/dev/null")
        assert.equal(0, status)
        local lines = {}
        for line in output:gmatch("[^\n]+") do lines[#lines + 1] = line end
        assert.equal(4, #lines)
        assert.matches("^luma: ones %w+ %-> 2x3 float32 cpu, 24 B, [%d.]+ us, %(command line%):1$",
            lines[1])
        assert.matches("^luma: add %w+ 2x3 %-> 2x3 float32 cpu, 48 B", lines[2])
        assert.matches("^luma: sum ", lines[3])
        assert.matches("^luma: item ", lines[4])
    end)

    it("is refused where it names nothing", function()
        local output, status = program.shell("LUMA_LOG=opps $LUMA -e 'print(1)' 2>&1")
        assert.equal(1, status)
        assert.matches("LUMA_LOG: 'ops' expected, got 'opps'", output)
    end)

    it("goes on after Ctrl-C at the prompt has stopped an operation", function()
        local output = program.shell([[
            pid=$(mktemp)
            { printf 'pcall(function() while true do end end)\n'; sleep 0.5; kill -INT $(cat $pid)
              sleep 0.2; printf 'luma.ones(2)\n'; } |
            LUMA_LOG=ops env --default-signal=INT sh -c 'echo $$ >'$pid'; exec "$0" -i' $LUMA 2>&1
            rm $pid]])
        assert.matches("interrupted", output)
        assert.matches("luma: ones ", output)
    end)
end)
