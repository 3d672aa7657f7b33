/* image.c -- PNG files to uint8 tensors and back; lua/luma/image.lua does what else luma.image offers.
** Layer: bindings. */
#include "png.h"

#include "binding.h"

/* (path, format): a tensor (height, width, channels) on the CPU */
static int read_png(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    lm_call k;
    int tried = 0;
    luma_status status;
    lm_call_open(&k, L, c, "load");
    const char *path = lm_arg_text(&k, 1, 1, "string");
    unsigned format = (unsigned)luaL_checkinteger(L, 2);
    luma_tensor *out = lm_box_new(L, c);
    do
        status = lm_png_load(c->S, out, path, format);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

/* (path, x, format): x as read_png gives it */
static int write_png(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "save");
    const char *path = lm_arg_text(&k, 1, 1, "string");
    const luma_tensor *x = lm_arg_tensor(&k, 2, 2);
    unsigned format = (unsigned)luaL_checkinteger(L, 3);
    if (x->dtype != LUMA_UINT8 || x->layout.ndim != 3 || !luma_is_contiguous(x) ||
        lm_device_of(x) != lm_cpu(k.c->S) || x->layout.shape[2] != lm_png_channels(format))
        lm_bad(&k, 2, "contiguous uint8 [height x width x %d] on the CPU expected",
               lm_png_channels(format));
    luma_status status = LM_UNLIMITED(&k, lm_png_save(k.c->S, path, x, format));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

/* luma.image: for init.lua, which puts functions for everybody in their place */
void lm_image_open(lua_State *L, int module) {
    lua_createtable(L, 0, 2);
    int image = lua_gettop(L);
    lm_push_function(L, read_png, 0);
    lua_setfield(L, image, "read_png");
    lm_push_function(L, write_png, 0);
    lua_setfield(L, image, "write_png");
    lua_setfield(L, module, "image");
}
