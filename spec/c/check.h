/* check.h -- what C tests count: CHECK(condition), which prints the line of a condition that does not
** hold and says whether it holds. The tests go on; main returns failures != 0. */
#ifndef check_h
#define check_h

#include <stdbool.h>
#include <stdio.h>

static int checks, failures;

static inline bool check(bool ok, int line, const char *what) {
    checks++;
    if (ok) return true;
    failures++;
    printf("line %d: %s\n", line, what);
    return false;
}
#define CHECK(condition) check((condition), __LINE__, #condition)

#endif
