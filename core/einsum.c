/* einsum.c -- the equations of einsum: read, checked, and given to lm_contract. Layer: core. */
#include <ctype.h>
#include <string.h>

#include "contract.h"

/* Labels below are letters in the order of ASCII; above, dims of "..." from the last on. */
#define LETTERS 52
#define BIT(label) (UINT64_C(1) << (label))

/* A term: the letters of one tensor, or of the result. */
typedef struct {
    int n, dots;                       /* letters; how many stand before "...", -1: there is none */
    const char *letter[LUMA_MAX_DIMS]; /* the first of them, in the equation */
} term;

typedef struct {
    luma_state *S;
    const char *equation, *at;
    int n, wide; /* tensors; the most dims that a "..." stands for */
    const luma_tensor *xs;
    lm_labelled *labelled;
    uint64_t once, more;     /* bit l: letter l stands in the terms of tensors; more than once */
    uint64_t known;          /* bit l: label l has a */
    int64_t size[LM_LABELS]; /* and who says so */
    int said[LM_LABELS];
    int nout;
    int8_t out[LUMA_MAX_DIMS];
} reader;

static long long position(const reader *r, const char *at) {
    return (long long)(at - r->equation) + 1;
}

static luma_status unexpected(const reader *r, const char *at, const char *expected) {
    if (*at == '\0')
        return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1, "'%.80s' ends where %s expected", r->equation,
                       expected);
    return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1, "'%.80s': '%c' at %lld, where %s expected",
                   r->equation, isprint((unsigned char)*at) ? *at : '?', position(r, at), expected);
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int label_of(char c) {
    return c >= 'a' ? c - 'a' + 26 : c - 'A';
}

static void skip_spaces(reader *r) {
    while (*r->at == ' ')
        r->at++;
}

/* Up to a ',', the arrow or the end. */
static luma_status read_term(reader *r, term *t) {
    t->n = 0;
    t->dots = -1;
    for (skip_spaces(r); *r->at != ',' && *r->at != '-' && *r->at != '\0'; skip_spaces(r)) {
        if (is_letter(*r->at)) {
            if (t->n < LUMA_MAX_DIMS) t->letter[t->n] = r->at;
            t->n++;
            r->at++;
        } else if (strncmp(r->at, "...", 3) == 0 && t->dots < 0) {
            t->dots = t->n;
            r->at += 3;
        } else {
            return unexpected(r, r->at,
                              t->dots < 0 ? "a letter, '...', ',' or '->' was"
                                          : "a letter, ',' or '->' was");
        }
    }
    return LUMA_OK;
}

/* ---- the terms of tensors --------------------------------------------------------------------*/

static luma_status check_rank(const reader *r, const term *t, int i) {
    const luma_layout *x = &r->xs[i].layout;
    lm_text text;
    if (t->dots >= 0 ? t->n <= x->ndim : t->n == x->ndim) return LUMA_OK;
    return lm_fail(r->S, LUMA_ERR_SHAPE, 2 + i, "%s has %d dim%s, its term in '%.80s' has %s%d",
                   lm_layout_text(&text, x), x->ndim, x->ndim == 1 ? "" : "s", r->equation,
                   t->dots >= 0 ? "at least " : "", t->n);
}

/* One size for each label; 1 repeats, but not beside another size in one tensor. */
static luma_status meet(reader *r, int i, int d, int label, const char *letter) {
    const luma_layout *x = &r->xs[i].layout;
    int64_t size = x->shape[d];
    lm_text a, b;
    if (!(r->known & BIT(label))) {
        r->known |= BIT(label);
        r->size[label] = size;
        r->said[label] = i;
        return LUMA_OK;
    }
    int64_t known = r->size[label];
    bool same_tensor = r->said[label] == i;
    if (size == known || (size == 1 && !same_tensor)) return LUMA_OK;
    if (known == 1 && !same_tensor) {
        r->size[label] = size;
        r->said[label] = i;
        return LUMA_OK;
    }
    const luma_layout *other = &r->xs[r->said[label]].layout;
    const char *what = letter ? letter : "...";
    return lm_fail(r->S, LUMA_ERR_SHAPE, 2 + i,
                   "%s: size %lld of '%.*s' (%lld in '%.80s') differs from %lld in %s",
                   lm_layout_text(&a, x), (long long)size, letter ? 1 : 3, what,
                   letter ? position(r, letter) : 0, r->equation, (long long)known,
                   lm_layout_text(&b, other));
}

/* In one tensor equal letters have equal sizes, 1 beside another too. */
static luma_status check_diagonal(const reader *r, int i, const term *t) {
    const luma_layout *x = &r->xs[i].layout;
    const int8_t *label = r->labelled[i].label;
    lm_text text;
    for (int d = 0; d < x->ndim; d++) {
        for (int e = 0; e < d; e++) {
            if (label[e] != label[d] || x->shape[e] == x->shape[d]) continue;
            int k = 0;
            while (label_of(*t->letter[k]) != label[d])
                k++;
            return lm_fail(r->S, LUMA_ERR_SHAPE, 2 + i,
                           "%s: dims %lld and %lld are both '%c' (%lld in '%.80s') and differ",
                           lm_layout_text(&text, x), (long long)lm_pos(r->S, e),
                           (long long)lm_pos(r->S, d), *t->letter[k], position(r, t->letter[k]),
                           r->equation);
        }
    }
    return LUMA_OK;
}

static luma_status read_tensor(reader *r, int i) {
    term t;
    const luma_tensor *x = &r->xs[i];
    LM_TRY(read_term(r, &t));
    if (!x->storage) return lm_fail(r->S, LUMA_ERR_ARGUMENT, 2 + i, "a tensor expected");
    LM_TRY(lm_tensor_not_bool(r->S, 2 + i, x, "products"));
    LM_TRY(check_rank(r, &t, i));
    LM_TRY(lm_tensor_check(r->S, 2 + i, x, false));
    const int wide = x->layout.ndim - t.n;
    if (wide > r->wide) r->wide = wide;
    int8_t *label = r->labelled[i].label;
    r->labelled[i].x = x;
    for (int d = 0, k = 0; d < x->layout.ndim; d++) {
        if (t.dots >= 0 && d >= t.dots && d < t.dots + wide) {
            label[d] = (int8_t)(LETTERS + wide - 1 - (d - t.dots));
            continue;
        }
        label[d] = (int8_t)label_of(*t.letter[k++]);
        r->more |= r->once & BIT(label[d]);
        r->once |= BIT(label[d]);
    }
    LM_TRY(check_diagonal(r, i, &t));
    for (int d = 0, k = 0; d < x->layout.ndim; d++)
        LM_TRY(meet(r, i, d, label[d], label[d] < LETTERS ? t.letter[k++] : NULL));
    return LUMA_OK;
}

static luma_status read_tensors(reader *r) {
    for (int i = 0; i < r->n; i++) {
        LM_TRY(read_tensor(r, i));
        if (*r->at == ',' && i == r->n - 1) {
            int terms = 1;
            for (const char *s = r->equation; *s != '\0' && *s != '-'; s++)
                terms += *s == ',';
            return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1, "'%.80s' has %d terms for %d tensor%s",
                           r->equation, terms, r->n, r->n == 1 ? "" : "s");
        }
        if (*r->at != ',' && i < r->n - 1)
            return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1, "'%.80s' has %d term%s for %d tensors",
                           r->equation, i + 1, i == 0 ? "" : "s", r->n);
        if (*r->at == ',') r->at++;
    }
    return LUMA_OK;
}

/* ---- the result ------------------------------------------------------------------------------*/

static luma_status too_many(const reader *r) {
    return lm_fail(r->S, LUMA_ERR_SHAPE, 1, "the result of '%.80s' has more than %d dims",
                   r->equation, LUMA_MAX_DIMS);
}

static luma_status add_label(reader *r, int label) {
    if (r->nout == LUMA_MAX_DIMS) return too_many(r);
    r->out[r->nout++] = (int8_t)label;
    return LUMA_OK;
}

static luma_status add_dots(reader *r) {
    for (int k = r->wide - 1; k >= 0; k--)
        LM_TRY(add_label(r, LETTERS + k));
    return LUMA_OK;
}

/* Without an arrow: "...", then the letters that stand once, as in the alphabet. */
static luma_status imply_result(reader *r) {
    LM_TRY(add_dots(r));
    for (int l = 0; l < LETTERS; l++)
        if (r->once & ~r->more & BIT(l)) LM_TRY(add_label(r, l));
    return LUMA_OK;
}

static luma_status read_result(reader *r) {
    term t;
    if (*r->at == '\0') return imply_result(r);
    if (r->at[1] != '>') return unexpected(r, r->at + 1, "'>' was");
    r->at += 2;
    LM_TRY(read_term(r, &t));
    if (*r->at != '\0') return unexpected(r, r->at, "nothing more was");
    for (int i = 0; i <= t.n; i++) {
        if (i == t.dots) LM_TRY(add_dots(r));
        if (i == t.n) break;
        if (i == LUMA_MAX_DIMS) return too_many(r);
        const char *letter = t.letter[i];
        const int label = label_of(*letter);
        if (!(r->once & BIT(label)))
            return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1,
                           "'%.80s': '%c' at %lld stands in no term of a tensor", r->equation,
                           *letter, position(r, letter));
        for (int k = 0; k < r->nout; k++) {
            if (r->out[k] == label)
                return lm_fail(r->S, LUMA_ERR_ARGUMENT, 1,
                               "'%.80s': '%c' at %lld stands twice in the result", r->equation,
                               *letter, position(r, letter));
        }
        LM_TRY(add_label(r, label));
    }
    return LUMA_OK;
}

/* ---- the commonest equation ------------------------------------------------------------------*/

static int read_letters(const char **at, int most, int8_t *label) {
    int n = 0;
    for (; n < most && is_letter(**at); ++*at)
        label[n++] = (int8_t)label_of(**at);
    return n;
}

/* Two tensors, a letter for each of their dims, an arrow and letters: the labels, of which nothing is
** checked. false: it is another equation, or is to be read with all checks. */
static bool read_plain(const char *at, const luma_tensor *xs, lm_labelled *two, int *nout,
                       int8_t *out) {
    for (int i = 0; i < 2; i++) {
        const int ndim = xs[i].layout.ndim;
        if (!xs[i].storage || xs[i].dtype == LUMA_BOOL) return false;
        two[i].x = &xs[i];
        if (read_letters(&at, ndim, two[i].label) != ndim || *at++ != (i == 0 ? ',' : '-'))
            return false;
    }
    if (*at++ != '>') return false;
    *nout = read_letters(&at, LUMA_MAX_DIMS, out);
    return *at == '\0';
}

luma_status luma_einsum(luma_state *S, luma_tensor *out, const char *equation, int n,
                        const luma_tensor *xs) {
    if (!equation) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "an equation expected");
    if (n < 1) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "no tensors");
    lm_labelled few[4];
    reader r; /* its tables are large, and what is in them is known */
    if (n == 2 && read_plain(equation, xs, few, &r.nout, r.out)) {
        bool done;
        luma_status status = lm_contract_matrices(S, out, few, r.nout, r.out, &done);
        if (done) return status;
    }
    r.S = S;
    r.equation = r.at = equation;
    r.n = n;
    r.wide = r.nout = 0;
    r.xs = xs;
    r.labelled = few;
    r.once = r.more = r.known = 0;
    lm_storage *many = NULL;
    if (n > 4) {
        LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)n * sizeof *r.labelled, &many));
        r.labelled = (lm_labelled *)(void *)many->data;
    }
    luma_status status = read_tensors(&r);
    if (status == LUMA_OK) status = read_result(&r);
    if (status == LUMA_OK) status = lm_contract(S, out, n, r.labelled, r.nout, r.out);
    if (many) lm_storage_release(many);
    return status;
}
