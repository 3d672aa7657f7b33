-- define_spec.lua -- luma.define: operations of a script's own in the registry.
local luma = require "luma"
local device = require "spec.support.device"

local function plain(message)
  return (tostring(message):gsub("^[^:]*:%d+: ", ""))
end

local function fails(message, f, ...)
  local good, got = pcall(f, ...)
  assert.is_false(good, message)
  assert.equal(message, plain(got))
end

describe("luma.define", function()
  teardown(function() -- other specs go through what is luma's own
    for i = #luma.ops, 1, -1 do
      local row = luma.ops[i]
      if row.row == "defined" then
        luma[row.name] = nil
        table.remove(luma.ops, i)
      end
    end
  end)

  local x = luma.tensor{{1, -2}, {3, 4}}

  it("makes a function, a method and help of a Lua function", function()
    local f = luma.define{
      name = "centered", signature = "x, dim:dim?, {scale:number}", doc = "x less its mean.",
      forward = function(t, dim, options)
        if type(dim) == "table" then dim, options = nil, dim end
        local y = t - (dim and t:mean(dim, {keepdim = true}) or t:mean())
        return options and y * options.scale or y
      end,
    }
    assert.equal(f, luma.centered)
    assert.same((x - x:mean()):totable(), luma.centered(x):totable())
    assert.same((x - x:mean(1, {keepdim = true})):totable(), x:centered(1):totable())
    assert.same(((x - x:mean(1, {keepdim = true})) * 2):totable(), x:centered(1, {scale = 2}):totable())
    assert.same(((x - x:mean()) * 2):totable(), x:centered{scale = 2}:totable())
    local help = luma.help("centered")
    assert(help:find("luma.centered(x [, dim] [, {scale =}])", 1, true), help)
    assert(help:find("x less its mean.", 1, true))
    assert.equal(help, luma.help(luma.centered))
    assert(luma.help():find("of the script's own:[^\n]*centered"))
    assert(luma.help_search("less its mean"):find("centered", 1, true))
    assert.equal("centered", luma.ops[#luma.ops].name)
  end)

  it("checks arguments by the signature, as those of any operation", function()
    luma.define{name = "checked", signature = "x, y:operand, n:int?, {mode:fast|slow, keep:bool}",
                forward = function(...) return select("#", ...) end}
    assert.equal(2, luma.checked(x, 1))
    assert.equal(4, luma.checked(x, x, 3, {mode = "slow", keep = true}))
    assert.equal(3, x:checked(x, {mode = "fast"}))
    fails("bad argument #1 to 'checked' (tensor expected, got number)", luma.checked, 3, x)
    fails("bad argument #2 to 'checked' (tensor or number expected, got string)", luma.checked, x, "1")
    fails("bad argument #2 to 'checked' (tensor or number expected, got no value)", luma.checked, x)
    fails("bad argument #3 to 'checked' (integer expected, got boolean)", luma.checked, x, x, true)
    fails("bad argument #1 to 'checked' (tensor or number expected, got table)",
          function() return x:checked({}) end)
    assert(not pcall(luma.checked, x, x, 1, {mode = "quick"}))
    assert(not pcall(luma.checked, x, x, 1, {mod = "fast"}))
    assert(not pcall(luma.checked, x, x, 1, {out = x}))
    assert(not pcall(luma.checked, x, x, 1, {}, 5))
    local y = luma.ones(2)
    y:free()
    fails("bad argument #1 to 'checked' (the tensor was released)", luma.checked, y, 1)
  end)

  it("takes anything without a signature, and passes it on", function()
    luma.define{name = "passes_on", forward = function(...) return ... end}
    local a, b, c, d = luma.passes_on(x, nil, "text")
    assert(rawequal(a, x) and b == nil and c == "text" and d == nil)
    assert.equal(0, select("#", luma.passes_on()))
    assert(luma.help("passes_on"):find("luma.passes_on(...)", 1, true))
  end)

  it("takes kernels and fused functions, and can be called in them", function()
    luma.define{name = "gated", signature = "x:operand, y:operand", forward = luma.kernel("x * sigmoid(y)")}
    local y = x + 1
    local want = (x * y:sigmoid()):totable()
    assert.same(want, x:gated(y):totable())
    assert.same((x * y:sigmoid() + 1):totable(),
                luma.fuse(function(a, b) return luma.gated(a, b) + 1 end)(x, y):totable())
    assert.same((x * y:sigmoid() + 1):totable(), luma.kernel("gated(a, b) + 1")(x, y):totable())
    assert.same((x * y:sigmoid()):exp():totable(),
                luma.fuse(function(a, b) return a:gated(b):exp() end)(x, y):totable())
  end)

  it("passes errors and coroutines through", function()
    luma.define{name = "oops", forward = function() error("oops", 0) end}
    fails("oops", luma.oops, x)
    luma.define{name = "yields", forward = function(v) return coroutine.yield(v) end}
    local co = coroutine.wrap(function() return luma.yields(1) + 1 end)
    assert.equal(1, co())
    assert.equal(42, co(41))
  end)

  it("defines its own anew, and nothing of luma's", function()
    luma.define{name = "again", forward = function() return 1 end, doc = "One."}
    luma.define{name = "again", forward = function() return 2 end, doc = "Two."}
    assert.equal(2, luma.again())
    assert(luma.help("again"):find("Two.", 1, true))
    local count = 0
    for _, row in ipairs(luma.ops) do count = count + (row.name == "again" and 1 or 0) end
    assert.equal(1, count)
    for _, name in ipairs{"add", "sum", "zeros", "item", "shape", "define", "plot", "float32"} do
      fails(("bad argument #1 to 'define' (option 'name': '%s' is luma's own)"):format(name), luma.define,
            {name = name, forward = print})
    end
  end)

  it("says what is wrong", function()
    local function wrong(options, message)
      fails("bad argument #1 to 'define' (" .. message .. ")", luma.define, options)
    end
    wrong(nil, "options expected, got nil")
    wrong({forward = print}, "option 'name': string expected, got nil")
    wrong({name = "f"}, "option 'forward': function expected, got nil")
    wrong({name = "f", forward = 3}, "option 'forward': function expected, got number")
    wrong({name = 3, forward = print}, "option 'name': string expected, got number")
    wrong({name = "f", forward = print, bakward = print},
          "unknown option 'bakward'; there are doc, forward, name, signature")
    wrong({name = "f", forward = print, backward = print},
          "option 'backward': there are no gradients yet, they come with the tape")
    for _, name in ipairs{"", "1f", "a b", "_x", "a.b", ("x"):rep(32)} do
      wrong({name = name, forward = print},
            ("option 'name': '%s' is no name of at most 31 letters, digits and _"):format(name))
    end
    wrong({name = "halve_", forward = print},
          "option 'name': 'halve_' ends in _, as the names of what writes in place do")
    for signature, message in pairs{
      ["x, x"] = "'x' stands there twice", ["x:tensr"] = "'tensr' is no type of a parameter",
      ["x y"] = "'x y' is no parameter: name, name:type or name:type?",
      ["x?, y"] = "'y' follows one that may be absent",
      ["{a:int}, x"] = "options stand in one pair of braces at the end",
      ["x, {a:int"] = "options stand in one pair of braces at the end",
      [("x, "):rep(100)] = "at most 200 characters can be",
      ["a, b, c, d, e, f, g, h, i, j, k, l, m"] = "13 parameters, at most 12 can be",
    } do
      wrong({name = "f", forward = print, signature = signature}, "option 'signature': " .. message)
      local _, text = pcall(function()
        luma.define{name = "f", forward = print, signature = signature}
      end)
      assert.matches("^[^:]*define_spec%.lua:%d+: ", text) -- the line that calls
    end
    assert.is_nil(luma.f)
    assert(device)
  end)
end)
