/* scan.h -- how the scan slot walks a tensor: lines along the scanned dim, in strips of
** neighbouring lines, in blocks. Layer: kernels/cpu. */
#ifndef lm_scan_h
#define lm_scan_h

#include "cpu.h"
#include "product.h"

#define LM_SCAN_BLOCK 1024          /* elements of a gathered block */
#define LM_SCAN_WIDTH LM_FOLD_WIDTH /* lines of a strip at most */

typedef struct {
    int64_t size, x, y, places; /* bytes per step */
} lm_scan_dim;

typedef struct {
    luma_state *S;
    luma_dtype x_dtype, y_dtype, dtype; /* as stored; of the kernels */
    const char *x;
    char *y, *places;  /* places: int64, or NULL */
    lm_scan_dim along; /* the scanned dim */
    int nothers;       /* all other dims, outermost first */
    lm_scan_dim others[LUMA_MAX_DIMS];
    int64_t lines;                  /* their product */
    bool by_columns;                /* lines are the columns of blocks, else the rows */
    bool x_direct, y_direct;        /* kernels read x and write y in place */
    bool places_direct;             /* and places */
    int64_t width;                  /* lines of a strip */
    int64_t strips_per_run, strips; /* a run: the lines of the innermost other dim */
    int64_t block;                  /* elements along the scanned dim of one block */
    int64_t pieces, piece;          /* of a line, where strips are few; in elements */
    bool stopped;                   /* by the interrupt flag; atomic */
} lm_lines;

typedef struct {
    int64_t first, width; /* lines, as if all were in a row */
    const char *x;
    char *y, *places;
} lm_scan_strip;

/* dtype: of the kernels. passes: how often each line is read. */
void lm_lines_plan(lm_lines *l, luma_state *S, const lm_scan *s, luma_dtype dtype, int passes);
/* Strips that are worth a task. */
int64_t lm_lines_grain(const lm_lines *l);
lm_scan_strip lm_lines_strip(const lm_lines *l, int64_t i);
/* Looks at the interrupt flag; true: return at once. */
bool lm_lines_stop(lm_lines *l);

/* A block of n elements along the dim from `at` on: kernels see (rows, columns), `step` bytes
** between rows. load: x itself or gathered into buffer. target: y itself or the buffer, which store
** then writes to y. */
typedef struct {
    int64_t rows, columns, step;
} lm_scan_block;
const char *lm_lines_load(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                          char *buffer, lm_scan_block *b);
char *lm_lines_target(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                      char *buffer, lm_scan_block *b);
void lm_lines_store(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                    const char *buffer);
/* The same of places. */
char *lm_lines_places(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                      char *buffer, lm_scan_block *b);
void lm_lines_store_places(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                           const char *buffer);

/* ---- long lines: pieces that several threads work on ---- */

/* What some elements of a line come to. */
typedef union {
    double d;           /* sum of floats */
    int64_t i;          /* sum or product of integers */
    lm_product product; /* of floats */
    double exps[2];     /* the greatest, the sum of exponentials below it */
    struct {
        char best[8]; /* an element */
        int64_t at;   /* its position, negative where there is none */
    } extreme;
} lm_scan_state;

/* What a scan says of itself; a job begins with its lm_lines. */
typedef struct {
    lm_scan_state (*nothing)(const void *job);
    /* Elements [lo, hi) of a line, of which `before` is what is before them and *own becomes what they
    ** come to. totals: nothing else is wanted, and *before is nothing. */
    void (*run)(void *job, const lm_scan_strip *s, int64_t lo, int64_t hi,
                const lm_scan_state *before, lm_scan_state *own, bool totals);
    void (*join)(const void *job, lm_scan_state *before, const lm_scan_state *own);
} lm_scan_of;
/* A line is shared out in ranges of pieces, one to a thread; a range tells the totals of its pieces
** on the way, so that only those before the last range are looked at twice. What a piece comes to,
** and the order in which they join, is the same for any number of threads. */
luma_status lm_lines_run_long(lm_lines *l, const lm_scan_of *scan, void *job);

luma_status lm_cpu_cumsum(luma_state *S, const lm_scan *s);
luma_status lm_cpu_running(luma_state *S, const lm_scan *s);
luma_status lm_cpu_softmax(luma_state *S, const lm_scan *s);

#endif
