/* pattern.c -- string.find, match, gmatch and gsub of sandboxes: patterns as section 6.4.1 of Lua's
** manual defines them, matched in steps that are counted, so that no pattern runs past the limits.
** Layer: bindings. */
#include <ctype.h>
#include <string.h>

#include "binding.h"

#define MAX_CAPTURES 32
#define MAX_DEPTH 200 /* calls of match in each other, as Lua has it */
#define STEPS 8192    /* from one look at the limits to the next */

enum { OPEN = -1, POSITION = -2 }; /* sizes of captures */

typedef struct {
    lua_State *L;
    lm_ctx *c;
    const char *text, *text_end, *pattern_end;
    int64_t steps;
    int depth, n;
    struct {
        const char *at;
        ptrdiff_t size;
    } captures[MAX_CAPTURES];
} matcher;

static const char *match(matcher *m, const char *s, const char *p);

static void spend(matcher *m, ptrdiff_t steps) {
    m->steps += steps + 1;
    if (m->steps < STEPS) return;
    m->steps = 0;
    lm_limits_check(m->L, m->c);
}

static unsigned char byte_at(const char *s) {
    return (unsigned char)*s;
}

/* ---- one character --------------------------------------------------------------------------- */

/* The end of the item that begins at p: a character, %x or a set. A pattern has a zero behind it. */
static const char *item_end(matcher *m, const char *p) {
    char first = *p++;
    if (first == '%') {
        if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (first != '[') return p;
    if (*p == '^') p++;
    do { /* a ] that comes first is one of the set */
        if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == '%' && p < m->pattern_end) p++;
    } while (*p != ']');
    return p + 1;
}

static bool in_class(int c, int class) {
    bool in;
    switch (tolower(class)) {
    case 'a':
        in = isalpha(c);
        break;
    case 'c':
        in = iscntrl(c);
        break;
    case 'd':
        in = isdigit(c);
        break;
    case 'g':
        in = isgraph(c);
        break;
    case 'l':
        in = islower(c);
        break;
    case 'p':
        in = ispunct(c);
        break;
    case 's':
        in = isspace(c);
        break;
    case 'u':
        in = isupper(c);
        break;
    case 'w':
        in = isalnum(c);
        break;
    case 'x':
        in = isxdigit(c);
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !in : in;
}

/* set: at its [; last: its ]. */
static bool in_set(int c, const char *set, const char *last) {
    bool found = true;
    const char *p = set + 1;
    if (*p == '^') {
        found = false;
        p++;
    }
    for (; p < last; p++) {
        if (*p == '%') {
            if (in_class(c, byte_at(++p))) return found;
        } else if (p[1] == '-' && p + 2 < last) {
            if (byte_at(p) <= c && c <= byte_at(p + 2)) return found;
            p += 2;
        } else if (byte_at(p) == c) {
            return found;
        }
    }
    return !found;
}

/* Whether the item p .. end takes the character at s. */
static bool takes(matcher *m, const char *s, const char *p, const char *end) {
    spend(m, end - p);
    if (s >= m->text_end) return false;
    int c = byte_at(s);
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, byte_at(p + 1));
    case '[':
        return in_set(c, p, end - 1);
    default:
        return byte_at(p) == c;
    }
}

/* ---- parts of patterns ----------------------------------------------------------------------- */

/* The item as often as it goes, then less often until the rest matches. */
static const char *most(matcher *m, const char *s, const char *p, const char *end) {
    ptrdiff_t n = 0;
    while (takes(m, s + n, p, end))
        n++;
    for (; n >= 0; n--) {
        const char *e = match(m, s + n, end + 1);
        if (e) return e;
    }
    return NULL;
}

static const char *fewest(matcher *m, const char *s, const char *p, const char *end) {
    for (;; s++) {
        const char *e = match(m, s, end + 1);
        if (e || !takes(m, s, p, end)) return e;
    }
}

static const char *begin_capture(matcher *m, const char *s, const char *p, ptrdiff_t size) {
    if (m->n == MAX_CAPTURES) luaL_error(m->L, "too many captures");
    m->captures[m->n].at = s;
    m->captures[m->n++].size = size;
    const char *e = match(m, s, p);
    if (!e) m->n--;
    return e;
}

static const char *end_capture(matcher *m, const char *s, const char *p) {
    int i = m->n - 1;
    while (i >= 0 && m->captures[i].size != OPEN)
        i--;
    if (i < 0) luaL_error(m->L, "invalid pattern capture");
    m->captures[i].size = s - m->captures[i].at;
    const char *e = match(m, s, p);
    if (!e) m->captures[i].size = OPEN;
    return e;
}

/* %1 to %9 */
static const char *same_again(matcher *m, const char *s, int digit) {
    int i = digit - '1';
    if (i < 0 || i >= m->n || m->captures[i].size == OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    ptrdiff_t size = m->captures[i].size;
    if (size == POSITION) return NULL;
    spend(m, size / 16);
    bool same = m->text_end - s >= size && memcmp(m->captures[i].at, s, (size_t)size) == 0;
    return same ? s + size : NULL;
}

/* %bxy, p at x */
static const char *balanced(matcher *m, const char *s, const char *p) {
    if (p >= m->pattern_end - 1) luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->text_end || *s != *p) return NULL;
    int64_t open = 1;
    for (s++; s < m->text_end; s++) {
        spend(m, 0);
        if (*s == p[1]) {
            if (--open == 0) return s + 1;
        } else if (*s == *p) {
            open++;
        }
    }
    return NULL;
}

/* %f[set], p at the set: its end where the character before is not in it and the next one is. */
static const char *frontier(matcher *m, const char *s, const char *p) {
    if (*p != '[') luaL_error(m->L, "missing '[' after '%%f' in pattern");
    const char *end = item_end(m, p);
    spend(m, end - p);
    int before = s == m->text ? 0 : byte_at(s - 1), next = s == m->text_end ? 0 : byte_at(s);
    return !in_set(before, p, end - 1) && in_set(next, p, end - 1) ? end : NULL;
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* What begins with % and is not one character moves *s and *p on, or says that it does not match. */
typedef enum { PLAIN, MOVED, FAILED } special;
static special match_special(matcher *m, const char **s, const char **p) {
    const char *end, *q = *p + 1;
    if (*q == 'b') {
        if (!(end = balanced(m, *s, q + 1))) return FAILED;
        *s = end;
        *p = q + 3;
    } else if (*q == 'f') {
        if (!(end = frontier(m, *s, q + 1))) return FAILED;
        *p = end;
    } else if (isdigit(byte_at(q))) {
        if (!(end = same_again(m, *s, *q))) return FAILED;
        *s = end;
        *p = q + 1;
    } else {
        return PLAIN;
    }
    return MOVED;
}

static const char *match_here(matcher *m, const char *s, const char *p) {
    while (p != m->pattern_end) {
        if (*p == '(' && p[1] == ')') return begin_capture(m, s, p + 2, POSITION);
        if (*p == '(') return begin_capture(m, s, p + 1, OPEN);
        if (*p == ')') return end_capture(m, s, p + 1);
        if (*p == '$' && p + 1 == m->pattern_end) return s == m->text_end ? s : NULL;
        if (*p == '%') {
            special what = match_special(m, &s, &p);
            if (what == FAILED) return NULL;
            if (what == MOVED) continue;
        }
        const char *end = item_end(m, p), *e;
        if (*end == '*') return most(m, s, p, end);
        if (*end == '-') return fewest(m, s, p, end);
        bool taken = takes(m, s, p, end);
        if (*end == '+') return taken ? most(m, s + 1, p, end) : NULL;
        if (*end == '?') {
            if (taken && (e = match(m, s + 1, end + 1))) return e;
            p = end + 1;
            continue;
        }
        if (!taken) return NULL;
        s++;
        p = end;
    }
    return s;
}

/* The end of the match of p at s; NULL: none. */
static const char *match(matcher *m, const char *s, const char *p) {
    if (m->depth == MAX_DEPTH) luaL_error(m->L, "pattern too complex");
    m->depth++;
    spend(m, 0);
    const char *e = match_here(m, s, p);
    m->depth--;
    return e;
}

static const char *match_at(matcher *m, const char *s, const char *p) {
    m->n = m->depth = 0;
    return match(m, s, p);
}

static void set_up(matcher *m, lua_State *L, const char *s, size_t n, const char *p, size_t np) {
    m->L = L;
    m->c = lua_touserdata(L, lua_upvalueindex(1));
    m->text = s;
    m->text_end = s + n;
    m->pattern_end = p + np;
    m->steps = 0;
    lm_limits_check(L, m->c);
}

/* ---- captures -------------------------------------------------------------------------------- */

/* Pushes capture i, or the whole match s .. e where there are none. */
static void push_capture(matcher *m, int i, const char *s, const char *e) {
    if (i >= m->n) {
        if (i != 0) luaL_error(m->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(m->L, s, (size_t)(e - s));
    } else if (m->captures[i].size == POSITION) {
        lua_pushinteger(m->L, m->captures[i].at - m->text + 1);
    } else {
        if (m->captures[i].size == OPEN) luaL_error(m->L, "unfinished capture");
        lua_pushlstring(m->L, m->captures[i].at, (size_t)m->captures[i].size);
    }
}

/* s NULL: none stands for the whole match. */
static int push_captures(matcher *m, const char *s, const char *e) {
    int n = m->n == 0 && s ? 1 : m->n;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, s, e);
    return n;
}

/* ---- the functions --------------------------------------------------------------------------- */

/* Argument arg, a position from 1 or from the end, as an offset; it may lie behind the end. */
static size_t offset_at(lua_State *L, int arg, size_t n) {
    lua_Integer i = luaL_optinteger(L, arg, 1);
    if (i > 0) return (size_t)i - 1;
    if (i == 0 || i < -(lua_Integer)n) return 0;
    return n - (size_t)-i;
}

static bool is_plain(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] && strchr("^$*+?.([%-", p[i])) return false;
    return true;
}

static int find_plain(lua_State *L, const char *s, size_t n, const char *p, size_t np,
                      size_t from) {
    const char *at = np ? memmem(s + from, n - from, p, np) : s + from;
    if (!at) return 0;
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, at - s + (ptrdiff_t)np);
    return 2;
}

static int find_or_match(lua_State *L, bool find) {
    size_t n, np;
    matcher m;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &np);
    size_t from = offset_at(L, 3, n);
    set_up(&m, L, s, n, p, np);
    if (from > n) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || is_plain(p, np))) {
        int results = find_plain(L, s, n, p, np, from);
        if (results) return results;
    } else {
        bool anchored = *p == '^';
        p += anchored;
        for (const char *at = s + from; at <= m.text_end; at++) {
            const char *e = match_at(&m, at, p);
            if (e && !find) return push_captures(&m, at, e);
            if (e) {
                lua_pushinteger(L, at - s + 1);
                lua_pushinteger(L, e - s);
                return push_captures(&m, NULL, NULL) + 2;
            }
            if (anchored) break;
        }
    }
    lua_pushnil(L);
    return 1;
}

static int find(lua_State *L) {
    return find_or_match(L, true);
}

static int match_once(lua_State *L) {
    return find_or_match(L, false);
}

/* Upvalues: ctx, text, pattern, offset of the next try, offset of the end of the last match (-1). */
static int next_match(lua_State *L) {
    size_t n, np;
    matcher m;
    const char *s = lua_tolstring(L, lua_upvalueindex(2), &n);
    const char *p = lua_tolstring(L, lua_upvalueindex(3), &np);
    size_t from = (size_t)lua_tointeger(L, lua_upvalueindex(4));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(5));
    set_up(&m, L, s, n, p, np);
    if (from > n) return 0;
    for (const char *at = s + from; at <= m.text_end; at++) {
        const char *e = match_at(&m, at, p);
        if (!e || e - s == last) continue;
        lua_pushinteger(L, e - s);
        lua_pushvalue(L, -1);
        lua_replace(L, lua_upvalueindex(4));
        lua_replace(L, lua_upvalueindex(5));
        return push_captures(&m, at, e);
    }
    lua_pushinteger(L, (lua_Integer)n + 1);
    lua_replace(L, lua_upvalueindex(4));
    return 0;
}

static int gmatch(lua_State *L) {
    size_t n;
    luaL_checklstring(L, 1, &n);
    luaL_checkstring(L, 2);
    size_t from = offset_at(L, 3, n);
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_pushinteger(L, (lua_Integer)(from > n ? n + 1 : from));
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, next_match, 5);
    return 1;
}

/* The replacement text at argument 3, with its %0 to %9, for the match s .. e. */
static void add_text(matcher *m, luaL_Buffer *b, const char *s, const char *e) {
    size_t n;
    const char *r = lua_tolstring(m->L, 3, &n), *end = r + n;
    while (r < end) {
        const char *sign = memchr(r, '%', (size_t)(end - r));
        if (!sign) sign = end;
        luaL_addlstring(b, r, (size_t)(sign - r));
        spend(m, (sign - r) / 16);
        if (sign == end) return;
        r = sign + 2;
        if (sign[1] == '%') {
            luaL_addchar(b, '%');
        } else if (sign[1] == '0') {
            luaL_addlstring(b, s, (size_t)(e - s));
        } else if (isdigit(byte_at(sign + 1))) {
            push_capture(m, sign[1] - '1', s, e);
            luaL_tolstring(m->L, -1, NULL); /* a position is a number */
            lua_remove(m->L, -2);
            luaL_addvalue(b);
        } else {
            luaL_error(m->L, "invalid use of '%%' in replacement string");
        }
    }
}

/* Adds what stands for the match s .. e. */
static void add_value(matcher *m, luaL_Buffer *b, const char *s, const char *e, int type) {
    lua_State *L = m->L;
    lm_limits_check(L, m->c);
    if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, e), 1);
    } else if (type == LUA_TTABLE) {
        push_capture(m, 0, s, e);
        lua_gettable(L, 3);
    } else {
        add_text(m, b, s, e);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, s, (size_t)(e - s));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    } else {
        luaL_addvalue(b);
    }
}

static int gsub(lua_State *L) {
    size_t n, np;
    matcher m;
    luaL_Buffer b;
    const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &np);
    int type = lua_type(L, 3);
    bool good =
        type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TTABLE || type == LUA_TFUNCTION;
    luaL_argexpected(L, good, 3, "string/function/table");
    lua_Integer most_times = luaL_optinteger(L, 4, (lua_Integer)n + 1), times = 0;
    set_up(&m, L, s, n, p, np);
    bool anchored = *p == '^';
    p += anchored;
    const char *at = s, *last = NULL;
    luaL_buffinit(L, &b);
    while (times < most_times) {
        const char *e = match_at(&m, at, p);
        if (e && e != last) {
            times++;
            add_value(&m, &b, at, e, type);
            at = last = e;
        } else if (at < m.text_end) {
            luaL_addchar(&b, *at++);
        } else {
            break;
        }
        if (anchored) break;
    }
    luaL_addlstring(&b, at, (size_t)(m.text_end - at));
    luaL_pushresult(&b);
    lua_pushinteger(L, times);
    return 2;
}

void lm_pattern_open(lua_State *L, lm_ctx *c) {
    static const luaL_Reg functions[] = {
        {"find", find}, {"match", match_once}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL}};
    lua_pushlightuserdata(L, c);
    luaL_setfuncs(L, functions, 1);
}
