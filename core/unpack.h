/* unpack.h -- what the library carries packed. Layer: core. */
#ifndef lm_unpack_h
#define lm_unpack_h

#include <stddef.h>

/* The contents of a gzip stream, which may have bytes behind it, and a 0 after them: memory of malloc,
** the caller's to free. NULL: out of memory, or no such stream. *size: without the 0; may be NULL. */
char *lm_unpack(const unsigned char *packed, size_t nbytes, size_t *size);

#endif
