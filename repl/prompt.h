/* prompt.h -- reading, running and printing line by line. Layer: repl. */
#ifndef lm_prompt_h
#define lm_prompt_h

#include <stdbool.h>

#include <lua.h>

/* Reads stdin to its end. Shows banner and prompts at a terminal only. environment: the user's
** init.lua is read. */
void prompt_loop(lua_State *L, bool environment);

/* Runs a report of repl/lua/check.lua: "version" or "check". Says whether all is well. */
bool prompt_check(lua_State *L, const char *what);

#endif
