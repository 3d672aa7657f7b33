/* quant.h -- the layout of quantised blocks, which is GGML's: 32 elements of a row behind a float16
** scale d. For C, C++ and CUDA; includes nothing. Layer: core.
**
** q8_0: d, then 32 int8 q; an element is d q.
** q4_0: d, then 16 bytes; the low half of byte i is q of element i, the high half that of element
** i + 16; an element is d (q - 8). */
#ifndef lm_quant_h
#define lm_quant_h

#define LM_QUANT_BLOCK 32 /* elements */
#define LM_Q8_0_BYTES 34
#define LM_Q4_0_BYTES 18
/* In the order of luma_quant_format. */
#define LM_QUANT_FORMATS(X) X("q8_0", LM_Q8_0_BYTES) X("q4_0", LM_Q4_0_BYTES)

#endif
