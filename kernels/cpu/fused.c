/* fused.c -- programs of elementwise rows on the CPU: the iterator hands out lines, which run through
** the rows' kernels block by block, with what is between the rows in registers: blocks of a few KB in
** the first-level cache. Layer: kernels/cpu. */
#include "fused.h"

#include <string.h>

#include "cpu.h"

#define BLOCK 1024 /* elements of a register */
#define LEAST 64   /* where there are many */
#define ROOM 65536 /* bytes of all registers; */
#define APART 128  /* and between them, so that they do not share the low bits of addresses */
#define STEPS 256  /* of a program that runs here */
#define REGISTERS (STEPS + LM_FUSED_INPUTS)
#define HARD_FUNCTION 32 /* as rows alone cost (map.c), */
#define HARD_INTEGER 16
#define EASY 4       /* but that others only walk the first-level cache */
#define MOST_COST 64 /* pieces of work should hold a block */

/* What all threads read. */
typedef struct {
    const lm_fused *f;
    const lm_level *level;
    int ninputs;
    int64_t block;        /* elements */
    int64_t pitch;        /* bytes from one room to the next */
    lm_map_fn *fn[STEPS]; /* of rows */
    int16_t room[STEPS];  /* where the result of a step is; -1: it is a number, or the result */
    int last_room;        /* where the last step may work before the result is written */
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
        if (!is_number(step) && i < f->nsteps - 1) {
            if (room < 0) room = nidle > 0 ? idle[--nidle] : (int16_t)nrooms++;
            p->room[i] = room;
        } else if (room >= 0) {
            idle[nidle++] = room;
        }
        while (ngiven > 0)
            idle[nidle++] = given[--ngiven];
    }
    return nrooms;
}

/* ---- a block ---- */

/* What registers are for the block at hand. */
typedef struct {
    char *at[REGISTERS];
    int64_t stride[REGISTERS]; /* bytes; 0: one element for all, */
    int64_t single[STEPS];     /* which is apart, for rooms are written while they are read */
} registers;

/* Whether an element that the guard of a step looks for is among n. */
static void look(const program *p, const lm_fused_step *step, int64_t n, char *const *q,
                 const int64_t *t) {
    char *two[2] = {NULL, q[2]};
    int64_t strides[2] = {0, t[2]};
    lm_params params = {.found = p->found};
    p->level->elementwise->guard[step->compute][step->guard == LM_GUARD_NEGATIVE](n, two, strides,
                                                                                  &params);
}

/* n elements of a row or a conversion, side by side at `to`. */
static void run_step(const program *p, const lm_fused_step *step, lm_map_fn *fn, int64_t n,
                     const registers *r, char *to, bool stream) {
    char *q[4] = {to};
    int64_t t[4] = {(int64_t)lm_dtype_size(step->dtype)};
    for (int k = 0; k < step->n; k++) {
        q[k + 1] = r->at[step->in[k]];
        t[k + 1] = r->stride[step->in[k]];
    }
    if (step->op == LM_NOPS) {
        p->level->cast->cast[step->compute][step->dtype](n, q[1], t[1], to, t[0]);
        return;
    }
    if (step->guard != LM_GUARD_NONE) look(p, step, n, q, t);
    lm_params params = step->params;
    params.stream = stream && lm_op_guard(step->op) == LM_GUARD_NONE;
    fn(n, q, t, &params);
}

static bool is_uniform(const lm_fused_step *step, const registers *r) {
    for (int k = 0; k < step->n; k++)
        if (r->stride[step->in[k]] != 0) return false;
    return true;
}

/* The last step: into the result, by way of a room where a line is written past the caches. */
static void run_last(const program *p, int64_t n, const registers *r, char *room, char *to,
                     int64_t stride, bool stream) {
    int i = p->f->nsteps - 1;
    const lm_fused_step *step = &p->f->steps[i];
    int64_t size = (int64_t)lm_dtype_size(step->dtype);
    lm_cast_fn *move = p->level->cast->cast[step->dtype][step->dtype];
    if (is_uniform(step, r)) {
        run_step(p, step, p->fn[i], 1, r, room, false);
        move(n, room, 0, to, stride);
    } else if (stride != size) {
        run_step(p, step, p->fn[i], n, r, room, false);
        move(n, room, size, to, stride);
    } else if (stream && (step->op == LM_NOPS || lm_op_guard(step->op) != LM_GUARD_NONE)) {
        run_step(p, step, p->fn[i], n, r, room, false);
        p->level->copy->stream((size_t)(n * size), room, to);
    } else {
        run_step(p, step, p->fn[i], n, r, to, stream);
    }
}

static void run_block(const program *p, int64_t n, registers *r, char *rooms, char *to,
                      int64_t stride, bool stream) {
    const lm_fused *f = p->f;
    for (int i = 0; i < f->nsteps - 1; i++) {
        const lm_fused_step *step = &f->steps[i];
        if (is_number(step)) continue;
        bool uniform = is_uniform(step, r);
        char *room = uniform ? (char *)&r->single[i] : rooms + p->room[i] * p->pitch;
        run_step(p, step, p->fn[i], uniform ? 1 : n, r, room, false);
        r->at[p->ninputs + i] = room;
        r->stride[p->ninputs + i] = uniform ? 0 : (int64_t)lm_dtype_size(step->dtype);
    }
    run_last(p, n, r, rooms + p->last_room * p->pitch, to, stride, stream);
}

/* n elements of every operand, as the iterator gives them. */
static void run_line(int64_t n, char *const *at, const int64_t *s, const lm_params *params) {
    const program *p = params->program;
    const lm_fused *f = p->f;
    _Alignas(64) char rooms[ROOM];
    registers r;
    for (int i = 0; i < f->nsteps; i++) {
        /* read only; registers of rows are written to elsewhere */
        r.at[p->ninputs + i] = (char *)(uintptr_t)f->steps[i].element;
        r.stride[p->ninputs + i] = 0;
    }
    for (int64_t done = 0; done < n; done += p->block) {
        for (int k = 0; k < p->ninputs; k++) {
            r.at[k] = at[k + 1] + done * s[k + 1];
            r.stride[k] = s[k + 1];
        }
        run_block(p, n - done < p->block ? n - done : p->block, &r, rooms, at[0] + done * s[0],
                  s[0], params->stream);
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

luma_status lm_cpu_fused(luma_state *S, lm_device *d, lm_fused *f, bool *done) {
    program p = {.f = f, .level = lm_level_now(), .ninputs = f->map.noperands - 1};
    int found = 0;
    (void)d;
    if (f->nsteps > STEPS) return LUMA_OK;
    int nrooms = give_rooms(&p) + 1; /* one for the last step */
    p.block = BLOCK;
    while (p.block > LEAST && nrooms * (p.block * 8 + APART) > ROOM)
        p.block /= 2;
    p.pitch = p.block * 8 + APART;
    if (nrooms * p.pitch > ROOM) return LUMA_OK;
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        if (step->op != LM_NOPS) p.fn[i] = p.level->elementwise->map[step->op][step->compute];
    }
    p.found = &found;
    f->map.params.program = &p;
    p.last_room = nrooms - 1;
    f->map.params.stream = true;
    lm_iter_plan(&f->map);
    luma_status status =
        lm_iter_run(S, &f->map, run_line, p.level->cast, p.level->copy, cost_of(f));
    *done = true;
    f->refused = found != 0;
    return status;
}
