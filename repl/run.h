/* run.h -- running chunks with a traceback and reporting their errors. Layer: repl. */
#ifndef lm_run_h
#define lm_run_h

#include <stdbool.h>

#include <lua.h>

extern const char *run_program; /* stands before messages; NULL at the prompt */

/* Calls the function under the top nargs values, errors with traceback; nresults as lua_call. */
int run_call(lua_State *L, int nargs, int nresults);
/* Prints the error on top of the stack to stderr and pops it, unless status is LUA_OK. */
int run_report(lua_State *L, int status);
/* Load, call without results, report. run_file takes nargs arguments from the stack; NULL: stdin.
 */
int run_file(lua_State *L, const char *name, int nargs);
int run_string(lua_State *L, const char *text, const char *chunk_name);

#endif
