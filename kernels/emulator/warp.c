/* warp.c -- shuffles, ballots and barriers of a warp, with the checks of their masks.
** Layer: kernels. */
#include "warp.h"

#include <string.h>

void lm_emu_warp_begin(lm_emu_warp *w, unsigned number, uint32_t lanes) {
    w->number = number;
    w->gone = ~lanes;
    w->epoch = 0;
    for (int i = 0; i < LM_EMU_MEETINGS; i++)
        w->meetings[i].arrived = w->meetings[i].readers = 0;
}

/* documented: every lane of the mask that has not exited has to arrive */
static bool complete(const lm_emu_warp *w, const lm_emu_meeting *m) {
    return m->arrived && (m->mask & ~w->gone & ~m->arrived) == 0;
}

static void release(lm_emu_warp *w, lm_emu_meeting *m) {
    m->took_part = m->readers = m->arrived;
    m->arrived = 0;
    m->turn ^= 1;
    w->epoch++;
    lm_emu_warp_ready(w->number, m->took_part);
}

void lm_emu_warp_exit(unsigned warp, unsigned lane) {
    lm_emu_warp *w = lm_emu_warp_now();
    (void)warp;
    w->gone |= 1u << lane;
    for (int i = 0; i < LM_EMU_MEETINGS; i++)
        if (complete(w, &w->meetings[i])) release(w, &w->meetings[i]);
}

static lm_emu_meeting *meeting_of(lm_emu_warp *w, uint32_t mask) {
    lm_emu_meeting *free = NULL;
    for (int i = 0; i < LM_EMU_MEETINGS; i++) {
        lm_emu_meeting *m = &w->meetings[i];
        bool used = m->arrived || m->readers;
        if (used && m->mask == mask) return m;
        if (!used && !free) free = m;
    }
    if (!free) {
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "warp-mask",
                      "more than %d masks of one warp are in flight", LM_EMU_MEETINGS);
        lm_emu_abandon();
    }
    free->mask = mask;
    free->turn = 0;
    return free;
}

/* documented: each lane that calls is in its own mask, and all lanes of the mask execute the same
** intrinsic with the same mask */
static void check_arrival(const lm_emu_meeting *m, const lm_emu_site *site, unsigned lane) {
    if (!(m->mask >> lane & 1))
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "warp-mask",
                      "lane %u is not in its own mask 0x%08x at %s:%d", lane, m->mask, site->file,
                      site->line);
    if (m->arrived && m->site != site)
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "warp-divergence",
                      "lanes of the mask 0x%08x meet at %s:%d and at %s:%d", m->mask, m->site->file,
                      m->site->line, site->file, site->line);
}

/* Meets the other lanes of the mask; after it value[turn ^ 1] holds what took_part brought, until
** leave. */
static lm_emu_meeting *meet(const lm_emu_site *site, uint32_t mask, const void *value,
                            size_t size) {
    lm_emu_warp *w = lm_emu_warp_now();
    lm_emu_meeting *m = meeting_of(w, mask);
    unsigned lane = lm_emu_here.self->linear % 32;
    check_arrival(m, site, lane);
    m->site = site;
    m->value[m->turn][lane] = 0;
    memcpy(&m->value[m->turn][lane], value, size);
    m->arrived |= 1u << lane;
    if (complete(w, m))
        release(w, m);
    else
        lm_emu_warp_wait(site);
    return m;
}

static void leave(lm_emu_meeting *m) {
    m->readers &= ~(1u << (lm_emu_here.self->linear % 32));
}

void lm_emu_warp_barrier(const lm_emu_site *site, unsigned mask) {
    leave(meet(site, mask, "", 0));
}

/* The lane that a shuffle reads, as documented: segments of `width` lanes; past the end of a
** segment a lane keeps its own value, and so does xor toward a later segment. */
static int source_lane(lm_emu_shuffle_kind kind, unsigned argument, int width) {
    int lane = (int)(lm_emu_here.self->linear % 32), start = lane / width * width, source = lane;
    switch (kind) {
    case LM_EMU_INDEX:
        source = start + (int)(argument % (unsigned)width);
        break;
    case LM_EMU_XOR:
        source = (int)((unsigned)lane ^ argument);
        if (source >= start + width) source = lane;
        break;
    case LM_EMU_UP:
        source = argument <= (unsigned)(lane - start) ? lane - (int)argument : lane;
        break;
    case LM_EMU_DOWN:
        source = argument < (unsigned)(start + width - lane) ? lane + (int)argument : lane;
        break;
    }
    return source;
}

void lm_emu_shuffle(const lm_emu_site *site, unsigned mask, void *value, size_t size,
                    lm_emu_shuffle_kind kind, unsigned argument, int width) {
    if (width < 1 || width > 32 || (width & (width - 1))) { /* documented: undefined */
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "shuffle-width", "a width of %d at %s:%d", width,
                      site->file, site->line);
        lm_emu_abandon();
    }
    lm_emu_meeting *m = meet(site, mask, value, size);
    int source = source_lane(kind, argument, width);
    if (m->took_part >> source & 1) {
        memcpy(value, &m->value[m->turn ^ 1][source], size);
    } else { /* documented: what an inactive lane gives is undefined */
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "shuffle-inactive",
                      "reads lane %d, which did not take part (mask 0x%08x, took part 0x%08x) "
                      "at %s:%d",
                      source, mask, m->took_part, site->file, site->line);
        memset(value, 0xff, size);
    }
    leave(m);
}

unsigned lm_emu_ballot(const lm_emu_site *site, unsigned mask, int predicate) {
    unsigned char holds = predicate != 0;
    unsigned lanes = 0;
    lm_emu_meeting *m = meet(site, mask, &holds, 1);
    for (unsigned i = 0; i < 32; i++)
        if ((m->took_part >> i & 1) && m->value[m->turn ^ 1][i]) lanes |= 1u << i;
    leave(m);
    return lanes;
}

unsigned lm_emu_match(const lm_emu_site *site, unsigned mask, const void *value, size_t size) {
    uint64_t mine = 0;
    unsigned lanes = 0;
    memcpy(&mine, value, size);
    lm_emu_meeting *m = meet(site, mask, value, size);
    for (unsigned i = 0; i < 32; i++)
        if ((m->took_part >> i & 1) && m->value[m->turn ^ 1][i] == mine) lanes |= 1u << i;
    leave(m);
    return lanes;
}
