/* map_loop.h -- the loop of elementwise kernels whose results have the storage type LM_R, in groups
** of LM_V; template, included by map.h. f and nin are constants at every call, so on a GPU they melt
** into the loop; the emulated device has one loop for all rows. The result may be the very memory of an input: a thread reads what it then writes.
** Layer: kernels/cuda. */
typedef struct __align__(LM_V * sizeof(LM_S)) {
    LM_S e[LM_V];
}
LM_LOOP(inputs);
typedef struct __align__(LM_V) {
    uint8_t e[LM_V];
}
LM_LOOP(masks);
typedef struct __align__(LM_V * sizeof(LM_R)) {
    LM_R e[LM_V];
}
LM_LOOP(results);

enum { LM_LOOP(words) = LM_V < LM_MAP_WORDS ? LM_V : LM_MAP_WORDS };

LM_FN LM_S LM_LOOP(element)(const lm_map_operand *o, int64_t at, LM_S number) {
    return o->p ? *(const LM_S *)((const char *)o->p + at) : number;
}
LM_FN uint8_t LM_LOOP(mask)(const lm_map_operand *o, int64_t at) {
    return o->p ? lm_load_b8(*((const uint8_t *)o->p + at)) : (uint8_t)o->number;
}

LM_FN LM_LOOP(inputs) LM_LOOP(group)(const lm_map_operand *o, int64_t at, LM_S number) {
    LM_LOOP(inputs) g;
    if (o->p && !o->single) {
        g = *(const LM_LOOP(inputs) *)((const char *)o->p + at);
    } else {
        LM_S one = LM_LOOP(element)(o, at, number);
        for (int k = 0; k < LM_V; k++)
            g.e[k] = one;
    }
    return g;
}
LM_FN LM_LOOP(masks) LM_LOOP(mask_group)(const lm_map_operand *o, int64_t at) {
    LM_LOOP(masks) g;
    if (o->p && !o->single) {
        g = *(const LM_LOOP(masks) *)((const char *)o->p + at);
    } else {
        uint8_t one = LM_LOOP(mask)(o, at);
        for (int k = 0; k < LM_V; k++)
            g.e[k] = one;
    }
    return g;
}

#if LM_MAP_LOOKS
LM_FN int LM_LOOP(refused)(int guard, LM_S y) {
    return guard == LM_FAULT_ZERO ? y == 0 : guard == LM_FAULT_NEGATIVE && y < 1 && y != 0;
}
#endif

LM_MAP_FN void LM_LOOP(map)(const lm_args_map *a, int nin, LM_C p0, LM_C p1,
                            LM_R (*f)(MAP_ARGUMENTS(, , ))) {
    const int first = nin == 3 ? 2 : 1, second = nin == 3 ? 3 : 2;
    const LM_S u = LM_STORE(lm_map_number(a->operand[first].number));
    const LM_S v = LM_STORE(lm_map_number(a->operand[second].number));
    const int64_t groups = a->grouped ? a->walk.n : 0;
    const int64_t units = a->grouped ? groups + (a->n - groups * LM_V) : a->n;
    LM_NO_UNROLL
    LM_EACH(i, units) {
        int64_t at[LM_MAP_OPERANDS];
#if LM_MAP_LOOKS
        int64_t fault = -1;
#endif
        if (i < a->walk.n) {
            LM_OFFSETS(a->walk, i, nin + 1, MAP_STRIDE, at);
        } else {
            for (int k = 0; k <= nin; k++)
                at[k] = (i + groups * (LM_V - 1)) * a->operand[k].step;
        }
        if (i < groups) {
            LM_LOOP(inputs) x = LM_LOOP(group)(&a->operand[first], at[first], u), y = x;
            LM_LOOP(masks) m = {{0}};
            LM_LOOP(results) r;
            if (nin > 1) y = LM_LOOP(group)(&a->operand[second], at[second], v);
            if (nin == 3) m = LM_LOOP(mask_group)(&a->operand[1], at[1]);
            LM_NO_UNROLL /* where words are long there are few in the loop, and elements pass by */
                for (int k = 0; k < LM_V; k += LM_LOOP(words)) {
                LM_R last[LM_LOOP(words)];
                LM_UNROLL
                for (int j = 0; j < LM_LOOP(words); j++)
                    last[j] = f(lm_load_b8(m.e[j]), LM_LOAD(x.e[j]), LM_LOAD(y.e[j]), p0, p1);
                LM_UNROLL
                for (int j = 0; j < LM_V - LM_LOOP(words); j++) {
                    x.e[j] = x.e[j + LM_LOOP(words)];
                    y.e[j] = y.e[j + LM_LOOP(words)];
                    m.e[j] = m.e[j + LM_LOOP(words)];
                    r.e[j] = r.e[j + LM_LOOP(words)];
                }
                LM_UNROLL
                for (int j = 0; j < LM_LOOP(words); j++)
                    r.e[LM_V - LM_LOOP(words) + j] = last[j];
            }
#if LM_MAP_LOOKS
            LM_UNROLL
            for (int k = LM_V - 1; k >= 0; k--) {
                if (!LM_LOOP(refused)(a->guard, y.e[k])) continue;
                fault = i * LM_V + k;
                r.e[k] = 0;
            }
#endif
            *(LM_LOOP(results) *)((char *)a->operand[0].p + at[0]) = r;
        } else {
            LM_S x = LM_LOOP(element)(&a->operand[first], at[first], u);
            LM_S y = nin > 1 ? LM_LOOP(element)(&a->operand[second], at[second], v) : x;
            uint8_t m = nin == 3 ? LM_LOOP(mask)(&a->operand[1], at[1]) : 0;
            LM_R r = f(m, LM_LOAD(x), LM_LOAD(y), p0, p1);
#if LM_MAP_LOOKS
            if (LM_LOOP(refused)(a->guard, y)) {
                fault = i + groups * (LM_V - 1);
                r = 0;
            }
#endif
            *(LM_R *)((char *)a->operand[0].p + at[0]) = r;
        }
#if LM_MAP_LOOKS
        if (fault >= 0) lm_note_fault(a->fault, (lm_fault_code)a->guard, a->op, 2, fault, 0, 0);
#endif
    }
}
