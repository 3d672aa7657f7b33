/* dtype.c -- the dtype tables: properties, promotion, accumulators. Layer: core. */
#include "dtype.h"

#include <string.h>

#define BOOL_ROW(_, token, NAME, text, T, C, kind, eps, dl)                                        \
    [LUMA_##NAME] = {text, #token, sizeof(T), LM_KIND_##kind, LUMA_##NAME, dl, false, eps, 0, 1},
#define INT_ROW(_, token, NAME, text, T, C, kind, eps, dl)                                         \
    [LUMA_##NAME] = {text,                                                                         \
                     #token,                                                                       \
                     sizeof(T),                                                                    \
                     LM_KIND_##kind,                                                               \
                     LUMA_##NAME,                                                                  \
                     dl,                                                                           \
                     (T)-1 < (T)1,                                                                 \
                     eps,                                                                          \
                     (T)-1 < (T)1 ? -(int64_t)((UINT64_C(1) << (8 * sizeof(T) - 1)) - 1) - 1 : 0,  \
                     (int64_t)(UINT64_MAX >> (64 - 8 * sizeof(T) + ((T)-1 < (T)1)))},
#define FLOAT_ROW(_, token, NAME, text, T, C, kind, eps, dl)                                       \
    [LUMA_##NAME] = {text,                                                                         \
                     #token,                                                                       \
                     sizeof(T),                                                                    \
                     LM_KIND_##kind,                                                               \
                     sizeof(T) == 8 ? LUMA_FLOAT64 : LUMA_FLOAT32,                                 \
                     dl,                                                                           \
                     true,                                                                         \
                     eps,                                                                          \
                     0,                                                                            \
                     0},

const lm_dtype_info lm_dtypes[LUMA_NDTYPES] = {LM_BOOLS(BOOL_ROW, _) LM_INTS(INT_ROW, _)
                                                   LM_FLOATS(FLOAT_ROW, _)};

luma_dtype lm_dtype_promote(luma_dtype a, luma_dtype b) {
    const lm_dtype_info *x = &lm_dtypes[a], *y = &lm_dtypes[b];
    if (a == b) return a;
    if (x->kind != y->kind) return x->kind > y->kind ? a : b;
    if (x->kind == LM_KIND_FLOAT) {
        if (x->size != y->size) return x->size > y->size ? a : b;
        return LUMA_FLOAT32; /* float16 with bfloat16 */
    }
    if (x->is_signed == y->is_signed) return x->size > y->size ? a : b;
    /* One signed, one unsigned: the signed type that holds both. */
    const lm_dtype_info *s = x->is_signed ? x : y, *u = x->is_signed ? y : x;
    if (s->size > u->size) return x->is_signed ? a : b;
    return u->size == 1 ? LUMA_INT16 : LUMA_INT64;
}

luma_dtype lm_dtype_accumulator(luma_dtype x) {
    if (lm_dtypes[x].kind != LM_KIND_FLOAT) return LUMA_INT64;
    return (luma_dtype)lm_dtypes[x].compute;
}

luma_dtype lm_dtype_wide(luma_dtype x) {
    return lm_dtype_is_float(x) ? lm_dtype_accumulator(x) : x;
}

/* Other spellings; the token ("f32") and the long name are read from the list. */
static const struct {
    const char *name;
    luma_dtype dtype;
} aliases[] = {{"f8e4m3", LUMA_FLOAT8_E4M3}, {"float8", LUMA_FLOAT8_E4M3}, {"half", LUMA_FLOAT16},
               {"float", LUMA_FLOAT32},      {"double", LUMA_FLOAT64},     {"long", LUMA_INT64},
               {"int", LUMA_INT32},          {"short", LUMA_INT16},        {"byte", LUMA_UINT8}};

static bool same(const char *name, size_t length, const char *text) {
    return strlen(text) == length && memcmp(name, text, length) == 0;
}

bool lm_dtype_parse(const char *name, size_t length, luma_dtype *out) {
    for (int d = 0; d < LUMA_NDTYPES; d++) {
        if (same(name, length, lm_dtypes[d].name) || same(name, length, lm_dtypes[d].token)) {
            *out = (luma_dtype)d;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (same(name, length, aliases[i].name)) {
            *out = aliases[i].dtype;
            return true;
        }
    }
    return false;
}

const char *luma_dtype_name(luma_dtype dtype) {
    return (unsigned)dtype < LUMA_NDTYPES ? lm_dtypes[dtype].name : "?";
}

size_t luma_dtype_size(luma_dtype dtype) {
    return (unsigned)dtype < LUMA_NDTYPES ? lm_dtypes[dtype].size : 0;
}
