"""numpy_exchange.py PREFIX -- tensors to NumPy and back through DLPack, from C and from Lua.

Run by scripts/dev/install where python3-numpy is present. luma.h is spoken through ctypes."""
import ctypes as c
import sys
import gc

import numpy as np

prefix = sys.argv[1]
VERSION = tuple(map(int, np.__version__.split(".")[:2]))
luma = c.CDLL(prefix + "/lib/libluma.so")
python = c.pythonapi
python.PyCapsule_New.restype = c.py_object
python.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
python.PyCapsule_GetPointer.restype = c.c_void_p
python.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
python.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]


class Number(c.Union):
    _fields_ = [("i", c.c_int64), ("d", c.c_double)]


class Scalar(c.Structure):
    _fields_ = [("kind", c.c_int), ("u", Number)]


class Layout(c.Structure):
    _fields_ = [("ndim", c.c_int32), ("shape", c.c_int64 * 8), ("stride", c.c_int64 * 8),
                ("offset", c.c_int64)]


class Tensor(c.Structure):
    _fields_ = [("storage", c.c_void_p), ("dtype", c.c_int), ("number", Scalar),
                ("layout", Layout)]


luma.luma_open.restype = c.c_void_p
luma.luma_message.restype = c.c_char_p
luma.luma_fill.argtypes = [c.c_void_p, c.c_void_p, Scalar]


def must(status, S):
    assert status == 0, luma.luma_message(S)


# luma's dtypes in the order of luma.h; NumPy has none for the two that are None.
DTYPES = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.uint32, np.int64, None, np.float16,
          None, np.float32, np.float64]


class Exporter:
    """What numpy.from_dlpack asks of an object: a capsule over a handle."""

    def __init__(self, handle):
        self.handle = handle

    def __dlpack__(self, stream=None, **_):
        return python.PyCapsule_New(self.handle, b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


def handle_of(array):
    """An old handle that is ours from now on: array's memory stays until it is deleted."""
    capsule = array.__dlpack__()
    handle = python.PyCapsule_GetPointer(capsule, b"dltensor")
    python.PyCapsule_SetName(capsule, b"used_dltensor")
    return handle


def read(S, x, dtype, count):
    out = np.zeros(count, dtype)
    must(luma.luma_read(S, c.byref(x), out.ctypes.data_as(c.c_void_p), c.c_size_t(out.nbytes)), S)
    return out


def shapes(array):
    """Views of every kind."""
    yield array
    yield array.T
    yield array[::-1, ::2]
    yield array[1:, 1]
    yield array[2, 3]  # 0-d below
    yield array[:0]
    yield np.broadcast_to(array[0], (2,) + array[0].shape).copy()


def to_luma(S):
    for dtype in DTYPES:
        if dtype is None or (dtype == np.bool_ and VERSION < (1, 25)):
            continue
        base = np.arange(20).reshape(4, 5).astype(dtype)
        for view in shapes(base):
            view = np.asarray(view)
            x = Tensor()
            before = sys.getrefcount(view)
            must(luma.luma_from_dlpack(S, c.byref(x), c.c_void_p(handle_of(view))), S)
            assert x.layout.ndim == view.ndim and DTYPES[x.dtype] == dtype
            assert list(x.layout.shape)[:view.ndim] == list(view.shape)
            assert (read(S, x, dtype, view.size) == view.ravel()).all()
            if view.size:  # one memory
                must(luma.luma_fill(S, c.byref(x), Scalar(2, Number(i=1))), S)
                assert (view == 1).all()
            luma.luma_release(S, c.byref(x))
            gc.collect()
            assert sys.getrefcount(view) == before
    x = Tensor()
    other = np.zeros(3, np.uint16)
    handle = handle_of(other)
    assert luma.luma_from_dlpack(S, c.byref(x), c.c_void_p(handle)) == 3
    assert b"uint16" in luma.luma_message(S)


def to_numpy(S):
    kept = []
    for number, dtype in enumerate(DTYPES):
        shape = (c.c_int64 * 2)(4, 5)
        x, t = Tensor(), Tensor()
        must(luma.luma_empty(S, c.byref(x), 2, shape, number, b"cpu"), S)
        if dtype is None:
            luma.luma_release(S, c.byref(x))
            continue
        values = np.arange(20).astype(dtype)
        must(luma.luma_write(S, c.byref(x), values.ctypes.data_as(c.c_void_p),
                             c.c_size_t(values.nbytes)), S)
        must(luma.luma_t(S, c.byref(t), c.byref(x)), S)
        for tensor, expected in ((x, values.reshape(4, 5)), (t, values.reshape(4, 5).T)):
            handle = c.c_void_p()
            must(luma.luma_to_dlpack(S, c.byref(handle), c.byref(tensor)), S)
            try:
                array = np.from_dlpack(Exporter(handle.value))
            except (BufferError, RuntimeError):
                assert dtype == np.bool_ and VERSION < (1, 25)
                continue
            assert array.dtype == dtype and (array == expected).all()
            kept.append((array, expected))
        luma.luma_release(S, c.byref(x))
        luma.luma_release(S, c.byref(t))
    return kept


class VersionedExporter(Exporter):
    def __dlpack__(self, stream=None, max_version=None, **_):
        assert max_version[0] >= 1
        return python.PyCapsule_New(self.handle, b"dltensor_versioned", None)


def versions(S):
    """Versioned handles, which NumPy has from 2.1 on; memory that is read-only is copied."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    for writable in (True, False):
        array.flags.writeable = writable
        capsule = array.__dlpack__(max_version=(1, 0))
        handle = python.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        python.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        x = Tensor()
        must(luma.luma_from_dlpack_versioned(S, c.byref(x), c.c_void_p(handle)), S)
        assert (read(S, x, np.float32, 6) == array.ravel()).all()
        value = 9 if writable else 8
        must(luma.luma_fill(S, c.byref(x), Scalar(2, Number(i=value))), S)
        assert (array == 9).all()  # the copy of the second turn is another memory
        again = c.c_void_p()
        must(luma.luma_to_dlpack_versioned(S, c.byref(again), c.byref(x)), S)
        back = np.from_dlpack(VersionedExporter(again.value))
        assert back.shape == (2, 3) and (back == value).all() and back.flags.writeable
        back[0, 0] = 5
        assert read(S, x, np.float32, 6)[0] == 5
        luma.luma_release(S, c.byref(x))
        array = np.full((2, 3), 9, np.float32)


S = c.c_void_p(luma.luma_open())
to_luma(S)
kept = to_numpy(S)
if VERSION >= (2, 1):
    versions(S)
luma.luma_close(S)
for array, expected in kept:  # NumPy holds what was luma's
    assert (array == expected).all()
assert len(kept) > 15
del array, kept
gc.collect()

# From Lua: x:dlpack() to NumPy, an array of NumPy's to luma.from_dlpack.
lua = c.CDLL("liblua5.4.so.0", mode=c.RTLD_GLOBAL)
lua.luaL_newstate.restype = c.c_void_p
lua.lua_touserdata.restype = c.c_void_p
lua.lua_tolstring.restype = c.c_char_p
L = c.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(L)


def run(text, results=0):
    bad = lua.luaL_loadstring(L, text.encode()) or lua.lua_pcallk(L, 0, results, 0, None, None)
    assert not bad, lua.lua_tolstring(L, -1, None)


run("package.cpath = '%s/lib/lua/5.4/?.so' luma = require 'luma'" % prefix)
run("x = luma.range(1, 6, {dtype = 'float32'}):reshape(2, 3) return x:t():dlpack()", 1)
array = np.from_dlpack(Exporter(lua.lua_touserdata(L, -1)))
lua.lua_settop(L, 0)
assert array.tolist() == [[1, 4], [2, 5], [3, 6]]
run("x[2][1] = 40")  # one memory
assert array[0, 1] == 40
mine = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::-1]
lua.lua_pushlightuserdata(L, c.c_void_p(handle_of(mine)))
lua.lua_setglobal(L, b"handle")
run("y = luma.from_dlpack(handle) assert(y.dtype == 'int32' and y[1][1] == 3 and y[3][4] == 8)")
run("y[2] = 7")
assert (mine[1] == 7).all()
run("assert(not pcall(luma.from_dlpack, x)) x, y = nil, nil collectgarbage()")
lua.lua_close(L)
assert array.tolist() == [[1, 40], [2, 5], [3, 6]]
del array
print("numpy", np.__version__, "exchanges tensors")
