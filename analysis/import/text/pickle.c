/* The stack machine of pickle, without the part that calls. */

#include "analysis/import/text/pickle.h"

#include "analysis/import/text/json_text.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/reserve.h"
#include "collector/base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    const uint8_t *begin, *at, *end;
    struct lac_plain_heap *heap;
    struct lac_plain **stack;
    uint32_t stack_count, stack_capacity;
    uint32_t *marks; /* stack_count when each was set */
    uint32_t mark_count, mark_capacity;
    struct lac_plain **memo;
    uint32_t memo_count, memo_capacity; /* entries that were never put are NULL */
    uint64_t counted;                   /* bytes of the arrays above in the heap's account */
    struct lac_error *reterr;
};

static enum lac_status broken(const struct machine *m, const char *why)
{
    return lac_fail(m->reterr, LAC_ERR_CORRUPT, (uint64_t)(m->at - m->begin), "broken pickle: %s",
                    why);
}

static enum lac_status failed(const struct machine *m)
{
    return lac_plain_failed(m->heap, (uint64_t)(m->at - m->begin), m->reterr);
}

static enum lac_status append(struct machine *m, struct lac_plain *list, struct lac_plain *item)
{
    return lac_plain_append(m->heap, list, item) != LAC_OK ? failed(m) : LAC_OK;
}

static enum lac_status push(struct machine *m, struct lac_plain *value)
{
    if (value == NULL || !LAC_RESERVE(m->stack, m->stack_capacity, m->stack_count, 1)) {
        return failed(m);
    }
    m->stack[m->stack_count++] = value;
    return LAC_OK;
}

/* Values above the last mark, or above the bottom: no opcode may take what is below it. */
static uint32_t floor_of(const struct machine *m)
{
    return m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
}

static struct lac_plain *pop(struct machine *m)
{
    return m->stack_count > floor_of(m) ? m->stack[--m->stack_count] : NULL;
}

static struct lac_plain *top(const struct machine *m)
{
    return m->stack_count > floor_of(m) ? m->stack[m->stack_count - 1] : NULL;
}

/* --- operands --------------------------------------------------------------------------------- */

/* A little-endian number of `width` bytes; false when the input ends before. */
static bool number(struct machine *m, unsigned width, uint64_t *ret)
{
    if ((size_t)(m->end - m->at) < width) {
        return false;
    }
    *ret = 0;
    for (unsigned i = 0; i < width; i++) {
        *ret |= (uint64_t)m->at[i] << (8 * i);
    }
    m->at += width;
    return true;
}

static bool line(struct machine *m, const uint8_t **ret_text, size_t *ret_size)
{
    const uint8_t *const newline = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (newline == NULL) {
        return false;
    }
    *ret_text = m->at;
    *ret_size = (size_t)(newline - m->at);
    m->at = newline + 1;
    return *ret_size <= UINT32_MAX;
}

static enum lac_status push_integer(struct machine *m, int64_t integer)
{
    struct lac_plain *const value = lac_plain_new(m->heap, LAC_PLAIN_INT);
    if (value != NULL) {
        value->integer = integer;
    }
    return push(m, value);
}

static enum lac_status push_real(struct machine *m, double real)
{
    struct lac_plain *const value = lac_plain_new(m->heap, LAC_PLAIN_REAL);
    if (value != NULL) {
        value->real = real;
    }
    return push(m, value);
}

static enum lac_status push_text(struct machine *m, const void *text, size_t size)
{
    struct lac_plain *const value = lac_plain_new(m->heap, LAC_PLAIN_TEXT);
    if (value != NULL) {
        value->text = text;
        value->count = (uint32_t)size;
    }
    return push(m, value);
}

/* Text whose size stands before it in `width` bytes. */
static enum lac_status sized_text(struct machine *m, unsigned width)
{
    uint64_t size;
    if (!number(m, width, &size) || size > (uint64_t)(m->end - m->at) || size > UINT32_MAX) {
        return broken(m, "a text goes beyond the end");
    }
    m->at += size;
    return push_text(m, m->at - size, size);
}

/* Two's complement of any length, least byte first. */
static enum lac_status big_integer(struct machine *m, unsigned width)
{
    uint64_t size;
    if (!number(m, width, &size) || size > (uint64_t)(m->end - m->at)) {
        return broken(m, "a number goes beyond the end");
    }
    const uint8_t *const digits = m->at;
    m->at += size;
    if (size <= 8) {
        const bool is_negative = size > 0 && (digits[size - 1] & 0x80) != 0;
        uint64_t value = is_negative ? UINT64_MAX : 0;
        for (uint64_t i = 0; i < size; i++) {
            value = (value & ~((uint64_t)0xff << (8 * i))) | (uint64_t)digits[i] << (8 * i);
        }
        return push_integer(m, (int64_t)value);
    }
    double real = (digits[size - 1] & 0x80) != 0 ? -1 : 0;
    for (uint64_t i = size; i > 0; i--) {
        real = real * 256 + digits[i - 1];
    }
    return push_real(m, real);
}

/* INT and LONG of protocol 0: decimal text, "01" and "00" for truth, an L behind. */
static enum lac_status decimal(struct machine *m, unsigned is_real)
{
    const uint8_t *text;
    size_t size;
    int64_t integer;
    if (!line(m, &text, &size) || size == 0) {
        return broken(m, "a number without its end");
    }
    if (is_real == 0 && size == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1')) {
        struct lac_plain *const value = lac_plain_new(m->heap, LAC_PLAIN_BOOL);
        if (value != NULL) {
            value->integer = text[1] == '1';
        }
        return push(m, value);
    }
    size -= text[size - 1] == 'L' ? 1 : 0;
    if (is_real == 0 && lac_decimal_integer(text, size, &integer)) {
        return push_integer(m, integer);
    }
    char copy[512], *after;
    if (size == 0 || size >= sizeof(copy)) {
        return broken(m, "not a number");
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    const double real = strtod(copy, &after);
    return *after == '\0' ? push_real(m, real) : broken(m, "not a number");
}

static enum lac_status big_endian_real(struct machine *m, unsigned argument)
{
    (void)argument;
    if (m->end - m->at < 8) {
        return broken(m, "a number goes beyond the end");
    }
    uint64_t bits = 0;
    double real;
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | m->at[i];
    }
    m->at += 8;
    memcpy(&real, &bits, sizeof(real));
    return push_real(m, real);
}

/* Digits of the escape at p (after its letter). @return its code, or -1 */
static int32_t hex(const uint8_t *p, const uint8_t *end, int digits)
{
    int32_t code = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = p + i < end ? lac_hex_digit((char)p[i]) : -1;
        if (digit < 0 || code > 0x10ffff >> 4) {
            return -1;
        }
        code = code << 4 | digit;
    }
    return code;
}

/* STRING of protocol 0 with its quotes and escapes, or UNICODE with \u and Latin-1. */
static enum lac_status escaped_text(struct machine *m, unsigned is_unicode)
{
    const uint8_t *p;
    size_t size;
    if (!line(m, &p, &size)) {
        return broken(m, "a text without its end");
    }
    if (is_unicode == 0) {
        if (size < 2 || (p[0] != '\'' && p[0] != '"') || p[size - 1] != p[0]) {
            return broken(m, "a text without quotes");
        }
        p++;
        size -= 2;
    }
    char *const room = lac_plain_room(m->heap, 3 * size + 4);
    if (room == NULL) {
        return failed(m);
    }
    static const char from[] = "\\'\"nrtabfv", to[] = "\\'\"\n\r\t\a\b\f\v";
    uint8_t *out = (uint8_t *)room;
    for (const uint8_t *const end = p + size; p < end;) {
        const int digits = *p != '\\' || end - p < 2 ? 0
                           : p[1] == 'u'             ? 4
                           : p[1] == 'U'             ? 8
                           : p[1] == 'x'             ? 2
                                                     : 0;
        const int32_t code = digits > 0 ? hex(p + 2, end, digits) : -1;
        const char *const found =
            is_unicode == 0 && *p == '\\' && end - p >= 2 && p[1] != 0 ? strchr(from, p[1]) : NULL;
        if (code >= 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) {
            out += lac_utf8_put(out, (uint32_t)code);
            p += 2 + digits;
        } else if (found != NULL) {
            *out++ = (uint8_t)to[found - from];
            p += 2;
        } else if (is_unicode && *p >= 0x80) {
            out += lac_utf8_put(out, *p++);
        } else {
            *out++ = *p++;
        }
    }
    return push_text(m, room, (size_t)(out - (uint8_t *)room));
}

/* --- containers ------------------------------------------------------------------------------- */

/* Where the values above the last mark begin, which is forgotten. */
static bool pop_mark(struct machine *m, uint32_t *ret_first)
{
    if (m->mark_count == 0) {
        return false;
    }
    *ret_first = m->marks[--m->mark_count];
    return true;
}

static enum lac_status extend(struct machine *m, struct lac_plain *list, uint32_t first)
{
    enum lac_status status = LAC_OK;
    for (uint32_t i = first; i < m->stack_count && status == LAC_OK; i++) {
        status = append(m, list, m->stack[i]);
    }
    m->stack_count = first;
    return status;
}

static enum lac_status gather(struct machine *m, enum lac_plain_kind kind, uint32_t first)
{
    struct lac_plain *const list = lac_plain_new(m->heap, kind);
    if (list == NULL) {
        return failed(m);
    }
    if (kind == LAC_PLAIN_DICT && (m->stack_count - first) % 2 != 0) {
        return broken(m, "a key without a value");
    }
    const enum lac_status status = extend(m, list, first);
    return status == LAC_OK ? push(m, list) : status;
}

/* APPENDS, SETITEMS and ADDITEMS, on the container below the mark. */
static enum lac_status add_many(struct machine *m, unsigned are_pairs)
{
    uint32_t first;
    if (!pop_mark(m, &first) || first <= floor_of(m)) {
        return broken(m, "values for no container");
    }
    struct lac_plain *list = m->stack[first - 1];
    if (list->kind == LAC_PLAIN_OBJECT) {
        m->stack_count = first; /* a class of its own that is a container too: what it is stays */
        return LAC_OK;
    }
    if (list->kind != (are_pairs ? LAC_PLAIN_DICT : LAC_PLAIN_LIST) ||
        (are_pairs && (m->stack_count - first) % 2 != 0)) {
        return broken(m, "values for what holds none");
    }
    return extend(m, list, first);
}

/* APPEND and SETITEM. */
static enum lac_status add_one(struct machine *m, unsigned is_pair)
{
    const uint32_t count = is_pair ? 2 : 1;
    if (m->stack_count < floor_of(m) + count + 1) {
        return broken(m, "a value for no container");
    }
    const uint32_t first = m->stack_count - count;
    struct lac_plain *const list = m->stack[first - 1];
    if (list->kind == LAC_PLAIN_OBJECT) {
        m->stack_count = first;
        return LAC_OK;
    }
    if (list->kind != (is_pair ? LAC_PLAIN_DICT : LAC_PLAIN_LIST)) {
        return broken(m, "a value for what holds none");
    }
    return extend(m, list, first);
}

/* --- objects ---------------------------------------------------------------------------------- */

static enum lac_status push_object(struct machine *m, struct lac_plain *name,
                                   struct lac_plain *arguments)
{
    struct lac_plain *const object = lac_plain_new(m->heap, LAC_PLAIN_OBJECT);
    struct lac_plain *const none = lac_plain_new(m->heap, LAC_PLAIN_NONE);
    if (object == NULL || none == NULL) {
        return failed(m);
    }
    enum lac_status status = append(m, object, name);
    if (status == LAC_OK) {
        status = append(m, object, arguments != NULL ? arguments : none);
    }
    if (status == LAC_OK) {
        status = append(m, object, none);
    }
    return status == LAC_OK ? push(m, object) : status;
}

static enum lac_status global(struct machine *m, const void *module, size_t module_size,
                              const void *name, size_t name_size)
{
    char *const text = lac_plain_room(m->heap, module_size + name_size + 1);
    struct lac_plain *const value = lac_plain_new(m->heap, LAC_PLAIN_TEXT);
    if (text == NULL || value == NULL || module_size + name_size >= UINT32_MAX) {
        return failed(m);
    }
    memcpy(text, module, module_size);
    text[module_size] = ' ';
    memcpy(text + module_size + 1, name, name_size);
    value->text = text;
    value->count = (uint32_t)(module_size + name_size + 1);
    return push_object(m, value, NULL);
}

static enum lac_status global_of_lines(struct machine *m, unsigned argument)
{
    (void)argument;
    const uint8_t *module, *name;
    size_t module_size, name_size;
    if (!line(m, &module, &module_size) || !line(m, &name, &name_size)) {
        return broken(m, "the name of a class without its end");
    }
    return global(m, module, module_size, name, name_size);
}

static enum lac_status global_of_stack(struct machine *m, unsigned argument)
{
    (void)argument;
    const struct lac_plain *const name = pop(m);
    const struct lac_plain *const module = pop(m);
    if (!lac_plain_is(name, LAC_PLAIN_TEXT) || !lac_plain_is(module, LAC_PLAIN_TEXT)) {
        return broken(m, "a class without a name");
    }
    return global(m, module->text, module->count, name->text, name->count);
}

static bool is_one_of(const struct lac_plain *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (lac_plain_equals(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* A list of pairs as the dictionary that it would make. */
static enum lac_status push_pairs(struct machine *m, const struct lac_plain *pairs)
{
    struct lac_plain *const dict = lac_plain_new(m->heap, LAC_PLAIN_DICT);
    enum lac_status status = dict != NULL ? LAC_OK : failed(m);
    for (uint32_t i = 0; pairs != NULL && i < pairs->count && status == LAC_OK; i++) {
        const struct lac_plain *const pair = pairs->items[i];
        if (!lac_plain_is(pair, LAC_PLAIN_LIST) || pair->count != 2) {
            return broken(m, "a dictionary of what are no pairs");
        }
        status = append(m, dict, pair->items[0]);
        if (status == LAC_OK) {
            status = append(m, dict, pair->items[1]);
        }
    }
    return status == LAC_OK ? push(m, dict) : status;
}

/* What calling `callable` would give: a plain container where it is known to, else an object. */
static enum lac_status reduce(struct machine *m, struct lac_plain *callable,
                              struct lac_plain *arguments)
{
    static const char *const dicts[] = {"collections OrderedDict", "collections defaultdict",
                                        "builtins dict", "__builtin__ dict"};
    static const char *const lists[] = {"builtins set",
                                        "builtins frozenset",
                                        "builtins list",
                                        "builtins tuple",
                                        "collections deque",
                                        "__builtin__ set",
                                        "__builtin__ frozenset",
                                        "__builtin__ list",
                                        "__builtin__ tuple",
                                        "torch.jit._pickle build_intlist",
                                        "torch.jit._pickle build_doublelist",
                                        "torch.jit._pickle build_boollist",
                                        "torch.jit._pickle build_tensorlist",
                                        "torch.jit._pickle restore_type_tag"};
    if (!lac_plain_is(callable, LAC_PLAIN_OBJECT) || !lac_plain_is(arguments, LAC_PLAIN_LIST)) {
        return broken(m, "a call of what is no class");
    }
    struct lac_plain *const name = callable->items[0];
    struct lac_plain *const first = arguments->count > 0 ? arguments->items[0] : NULL;
    if (lac_plain_equals(name, "_codecs encode") && lac_plain_is(first, LAC_PLAIN_TEXT)) {
        return push(m, first);
    }
    if (is_one_of(name, dicts, LAC_COUNT_OF(dicts))) {
        return push_pairs(m, lac_plain_is(first, LAC_PLAIN_LIST) ? first : NULL);
    }
    if (is_one_of(name, lists, LAC_COUNT_OF(lists))) {
        return lac_plain_is(first, LAC_PLAIN_LIST) || lac_plain_is(first, LAC_PLAIN_DICT)
                   ? push(m, first)
                   : push(m, lac_plain_new(m->heap, LAC_PLAIN_LIST));
    }
    return push_object(m, name, arguments);
}

/* REDUCE, NEWOBJ and NEWOBJ_EX. */
static enum lac_status call(struct machine *m, unsigned has_keywords)
{
    const struct lac_plain *const keywords = has_keywords ? pop(m) : NULL;
    struct lac_plain *const arguments = pop(m);
    struct lac_plain *const callable = pop(m);
    return callable == NULL || (has_keywords && keywords == NULL)
               ? broken(m, "a call without arguments")
               : reduce(m, callable, arguments);
}

/* INST and OBJ of protocols 0 and 1: the class, and its arguments above the mark. */
static enum lac_status call_with_marked(struct machine *m, unsigned is_on_stack)
{
    uint32_t first;
    enum lac_status status = LAC_OK;
    if (is_on_stack == 0) {
        status = global_of_lines(m, 0);
    }
    struct lac_plain *callable = status == LAC_OK && is_on_stack == 0 ? pop(m) : NULL;
    if (status != LAC_OK) {
        return status;
    }
    if (!pop_mark(m, &first) || (is_on_stack && first >= m->stack_count)) {
        return broken(m, "a call without arguments");
    }
    if (is_on_stack) {
        callable = m->stack[first];
        memmove(&m->stack[first], &m->stack[first + 1],
                (m->stack_count - first - 1) * sizeof(*m->stack));
        m->stack_count--;
    }
    status = gather(m, LAC_PLAIN_LIST, first);
    struct lac_plain *const arguments = status == LAC_OK ? pop(m) : NULL;
    return status == LAC_OK ? reduce(m, callable, arguments) : status;
}

static enum lac_status build(struct machine *m, unsigned argument)
{
    (void)argument;
    struct lac_plain *const state = pop(m);
    struct lac_plain *const object = top(m);
    if (state == NULL || object == NULL) {
        return broken(m, "a state without an object");
    }
    if (object->kind == LAC_PLAIN_OBJECT) {
        object->items[2] = state;
    }
    return LAC_OK;
}

/* --- the memo --------------------------------------------------------------------------------- */

/* No more entries than the pickle has bytes so far: an entry takes some. */
static enum lac_status put(struct machine *m, uint64_t index)
{
    struct lac_plain *const value = top(m);
    if (value == NULL || index > (uint64_t)(m->at - m->begin)) {
        return broken(m, "an entry of the memo without a value");
    }
    if (!LAC_RESERVE(m->memo, m->memo_capacity, index, 1)) {
        return failed(m);
    }
    while (m->memo_count <= index) {
        m->memo[m->memo_count++] = NULL;
    }
    m->memo[index] = value;
    return LAC_OK;
}

static enum lac_status get(struct machine *m, uint64_t index)
{
    return index < m->memo_count && m->memo[index] != NULL ? push(m, m->memo[index])
                                                           : broken(m, "no such entry of the memo");
}

static enum lac_status memo(struct machine *m, unsigned width, bool is_put)
{
    uint64_t index;
    if (width > 0) {
        if (!number(m, width, &index)) {
            return broken(m, "cut short");
        }
    } else {
        const uint8_t *text;
        size_t size;
        int64_t value;
        if (!line(m, &text, &size) || !lac_decimal_integer(text, size, &value) || value < 0) {
            return broken(m, "an entry of the memo without a number");
        }
        index = (uint64_t)value;
    }
    return is_put ? put(m, index) : get(m, index);
}

/* --- opcodes ---------------------------------------------------------------------------------- */

static enum lac_status push_kind(struct machine *m, enum lac_plain_kind kind, int64_t integer)
{
    struct lac_plain *const value = lac_plain_new(m->heap, kind);
    if (value != NULL && kind == LAC_PLAIN_BOOL) {
        value->integer = integer;
    }
    return push(m, value);
}

static enum lac_status sized_integer(struct machine *m, unsigned width)
{
    uint64_t value;
    if (!number(m, width, &value)) {
        return broken(m, "cut short");
    }
    return push_integer(m, width == 4 ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value);
}

static enum lac_status tuple(struct machine *m, unsigned count)
{
    return m->stack_count >= floor_of(m) + count ? gather(m, LAC_PLAIN_LIST, m->stack_count - count)
                                                 : broken(m, "a tuple of too few values");
}

static enum lac_status gather_marked(struct machine *m, unsigned kind)
{
    uint32_t first;
    return pop_mark(m, &first) ? gather(m, (enum lac_plain_kind)kind, first) : broken(m, "no mark");
}

static enum lac_status set_mark(struct machine *m, unsigned argument)
{
    (void)argument;
    if (!LAC_RESERVE(m->marks, m->mark_capacity, m->mark_count, 1)) {
        return failed(m);
    }
    m->marks[m->mark_count++] = m->stack_count;
    return LAC_OK;
}

static enum lac_status skip(struct machine *m, unsigned width)
{
    uint64_t ignored;
    return number(m, width, &ignored) ? LAC_OK : broken(m, "cut short");
}

static enum lac_status drop(struct machine *m, unsigned to_mark)
{
    uint32_t first;
    if (to_mark || (m->mark_count > 0 && m->stack_count == floor_of(m))) {
        if (!pop_mark(m, &first)) {
            return broken(m, "no mark");
        }
        m->stack_count = first;
        return LAC_OK;
    }
    return pop(m) != NULL ? LAC_OK : broken(m, "nothing to take away");
}

enum { BY_LINE = 1, BY_VALUE = 2 };

/* Ids of objects that lie elsewhere, and extension codes: objects that only say so. */
static enum lac_status foreign(struct machine *m, unsigned by)
{
    static const char what[] = "lies elsewhere";
    const uint8_t *text;
    size_t size;
    struct lac_plain *const id = by == BY_VALUE ? pop(m) : NULL;
    if ((by == BY_LINE && !line(m, &text, &size)) || (by == BY_VALUE && id == NULL)) {
        return broken(m, "an id that is missing");
    }
    const enum lac_status status = push_text(m, what, sizeof(what) - 1);
    struct lac_plain *const name = status == LAC_OK ? pop(m) : NULL;
    return status == LAC_OK ? push_object(m, name, id) : status;
}

typedef enum lac_status (*opcode_run)(struct machine *m, unsigned argument);

static enum lac_status push_none(struct machine *m, unsigned argument)
{
    (void)argument;
    return push_kind(m, LAC_PLAIN_NONE, 0);
}

static enum lac_status push_bool(struct machine *m, unsigned argument)
{
    return push_kind(m, LAC_PLAIN_BOOL, argument);
}

static enum lac_status push_empty(struct machine *m, unsigned kind)
{
    return push_kind(m, (enum lac_plain_kind)kind, 0);
}

static enum lac_status repeat(struct machine *m, unsigned argument)
{
    (void)argument;
    return top(m) != NULL ? push(m, top(m)) : broken(m, "nothing to repeat");
}

static enum lac_status memoize(struct machine *m, unsigned argument)
{
    (void)argument;
    return put(m, m->memo_count);
}

static enum lac_status get_entry(struct machine *m, unsigned width)
{
    return memo(m, width, false);
}

static enum lac_status put_entry(struct machine *m, unsigned width)
{
    return memo(m, width, true);
}

static enum lac_status extension(struct machine *m, unsigned width)
{
    const enum lac_status status = skip(m, width);
    return status == LAC_OK ? foreign(m, 0) : status;
}

/* By opcode. Others are in no protocol. */
static const struct {
    opcode_run run;
    unsigned argument;
} opcodes[256] = {
    ['('] = {set_mark, 0},
    ['0'] = {drop, 0},
    ['1'] = {drop, 1},
    ['2'] = {repeat, 0},
    ['F'] = {decimal, 1},
    ['I'] = {decimal, 0},
    ['L'] = {decimal, 0},
    ['J'] = {sized_integer, 4},
    ['K'] = {sized_integer, 1},
    ['M'] = {sized_integer, 2},
    ['N'] = {push_none, 0},
    ['P'] = {foreign, BY_LINE},
    ['Q'] = {foreign, BY_VALUE},
    ['R'] = {call, 0},
    ['S'] = {escaped_text, 0},
    ['V'] = {escaped_text, 1},
    ['T'] = {sized_text, 4},
    ['U'] = {sized_text, 1},
    ['X'] = {sized_text, 4},
    ['G'] = {big_endian_real, 0},
    ['a'] = {add_one, 0},
    ['s'] = {add_one, 1},
    ['e'] = {add_many, 0},
    ['u'] = {add_many, 1},
    ['b'] = {build, 0},
    ['c'] = {global_of_lines, 0},
    ['d'] = {gather_marked, LAC_PLAIN_DICT},
    ['l'] = {gather_marked, LAC_PLAIN_LIST},
    ['t'] = {gather_marked, LAC_PLAIN_LIST},
    ['}'] = {push_empty, LAC_PLAIN_DICT},
    [']'] = {push_empty, LAC_PLAIN_LIST},
    [')'] = {push_empty, LAC_PLAIN_LIST},
    ['g'] = {get_entry, 0},
    ['h'] = {get_entry, 1},
    ['j'] = {get_entry, 4},
    ['p'] = {put_entry, 0},
    ['q'] = {put_entry, 1},
    ['r'] = {put_entry, 4},
    ['i'] = {call_with_marked, 0},
    ['o'] = {call_with_marked, 1},
    ['B'] = {sized_text, 4},
    ['C'] = {sized_text, 1},
    [0x80] = {skip, 1}, /* PROTO */
    [0x81] = {call, 0},
    [0x82] = {extension, 1},
    [0x83] = {extension, 2},
    [0x84] = {extension, 4},
    [0x85] = {tuple, 1},
    [0x86] = {tuple, 2},
    [0x87] = {tuple, 3},
    [0x88] = {push_bool, 1},
    [0x89] = {push_bool, 0},
    [0x8a] = {big_integer, 1},
    [0x8b] = {big_integer, 4},
    [0x8c] = {sized_text, 1},
    [0x8d] = {sized_text, 8},
    [0x8e] = {sized_text, 8},
    [0x8f] = {push_empty, LAC_PLAIN_LIST},
    [0x90] = {add_many, 0},
    [0x91] = {gather_marked, LAC_PLAIN_LIST},
    [0x92] = {call, 1},
    [0x93] = {global_of_stack, 0},
    [0x94] = {memoize, 0},
    [0x95] = {skip, 8}, /* FRAME */
    [0x96] = {sized_text, 8},
    [0x97] = {push_none, 0},
    [0x98] = {skip, 0}, /* READONLY_BUFFER */
};

/* The arrays of the machine count as memory of the values. */
static enum lac_status count_arrays(struct machine *m)
{
    const uint64_t bytes = ((uint64_t)m->stack_capacity + m->memo_capacity) * sizeof(*m->stack) +
                           (uint64_t)m->mark_capacity * sizeof(*m->marks);
    m->heap->memory_bytes += bytes - m->counted;
    m->counted = bytes;
    return m->heap->memory_bytes > m->heap->limits.memory_bytes_max ? failed(m) : LAC_OK;
}

bool lac_pickle_begins(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

enum lac_status lac_pickle_read(const uint8_t *bytes, size_t size_bytes,
                                struct lac_plain_heap *heap, struct lac_plain **ret_value,
                                size_t *ret_size, struct lac_error *reterr)
{
    struct machine m = {
        .begin = bytes, .at = bytes, .end = bytes + size_bytes, .heap = heap, .reterr = reterr};
    enum lac_status status = LAC_OK;
    *ret_value = NULL;
    while (status == LAC_OK && *ret_value == NULL) {
        if (m.at == m.end) {
            status = broken(&m, "cut short");
            break;
        }
        const uint8_t opcode = *m.at++;
        if (opcode == '.') {
            *ret_value = pop(&m);
            status = *ret_value != NULL ? LAC_OK : broken(&m, "it holds nothing");
        } else {
            status = opcodes[opcode].run != NULL ? opcodes[opcode].run(&m, opcodes[opcode].argument)
                                                 : broken(&m, "an opcode that no protocol has");
            status = status == LAC_OK ? count_arrays(&m) : status;
        }
    }
    if (ret_size != NULL) {
        *ret_size = (size_t)(m.at - m.begin);
    }
    heap->memory_bytes -= m.counted;
    free(m.stack);
    free(m.marks);
    free(m.memo);
    return status;
}
