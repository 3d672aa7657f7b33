/* words_float.h -- the words of float32 and float64; template, included by words.h. abs and the
** transcendental words are in bits.h, math_f32.h and math_f64.h. Layer: kernels. */

LM_FN LM_C LM_NAME(neg)(LM_C a) {
    return -a;
}
LM_FN LM_C LM_NAME(sign)(LM_C a) {
    LM_C s = (LM_C)((a > 0) - (a < 0));
    return a != a ? a : s;
}
LM_FN LM_C LM_NAME(add)(LM_C a, LM_C b) {
    return a + b;
}
LM_FN LM_C LM_NAME(sub)(LM_C a, LM_C b) {
    return a - b;
}
LM_FN LM_C LM_NAME(mul)(LM_C a, LM_C b) {
    return a * b;
}
LM_FN LM_C LM_NAME(div)(LM_C a, LM_C b) {
    return a / b;
}
/* NaN wins on either side: the comparison takes b when one of them is NaN. */
LM_FN LM_C LM_NAME(max)(LM_C a, LM_C b) {
    LM_C m = a > b ? a : b;
    return a != a ? a : m;
}
LM_FN LM_C LM_NAME(min)(LM_C a, LM_C b) {
    LM_C m = a < b ? a : b;
    return a != a ? a : m;
}
LM_FN uint8_t LM_NAME(isnan)(LM_C a) {
    return a != a;
}
LM_FN uint8_t LM_NAME(isinf)(LM_C a) {
    return LM_NAME(abs)(a) == (LM_C)INFINITY;
}
LM_FN uint8_t LM_NAME(isfinite)(LM_C a) {
    return LM_NAME(abs)(a) < (LM_C)INFINITY;
}
LM_FN LM_C LM_NAME(floordiv)(LM_C a, LM_C b) {
    return LM_NAME(floor)(a / b);
}
LM_FN LM_C LM_NAME(truncdiv)(LM_C a, LM_C b) {
    return LM_NAME(trunc)(a / b);
}
/* Lua's: the sign of b, unless the remainder is a zero, which keeps the sign of a. */
LM_FN LM_C LM_NAME(remainder)(LM_C a, LM_C b) {
    LM_C r = LM_NAME(fmod)(a, b);
    return (((r > 0) & (b < 0)) | ((r < 0) & (b > 0))) ? r + b : r;
}
