/* interrupt.h -- Ctrl-C in the luma program. Layer: repl. */
#ifndef lm_interrupt_h
#define lm_interrupt_h

#include <stdbool.h>

#include <lua.h>

/* Installs the handler for L, the main thread of the program's one state, and the coroutine
** functions that tell it which coroutines run. Needs the libraries and the luma module. */
void interrupt_install(lua_State *L);

/* Forgets what was pressed: called before each chunk that runs. */
void interrupt_clear(void);

/* Whether Ctrl-C was pressed since interrupt_clear. */
bool interrupt_seen(void);

/* Ends the process as an unhandled Ctrl-C does, so that a calling shell sees it. */
void interrupt_exit(void);

#endif
