-- quant.lua -- luma.quantize: tensors whose rows are GGML's blocks of small integers, as objects that
-- know their format and shape, over the uint8 tensor that holds the blocks. Layer: lua, on the public
-- module.
local luma, part, tensor_meta = ...
local unknown_option = part("options")

local BLOCK = tensor_meta.quant.block
local BYTES, FORMATS = {}, {} -- of a block; names
for i, format in ipairs(tensor_meta.quant.formats) do
    BYTES[format.name], FORMATS[i] = format.bytes, format.name
end

local M, methods = {}, {}
local meta = {__name = "quantized tensor", methods = methods,
    fields = {"blocks", "format", "shape", "ndim", "device"}}
local HELD = {} -- the key of an object's fields in it; a weak table would keep them all in a sandbox

local function held(q) return type(q) == "table" and rawget(q, HELD) or nil end

local function bad(level, argument, name, text, ...)
    error(("bad argument #%d to '%s' (%s)"):format(argument, name, text:format(...)), level + 1)
end

-- Calls an operation of blocks; its errors are those of the function `name`, whose caller is `level`
-- above ours. from, to: the number of an argument there and here.
local function run(level, name, operation, from, to, ...)
    local good, result = pcall(luma[operation], ...)
    if good then return result end
    if type(result) == "string" then
        result = result:gsub("^luma/quant%.lua:%d+: ", "")
        if from then
            result = result:gsub(("#%d to '%s'"):format(from, operation), ("#%d to '%s'"):format(to, name))
        end
        result = result:gsub("'" .. operation .. "'", "'" .. name .. "'")
        result = result:gsub("^" .. operation .. ":", name .. ":")
    end
    error(result, level + 1)
end

local function check_format(level, argument, name, format)
    if BYTES[format] then return end
    local got = type(format) == "string" and ("'%s'"):format(format) or type(format)
    bad(level + 1, argument, name, "%s expected, got %s", table.concat(FORMATS, " or "), got)
end

local function check_quantized(level, argument, name, q)
    if held(q) then return end
    local got = luma.is_tensor(q) and "tensor" or type(q)
    bad(level + 1, argument, name, "quantized tensor expected, got %s", got)
end

local function shape_of(blocks, format)
    local shape = blocks.shape
    shape[#shape] = shape[#shape] // BYTES[format] * BLOCK
    return shape
end

local function make(blocks, format)
    local shape = shape_of(blocks, format)
    local own = {blocks = blocks, format = format, shape = shape, ndim = #shape, device = blocks.device}
    return setmetatable({[HELD] = own}, meta)
end

-- x, a float tensor whose rows (along the last dim) are multiples of 32 long, in a format.
function M.quantize(x, format)
    check_format(2, 2, "quantize", format)
    return make(run(2, "quantize", "quantize_blocks", nil, nil, x, {format = format}), format)
end

-- The quantised tensor whose blocks are there: uint8 rows, from a file for example.
function M.quantized(blocks, format)
    check_format(2, 2, "quantized", format)
    if not luma.is_tensor(blocks) then
        bad(2, 1, "quantized", "tensor of uint8 expected, got %s", type(blocks))
    end
    if blocks.ndim == 0 or blocks.dtype ~= "uint8" or blocks:size(-1) % BYTES[format] ~= 0 then
        bad(2, 1, "quantized", "%s of [%s]: uint8 rows of %s blocks of %d bytes expected", blocks.dtype,
            table.concat(blocks.shape, " x "), format, BYTES[format])
    end
    return make(blocks, format)
end

local function dequantize(level, name, q, dtype)
    check_quantized(level + 1, 1, name, q)
    if type(dtype) == "table" then dtype = dtype.dtype end
    local x = run(level + 1, name, "dequantize_blocks", nil, nil, q.blocks, {format = q.format})
    if dtype == nil or dtype == "float32" then return x end
    return run(level + 1, name, "to", nil, nil, x, dtype)
end

-- The elements that q stands for: float32, exactly, unless a dtype is given.
function M.dequantize(q, dtype) return dequantize(2, "dequantize", q, dtype) end
methods.dequantize = M.dequantize

-- x (..., k) times the transpose of q (n, k), in x's dtype.
function M.quantized_matmul(x, q, options)
    check_quantized(2, 2, "quantized_matmul", q)
    if options ~= nil and type(options) ~= "table" then
        bad(2, 3, "quantized_matmul", "table of options expected, got %s", type(options))
    end
    for key in next, options or {} do
        if key ~= "out" then
            bad(2, 3, "quantized_matmul", "%s", unknown_option(key, {out = true}))
        end
    end
    return run(2, "quantized_matmul", "matmul_blocks", nil, nil, x, q.blocks,
        {format = q.format, out = options and options.out})
end

-- ---- methods ----

-- The rows at the positions of index, as floats: of its shape, then a row's.
function methods.embedding(q, index, dtype)
    check_quantized(2, 1, "embedding", q)
    if type(index) == "table" and getmetatable(index) == nil then
        index = run(2, "embedding", "tensor", nil, nil, index, {dtype = "int64", device = q.device})
    end
    if not luma.is_tensor(index) then
        bad(2, 2, "embedding", "index tensor or list expected, got %s", type(index))
    end
    if q.ndim ~= 2 then bad(2, 1, "embedding", "%d dims: a matrix expected", q.ndim) end
    local shape = index.shape
    shape[#shape + 1] = q.shape[2]
    local rows = run(2, "embedding", "index_select", 3, 2, q.blocks, 1, index:reshape(-1))
    local x = run(2, "embedding", "dequantize_blocks", nil, nil, rows, {format = q.format})
    x = x:reshape(shape)
    return dtype and run(2, "embedding", "to", nil, nil, x, dtype) or x
end

-- The given positions along a dim that is not the last, still quantised.
function methods.index_select(q, dim, index)
    check_quantized(2, 1, "index_select", q)
    if math.tointeger(dim) and (dim == q.ndim or dim == -1) then
        bad(2, 2, "index_select", "%d: blocks lie along the last dim, which cannot be cut", dim)
    end
    return make(run(2, "index_select", "index_select", nil, nil, q.blocks, dim, index), q.format)
end

-- On another device; q itself where it is there.
function methods.to(q, device)
    check_quantized(2, 1, "to", q)
    local name = tostring(device):match("^%a+")
    if type(device) ~= "string" or (name ~= "cpu" and name ~= "cuda") then
        bad(2, 2, "to", "a device expected, got %s; dequantize() gives another dtype", tostring(device))
    end
    local blocks = run(2, "to", "to", nil, nil, q.blocks, device)
    return rawequal(blocks, q.blocks) and q or make(blocks, q.format)
end
function methods.cpu(q) return methods.to(q, "cpu") end
function methods.cuda(q, n) return methods.to(q, n and ("cuda:%d"):format(n) or "cuda") end

function methods.size(q, dim)
    check_quantized(2, 1, "size", q)
    local d = math.tointeger(dim)
    d = d and d < 0 and d + q.ndim + 1 or d
    local size = d and held(q).shape[d]
    if not size then bad(2, 2, "size", "dim %s of %d dims", tostring(dim), q.ndim) end
    return size
end
function methods.numel(q)
    local n = 1
    for _, size in ipairs(q.shape) do n = n * size end
    return n
end
function methods.nbytes(q) return q.blocks:nbytes() end
function methods.clone(q) return make(q.blocks:clone(), q.format) end

-- ---- what it is not ----

function meta.__index(q, key)
    local own = held(q) or {}
    if key == "shape" and own.shape then return shape_of(own.blocks, own.format) end -- a new list
    if methods[key] or own[key] then return methods[key] or own[key] end
    error(("a quantized tensor has no '%s': dequantize() gives a tensor, quantized_matmul products")
        :format(tostring(key)), 2)
end

function meta.__newindex(_, key)
    error(("a quantized tensor has no field '%s' to set"):format(tostring(key)), 2)
end

function meta.__pairs()
    error("a quantized tensor has no elements to walk: dequantize() gives a tensor", 2)
end

function meta.__tostring(q)
    return ("Quantized[%s %s %s]"):format(q.format, table.concat(held(q).shape, "x"), q.device)
end

function meta.__len(q) return held(q).shape[1] end

for _, operator in ipairs{"add", "sub", "mul", "div", "mod", "pow", "unm", "idiv", "band", "bor",
    "bxor", "bnot", "shl", "shr", "lt", "le", "concat", "call"} do
    meta["__" .. operator] = function()
        error("a quantized tensor has no operators: dequantize() gives a tensor", 2)
    end
end

return M
