-- init.lua -- what Lua adds to the module when it is opened. Printing and help are loaded when they
-- are first used. Layer: lua.
local luma, tensor_meta, load = ...

local parts = {}
local part
function part(name, own)
    parts[name] = parts[name] or load(name)(luma, part, own or tensor_meta)
    return parts[name]
end

function tensor_meta.__tostring(x) return part("print").tostring(x) end

-- Text of any value, as the prompt shows it.
function luma.show(v) return part("print").show(v) end

-- luma.set_print{precision =, threshold =, edge =, width =} returns the settings before.
function luma.set_print(options) return part("print").set_print(options) end

-- Text about an operation, given by name or as the function; without argument, what there is.
function luma.help(what) return part("help").help(what) end

-- One line for each operation whose name or sentence has all the words.
function luma.help_search(words) return part("help").search(words) end

-- PNG files.
local png = luma.image
luma.image = {}
function luma.image.load(...) return part("image", png).load(...) end
function luma.image.save(...) return part("image", png).save(...) end

-- Quantised tensors.
function luma.quantize(...) return part("quant").quantize(...) end
function luma.quantized(...) return part("quant").quantized(...) end
function luma.dequantize(...) return part("quant").dequantize(...) end
function luma.quantized_matmul(...) return part("quant").quantized_matmul(...) end
tensor_meta.methods.quantize = luma.quantize
tensor_meta.methods.quantized_matmul = luma.quantized_matmul

-- A loop that says how far it is.
function luma.progress(...) return part("progress")(...) end

-- luma.plot(...) draws lines; its fields draw the rest. Loaded when one of them is asked for.
luma.plot = setmetatable({}, {
    __index = function(_, name) return part("plot")[name] end,
    __call = function(_, ...) return part("plot").line(...) end,
})

-- Elementwise functions that run in one pass: of an expression, or of a Lua function.
function luma.kernel(...) return part("kernel").kernel(...) end
function luma.fuse(...) return part("kernel").fuse(...) end
function luma.define(options) return part("define").define(options) end
function tensor_meta.fused_meta.__tostring(f) return part("kernel").text(tensor_meta.fused_about(f)) end
tensor_meta.fused_meta.__index = {
    help = function(f) return luma.help(f) end,
    -- how many results were made in one pass; the others went operation by operation
    passes = tensor_meta.fused_passes,
}

-- What a function runs, with times; a function that hears of every operation.
function luma.profile(...) return part("profile").profile(...) end
function luma.set_op_callback(f) return part("profile").set_callback(f) end

local log = os and os.getenv and os.getenv("LUMA_LOG")
if log and log ~= "" and io and io.stderr then
    if log ~= "ops" then error("LUMA_LOG: 'ops' expected, got '" .. log .. "'", 0) end
    part("profile").log(io.stderr)
end
