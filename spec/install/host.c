/* host.c -- a program with an interpreter in it that knows luma, as C and as C++. */
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <lauxlib.h>
#include <lualib.h>
#ifdef __cplusplus
}
#endif
#include <luma_lua.h>

int main(void) {
    const char *script = "local luma = require 'luma'\n"
                         "local x = luma.tensor{{1, 2}, {3, 4}}\n"
                         "assert(tostring(x:matmul(x)):find '22')\n"
                         "return x * 2";
    lua_State *L = luaL_newstate();
    if (!L) return 1;
    luaL_openlibs(L);
    luaL_requiref(L, "luma", luaopen_luma, 0);
    if (luaL_dostring(L, script) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        return 1;
    }
    float out[4];
    if (luma_read(luma_lua_state(L), luma_check(L, -1), out, sizeof out) != LUMA_OK) return 1;
    if (out[0] != 2 || out[3] != 8) return 1;
    lua_close(L);
    puts("host: ok");
    return 0;
}
