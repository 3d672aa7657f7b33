/* json.h -- the JSON that .safetensors headers are made of: objects, arrays, strings, whole
** numbers, read in order without recursion, so that no nesting can exhaust the stack. Layer:
** core. */
#ifndef lm_json_h
#define lm_json_h

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *p, *end;
} lm_json;

/* Each takes what is next, white space before it included, and says whether it was there. */
bool lm_json_take(lm_json *in, char c);
/* Whole numbers >= 0 that fit into int64, without fraction or exponent. */
bool lm_json_count(lm_json *in, int64_t *out);
/* A string, decoded to UTF-8 with a closing NUL into out, which must have room for what is left of
** the text (decoding never grows). Control characters, broken escapes, lone surrogates, malformed
** UTF-8 and \u0000 are refused. */
bool lm_json_string(lm_json *in, char *out, size_t *length);
/* Nothing but white space is left. */
bool lm_json_end(lm_json *in);

/* Bytes that `text` takes between quotes; with out, writes them (no quotes, no NUL). */
size_t lm_json_escape(const char *text, char *out);

#endif
