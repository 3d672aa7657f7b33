-- file_spec.lua -- luma.save and luma.load: every format, dtype and layout; hostile headers.
package.path = "spec/support/?.lua;" .. package.path
local luma = require "luma"
local oracle = require "oracle"
local layouts = require "layouts"

local folder
local function path(name) return folder .. "/" .. name end

local function write(name, bytes)
  local file = assert(io.open(path(name), "wb"))
  file:write(bytes)
  file:close()
  return path(name)
end

local function read(name)
  local file = assert(io.open(path(name), "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end

local function exists(name)
  local file = io.open(path(name), "rb")
  if file then file:close() end
  return file ~= nil
end

local function files()
  local list = {}
  for name in io.popen("ls -A " .. folder):lines() do list[#list + 1] = name end
  return list
end

-- An .npy file of version 1.0 (or 2.0) around a header text.
local function npy(header, data, version)
  version = version or 1
  return "\x93NUMPY" .. string.char(version, 0)
    .. string.pack(version == 1 and "<s2" or "<s4", header) .. data
end

local function safetensors(header, data)
  return string.pack("<s8", header) .. (data or "")
end

describe("files", function()
  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("does not wait for a pipe that nobody writes", function()
    local program = require "program"
    local pipe = folder .. "/pipe.npy"
    assert(os.execute("mkfifo " .. pipe))
    local text = ("print(pcall(require('luma').load, %q))"):format(pipe)
    local output, code = program.shell("timeout 8 $LUMA -e " .. program.quote(text))
    os.remove(pipe)
    assert.equal(0, code)
    assert.truthy(output:find("not a regular file", 1, true), output)
  end)

  describe(".npy", function()
    local wide = {"bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float16",
                  "float32", "float64"}
    for _, dtype in ipairs(wide) do
      it("keeps " .. dtype .. " in every layout", function()
        for n = 0, 7 do
          for _, layout in ipairs(layouts.list) do
            local x = layout[2](oracle.values(dtype, n, -9, 9, n + 1, true), dtype)
            if x then
              luma.save(path "x.npy", x)
              local y = luma.load(path "x.npy")
              assert.equal(dtype, y.dtype)
              assert.same(x.shape, y.shape)
              assert.equal(x:tobytes(), y:tobytes())
            end
          end
        end
        local x = luma.full({}, 1, {dtype = dtype})
        luma.save(path "x.npy", x)
        assert.same({}, luma.load(path "x.npy").shape)
        assert.equal(x:item(), luma.load(path "x.npy"):item())
      end)
    end

    it("has headers as NumPy writes them", function()
      for shape, text in pairs {["()"] = luma.full({}, 3.5), ["(3,)"] = luma.zeros(3),
                                ["(0, 3)"] = luma.zeros(0, 3)} do
        luma.save(path "x.npy", text)
        local bytes = read "x.npy"
        local length = string.unpack("<I2", bytes, 9)
        assert.equal(0, (length + 10) % 64)
        assert.matches("'shape': " .. shape, bytes, 1, true)
        assert.equal("\n", bytes:sub(10 + length, 10 + length))
      end
    end)

    it("reads what others write", function()
      local f = write("f.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                   string.pack("<ffffff", 1, 4, 2, 5, 3, 6)))
      assert.same({{1, 2, 3}, {4, 5, 6}}, luma.load(f):totable())
      f = write("b.npy", npy("{'descr': '>i4', 'fortran_order': False, 'shape': (4,), }",
                             string.pack(">i4i4i4i4", 0, 1, 2, 3)))
      assert.same({0, 1, 2, 3}, luma.load(f):totable())
      f = write("s.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
                             string.pack("<d", 3.5)))
      assert.equal(3.5, luma.load(f):item())
      f = write("z.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", ""))
      assert.same({0, 3}, luma.load(f).shape)
      f = write("v.npy", npy("{'shape': (3,), 'descr': '|u1', 'fortran_order': False}\n", "\1\2\3", 2))
      assert.same({1, 2, 3}, luma.load(f):totable())
      f = write("t.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\2"))
      assert.same({false, true, true}, luma.load(f):totable())
    end)

    it("refuses what is malformed, and says where", function()
      local good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
      local cases = {
        {npy(good, ("\0"):rep(20)), "20 bytes"},
        {npy("[('a', '<f4')]", ""), "header"},
        {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "record"},
        {npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", "12"), "uint16"},
        {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"), "complex64"},
        {npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "12345678"), "object"},
        {npy("{'descr': '<f4', 'fortran_order': False}", ""), "key"},
        {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234"), "twice"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}", ""), ""},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", ""), "shape"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""), "2^63"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "shape"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "1234"), "8 dims"},
        {npy(good, "", 1):sub(1, 30), "header"},
        {"\x93NUMPY\9\0\1\0 ", "version"},
        {"not an array at all", "not an .npy array"},
        {"", "early"},
      }
      for _, case in ipairs(cases) do
        local f = write("bad.npy", case[1])
        local ok, message = pcall(luma.load, f)
        assert.is_false(ok, message)
        assert.matches(case[2], message, 1, true)
      end
      assert.has_error(function() luma.load(path "missing.npy") end)
      assert.has_error(function() luma.load(folder) end)
      assert.has_error(function() luma.load(path "x.csv") end)
      assert.has_error(function() luma.load "a\0b.npy" end)
      assert.has_error(function() luma.load(1) end)
    end)

    it("survives every cut and every changed byte", function()
      luma.save(path "x.npy", luma.tensor {{1, 2}, {3, 4}})
      local bytes = read "x.npy"
      for n = 0, #bytes - 1 do
        assert.is_false(pcall(luma.load, write("cut.npy", bytes:sub(1, n))))
      end
      for i = 1, #bytes do
        for _, byte in ipairs {"\xff", "9"} do
          pcall(luma.load, write("cut.npy", bytes:sub(1, i - 1) .. byte .. bytes:sub(i + 1)))
        end
      end
    end)
  end)

  describe(".npz", function()
    for _, compressed in ipairs {false, true} do
      it(compressed and "deflated keeps all" or "stored keeps all", function()
        local t = {a = luma.range(1, 20):reshape(4, 5):t(), ["b.c/d"] = luma.zeros(0, 3),
                   c = luma.full({}, 7, {dtype = "int64"}), big = luma.range(1, 300000)}
        luma.save(path "x.npz", t, {compressed = compressed})
        local u = luma.load(path "x.npz")
        for name, x in pairs(t) do
          assert.same(x.shape, u[name].shape)
          assert.equal(x.dtype, u[name].dtype)
          assert.is_true(x:equal(u[name]))
          t[name] = nil
          u[name] = nil
        end
        assert.is_nil(next(u))
      end)

      it("survives every changed byte", function()
        luma.save(path "y.npz", {a = luma.tensor {1, 2, 3}, b = luma.tensor {true}},
                  {compressed = compressed})
        local bytes = read "y.npz"
        for n = 0, #bytes - 1, 3 do
          assert.is_false(pcall(luma.load, write("cut.npz", bytes:sub(1, n))))
        end
        for i = 1, #bytes do -- one of three changes each
          local byte = ({"\0", "\xff", string.char(bytes:byte(i) ~ 1)})[i % 3 + 1]
          pcall(luma.load, write("cut.npz", bytes:sub(1, i - 1) .. byte .. bytes:sub(i + 1)))
        end
      end)
    end

    it("holds nothing: an empty table", function()
      luma.save(path "e.npz", {})
      assert.same({}, luma.load(path "e.npz"))
    end)

    it("finds a changed element by its checksum", function()
      luma.save(path "y.npz", {a = luma.tensor {1, 2, 3}})
      local bytes = read "y.npz"
      local at = bytes:find(string.pack("<f", 2), 1, true)
      local f = write("y.npz", bytes:sub(1, at - 1) .. "\1" .. bytes:sub(at + 1))
      local ok, message = pcall(luma.load, f)
      assert.is_false(ok)
      assert.matches("checksum", message, 1, true)
    end)

    it("refuses dtypes that NumPy lacks, and keeps the old file", function()
      luma.save(path "k.npz", {a = luma.ones(2)})
      local before = read "k.npz"
      for _, dtype in ipairs {"bfloat16", "float8_e4m3"} do
        local ok, message = pcall(luma.save, path "k.npz",
                                  {a = luma.ones(2), b = luma.zeros(2, {dtype = dtype})})
        assert.is_false(ok)
        assert.matches(dtype, message, 1, true)
        assert.matches("safetensors", message, 1, true)
      end
      assert.equal(before, read "k.npz")
    end)
  end)

  describe(".safetensors", function()
    it("keeps every dtype, layout and the metadata", function()
      local t = {}
      for _, dtype in ipairs(oracle.names) do
        for _, layout in ipairs(layouts.list) do
          t[dtype .. layout[1]] = layout[2](oracle.values(dtype, 6, -9, 9, 3, true), dtype)
        end
        t[dtype .. " empty"] = luma.zeros(3, 0, {dtype = dtype})
        t[dtype .. " 0-d"] = luma.full({}, 1, {dtype = dtype})
      end
      t["quote\" back\\ \n é €"] = luma.ones(1)
      luma.save(path "x.safetensors", t, {metadata = {format = "luma", ["k\t"] = "v\"é"}})
      local u, metadata = luma.load(path "x.safetensors")
      assert.same({format = "luma", ["k\t"] = "v\"é"}, metadata)
      for name, x in pairs(t) do
        assert.same(x.shape, u[name].shape, name)
        assert.equal(x.dtype, u[name].dtype)
        assert.equal(x:tobytes(), u[name]:tobytes(), name)
        u[name] = nil
      end
      assert.is_nil(next(u))
      assert.equal(0, string.unpack("<I8", read "x.safetensors") % 8)
    end)

    it("holds nothing: an empty table", function()
      luma.save(path "e.safetensors", {})
      local t, metadata = luma.load(path "e.safetensors")
      assert.same({}, t)
      assert.is_nil(metadata)
    end)

    local header = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    local zeros = ("\0"):rep(8)

    it("reads the plain case", function()
      assert.equal(54, #header)
      local f = write("w.safetensors", safetensors(header, zeros))
      assert.same({0, 0}, luma.load(f).w:totable())
      f = write("w.safetensors", safetensors(
        ' { "w" : { "shape" : [ ] , "data_offsets":[0,4] , "dtype":"F32" } } ', "\0\0\x80\x3f"))
      assert.equal(1, luma.load(f).w:item())
      f = write("w.safetensors", safetensors(
        '{"\\u00e9\\ud83d\\ude00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}', ""))
      assert.same({0}, luma.load(f)["é😀"].shape)
    end)

    it("refuses every mutation, with little memory", function()
      local function with(offsets, shape, dtype)
        return ('{"w":{"dtype":"%s","shape":%s,"data_offsets":%s}}')
          :format(dtype or "F32", shape or "[2]", offsets or "[0,8]")
      end
      local bytes = safetensors(header, zeros)
      local cases = {
        string.pack("<i8", -1) .. bytes:sub(9), string.pack("<i8", 1 << 40) .. bytes:sub(9),
        string.pack("<i8", 0) .. bytes:sub(9), bytes:sub(1, 69), bytes:sub(1, 5), "",
        safetensors(with "[]", zeros), safetensors(with "[0]", zeros), safetensors(with "[8,0]", zeros),
        safetensors(with "[0,9]", zeros), safetensors(with "[-1,7]", zeros),
        safetensors(with "[0,8,8]", zeros), safetensors(with "[0.0,8]", zeros),
        safetensors(with "[0,8e0]", zeros), safetensors(with("[0,8]", "[1000,1000]"), zeros),
        safetensors(with("[0,0]", "[4294967296,4294967296]"), ""),
        safetensors(with("[0,0]", "[4294967296,4294967296,0]"), ""),
        safetensors(with("[0,8]", "[-2]"), zeros), safetensors(with("[0,8]", "[2.5]"), zeros),
        safetensors(with("[0,8]", "[2]", "F31"), zeros), safetensors(with("[0,8]", "[1]", "U64"), zeros),
        safetensors("not json", zeros), safetensors('{"w":' .. ("["):rep(100000), zeros),
        safetensors(("{\"a\":"):rep(100000), zeros), safetensors(header, zeros .. "\0"),
        safetensors('{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', zeros),
        safetensors('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
          .. '"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}', ("\0"):rep(7)),
        safetensors('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
          .. '"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', zeros),
        safetensors('{"__metadata__":{"a":1},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', zeros),
        safetensors(header .. "x", zeros), safetensors('{"w":{"dtype":"F32","shape":[2]}}', zeros),
        safetensors('{"w\\u0000":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', zeros),
        safetensors('{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', zeros),
        safetensors('{"\xff":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', zeros),
        safetensors(with("[0,8]", "[1,1,1,1,1,1,1,1,2]"), zeros), safetensors("{}", zeros),
      }
      luma.empty_cache()
      for i, case in ipairs(cases) do
        local before = luma.memory().allocated
        local ok, message = pcall(luma.load, write("m.safetensors", case))
        assert.is_false(ok, "case " .. i .. " was accepted")
        assert.matches("m.safetensors", message, 1, true)
        assert.is_true(luma.memory().allocated <= before)
      end
    end)

    it("keeps metadata that a finalizer takes away", function()
      local text = ("v"):rep(100)
      local metadata = {k = text .. "!"}
      setmetatable({}, {__gc = function() metadata.k = nil end})
      local w = luma.tensor {1, 2}
      luma.fail_after(1)
      luma.save(path "f.safetensors", {w = w}, {metadata = metadata})
      assert.is_false(luma.fail_after(nil))
      assert.is_nil(metadata.k)
      assert.equal(text .. "!", select(2, luma.load(path "f.safetensors")).k)
    end)

    it("survives every cut and every changed byte", function()
      luma.save(path "x.safetensors", {w = luma.tensor {1, 2}}, {metadata = {a = "b"}})
      local bytes = read "x.safetensors"
      for n = 0, #bytes - 1 do
        assert.is_false(pcall(luma.load, write("cut.safetensors", bytes:sub(1, n))))
      end
      for i = 1, #bytes do
        for _, byte in ipairs {"\xff", "9", '"'} do
          pcall(luma.load, write("cut.safetensors", bytes:sub(1, i - 1) .. byte .. bytes:sub(i + 1)))
        end
      end
    end)
  end)

  describe("saving", function()
    it("leaves the old file and no other when it fails", function()
      luma.save(path "old.npy", luma.ones(3))
      local before, list = read "old.npy", files()
      assert.has_error(function() luma.save(path "old.npy", luma.zeros(3, {dtype = "bfloat16"})) end)
      assert.has_error(function() luma.save(path "no/such/folder.npy", luma.ones(3)) end)
      assert.has_error(function() luma.save(path "new.csv", luma.ones(3)) end)
      assert.equal(before, read "old.npy")
      assert.same(list, files())
      assert.is_false(exists "new.csv")
    end)

    it("says what is wrong with its arguments", function()
      local function message(...)
        local ok, text = pcall(luma.save, ...)
        assert.is_false(ok)
        return text
      end
      assert.matches("bad argument #2 to 'save'", message(path "a.npy", 1), 1, true)
      assert.matches("'b' is a number", message(path "a.npz", {b = 1}), 1, true)
      assert.matches("strings expected", message(path "a.npz", {luma.ones(1)}), 1, true)
      assert.matches("one tensor", message(path "a.npy", {a = luma.ones(1)}), 1, true)
      assert.matches("metadata", message(path "a.npz", {}, {metadata = {a = "b"}}), 1, true)
      assert.matches("metadata 'a' is a number",
                     message(path "a.safetensors", {}, {metadata = {a = 1}}), 1, true)
      assert.matches("__metadata__", message(path "a.safetensors", {__metadata__ = luma.ones(1)}), 1, true)
      assert.matches("UTF-8", message(path "a.safetensors", {["\xff"] = luma.ones(1)}), 1, true)
    end)
  end)

  it("agrees with NumPy, where it is installed", function()
    local script = [==[
import sys, numpy as np
d = sys.argv[1]
a = np.load(d + "/to.npy"); assert a.tolist() == [[1, 2, 3], [4, 5, 6]] and a.dtype == np.int32
z = np.load(d + "/to.npz"); assert z["x"].tolist() == [1.5, 2.5] and z["y"].shape == ()
z = np.load(d + "/toc.npz"); assert z["x"].tolist() == [1.5, 2.5]
np.save(d + "/from.npy", np.asfortranarray(np.arange(24, dtype=">f8").reshape(2, 3, 4)))
np.savez_compressed(d + "/from.npz", a=np.array([True, False]), b=np.zeros((0, 2), np.float16))
]==]
    write("check.py", script)
    luma.save(path "to.npy", luma.tensor({{1, 4}, {2, 5}, {3, 6}}, "int32"):t())
    luma.save(path "to.npz", {x = luma.tensor {1.5, 2.5}, y = luma.full({}, 2)})
    luma.save(path "toc.npz", {x = luma.tensor {1.5, 2.5}}, {compressed = true})
    if not os.execute("/usr/bin/python3 -c 'import numpy' 2>/dev/null") then
      pending "python3-numpy is not installed"
      return
    end
    assert(os.execute("/usr/bin/python3 " .. path "check.py" .. " " .. folder))
    assert.is_true(luma.range(0, 23):reshape(2, 3, 4):to("float64"):equal(luma.load(path "from.npy")))
    local z = luma.load(path "from.npz")
    assert.same({true, false}, z.a:totable())
    assert.same({0, 2}, z.b.shape)
    assert.equal("float16", z.b.dtype)
  end)
end)
