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
LM_FN LM_C LM_NAME(fmod)(LM_C a, LM_C b) {
    return LM_NAME(fmod_is_near)(a, b) ? LM_NAME(fmod_near)(a, b) : LM_NAME(fmod_far)(a, b);
}
/* Lua's: the sign of b, unless the remainder r of fmod is a zero, which keeps the sign of a. */
LM_FN LM_C LM_NAME(remainder_of)(LM_C r, LM_C b) {
    return (((r > 0) & (b < 0)) | ((r < 0) & (b > 0))) ? r + b : r;
}
LM_FN LM_C LM_NAME(remainder)(LM_C a, LM_C b) {
    return LM_NAME(remainder_of)(LM_NAME(fmod)(a, b), b);
}

/* ---- made of the words of math_logs.h ---- */

/* (e^a - e^-a) / 2 with h = (e^a - 1) / 2. ulp 2. */
LM_FN LM_C LM_NAME(sinh)(LM_C x) {
    LM_C h = LM_NAME(expm1_shifted)(LM_NAME(abs)(x), -1);
    LM_C y = h + h / (h + h + 1);
    return LM_NAME(copysign)(h < (LM_C)INFINITY ? y : h, x);
}
/* ulp 2. */
LM_FN LM_C LM_NAME(cosh)(LM_C x) {
    LM_C e = LM_NAME(expm1_shifted)(LM_NAME(abs)(x), -1) + K(0.5);
    return e + K(0.25) / e;
}
/* Beyond this a^2 might overflow, and a^2 + 1 is a^2: log 2a serves. */
#define LM_LARGE K(0x1p60)
#define LM_LOG_2 K(0x1.62e42fefa39efp-1)
/* log(a + sqrt(a^2 + 1)). ulp 3. */
LM_FN LM_C LM_NAME(asinh)(LM_C x) {
    LM_C a = LM_NAME(abs)(x), s = a * a;
    LM_C w = a > LM_LARGE ? a : a + s / (1 + LM_NAME(sqrt)(s + 1));
    LM_C y = LM_NAME(log1p)(w) + (a > LM_LARGE ? LM_LOG_2 : K(0));
    return LM_NAME(copysign)(y, x);
}
/* log(x + sqrt(x^2 - 1)), NaN below 1. ulp 3. */
LM_FN LM_C LM_NAME(acosh)(LM_C x) {
    LM_C t = x - 1, root = LM_NAME(sqrt)(t * (t + 2));
    LM_C w = x > LM_LARGE ? x : t + root;
    LM_C y = LM_NAME(log1p)(w) + (x > LM_LARGE ? LM_LOG_2 : K(0));
    return x < 1 ? (LM_C)NAN : y;
}
#undef LM_LARGE
#undef LM_LOG_2
/* log((1 + x) / (1 - x)) / 2, NaN beyond 1. ulp 2. */
LM_FN LM_C LM_NAME(atanh)(LM_C x) {
    LM_C a = LM_NAME(abs)(x);
    return LM_NAME(copysign)(K(0.5) * LM_NAME(log1p)(2 * a / (1 - a)), x);
}
/* log(x / (1 - x)). ulp 3. Near 1/2, where it is 0, by log1p. */
LM_FN LM_C LM_NAME(logit)(LM_C x) {
    LM_C near = LM_NAME(log1p)((2 * x - 1) / (1 - x)), far = LM_NAME(log)(x / (1 - x));
    return ((x > K(0.25)) & (x < K(0.75))) ? near : far;
}
/* log(e^x + e^y). */
LM_FN LM_C LM_NAME(logaddexp)(LM_C x, LM_C y) {
    LM_C most = LM_NAME(max)(x, y), least = LM_NAME(min)(x, y);
    LM_C apart = x == y ? K(0) : least - most; /* infinities too */
    return most + LM_NAME(log1p)(LM_NAME(exp)(apart));
}
/* log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold. */
LM_FN LM_C LM_NAME(softplus)(LM_C x, LM_C beta, LM_C threshold) {
    LM_C z = x * beta;
    LM_C y = LM_NAME(max)(z, K(0)) + LM_NAME(log1p)(LM_NAME(exp)(-LM_NAME(abs)(z)));
    return z > threshold ? x : y / beta;
}
LM_FN LM_C LM_NAME(logsigmoid)(LM_C x) {
    return LM_NAME(min)(x, K(0)) - LM_NAME(log1p)(LM_NAME(exp)(-LM_NAME(abs)(x)));
}
/* x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2). ulp 4. */
LM_FN LM_C LM_NAME(mish)(LM_C x) {
    LM_C e = LM_NAME(exp)(x > 40 ? K(40) : x), n = e * (e + 2);
    return x * (n / (n + 2));
}
/* x / 2 (1 + tanh z) = x / (1 + e^(-2z)), z = sqrt(2 / pi) (x + 0.044715 x^3). */
LM_FN LM_C LM_NAME(gelu_tanh)(LM_C x) {
    LM_C c = x < -50 ? K(-50) : x; /* -0 from there on */
    LM_C z = c * LM_NAME(fma)(c * c, K(0.071354816272600248), K(1.5957691216057307117));
    return c / (1 + LM_NAME(exp)(-z));
}
