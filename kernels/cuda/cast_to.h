/* cast_to.h -- the conversion of LM_D to LM_TO; template, included by typed/cast.cu. That of an
** integer to itself is a copy by groups. Layer: kernels/cuda. */
#define LM_R LM_OF(lm_c_, LM_TO)
#define LM_V (16 / (int)(sizeof(LM_S) > sizeof(LM_R) ? sizeof(LM_S) : sizeof(LM_R)))
#define LM_LOOP(name) LM_WITH_D_(name, LM_TO)

#include "cuda/map_loop.h"
LM_FN LM_R LM_LOOP(convert)(MAP_ARGUMENTS(m, x, y)) {
    MAP_UNUSED(m, x, y);
    return LM_WITH_D_(LM_OF(lm_to_, LM_TO), LM_DT)(x);
}
LM_TYPED(LM_LOOP(cast)) {
    LM_LOOP(map)(&a, 1, 0, 0, LM_LOOP(convert));
}

#undef LM_R
#undef LM_V
#undef LM_LOOP
#undef LM_TO
