/* told.h -- what C tests ask of the errors of Lua. */
#ifndef told_h
#define told_h

#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Has the error at the top a message with `part` in it? Prints it when not. */
static inline bool told(lua_State *L, const char *part) {
    const char *message = lua_tostring(L, -1);
    if (message && strstr(message, part)) return true;
    printf("  %s\n  where '%s' was expected\n", message ? message : "(no message)", part);
    return false;
}

#endif
