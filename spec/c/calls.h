/* calls.h -- what C tests say of calls of luma.h, all in the state S; after the
** core's own headers, whose functions have an S too. */
#ifndef calls_h
#define calls_h

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "luma.h"

static luma_state *S;

static inline bool done(luma_status status, int line) {
    if (status != LUMA_OK) printf("line %d: %s\n", line, luma_message(S));
    return status == LUMA_OK;
}
#define OK(call) CHECK(done((call), __LINE__))
/* OK, for what the rest of the program works with. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        if (!OK(call)) exit(1);                                                                    \
    } while (0)
/* The call fails with this status and a message that has `part` in it. */
#define FAILS(call, status, part)                                                                  \
    do {                                                                                           \
        CHECK((call) == (status));                                                                 \
        if (!strstr(luma_message(S), part)) printf("  message: %s\n", luma_message(S));            \
        CHECK(strstr(luma_message(S), part) != NULL);                                              \
    } while (0)

#endif
