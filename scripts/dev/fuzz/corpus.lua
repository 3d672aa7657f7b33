-- corpus.lua -- writes what files.c begins with: luma scripts/dev/fuzz/corpus.lua FOLDER
local luma = require "luma"
local folder = arg[1]

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
end

local function read(name)
  local file = assert(io.open(folder .. "/" .. name, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function folders(...)
  for _, name in ipairs {...} do os.execute(("mkdir -p '%s/%s'"):format(folder, name)) end
end
os.execute(("mkdir -p '%s'"):format(folder))
folders("npy", "npz", "safetensors", "png", "slice")

local shapes = {{}, {0}, {3}, {2, 3}, {1, 2, 2, 1}}
for i, dtype in ipairs {"bool", "uint8", "int16", "int64", "float16", "float32", "float64"} do
  local x = luma.rand(shapes[i % #shapes + 1]):to(dtype)
  luma.save(("%s/npy/%s.npy"):format(folder, dtype), x)
  luma.save(("%s/npz/%s.npz"):format(folder, dtype), {a = x, ["b/c"] = luma.ones(2)},
    {compressed = i % 2 == 0})
  luma.save(("%s/safetensors/%s.safetensors"):format(folder, dtype), {a = x,
    ["b.c"] = luma.ones(2):to "bfloat16"},
    i % 2 == 0 and {metadata = {format = "pt", x = "\195\164"}} or nil)
end
-- what NumPy writes and luma does not
local npy = read "npy/float32.npy"
write("npy/fortran.npy", (npy:gsub("False", "True ")))
write("npy/big.npy", (npy:gsub("<f4", ">f4")))
write("npy/objects.npy", (npy:gsub("<f4", "|O ")))
write("npy/short.npy", npy:sub(1, -2))
write("npy/version2.npy", "\147NUMPY\2\0" .. ("<I4"):pack(#npy - 10) .. npy:sub(11))
write("safetensors/empty.safetensors", ("<I8"):pack(2) .. "{}")
write("safetensors/deep.safetensors", ("<I8"):pack(64) .. ("["):rep(64))

local has_png = pcall(function()
  for channels = 1, 4 do
    luma.image.save(("%s/png/%d.png"):format(folder, channels), (luma.rand(5, 4, channels) * 255):to "uint8")
  end
end)
if not has_png then write("png/none.png", "\137PNG\r\n\26\n") end

for i, text in ipairs {":", "1:2", "2:", ":-1", "::2", "::-1", "3:1:-1", "1", "-1", "...", ":, 1", "2:, :",
  "..., 1",
  "new", "9223372036854775807", "-9223372036854775808:", " 1 : 2 ,: ", "1:2:3:4", "1:2:0", "1.5", ""} do
  write(("slice/%d"):format(i), text)
end
