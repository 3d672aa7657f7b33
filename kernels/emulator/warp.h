/* warp.h -- meetings of the lanes of a warp: between sched.c, which knows whose turn it is, and
** warp.c, which knows what a meeting exchanges. Layer: kernels. */
#ifndef lm_emu_warp_h
#define lm_emu_warp_h

#include "parts.h"

/* The lanes that name one mask meet again and again. Values are kept twice, for a lane may arrive
** at the next meeting before another has read what the one before brought. */
typedef struct {
    uint32_t mask, arrived;
    uint32_t readers;   /* lanes that have not yet left the meeting before */
    uint32_t took_part; /* in it */
    int turn;           /* which half is being filled */
    const lm_emu_site *site;
    uint64_t value[2][32];
} lm_emu_meeting;

enum { LM_EMU_MEETINGS = 8 }; /* masks of one warp that can wait at the same time */
typedef struct {
    unsigned number;
    uint32_t gone; /* lanes that have exited or do not exist */
    uint32_t epoch;
    lm_emu_meeting meetings[LM_EMU_MEETINGS];
} lm_emu_warp;

void lm_emu_warp_begin(lm_emu_warp *w, unsigned number, uint32_t lanes);
void lm_emu_warp_exit(unsigned warp, unsigned lane);

/* of sched.c: */
lm_emu_warp *lm_emu_warp_now(void);             /* of the running thread */
void lm_emu_warp_wait(const lm_emu_site *site); /* until it is made ready */
void lm_emu_warp_ready(unsigned warp, uint32_t lanes);

#endif
