/* words_int.h -- the words of bool and integers; template, included by words.h. Layer: kernels. */

#define LM_U LM_NAME(wrap)

LM_FN uint8_t LM_NAME(isnan)(LM_C a) {
    (void)a;
    return 0;
}
LM_FN uint8_t LM_NAME(isinf)(LM_C a) {
    (void)a;
    return 0;
}
LM_FN uint8_t LM_NAME(isfinite)(LM_C a) {
    (void)a;
    return 1;
}
LM_FN LM_C LM_NAME (and)(LM_C a, LM_C b) {
    return (LM_C)(a & b);
}
LM_FN LM_C LM_NAME(or)(LM_C a, LM_C b) {
    return (LM_C)(a | b);
}
LM_FN LM_C LM_NAME (xor)(LM_C a, LM_C b) {
    return (LM_C)(a ^ b);
}
LM_FN LM_C LM_NAME(max)(LM_C a, LM_C b) {
    return a > b ? a : b;
}
LM_FN LM_C LM_NAME(min)(LM_C a, LM_C b) {
    return a < b ? a : b;
}

/* Bits that are set, by sums of neighbours. */
LM_FN LM_C LM_NAME(popcount)(LM_C a) {
    LM_U v = (LM_U)a & ~(LM_U)0 >> 8 * (sizeof(LM_U) - sizeof(LM_C));
    v -= (v >> 1) & (LM_U)0x5555555555555555;
    v = (v & (LM_U)0x3333333333333333) + ((v >> 2) & (LM_U)0x3333333333333333);
    v = (v + (v >> 4)) & (LM_U)0x0f0f0f0f0f0f0f0f;
    v += v >> 8;
    v += v >> 16;
    v += v >> 16 >> 16;
    return (LM_C)(v & 0x7f);
}

#if LM_KIND == LM_BOOL

LM_FN LM_C LM_NAME(not )(LM_C a) {
    return a == 0;
}

#else

LM_FN LM_C LM_NAME(not )(LM_C a) {
    return (LM_C)~a;
}
LM_FN LM_C LM_NAME(neg)(LM_C a) {
    return (LM_C)(0 - (LM_U)a);
}
LM_FN LM_C LM_NAME(add)(LM_C a, LM_C b) {
    return (LM_C)((LM_U)a + (LM_U)b);
}
LM_FN LM_C LM_NAME(sub)(LM_C a, LM_C b) {
    return (LM_C)((LM_U)a - (LM_U)b);
}
LM_FN LM_C LM_NAME(mul)(LM_C a, LM_C b) {
    return (LM_C)((LM_U)a * (LM_U)b);
}
LM_FN LM_C LM_NAME(fused)(LM_C a, LM_C b, LM_C c) {
    return (LM_C)((LM_U)a * (LM_U)b + (LM_U)c);
}
LM_FN LM_C LM_NAME(floor)(LM_C a) {
    return a;
}
LM_FN LM_C LM_NAME(ceil)(LM_C a) {
    return a;
}
LM_FN LM_C LM_NAME(round)(LM_C a) {
    return a;
}
LM_FN LM_C LM_NAME(trunc)(LM_C a) {
    return a;
}

/* Negative exponents are refused by the launcher; here they count as 0. */
LM_FN LM_C LM_NAME(pow)(LM_C a, LM_C b) {
    LM_U base = (LM_U)a, result = 1;
    for (LM_C e = b; e > 0; e = (LM_C)(e >> 1)) {
        if (e & 1) result *= base;
        base *= base;
    }
    return (LM_C)result;
}

/* Euclid's; of magnitudes, so that the least integer has one. */
LM_FN LM_U LM_NAME(magnitude)(LM_C a) {
    return a > 0 ? (LM_U)a : 0 - (LM_U)a;
}
LM_FN LM_C LM_NAME(gcd)(LM_C a, LM_C b) {
    LM_U x = LM_NAME(magnitude)(a), y = LM_NAME(magnitude)(b);
    while (y != 0) {
        LM_U rest = x % y;
        x = y;
        y = rest;
    }
    return (LM_C)x;
}
LM_FN LM_C LM_NAME(lcm)(LM_C a, LM_C b) {
    LM_U x = LM_NAME(magnitude)(a), y = LM_NAME(magnitude)(b), g = x, rest = y;
    while (rest != 0) {
        LM_U next = g % rest;
        g = rest;
        rest = next;
    }
    return (LM_C)(x / (g == 0 ? 1 : g) * y);
}

/* Counts are compared as unsigned numbers, so that negative ones are past the width. */
#define LM_WIDTH (8 * (LM_U)sizeof(LM_C))
LM_FN LM_C LM_NAME(lshift)(LM_C a, LM_C b) {
    LM_U count = (LM_U)b, bits = (LM_U)a << (count & (LM_WIDTH - 1));
    return count >= LM_WIDTH ? (LM_C)0 : (LM_C)bits;
}

#if LM_KIND == LM_SIGNED

LM_FN LM_C LM_NAME(abs)(LM_C a) {
    return a < 0 ? LM_NAME(neg)(a) : a;
}
LM_FN LM_C LM_NAME(sign)(LM_C a) {
    return (LM_C)((a > 0) - (a < 0));
}
LM_FN LM_C LM_NAME(rshift)(LM_C a, LM_C b) {
    LM_U count = (LM_U)b;
    return (LM_C)(a >> (count >= LM_WIDTH ? LM_WIDTH - 1 : count));
}
LM_FN LM_C LM_NAME(truncdiv)(LM_C a, LM_C b) {
    LM_C divisor = (LM_C)(b == 0 || b == -1 ? 1 : b);
    LM_C q = LM_NAME(quotient)(a, divisor);
    q = b == -1 ? LM_NAME(neg)(a) : q;
    return b == 0 ? (LM_C)0 : q;
}
/* The remainder has the sign of a; where b has the other one, the quotient was rounded up. */
LM_FN LM_C LM_NAME(fmod)(LM_C a, LM_C b) {
    LM_C r = LM_NAME(sub)(a, LM_NAME(mul)(LM_NAME(truncdiv)(a, b), b));
    return b == 0 ? (LM_C)0 : r;
}
LM_FN LM_C LM_NAME(floordiv)(LM_C a, LM_C b) {
    LM_C q = LM_NAME(truncdiv)(a, b), r = LM_NAME(sub)(a, LM_NAME(mul)(q, b));
    LM_C up = (LM_C)((r != 0) & ((r ^ b) < 0) & (b != 0));
    return LM_NAME(sub)(q, up);
}
LM_FN LM_C LM_NAME(remainder)(LM_C a, LM_C b) {
    LM_C r = LM_NAME(fmod)(a, b);
    return ((r != 0) & ((r ^ b) < 0)) ? LM_NAME(add)(r, b) : r;
}

#else

LM_FN LM_C LM_NAME(abs)(LM_C a) {
    return a;
}
LM_FN LM_C LM_NAME(sign)(LM_C a) {
    return a != 0;
}
LM_FN LM_C LM_NAME(rshift)(LM_C a, LM_C b) {
    LM_U count = (LM_U)b, bits = (LM_U)a >> (count & (LM_WIDTH - 1));
    return count >= LM_WIDTH ? (LM_C)0 : (LM_C)bits;
}
LM_FN LM_C LM_NAME(truncdiv)(LM_C a, LM_C b) {
    LM_C q = LM_NAME(quotient)(a, (LM_C)(b == 0 ? 1 : b));
    return b == 0 ? (LM_C)0 : q;
}
LM_FN LM_C LM_NAME(floordiv)(LM_C a, LM_C b) {
    return LM_NAME(truncdiv)(a, b);
}
LM_FN LM_C LM_NAME(fmod)(LM_C a, LM_C b) {
    LM_C r = LM_NAME(sub)(a, LM_NAME(mul)(LM_NAME(truncdiv)(a, b), b));
    return b == 0 ? (LM_C)0 : r;
}
LM_FN LM_C LM_NAME(remainder)(LM_C a, LM_C b) {
    return LM_NAME(fmod)(a, b);
}

#endif
#undef LM_WIDTH
#endif
#undef LM_U
