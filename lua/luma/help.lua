-- help.lua -- luma.help: what the registry of operations says, as text. Layer: lua, on the public
-- module.
local luma, part, tensor_meta = ...
local nearest = part("nearest")

local KINDS = { -- rows of the registry in the order they are listed
    {"make", "construction"}, {"unary", "of one tensor"}, {"unary_p", "with numbers"},
    {"test", "tests"}, {"binary", "of two tensors"}, {"compare", "comparisons"},
    {"ternary", "choice"}, {"reduce", "reductions"}, {"view", "views"}, {"op", "other operations"},
    {"defined", "of the script's own"},
}

local FIELDS = {
    shape = "Sizes of the dims, as a list.",
    dtype = "The dtype, as a string: \"float32\".",
    device = "Where the elements are, as a string: \"cpu\", \"cuda:0\".",
    ndim = "Number of dims.",
}

local TAKES = {
    floats = "float dtypes; others are cast to the default float dtype first",
    numbers = "all dtypes; bool counts as int64",
    ints = "integer dtypes",
    bits = "bool and integer dtypes",
    all = "all dtypes",
}

-- What is no operation: name, call, sentence. A call that starts with "x:" is a method.
local OTHERS = {
    {"to", "x:to(dtype | device [, device | dtype] [, {copy =}])",
        "x converted to a dtype or moved to a device; x itself when nothing changes."},
    {"cpu", "x:cpu()", "x on the CPU."},
    {"cuda", "x:cuda([n])", "x on CUDA device n (from 0), or on the current one."},
    {"copy_", "x:copy_(src)", "Writes src, which broadcasts and is cast, into x."},
    {"fill_", "x:fill_(value)", "Sets every element."},
    {"zero_", "x:zero_()", "Sets every element to 0."},
    {"item", "x:item()", "The one element as a Lua value."},
    {"totable", "x:totable()", "The elements as nested tables."},
    {"tobytes", "x:tobytes()", "The elements in row order as a string of bytes."},
    {"numel", "x:numel()", "Number of elements."},
    {"size", "x:size(dim)", "Size of a dim."},
    {"stride", "x:stride(dim)", "Elements in memory from one position along dim to the next."},
    {"is_contiguous", "x:is_contiguous()", "Whether elements lie in row order without gaps."},
    {"storage_offset", "x:storage_offset()", "Elements in memory before the first one."},
    {"itemsize", "x:itemsize()", "Bytes of an element."},
    {"nbytes", "x:nbytes()", "Bytes of all elements."},
    {"shares_storage", "x:shares_storage(y)", "Whether x and y are views of one memory."},
    {"dlpack", "x:dlpack([{versioned =}])",
        "A handle, as light userdata, by which another library takes x without a copy."},
    {"free", "x:free()", "Drops this tensor's hold on its memory; views live on."},
    {"load", "load(path)",
        "Reads .npy as one tensor, .npz and .safetensors as a table of tensors."},
    {"save", "save(path, x | {name = x} [, {compressed =, metadata =}])",
        "Writes .npy, .npz or .safetensors, as the path ends."},
    {"from_dlpack", "from_dlpack(handle [, {versioned =}])",
        "The tensor of another library that a DLPack handle, as light userdata, stands for."},
    {"quantize", "quantize(x, \"q8_0\" | \"q4_0\")",
        "x in blocks of 32 elements of 8 or 4 bits with a scale, GGML's, as a quantised tensor."},
    {"quantized", "quantized(blocks, format)",
        "The quantised tensor whose blocks, uint8 rows, are there: those of q.blocks or of a file."},
    {"dequantize", "dequantize(q [, dtype])", "The floats that a quantised tensor stands for."},
    {"quantized_matmul", "quantized_matmul(x, q [, {out =}])",
        "x times the transpose of the quantised matrix q, as a layer's weights are kept."},
    {"image.load", "image.load(path [, {channels =, layout =, dtype =, device =}])",
        "Reads a PNG file as uint8 (height, width, channels), or as said."},
    {"image.save", "image.save(path, x [, {channels =, layout =}])",
        "Writes a PNG file; floats run from 0 to 1."},
    {"plot", "plot([x,] y | {y, ...} "
        .. "[, {title =, labels =, xlabel =, ylabel =, xlim =, ylim =, file =, ...}])",
        "Draws lines in the terminal, or as a PNG file; plot.scatter the same with points."},
    {"plot.hist", "plot.hist(x [, {bins =, ...}])", "How many values lie where."},
    {"plot.image", "plot.image(x [, {layout =, ...}])", "Shows a picture in the terminal."},
    {"plot.heatmap", "plot.heatmap(x [, {...}])", "A matrix as colours, least to greatest."},
    {"progress", "progress(count | list | tensor | iterator [, {label =, total =}])",
        "Loops as without it and says on stderr how far the loop is."},
    {"kernel", "kernel([{names},] expression [, {name =}])",
        "A function of elementwise operations from their expression, which runs in one pass."},
    {"fuse", "fuse(f [, {name =}])",
        "f, a function of elementwise operations, as one that runs in one pass."},
    {"define", "define{name =, forward = [, doc =] [, signature =]}",
        "Makes the function forward an operation: luma.name(...), x:name(...), luma.help(name)."},
    {"profile", "profile(f, ...)",
        "What f(...) runs, as a table that prints itself, and the results of f."},
    {"set_op_callback", "set_op_callback(f)",
        "Calls f(record) after every operation; nil: no more."},
    {"help", "help([name | function])", "Text about an operation; without argument, a list."},
    {"help_search", "help_search(words)", "Operations whose name or sentence has all the words."},
    {"show", "show(value)", "Text of any value, tables with what is in them."},
    {"set_print", "set_print{precision =, threshold =, edge =, width =}",
        "How tensors print; returns the settings before."},
    {"is_tensor", "is_tensor(value)", "Whether the value is a tensor."},
    {"set_default_dtype", "set_default_dtype(dtype)",
        "The float dtype of numbers and of float results of integers."},
    {"get_default_dtype", "get_default_dtype()", "The dtype that set_default_dtype set."},
    {"set_default_device", "set_default_device(device)",
        "The device of new tensors for which none is named."},
    {"get_default_device", "get_default_device()", "The device that set_default_device set."},
    {"promote_types", "promote_types(dtype, dtype)", "The dtype in which two tensors meet."},
    {"supports", "supports(name, dtype [, device])",
        "Whether a device has a kernel of an operation for a dtype."},
    {"manual_seed", "manual_seed(n)", "Starts the random numbers of all devices anew."},
    {"get_rng_state", "get_rng_state([device])", "The state of a device's random numbers."},
    {"set_rng_state", "set_rng_state(state [, device])", "Goes back to a state of them."},
    {"config", "config()", "A table that says what luma runs on."},
    {"clock", "clock()", "Seconds that only go forward, for measuring."},
    {"set_num_threads", "set_num_threads(n)", "Threads of the CPU operations, for the process."},
    {"cuda.is_available", "cuda.is_available()",
        "Whether there is a CUDA device; if not, also why. Never an error."},
    {"cuda.has_driver", "cuda.has_driver()",
        "Whether there is a CUDA driver, which is not started; if not, also why."},
    {"cuda.libraries", "cuda.libraries()",
        "Opens CUDA's libraries; a list that says where each is or why not, and `ptx`."},
    {"cuda.device_count", "cuda.device_count()", "Number of CUDA devices."},
    {"cuda.name", "cuda.name([device])", "What the device is called."},
    {"cuda.capability", "cuda.capability([device])", "Its compute capability, as two integers."},
    {"cuda.memory", "cuda.memory([device])", "Its free bytes and all of its bytes."},
    {"cuda.synchronize", "cuda.synchronize([device])",
        "Waits for the work of a device and raises the first error of that work."},
    {"cuda.current", "cuda.current()", "The device that \"cuda\" means, as \"cuda:0\"."},
    {"cuda.set_device", "cuda.set_device(device)", "Sets it; by name or by number from 0."},
    {"cuda.stats", "cuda.stats([device])",
        "Kernels launched, synchronisations, copies, as a table of counts."},
    {"cuda.allow_tf32", "cuda.allow_tf32([boolean])",
        "Whether products of float32 may round what they multiply to TF32; false at first."},
    {"cuda.allow_fp16_accumulate", "cuda.allow_fp16_accumulate([boolean])",
        "Whether products of float16 may add in float16; false at first."},
    {"cuda.allow_bf16_reduced", "cuda.allow_bf16_reduced([boolean])",
        "Whether products of bfloat16 may round partial sums to bfloat16; false at first."},
    {"cuda.use_curand", "cuda.use_curand([boolean])",
        "Whether words of large random fills come from cuRAND, which gives the same; false at first."},
    {"cuda.module", "cuda.module(text [, {device =, options =}])",
        "Kernels of one's own: CUDA C, which NVRTC compiles, or PTX."},
    {"memory", "memory([device])", "Allocated and reserved bytes, peaks, retries, as a table."},
    {"memory_stats", "memory_stats([device])",
        "All that is counted, by pool: current, peak, allocated and freed of each."},
    {"memory_snapshot", "memory_snapshot([device])",
        "A list of segments of memory with their blocks, each with its state."},
    {"cache_info", "cache_info([device])",
        "Bytes that are kept for reuse, the largest block, what the device has free and in all."},
    {"reset_peak", "reset_peak([device])", "Peaks begin anew at what there is; of all devices."},
    {"reset_accumulated", "reset_accumulated([device])",
        "Sums of allocated and freed, retries and failures begin anew at 0."},
    {"empty_cache", "empty_cache([device])",
        "Gives memory that is kept for reuse back to the system."},
    {"set_memory_limit", "set_memory_limit(bytes | share [, device])",
        "Most bytes to take from a device, or a share such as 0.5 of all it has; 0 is no limit."},
    {"set_memory_callback", "set_memory_callback(f)",
        "Calls f(event, device, bytes, address) for what happened when an operation begins."},
    {"copy_counts", "copy_counts()", "How often each way of copying was taken."},
    {"fail_after", "fail_after(n)", "For tests: the n-th allocation from now on fails; nil: none."},
    {"fail_lua_after", "fail_lua_after(n)", "For tests: as fail_after, of Lua's own memory."},
}

for _, type in ipairs{"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"} do
    OTHERS[#OTHERS + 1] = {"cuda." .. type, ("cuda.%s(v)"):format(type),
        "The number v with this type, for kernels of cuda.module."}
end

-- "x, dim:dim?, {keepdim:bool}" as one writes it in Lua: "x [, dim] [, {keepdim =}]".
local function signature_text(row)
    if row.row == "make" or row.signature == "..." then return row.signature end
    local positional, options = row.signature:match("^([^{]*),?%s*{(.*)}$")
    positional = positional or row.signature
    local text = ""
    for name, optional in positional:gmatch("([%w_]+):?[%w_|]*(%??)") do
        if text == "" then
            text = name
        elseif optional == "?" then
            text = text .. " [, " .. name .. "]"
        else
            text = text .. ", " .. name
        end
    end
    if options then
        local names = {}
        for name in options:gmatch("([%w_]+):?[%w_|]*") do names[#names + 1] = name .. " =" end
        text = text .. " [, {" .. table.concat(names, ", ") .. "}]"
    end
    return text
end

-- 'mode: "constant", "reflect"' of each parameter that is one of several words, the usual one first.
local function choices(row)
    local lines = {}
    for name, words in row.signature:gmatch("([%w_]+):([%w_]+|[%w_|]+)") do
        lines[#lines + 1] = ("    %s: \"%s\""):format(name, words:gsub("|", '", "'))
    end
    return lines
end

-- ---- which dtypes have kernels ----

local support = part("support")
local GROUPS = {{"bool", "bool"}, {"int", "integers"}, {"float", "floats"}} -- kinds and what they are called

-- The dtypes that a device takes; nil where nobody knows.
local function dtypes_text(row, device)
    local taken = support.taken(row, device)
    if not taken then return nil end
    local words, all = {}, true
    for _, group in ipairs(GROUPS) do
        local missing, there = {}, {}
        for _, dtype in ipairs(tensor_meta.dtypes) do
            local list = taken[dtype.name] and there or missing
            if dtype.kind == group[1] then list[#list + 1] = dtype.name end
        end
        all = all and #missing == 0
        if #missing == 0 then
            words[#words + 1] = group[2]
        elseif #there > 0 and #there < #missing then
            words[#words + 1] = table.concat(there, " ")
        elseif #there > 0 then
            words[#words + 1] = group[2] .. " but " .. table.concat(missing, " ")
        end
    end
    if #words == 0 then return "none" end
    return all and "all" or table.concat(words, ", ")
end

-- "dtypes: all on cpu cuda:0", for the devices that are in use.
local function support_text(row)
    local texts, devices = {}, {}
    for _, device in ipairs(luma.config().devices) do
        local text = dtypes_text(row, device)
        if text and not devices[text] then
            devices[text] = {}
            texts[#texts + 1] = text
        end
        if text then table.insert(devices[text], device) end
    end
    for i, text in ipairs(texts) do
        texts[i] = text .. " on " .. table.concat(devices[text], " ")
    end
    return table.concat(texts, "; ")
end

-- ---- examples ----

-- Nothing is shown of what these give: it is chance, and luma.help takes no random numbers.
local UNSHOWN = {empty = true, empty_like = true, rand = true, randn = true, randint = true,
    rand_like = true, randn_like = true, randperm = true, bernoulli = true, multinomial = true}

local function example_code(row)
    local code = part("examples")[row.name]
    if code then return code end
    local integers = row.takes == "ints" or row.takes == "bits"
    if row.row == "unary" then
        local values = integers and '({1, 2, 3}, "int32")'
            or row.lo <= -1 and "{-1, 0.5, 2}" or "{0.5, 1, 2}"
        return ("luma.tensor%s:%s()"):format(values, row.name)
    elseif row.row == "test" then
        return ("luma.tensor{0, 1, 0 / 0, 1 / 0}:%s()"):format(row.name)
    elseif row.row == "binary" then
        return ("luma.tensor%s:%s(2)"):format(integers and '({1, 6, 7}, "int32")' or "{-5, 2, 7}",
            row.name)
    elseif row.row == "compare" then
        return ("luma.tensor{1, 2, 3}:%s(2)"):format(row.name)
    end
end

-- What a value looks like behind "--> ", a tensor with its dtype in its last line.
local function value_text(v)
    if luma.is_tensor(v) then
        return (tostring(v):gsub("\n(%[[^\n]*%])$", " %1"):gsub("\n", "\n" .. (" "):rep(8)))
    end
    return luma.show(v)
end

local function example_text(row)
    local code = example_code(row)
    if not code then return nil end
    local text = "    example: " .. code
    local f = load and not UNSHOWN[row.name] and load("return " .. code, "=example", "t", {luma = luma})
    if not f then return text end
    local results = table.pack(pcall(f))
    for i = 2, results[1] and results.n or 0 do text = text .. "\n    --> " .. value_text(results[i]) end
    return text
end

-- ---- text ----

local function row_text(row)
    local lines = {("luma.%s(%s)"):format(row.name, signature_text(row)), "    " .. row.doc}
    if row.formula ~= "" then lines[#lines + 1] = "    formula: " .. row.formula end
    table.move(choices(row), 1, 9, #lines + 1, lines)
    if TAKES[row.takes] then lines[#lines + 1] = "    takes: " .. TAKES[row.takes] end
    if row.row ~= "make" then
        local forms = ("method: x:%s(...)"):format(row.name)
        if row.inplace then
            forms = forms .. (", in place x:%s_(...)"):format(row.name)
        elseif not tensor_meta.methods[row.name] then
            forms = "a function only, no method"
        end
        lines[#lines + 1] = "    " .. forms
        local dtypes = row.row ~= "defined" and support_text(row) or ""
        if dtypes ~= "" then lines[#lines + 1] = "    dtypes: " .. dtypes end
    end
    lines[#lines + 1] = example_text(row)
    return table.concat(lines, "\n")
end

local function is_method(entry)
    return entry[2]:sub(1, 2) == "x:"
end

local function other_text(entry)
    local code = part("examples")[entry[1]]
    return ("%s%s\n    %s%s"):format(is_method(entry) and "" or "luma.", entry[2], entry[3],
        code and "\n    example: " .. code or "")
end

local function overview()
    local lines = {"luma.help(name) explains one of these:"}
    for _, kind in ipairs(KINDS) do
        local names = {}
        for _, row in ipairs(luma.ops) do
            if row.row == kind[1] then names[#names + 1] = row.name end
        end
        lines[#lines + 1] = ("  %s: %s"):format(kind[2], table.concat(names, " "))
    end
    local methods, functions = {}, {}
    for _, entry in ipairs(OTHERS) do
        table.insert(is_method(entry) and methods or functions, entry[1])
    end
    lines[#lines + 1] = "  other methods: " .. table.concat(methods, " ")
    lines[#lines + 1] = "  other functions: " .. table.concat(functions, " ")
    return table.concat(lines, "\n")
end

-- ---- the module ----

-- Every known name with its text made on demand, and the names in order.
local texts, names, sentences = {}, {}, {}
for _, row in ipairs(luma.ops) do
    texts[row.name] = function() return row_text(row) end
    sentences[row.name] = row.doc
    names[#names + 1] = row.name
end
for _, entry in ipairs(OTHERS) do
    texts[entry[1]] = function() return other_text(entry) end
    sentences[entry[1]] = entry[3]
    names[#names + 1] = entry[1]
end

-- What a name such as "cuda.memory" stands for in the module.
local function luma_value(name)
    local v = luma
    for word in name:gmatch("[^.]+") do v = v and v[word] end
    return v
end

local function name_of_function(f)
    local x = luma.zeros(1, {device = "cpu"})
    for _, name in ipairs(names) do
        if luma_value(name) == f then return name end
        local found, method = pcall(function() return x[name] end)
        if found and method == f then return name end
    end
    error("bad argument #1 to 'help' (a function that is not luma's)", 3)
end

local M = {}

-- A row that has joined the registry, or has changed.
function M.add(row)
    if not texts[row.name] then names[#names + 1] = row.name end
    texts[row.name] = function() return row_text(row) end
    sentences[row.name] = row.doc
end

-- Every operation whose name or sentence has all the words, one line each.
function M.search(words)
    if type(words) ~= "string" then
        error(("bad argument #1 to 'help_search' (words expected, got %s)"):format(type(words)), 2)
    end
    local lines = {}
    for _, name in ipairs(names) do
        local sentence = sentences[name] or ""
        local searched, found = (name .. " " .. sentence):lower(), true
        for word in words:lower():gmatch("%S+") do
            found = found and searched:find(word, 1, true) ~= nil
        end
        if found then lines[#lines + 1] = ("%-18s %s"):format(name, sentence) end
    end
    if #lines > 0 then return table.concat(lines, "\n") end
    for name, instead in pairs(tensor_meta.foreign()) do -- what NumPy and PyTorch call it
        if name:lower():find(words:lower(), 1, true) then
            lines[#lines + 1] = ("%-18s not in luma; %s"):format(name, instead)
        end
    end
    table.sort(lines)
    if #lines == 0 then return ("nothing about '%s'"):format(words) end
    return table.concat(lines, "\n")
end

-- What there is in luma.cuda and the like; nil where name is none of them.
local function contents(name)
    local lines = {}
    for _, entry in ipairs(OTHERS) do
        if entry[1]:sub(1, #name + 1) == name .. "." then
            lines[#lines + 1] = ("    luma.%-22s %s"):format(entry[1], entry[3])
        end
    end
    return #lines > 0 and "luma." .. name .. "\n" .. table.concat(lines, "\n") or nil
end

function M.help(what)
    if what == nil then return overview() end
    if type(what) == "table" then
        for _, name in ipairs{"cuda", "image", "plot"} do
            if rawequal(what, luma[name]) then what = name end
        end
    end
    if type(what) == "function" then what = name_of_function(what) end
    local about = type(what) == "userdata" and tensor_meta.fused_about(what)
    if about then return part("kernel").help(about) end
    if type(what) ~= "string" then
        error(("bad argument #1 to 'help' (name or function expected, got %s)"):format(type(what)),
            2)
    end
    local name = what:gsub("^luma%.", ""):gsub("^%w*:", ""):gsub("^x%.", "")
    if FIELDS[name] then return ("x.%s\n    %s"):format(name, FIELDS[name]) end
    local text = texts[name] or texts[name:gsub("_$", "")]
    local inside = contents(name)
    if text then return text() .. (inside and "\n" .. inside or "") end
    if inside then return inside end
    local instead = tensor_meta.foreign(name)
    if instead then return ("luma has no '%s'; %s"):format(what, instead) end
    local near = nearest(name, names)
    if #near == 0 then return ("luma has no '%s'; luma.help() lists what there is"):format(what) end
    return ("luma has no '%s'; near it: %s"):format(what, table.concat(near, ", "))
end

return M
