/* foreign.c -- names of NumPy and PyTorch that luma has not: what to write instead. Layer:
** bindings. */
#include <string.h>

#include "binding.h"

#define WRITE "write "
#define CAST(name) WRITE "x:to(\"" name "\"), or {dtype = \"" name "\"} where a tensor is made"
#define GRADIENTS "gradients and layers are not there yet"
#define FROM_ONE ", which counts from 1"

/* A row goes when luma gets an operation of its name: spec/errors_spec.lua says so. */
static const struct {
    const char *name, *instead;
} rows[] = {
    {"FloatTensor", WRITE "luma.tensor(values)"},
    {"H", WRITE "x:t()"},
    {"T", WRITE "x:t(), or x:transpose(d1, d2) of more dims"},
    {"Tensor", WRITE "luma.tensor(values), or luma.empty(shape)"},
    {"absolute", WRITE "x:abs()"},
    {"append", WRITE "luma.cat({x, y}, dim)"},
    {"arange", WRITE "luma.range(first, last), which includes its end"},
    {"argwhere", WRITE "x:nonzero()" FROM_ONE},
    {"array", WRITE "luma.tensor(values)"},
    {"array_equal", WRITE "x == y, which is one boolean"},
    {"array_split", WRITE "x:chunk(n, dim)"},
    {"as_tensor", WRITE "luma.tensor(values)"},
    {"asarray", WRITE "luma.tensor(values)"},
    {"astype", WRITE "x:to(dtype), as in x:to(\"float64\")"},
    {"autograd", GRADIENTS},
    {"average", WRITE "x:mean(dim)"},
    {"backward", GRADIENTS},
    {"bool_", CAST("bool")},
    {"byte", CAST("uint8")},
    {"choice", WRITE "x[luma.randint(1, #x, n)]"},
    {"clamp_max", WRITE "x:clamp(nil, greatest)"},
    {"clamp_min", WRITE "x:clamp(least)"},
    {"clip", WRITE "x:clamp(least, greatest)"},
    {"column_stack", WRITE "luma.stack({x, y}, 2)"},
    {"concat", WRITE "luma.cat({x, y}, dim)"},
    {"concatenate", WRITE "luma.cat({x, y}, dim)"},
    {"copy", WRITE "x:clone()"},
    {"deepcopy", WRITE "x:clone()"},
    {"deg2rad", WRITE "x * (math.pi / 180)"},
    {"dim", WRITE "x.ndim"},
    {"divide", WRITE "x / y"},
    {"double", CAST("float64")},
    {"element_size", WRITE "x:itemsize()"},
    {"expand_as", WRITE "x:expand(y.shape)"},
    {"expand_dims", WRITE "x:unsqueeze(dim)"},
    {"fix", WRITE "x:trunc()"},
    {"fliplr", WRITE "x:flip(2)"},
    {"flipud", WRITE "x:flip(1)"},
    {"float", CAST("float32")},
    {"floor_divide", WRITE "x // y"},
    {"from_numpy", WRITE "luma.load(path) of what numpy.save wrote"},
    {"frombuffer", WRITE "luma.frombytes(string, dtype, shape)"},
    {"get_printoptions", WRITE "luma.set_print{}, which returns the settings"},
    {"grad", GRADIENTS},
    {"greater", WRITE "x:gt(y)"},
    {"greater_equal", WRITE "x:ge(y)"},
    {"half", CAST("float16")},
    {"hsplit", WRITE "x:chunk(n, 2)"},
    {"identity", WRITE "luma.eye(n)"},
    {"imread", WRITE "luma.image.load(path)"},
    {"imsave", WRITE "luma.image.save(path, x)"},
    {"imshow", WRITE "luma.plot.image(x)"},
    {"inf", WRITE "math.huge"},
    {"int", CAST("int32")},
    {"left_shift", WRITE "x:lshift(n)"},
    {"len", WRITE "#x, which is the size of dim 1"},
    {"less", WRITE "x:lt(y)"},
    {"less_equal", WRITE "x:le(y)"},
    {"linalg", "linear algebra beyond products is not there yet"},
    {"long", CAST("int64")},
    {"mT", WRITE "x:transpose(-2, -1)"},
    {"mod", WRITE "x % y"},
    {"moveaxis", WRITE "x:movedim(source, destination)"},
    {"multiply", WRITE "x * y"},
    {"nan", WRITE "0 / 0"},
    {"negative", WRITE "-x"},
    {"nelement", WRITE "x:numel()"},
    {"new_zeros", WRITE "luma.zeros(shape, {dtype = x.dtype, device = x.device})"},
    {"newaxis", WRITE "x[\"+\"], or x:unsqueeze(dim)"},
    {"nn", GRADIENTS},
    {"no_grad", GRADIENTS},
    {"normal", WRITE "luma.randn(shape) * deviation + mean"},
    {"normal_", WRITE "x:copy_(luma.randn_like(x))"},
    {"not_equal", WRITE "x:ne(y)"},
    {"numpy", WRITE "x:totable(), or luma.save(path, x) for numpy.load"},
    {"optim", GRADIENTS},
    {"permutation", WRITE "luma.randperm(n)" FROM_ONE},
    {"pi", WRITE "math.pi"},
    {"power", WRITE "x ^ y, or x:pow(y) for integers to stay"},
    {"ptp", WRITE "x:amax(dim) - x:amin(dim)"},
    {"rad2deg", WRITE "x * (180 / math.pi)"},
    {"random", WRITE "luma.rand(shape), luma.randn(shape) or luma.randint(least, greatest, shape)"},
    {"ravel", WRITE "x:flatten()"},
    {"reciprocal", WRITE "x:recip()"},
    {"requires_grad", GRADIENTS},
    {"requires_grad_", GRADIENTS},
    {"reshape_as", WRITE "x:reshape(y.shape)"},
    {"right_shift", WRITE "x:rshift(n)"},
    {"rint", WRITE "x:round()"},
    {"row_stack", WRITE "luma.cat({x, y}, 1)"},
    {"savez", WRITE "luma.save(\"path.npz\", {name = x})"},
    {"seed", WRITE "luma.manual_seed(n)"},
    {"set_printoptions", WRITE "luma.set_print{precision = 3}"},
    {"sgn", WRITE "x:sign()"},
    {"short", CAST("int16")},
    {"shuffle", WRITE "x[luma.randperm(#x)]"},
    {"subtract", WRITE "x - y"},
    {"swapaxes", WRITE "x:transpose(d1, d2)"},
    {"swapdims", WRITE "x:transpose(d1, d2)"},
    {"to_dlpack", WRITE "x:dlpack()"},
    {"tolist", WRITE "x:totable()"},
    {"true_divide", WRITE "x / y"},
    {"type", WRITE "x.dtype, or x:to(dtype)"},
    {"type_as", WRITE "x:to(y.dtype)"},
    {"uniform", WRITE "luma.rand(shape) * (greatest - least) + least"},
    {"uniform_", WRITE "x:copy_(luma.rand_like(x))"},
    {"view_as", WRITE "x:view(y.shape)"},
    {"vsplit", WRITE "x:chunk(n, 1)"},
};

const char *lm_foreign(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0) return rows[i].instead;
    }
    return NULL;
}

/* luma.name of a name that luma has not: nil, as of any table, but an error of a foreign one. The
** name stays in the registry, for the program to say more when nil is called. */
static int no_such_function(lua_State *L) {
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    const char *instead = name ? lm_foreign(name) : NULL;
    if (instead) return luaL_error(L, "luma has no '%s'; %s", name, instead);
    if (name) {
        lua_pushvalue(L, 2);
        lua_setfield(L, LUA_REGISTRYINDEX, "luma.missing");
    }
    lua_pushnil(L);
    return 1;
}

/* foreign([name]): what to write instead; without name, all rows as a table. */
static int foreign(lua_State *L) {
    if (!lua_isnoneornil(L, 1)) {
        lua_pushstring(L, lm_foreign(luaL_checkstring(L, 1)));
        return 1;
    }
    lua_newtable(L);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lua_pushstring(L, rows[i].instead);
        lua_setfield(L, -2, rows[i].name);
    }
    return 1;
}

void lm_foreign_open(lua_State *L, int module, int meta) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, no_such_function);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, module);
    lua_pushcfunction(L, foreign);
    lua_setfield(L, meta, "foreign");
}
