-- Printing: braces that paste back, exact integers, floats to four digits, elision, width.
local luma = require "luma"
local device = require "spec.support.device"
local on = device.text

local nan, inf = 0 / 0, math.huge
local FLOATS = {"float8_e4m3", "float16", "bfloat16", "float32", "float64"}

-- The braces of a tensor's text and its last line.
local function parts(x)
    local body, footer = tostring(x):match("^(.*)\n(%[[^\n]*%])$")
    assert(body, "no footer: " .. tostring(x))
    return body, footer
end

local function values_of(x)
    local body = parts(x)
    return assert(load("local nan, inf = 0/0, math.huge return " .. body))()
end

-- Every value can be read from the text to four digits; zeros are shown only for zeros.
local function check_recoverable(x)
    local shown, flat = values_of(x), x:totable()
    assert.equal(#flat, #shown)
    for i, v in ipairs(flat) do
        local s = shown[i]
        if v ~= v then
            assert.is_true(s ~= s)
        elseif math.type(v) == "integer" or v - v ~= 0 or v == 0 then
            assert.equal(v, s)
        else
            local near = s ~= 0 and math.abs(s - v) <= 5.0001e-4 * math.abs(v)
            assert.is_true(near, ("%s shown as %s"):format(v, s))
        end
    end
end

describe("tostring", function()
    local before
    before_each(function() before = luma.set_print{width = 80} end)
    after_each(function() luma.set_print(before) end)

    it("help knows the fields", function()
        assert.equal("x.shape\n    Sizes of the dims, as a list.", luma.help "shape")
        for _, name in ipairs{"x.dtype", "device", "x.ndim"} do
            assert.matches("^x%.%l+\n    %u", luma.help(name))
        end
        assert.equal(luma.help "sum", luma.help "x.sum")
    end)

    it("lists of sizes print themselves, and are lists all the same", function()
        local x = luma.zeros(2, 3)
        assert.equal("{2, 3}", tostring(x.shape))
        assert.equal("{2, 3}", tostring(x:size()))
        assert.equal("{3, 1}", luma.show(x:stride()))
        assert.equal("{}", tostring(luma.tensor(1).shape))
        assert.equal("x is {2, 3}!", "x is " .. x.shape .. "!")
        assert.same({2, 3}, x.shape)
        assert.equal("2, 3", table.concat(x.shape, ", "))
        assert.is_false(getmetatable(x.shape))
        local sizes = x.shape
        sizes[1], sizes[3] = sizes, nil
        assert.is_false(pcall(tostring, sizes))
        assert.equal(2, x.shape[1])
    end)

    it("shows braces, then dtype, shape and device", function()
        assert.equal(on("{1.0, 2.5, -3.0}\n[float32 3 cpu]"), tostring(luma.tensor{1, 2.5, -3}))
        assert.equal(on("{{1.0, 2.0},\n {3.0, 4.0}}\n[float32 2x2 cpu]"),
            tostring(luma.tensor{{1, 2}, {3, 4}}))
        assert.equal(on("{{{1, 2},\n  {3, 4}},\n\n {{5, 6},\n  {7, 8}}}\n[int64 2x2x2 cpu]"),
            tostring(luma.tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, "int64")))
        assert.equal(on("{true, false}\n[bool 2 cpu]"), tostring(luma.tensor{true, false}))
    end)

    it("aligns columns", function()
        assert.equal(on("{{  1.00,  -2.00},\n {  3.25, 400.00}}\n[float32 2x2 cpu]"),
            tostring(luma.tensor{{1, -2}, {3.25, 400}}))
        assert.equal(on("{{ true, false},\n {false, false}}\n[bool 2x2 cpu]"),
            tostring(luma.tensor{{true, false}, {false, false}}))
        assert.equal(on("{{  1, -20},\n { 30,   4}}\n[int8 2x2 cpu]"),
            tostring(luma.tensor({{1, -20}, {30, 4}}, "int8")))
    end)

    it("shows a 0-d tensor as a bare number", function()
        assert.equal("3.0", tostring(luma.tensor(3)))
        assert.equal("0.1", tostring(luma.tensor(0.1)))
        assert.equal("0.1", tostring(luma.tensor(0.1, "float64")))
        assert.equal("0.1", tostring(luma.tensor(0.1, "float16")))
        assert.equal("1e+20", tostring(luma.tensor(1e20, "float64")))
        assert.equal("-9223372036854775808", tostring(luma.tensor(math.mininteger, "int64")))
        assert.equal("true", tostring(luma.tensor(true)))
        assert.equal("nan", tostring(luma.tensor(nan)))
        assert.equal("-inf", tostring(luma.tensor(-inf)))
        assert.equal("-0.0", tostring(luma.tensor(-0.0)))
    end)

    it("shows tensors without elements", function()
        assert.equal(on("{}\n[float32 0 cpu]"), tostring(luma.zeros(0)))
        assert.equal(on("{{},\n {}}\n[float32 2x0 cpu]"), tostring(luma.zeros(2, 0)))
        assert.equal(on("{}\n[int64 0x3 cpu]"), tostring(luma.zeros(0, 3, {dtype = "int64"})))
        -- as little of them as of others
        assert.equal(on("{{},\n {},\n {},\n ...,\n {},\n {},\n {}}\n[float32 1099511627776x0 cpu]"),
            tostring(luma.zeros(1 << 40, 0)))
        assert.equal(on("{}\n[float32 0x1099511627776 cpu]"), tostring(luma.zeros(0, 1 << 40)))
    end)

    -- A width taken from logarithms of the values failed on NaN and lost small values.
    it("shows NaN, infinities and extremes, every value to four digits", function()
        for _, dtype in ipairs(FLOATS) do
            for _, list in ipairs{{nan}, {nan, inf, -inf, 1}, {1e-30, 1}, {4.6097e-12}, {1e30, 1},
                {0, 0, 0}, {-0.0, 1}, {1e-4, 12345.678}, {0.012345, 123.45}, {9.9996, 99.996},
                {1.8446744073709552e19}, {0.5}, {448, 0.001953125},
                {3.4028234e38, 1}, {3.3895e38, 1}} do
                check_recoverable(luma.tensor(list, dtype))
            end
        end
        check_recoverable(luma.tensor({1e-320, 1.7976931348623157e308, 5e-324}, "float64"))
        local body = parts(luma.tensor{nan, inf, -inf, 1})
        assert.equal("{nan, inf, -inf, 1.0}", body)
        assert.equal("{0.0, 0.0}", (parts(luma.zeros(2))))
    end)

    it("shows integers exactly", function()
        local list = {math.mininteger, math.maxinteger, 10151188881778163}
        local body = parts(luma.tensor(list, "int64"))
        assert.equal("{-9223372036854775808, 9223372036854775807, 10151188881778163}", body)
        body = parts(luma.tensor({4294967295, 0}, "uint32"))
        assert.equal("{4294967295, 0}", body)
    end)

    it("pastes back into luma.tensor", function()
        for _, x in ipairs{luma.range(1, 24):reshape(2, 3, 4), luma.tensor{{0.5, -2}, {1, 1e9}},
            luma.tensor({{true}, {false}}), luma.tensor{16777216, 0.25}, luma.zeros(2, 0)} do
            local back = luma.tensor(values_of(x), x.dtype)
            assert.is_true(x == back)
        end
    end)

    it("shows views as what they are", function()
        local x = luma.range(1, 6):reshape(2, 3):t()
        assert.equal("{{1, 4},\n {2, 5},\n {3, 6}}", (parts(x)))
        assert.equal("{6, 5, 4, 3, 2, 1}", (parts(luma.range(1, 6):flip(1))))
        assert.equal("{7.0, 7.0, 7.0}", (parts(luma.full({1}, 7):expand(3))))
    end)

    it("leaves out the middle above a thousand elements", function()
        assert.equal(on("{1, 2, 3, ..., 1999, 2000, 2001}\n[int64 2001 cpu]"),
            tostring(luma.range(1, 2001)))
        local body = parts(luma.range(1, 10000):reshape(100, 100))
        assert.equal(6, select(2, body:gsub("%.%.%.,", "")) - 1)
        assert.matches("^{{    1,     2,     3, %.%.%.,    98,    99,   100},", body)
        assert.matches("%.%.%.,  9998,  9999, 10000}}$", body)
        assert.is_nil(parts(luma.range(1, 1000)):find("...", 1, true))
        body = parts(luma.zeros(3, 1000))
        assert.equal("{{0.0, 0.0, 0.0, ..., 0.0, 0.0, 0.0},", body:match("^[^\n]*"))
        assert.equal(3, select(2, body:gsub("%.%.%.", "")))
        assert.is_true(#tostring(luma.zeros(7, 7, 7, 7, 7, 7, 7, 7)) < 60000)
    end)

    it("reads no more than it shows", function()
        -- 64 TB if it were copied.
        local x = luma.tensor{{1}}:expand(4194304, 4194304)
        assert.matches("%[float32 4194304x4194304 " .. device.name .. "%]$", tostring(x))
    end)

    it("shows a released tensor as one", function()
        local x = luma.ones(2)
        x:free()
        assert.equal("Tensor[released]", tostring(x))
        assert.equal("{Tensor[released]}", luma.show {x})
    end)

    it("wraps lines at the width and indents what follows", function()
        luma.set_print{width = 40}
        for line in (tostring(luma.randn(3, 50)) .. "\n"):gmatch("(.-)\n") do
            assert.is_true(#line <= 40, line)
        end
        assert.equal("{100001, 100002, 100003, 100004, 100005,\n 100006, 100007}",
            (parts(luma.range(100001, 100007))))
    end)

    it("joins strings", function()
        assert.equal(on("x = {1, 2}\n[int64 2 cpu]"), "x = " .. luma.range(1, 2))
    end)
end)

describe("luma.set_print", function()
    it("changes what it is given and returns the settings before", function()
        local before = luma.set_print{precision = 8, threshold = 4, edge = 1}
        local pi = luma.tensor({math.pi, 1, 2, 3, 4}, "float64")
        local text = tostring(pi)
        local changed = luma.set_print(before)
        assert.equal(on("{3.1415927, ..., 4.0000000}\n[float64 5 cpu]"), text)
        assert.equal(8, changed.precision)
        assert.same(before, luma.set_print{})
    end)

    it("refuses anything else and changes nothing then", function()
        local before = luma.set_print{}
        for _, options in ipairs{{edge = 0}, {precision = 0}, {precision = 18}, {width = 3},
            {threshold = 1.5}, {edge = "3"}, {wrong = 1}, {precision = 5, width = -1}, 5} do
            assert.has_error(function() luma.set_print(options) end)
        end
        assert.same(before, luma.set_print{})
        assert.error_matches(function() luma.set_print{edge = 0} end,
            "bad argument #1 to 'set_print' %(edge must be a whole number from 1 to 1000%)")
    end)
end)

describe("luma.show", function()
    it("asks no metamethod what a table holds", function()
        local t = setmetatable({7, k = 8}, {__len = function() return "much" end})
        assert.equal("{7, k = 8}", luma.show(t))
    end)

    it("shows tensors in tables on one line", function()
        assert.equal(on("{a = Tensor[float32 2x3 cpu]}"), luma.show{a = luma.zeros(2, 3)})
        assert.equal(on("{Tensor[int64 0-d cpu]}"), luma.show{luma.tensor(1, "int64")})
        assert.equal('{1, "b", [2.5] = 1, nested = {k = true}}',
            luma.show{1, "b", nested = {k = true}, [2.5] = 1})
        assert.equal(on("{1, 2}\n[int64 2 cpu]"), luma.show(luma.range(1, 2)))
    end)

    it("ends on tables that hold themselves", function()
        local t = {}
        t.t = t
        assert.matches("^{t = table: ", luma.show(t))
    end)
end)

-- The rows that are luma's own: those of scripts may have no more than a name.
local function rows()
    local list = {}
    for _, row in ipairs(luma.ops) do
        if row.row ~= "defined" then list[#list + 1] = row end
    end
    return list
end

describe("luma.help", function()
    it("explains every operation of the registry", function()
        for _, row in ipairs(rows()) do
            local text = luma.help(row.name)
            assert.equal(1, (text:find("luma." .. row.name .. "(", 1, true)))
            assert.is_truthy(text:find(row.doc, 1, true))
            assert.equal(text, luma.help("luma." .. row.name))
            assert.equal(text, luma.help(luma[row.name]))
        end
    end)

    it("says which operations are methods", function()
        local x, functions = luma.zeros(1), {}
        for _, row in ipairs(rows()) do
            local text, method = luma.help(row.name), ("\n    method: x:%s("):format(row.name)
            local is = row.row ~= "make" and pcall(function() return x[row.name] end)
            assert.equal(is, text:find(method, 1, true) ~= nil, row.name)
            local only = text:find("\n    a function only, no method\n", 1, true)
            if only then functions[#functions + 1] = row.name end
        end
        assert.same({"einsum"}, functions)
    end)

    it("has an example of every operation with what it gives, and takes no random numbers", function()
        local chance = {empty = true, empty_like = true, rand = true, randn = true, randint = true,
            rand_like = true, randn_like = true, randperm = true, bernoulli = true, multinomial = true}
        luma.manual_seed(1)
        local first = luma.rand(1):item()
        luma.manual_seed(1)
        for _, row in ipairs(rows()) do
            local text = luma.help(row.name)
            assert.is_truthy(text:find("\n    example: luma.", 1, true), row.name)
            assert.equal(not chance[row.name], text:find("\n    --> ", 1, true) ~= nil, row.name)
            if chance[row.name] then assert(load("return " .. text:match("example: ([^\n]*)")))() end
            local code = text:match("example: ([^\n]*)")
            assert.is_truthy(code:find("[.:]" .. row.name .. "%f[^%w_]"), row.name)
        end
        luma.manual_seed(1)
        for _, row in ipairs(rows()) do luma.help(row.name) end
        assert.equal(first, luma.rand(1):item())
        assert.matches("\n    dtypes: integers on [%w: ]+\n", luma.help "lshift")
        assert.matches("\n    %-%-> {4, 24, 28} %[int32 3 ", luma.help "lshift")
    end)

    it("has examples of other functions, which are Lua and call them", function()
        local n = 0
        for _, kind in ipairs{"methods", "functions"} do
            for name in luma.help():match("other " .. kind .. ": ([^\n]*)"):gmatch("%S+") do
                local code = luma.help(name):match("\n    example: ([^\n]*)")
                if code then
                    n = n + 1
                    assert(load("return " .. code) or load(code), code)
                    assert.is_truthy(code:find("[.:]" .. name:gsub("%p", "%%%0") .. "[({]"), code)
                end
            end
        end
        assert.is_true(n > 20)
    end)

    it("lists what is in luma.cuda, luma.image and luma.plot", function()
        assert.matches("^luma.image\n    luma.image.load +Reads[^\n]*\n    luma.image.save ",
            luma.help "image")
        assert.equal(luma.help "cuda", luma.help(luma.cuda))
        assert.matches("\n    luma.cuda.memory ", luma.help "luma.cuda")
        assert.equal(luma.help "plot", luma.help(luma.plot))
        assert.is_false(pcall(luma.help, {}))
    end)

    it("explains every other function and method", function()
        local known = {}
        for _, row in ipairs(rows()) do
            known[row.name], known[row.name .. "_"] = true, row.inplace
        end
        local function check(name, f)
            if type(f) ~= "function" or known[name] then return end
            local text = luma.help(name)
            assert.is_nil(text:find("luma has no", 1, true), text)
            assert.is_truthy(text:find(name .. "[({]"), text)
            assert.equal(text, luma.help(f))
        end
        for name, f in pairs(luma) do check(name, f) end
        for name, f in pairs(luma.cuda) do check("cuda." .. name, f) end
    end)

    it("finds methods and in-place forms", function()
        assert.equal(luma.help "add", luma.help "x:add_")
        assert.equal(luma.help "add", luma.help(luma.zeros(1).add))
    end)

    it("names what is near an unknown name", function()
        assert.matches("no 'sotfmax'; near it: softmax", luma.help "sotfmax")
        assert.matches("luma.help%(%) lists", luma.help "qqqqqqqq")
        assert.matches("reductions: sum prod mean", luma.help())
    end)

    it("refuses what is neither name nor function", function()
        assert.error_matches(function() luma.help(1) end, "bad argument #1 to 'help'")
        assert.error_matches(function() luma.help(print) end, "not luma's")
    end)
end)
