/* fused.c -- programs of elementwise rows on the CPU: the iterator hands out lines, which run through
** the rows' kernels block by block, with what is between the rows in registers: blocks of a few KB in
** the first-level cache. Arithmetic of floats whose result only the next row reads stays in those of
** the processor: a chain. Layer: kernels/cpu. */
#include "fused.h"

#include <string.h>

#include "cpu.h"

#define BLOCK 8192 /* bytes of a register at most, in the widest dtype */
#define LEAST 64   /* elements of it, where there are many */
#define ROOM 65536 /* bytes of all registers; */
#define APART 128  /* and between them, so that they do not share the low bits of addresses */
#define STEPS 128  /* of a program that runs here */
#define REGISTERS (STEPS + LM_FUSED_INPUTS)
#define CHAIN_FROM 256   /* elements of a line */
#define SINGLES 16       /* operands of one element in the chains of a line */
#define HARD_FUNCTION 32 /* as rows alone cost (map.c), */
#define HARD_INTEGER 16
#define EASY 1       /* but that others only walk the first-level cache */
#define MOST_COST 64 /* pieces of work should hold a block */

/* What all threads read. */
typedef struct {
    const lm_fused *f;
    const lm_level *level;
    int ninputs;
    int64_t block;         /* elements */
    int64_t pitch;         /* bytes from one room to the next */
    lm_map_fn *fn[STEPS];  /* of rows */
    int16_t room[STEPS];   /* where the result of a step is; -1: it is a number */
    int16_t reader[STEPS]; /* the one step that reads it, once; -1: none, or more */
    int *found;
} program;

/* ---- rooms for registers ---- */

static bool is_number(const lm_fused_step *step) {
    return step->op == LM_NOPS && step->n == 0;
}

/* Gives each step a room that nobody reads any more, or its own operand's where elements have the
** same size. Returns how many rooms there are. */
static int give_rooms(program *p) {
    const lm_fused *f = p->f;
    int last[STEPS], nrooms = 0;
    int16_t idle[STEPS];
    int nidle = 0;
    for (int i = 0; i < f->nsteps; i++) {
        last[i] = i;
        for (int k = 0; k < f->steps[i].n; k++) {
            int s = f->steps[i].in[k] - p->ninputs;
            if (s >= 0) last[s] = i;
        }
    }
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        int16_t room = -1, given[3];
        int ngiven = 0;
        for (int k = 0; k < step->n; k++) {
            int s = step->in[k] - p->ninputs;
            if (s < 0 || last[s] != i || p->room[s] < 0) continue;
            last[s] = -1; /* once */
            bool same = lm_dtype_size(f->steps[s].dtype) == lm_dtype_size(step->dtype);
            if (same && room < 0)
                room = p->room[s];
            else
                given[ngiven++] = p->room[s];
        }
        p->room[i] = -1;
        if (!is_number(step)) {
            if (room < 0) room = nidle > 0 ? idle[--nidle] : (int16_t)nrooms++;
            p->room[i] = room;
        }
        while (ngiven > 0)
            idle[nidle++] = given[--ngiven];
    }
    return nrooms;
}

/* ---- chains ---- */

/* What a row does to the value of a chain that is its operand 1, or 2. */
static const uint8_t chain_words[LM_NOPS][2] = {
    [LM_OP_add] = {LM_CHAIN_ADD, LM_CHAIN_ADD},
    [LM_OP_sub] = {LM_CHAIN_SUB, LM_CHAIN_SUB_FROM},
    [LM_OP_mul] = {LM_CHAIN_MUL, LM_CHAIN_MUL},
    [LM_OP_div] = {LM_CHAIN_DIV, LM_CHAIN_DIV_INTO},
    [LM_OP_neg] = {LM_CHAIN_NEG},
    [LM_OP_square] = {LM_CHAIN_SQUARE},
    [LM_OP_sqrt] = {LM_CHAIN_SQRT},
    [LM_OP_relu] = {LM_CHAIN_RELU},
};

static void find_readers(program *p) {
    const lm_fused *f = p->f;
    int reads[STEPS] = {0};
    for (int i = 0; i < f->nsteps; i++) {
        p->reader[i] = -1;
        for (int k = 0; k < f->steps[i].n; k++) {
            int s = f->steps[i].in[k] - p->ninputs;
            if (s >= 0) p->reader[s] = reads[s]++ == 0 ? (int16_t)i : -1;
        }
    }
}

/* ---- a line ---- */

/* A step as it runs over a line, block after block. */
typedef struct {
    const lm_fused_step *step;
    lm_map_fn *fn;      /* of a row, or */
    lm_cast_fn *cast;   /* of a conversion */
    lm_map_fn *guard;   /* NULL: nothing to look for */
    char *at[4];        /* the result, what is read */
    int64_t stride[4];  /* bytes; 0: one element for all */
    int64_t advance[4]; /* bytes from block to block */
    int links;          /* steps of the chain that begins here; 0: none does */
    int value;          /* in a chain: the operand that the step before made; of the first: 1 */
    lm_params params;
} running;

typedef struct {
    char *at;
    int64_t stride;  /* bytes from element to element, */
    int64_t advance; /* and from block to block; 0 in rooms */
} place;

static void run_step(const running *s, int64_t n) {
    if (s->cast) {
        s->cast(n, s->at[1], s->stride[1], s->at[0], s->stride[0]);
        return;
    }
    if (s->guard) {
        char *two[2] = {NULL, s->at[2]};
        int64_t strides[2] = {0, s->stride[2]};
        s->guard(n, two, strides, &s->params);
    }
    s->fn(n, s->at, s->stride, &s->params);
}

/* Makes step i ready to read its operands, which are side by side or one element for all. */
static void prepare(const program *p, int i, const place *places, running *s) {
    const lm_fused_step *step = &p->f->steps[i];
    bool row = step->op != LM_NOPS;
    s->step = step;
    s->fn = p->fn[i];
    s->links = 0;
    s->cast = row ? NULL : p->level->cast->cast[step->compute][step->dtype];
    s->guard = NULL;
    s->params = step->params;
    s->params.stream = false;
    if (row && step->guard != LM_GUARD_NONE) {
        s->guard = p->level->elementwise->guard[step->compute][step->guard == LM_GUARD_NEGATIVE];
        s->params.found = p->found;
    }
    for (int k = 0; k < step->n; k++) {
        const place *from = &places[step->in[k]];
        s->at[k + 1] = from->at;
        s->stride[k + 1] = from->stride;
        s->advance[k + 1] = from->advance;
    }
}

static bool is_uniform(const lm_fused_step *step, const place *places) {
    for (int k = 0; k < step->n; k++)
        if (places[step->in[k]].stride != 0) return false;
    return true;
}

static void set_result(running *s, char *to, int64_t advance) {
    s->at[0] = to;
    s->stride[0] = (int64_t)lm_dtype_size(s->step->dtype);
    s->advance[0] = advance;
}

/* The steps of one line whose results differ from element to element; those of the others, which are
** one element, run here. The last one may be such: then it is in *single, and *one is set. */
static int start_line(const program *p, char *rooms, place *places, int64_t *single, running *run,
                      bool *one) {
    const lm_fused *f = p->f;
    int n = 0;
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        place *to = &places[p->ninputs + i];
        to->advance = 0;
        to->stride = 0;
        if (is_number(step)) { /* only read */
            to->at = (char *)(uintptr_t)step->element;
            continue;
        }
        running *s = &run[n];
        bool uniform = is_uniform(step, places);
        prepare(p, i, places, s);
        /* a single element is apart, for rooms are written while they are read */
        to->at = uniform ? (char *)&single[i] : rooms + p->room[i] * p->pitch;
        set_result(s, to->at, 0);
        if (uniform) {
            run_step(s, 1);
            *one = i == f->nsteps - 1;
        } else {
            to->stride = s->stride[0];
            n++;
        }
    }
    return n;
}

/* Whether step s can be a link of a chain, the first one or behind `before`. */
static bool can_link(const program *p, running *s, const running *before, int *singles) {
    const lm_fused_step *step = s->step;
    const int64_t size = (int64_t)lm_dtype_size(step->dtype);
    if (step->op == LM_NOPS || !p->level->chain->run[step->dtype]) return false;
    s->value = 1;
    if (before) {
        const int made = (int)(before->step - p->f->steps);
        if (p->reader[made] != (int)(step - p->f->steps)) return false;
        if (step->in[0] != made + p->ninputs) s->value = 2;
    }
    if (chain_words[step->op][s->value - 1] == LM_CHAIN_NONE) return false;
    int found = *singles;
    for (int k = 1; k <= step->n; k++) {
        if (before && k == s->value) continue;
        if (s->stride[k] == 0) found++;
        if ((s->stride[k] != 0 && s->stride[k] != size) || found > SINGLES) return false;
    }
    *singles = found;
    return true;
}

/* One element of 4 or 8 bytes becomes a vector of them. */
static void repeat(const char *x, int64_t size, char *held) {
    char two[8];
    memcpy(two, x, 4);
    memcpy(two + 4, size == 4 ? x : x + 4, 4);
    for (int i = 0; i < LM_CHAIN_WIDEST; i += 8)
        memcpy(held + i, two, 8);
}

/* Finds the chains of a line. Their single elements become vectors of equal ones in `held`. */
static void join_steps(const program *p, running *run, int nrun, char (*held)[LM_CHAIN_WIDEST]) {
    int singles = 0;
    for (int first = 0, next; first < nrun; first = next) {
        int before = singles;
        next = first;
        while (next < nrun &&
               can_link(p, &run[next], next > first ? &run[next - 1] : NULL, &singles))
            next++;
        if (next - first < 2) { /* no chain */
            singles = before;
            next = first + 1;
            continue;
        }
        run[first].links = next - first;
        for (int i = first; i < next; i++) {
            running *s = &run[i];
            for (int k = 1; k <= s->step->n; k++) {
                if (s->stride[k] != 0 || (i > first && k == s->value)) continue;
                repeat(s->at[k], s->stride[0], held[before]);
                s->at[k] = held[before++];
            }
        }
    }
}

static lm_link link_of(const program *p, lm_chain_word word, const running *s, int k) {
    return (lm_link){word, s->at[k], s->stride[k] != 0 ? p->level->chain->vector : 0};
}

/* m elements of the chain that begins at r, whose last step is returned: whole chunks; then step by
** step what is left, for which there are rooms. */
static running *run_chain(const program *p, running *r, int64_t m) {
    const lm_chain_kernels *chain = p->level->chain;
    running *last = r + r->links - 1;
    const int64_t chunk = chain->bytes / r->stride[0], done = m / chunk * chunk;
    const int64_t inner = m <= p->block ? done : 0; /* rooms are no longer than a block */
    lm_link links[STEPS + 1];
    int n = 0;
    links[n++] = link_of(p, LM_CHAIN_NONE, r, 1);
    for (const running *s = r; s <= last; s++) {
        lm_chain_word word = (lm_chain_word)chain_words[s->step->op][s->value - 1];
        links[n++] = s->step->n == 2 ? link_of(p, word, s, 3 - s->value) : (lm_link){.word = word};
    }
    chain->run[r->step->dtype](done / chunk, n, links, last->at[0], last->params.stream);
    if (done == m) return last;
    for (const running *s = r; s <= last; s++) {
        running rest = *s;
        for (int k = 0; k <= s->step->n; k++) {
            bool own = k == 0 ? s < last : s > r && k == s->value;
            rest.at[k] += (own ? inner : done) * s->stride[k];
        }
        run_step(&rest, m - done);
    }
    return last;
}

/* Blocks of about one size, whole lines of the cache, and at most the room there is. */
static int64_t block_of(const program *p, int64_t n) {
    int64_t blocks = lm_ceil_div(n, p->block);
    return blocks <= 1 ? p->block : lm_ceil_div(lm_ceil_div(n, blocks), LEAST) * LEAST;
}

/* n elements of every operand, as the iterator gives them. */
static void run_line(int64_t n, char *const *at, const int64_t *s, const lm_params *params) {
    const program *p = params->program;
    int last = p->f->nsteps - 1;
    luma_dtype dtype = p->f->steps[last].dtype;
    int64_t size = (int64_t)lm_dtype_size(dtype), block = block_of(p, n), single[STEPS];
    lm_cast_fn *move = p->level->cast->cast[dtype][dtype];
    _Alignas(64) char rooms[ROOM];
    _Alignas(64) char held[SINGLES][LM_CHAIN_WIDEST];
    place places[REGISTERS];
    running run[STEPS];
    bool one = false;
    for (int k = 0; k < p->ninputs; k++)
        places[k] = (place){at[k + 1], s[k + 1], s[k + 1] * block};
    int nrun = start_line(p, rooms, places, single, run, &one);
    if (one) {
        move(n, (char *)&single[last], 0, at[0], s[0]);
        return;
    }
    running *end = &run[nrun - 1];
    bool direct = s[0] == size;
    if (direct) set_result(end, at[0], size * block);
    end->params.stream = direct && params->stream && end->fn && !lm_op_guard(end->step->op);
    if (n >= CHAIN_FROM) join_steps(p, run, nrun, held);
    if (direct && run->links == nrun) block = n; /* without rooms */
    for (int64_t done = 0; done < n; done += block) {
        int64_t m = lm_min(n - done, block);
        for (running *r = run; r <= end; r++) {
            if (r->links > 0)
                r = run_chain(p, r, m);
            else
                run_step(r, m);
        }
        for (running *r = run; r <= end; r++) {
            for (int k = 0; k <= r->step->n; k++)
                r->at[k] += r->advance[k];
        }
        if (!direct) move(m, end->at[0], size, at[0] + done * s[0], s[0]);
    }
}

/* ---- the slot ---- */

static int64_t cost_of(const lm_fused *f) {
    int64_t cost = 0;
    for (int k = 0; k < f->map.noperands; k++)
        cost += (int64_t)lm_dtype_size(f->map.operand[k].dtype);
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        bool row = step->op != LM_NOPS;
        cost += row && lm_ops[step->op].ulp > 0.5     ? HARD_FUNCTION
                : row && step->guard != LM_GUARD_NONE ? HARD_INTEGER
                                                      : EASY;
    }
    return lm_min(cost, MOST_COST);
}

/* Bytes of an element of the widest dtype that steps have. */
static int64_t widest(const lm_fused *f) {
    int64_t size = 1;
    for (int i = 0; i < f->nsteps; i++)
        size = lm_max(size, (int64_t)lm_dtype_size(f->steps[i].dtype));
    return lm_max(size, 4); /* blocks of small elements should be short, too */
}

luma_status lm_cpu_fused(luma_state *S, lm_device *d, lm_fused *f, bool *done) {
    program p = {.f = f, .level = lm_level_now(), .ninputs = f->map.noperands - 1};
    int found = 0;
    (void)d;
    if (f->nsteps > STEPS) return LUMA_OK;
    int nrooms = give_rooms(&p);
    find_readers(&p);
    p.block = BLOCK / widest(f);
    while (p.block > LEAST && nrooms * (p.block * widest(f) + APART) > ROOM)
        p.block /= 2;
    p.pitch = p.block * widest(f) + APART;
    if (nrooms * p.pitch > ROOM) return LUMA_OK;
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        if (step->op != LM_NOPS) p.fn[i] = p.level->elementwise->map[step->op][step->compute];
    }
    p.found = &found;
    f->map.params.program = &p;
    f->map.params.stream = true;
    lm_iter_plan(&f->map);
    luma_status status =
        lm_iter_run(S, &f->map, run_line, p.level->cast, p.level->copy, cost_of(f));
    *done = true;
    f->refused = found != 0;
    return status;
}
