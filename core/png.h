/* png.h -- PNG files as uint8 tensors, through libpng where it is installed. Layer: core. */
#ifndef lm_png_h
#define lm_png_h

#include "tensor.h"

/* Bits: what an element of the last dim is. Values as libpng's PNG_FORMAT_FLAG_*. */
#define LM_PNG_ALPHA 1u
#define LM_PNG_COLOR 2u
#define LM_PNG_BGR 0x10u
#define LM_PNG_AS_STORED 0x80u /* reading: gray or colour, alpha or none, as the file has it */

/* *out: (height, width, channels) on the CPU, 8 bits of sRGB. Pictures of 16 bits lose the lower
** eight; what is transparent is laid on white where no alpha is wanted. */
luma_status lm_png_load(luma_state *S, luma_tensor *out, const char *path, unsigned format);
/* x: (height, width, channels), uint8, contiguous, on the CPU; the format has so many channels. */
luma_status lm_png_save(luma_state *S, const char *path, const luma_tensor *x, unsigned format);

static inline int lm_png_channels(unsigned format) {
    return (format & LM_PNG_COLOR ? 3 : 1) + (format & LM_PNG_ALPHA ? 1 : 0);
}

#endif
