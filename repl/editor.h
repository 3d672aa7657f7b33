/* editor.h -- a line edited at the terminal, with history and completion: readline, opened when the
** first line is read, so that neither build nor program needs it. Layer: repl. */
#ifndef lm_editor_h
#define lm_editor_h

#include <stdbool.h>

#include <lua.h>

typedef enum { EDITOR_LINE, EDITOR_INTERRUPTED, EDITOR_END } editor_status;

/* Whether there is readline. The completer is the Lua value at the top of the stack, which is
** popped: completer(line before the cursor, start of the word) returns a list of what the word
** could become, and what follows the only one (" " where it returns nothing). */
bool editor_open(lua_State *L);
/* The file of the readline that would be used; NULL: there is none. */
const char *editor_library(void);
/* Edits a line under the prompt and pushes it; pushes nothing unless it returns EDITOR_LINE. */
editor_status editor_read(lua_State *L, const char *prompt);
/* The newest entry of the history; an equal older one goes. */
void editor_remember(const char *line);

#endif
