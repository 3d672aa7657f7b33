/* json.c -- reading and writing the JSON of .safetensors headers (RFC 8259). Layer: core. */
#include "json.h"

#include <string.h>

static void skip_space(lm_json *in) {
    while (in->p < in->end && strchr(" \t\r\n", *in->p) && *in->p)
        in->p++;
}

bool lm_json_take(lm_json *in, char c) {
    skip_space(in);
    if (in->p == in->end || *in->p != c) return false;
    in->p++;
    return true;
}

bool lm_json_end(lm_json *in) {
    skip_space(in);
    return in->p == in->end;
}

bool lm_json_count(lm_json *in, int64_t *out) {
    int64_t v = 0;
    skip_space(in);
    const char *start = in->p;
    for (; in->p < in->end && *in->p >= '0' && *in->p <= '9'; in->p++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *in->p - '0', &v))
            return false;
    }
    if (in->p == start || (in->p - start > 1 && *start == '0')) return false;
    if (in->p < in->end && strchr(".eE", *in->p) && *in->p) return false;
    *out = v;
    return true;
}

static bool take_hex(lm_json *in, uint32_t *out) {
    uint32_t v = 0;
    if (in->end - in->p < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = *in->p++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* After the backslash. */
static bool take_escape(lm_json *in, char *out, size_t *n) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (in->p == in->end || *in->p == '\0') return false;
    char c = *in->p++;
    const char *at = strchr(from, c);
    if (at) {
        out[(*n)++] = to[at - from];
        return true;
    }
    uint32_t u, low;
    if (c != 'u' || !take_hex(in, &u) || u == 0) return false;
    if (u >= 0xdc00 && u < 0xe000) return false;
    if (u >= 0xd800 && u < 0xdc00) {
        if (in->end - in->p < 6 || in->p[0] != '\\' || in->p[1] != 'u') return false;
        in->p += 2;
        if (!take_hex(in, &low) || low < 0xdc00 || low >= 0xe000) return false;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    *n += put_utf8(out + *n, u);
    return true;
}

/* Length of the well-formed UTF-8 sequence at p, 0 when there is none. */
static size_t utf8_length(const unsigned char *p, const unsigned char *end) {
    size_t n = *p < 0x80                 ? 1
               : *p >= 0xc2 && *p < 0xe0 ? 2
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xf0 && *p < 0xf5 ? 4
                                         : 0;
    if (n == 0 || (size_t)(end - p) < n) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90);
    return n > 2 && (overlong || beyond) ? 0 : n;
}

bool lm_json_string(lm_json *in, char *out, size_t *length) {
    size_t n = 0;
    if (!lm_json_take(in, '"')) return false;
    while (in->p < in->end) {
        unsigned char c = (unsigned char)*in->p;
        if (c == '"') {
            in->p++;
            out[n] = '\0';
            *length = n;
            return true;
        }
        if (c < 0x20) return false;
        if (c == '\\') {
            in->p++;
            if (!take_escape(in, out, &n)) return false;
            continue;
        }
        size_t k = utf8_length((const unsigned char *)in->p, (const unsigned char *)in->end);
        if (k == 0) return false;
        memcpy(out + n, in->p, k);
        n += k;
        in->p += k;
    }
    return false;
}

size_t lm_json_escape(const char *text, char *out) {
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            if (out) out[n] = '\\', out[n + 1] = (char)*p;
            n += 2;
        } else if (*p < 0x20) {
            if (out) {
                memcpy(out + n, "\\u00", 4);
                out[n + 4] = hex[*p >> 4];
                out[n + 5] = hex[*p & 15];
            }
            n += 6;
        } else {
            if (out) out[n] = (char)*p;
            n++;
        }
    }
    return n;
}
