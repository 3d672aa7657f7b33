/* search.cu -- places of values in sorted rows. */
#include "cuda/kernel.h"
#include "dtype.h"

#define LESS(e, v) (((e) < (v)) | (((v) != (v)) & ((e) == (e))))
#define AT_MOST(e, v) (((e) <= (v)) | ((v) != (v)))

/* NaN is the greatest. The first element that is not below v lies between from and to. */
#define SEARCH(_, token, ENUM, name, T, ...)                                                       \
    LM_KERNEL(search_##token) {                                                                    \
        const T *values = (const T *)a.values;                                                     \
        LM_EACH(i, a.rows * a.m) {                                                                 \
            const T *row = (const T *)a.sorted + i / a.m * a.n;                                    \
            T v = values[i];                                                                       \
            int64_t from = 0, to = a.n;                                                            \
            while (from < to) {                                                                    \
                int64_t middle = from + (to - from) / 2;                                           \
                T e = row[middle];                                                                 \
                int below = a.right ? AT_MOST(e, v) : LESS(e, v);                                  \
                from = below ? middle + 1 : from;                                                  \
                to = below ? to : middle;                                                          \
            }                                                                                      \
            a.out[i] = from + a.index_base;                                                        \
        }                                                                                          \
    }
LM_COMPUTE(SEARCH, _)
