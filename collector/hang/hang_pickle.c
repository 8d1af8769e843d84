#include "collector/hang/hang_pickle.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Opcodes, by the names that Python's pickletools gives them. */
enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_REDUCE = 'R',
    OP_BINUNICODE = 'X',
    OP_APPEND = 'a',
    OP_GLOBAL = 'c',
    OP_EMPTY_DICT = '}',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_EMPTY_LIST = ']',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_SETITEMS = 'u',
    OP_BINFLOAT = 'G',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_EMPTY_SET = 0x8f,
    OP_ADDITEMS = 0x90,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

enum { CHUNK_BYTES = 65536 };

struct chunk {
    struct chunk *next;
    size_t used;
    size_t capacity;
    char bytes[];
};

struct lac_hang_pickle {
    struct chunk *chunks;
    const struct lac_hang_value *root;
};

struct reader {
    const unsigned char *bytes;
    size_t size;
    size_t at;
    struct lac_hang_pickle *pickle;
    uint32_t values_left;
    uint32_t values_max;
    const char *why; /* NULL: nothing is wrong */
    struct lac_hang_value **stack;
    size_t depth;
    size_t stack_capacity;
    size_t *marks;
    size_t mark_count;
    size_t mark_capacity;
    struct lac_hang_value **memo;
    size_t memo_used; /* highest index, and one */
    size_t memo_capacity;
};

/* ---- memory */

static bool wrong(struct reader *reader, const char *why)
{
    if (reader->why == NULL) {
        reader->why = why;
    }
    return false;
}

static void *take(struct reader *reader, size_t size)
{
    struct chunk *chunk = reader->pickle->chunks;
    void *taken;

    size = (size + 15) & ~(size_t)15;
    if (chunk == NULL || chunk->capacity - chunk->used < size) {
        const size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;

        chunk = malloc(sizeof(*chunk) + 16 + capacity);
        if (chunk == NULL) {
            (void)wrong(reader, "out of memory");
            return NULL;
        }
        chunk->next = reader->pickle->chunks;
        chunk->used = (16 - (size_t)(uintptr_t)chunk->bytes % 16) % 16;
        chunk->capacity = capacity + chunk->used;
        reader->pickle->chunks = chunk;
    }
    taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

static bool count_one(struct reader *reader)
{
    if (reader->values_left == 0) {
        return wrong(reader, "it holds too many values");
    }
    reader->values_left--;
    return true;
}

/* Room for an element more; a reallocation of twice as much at a time. */
static bool grow(struct reader *reader, void **array, size_t *capacity, size_t wanted, size_t size)
{
    const size_t more = wanted < 64 ? 64 : wanted * 2;
    void *larger;

    if (wanted < *capacity) {
        return true;
    }
    if (wanted > reader->values_max) {
        return wrong(reader, "it holds too many values");
    }
    larger = realloc(*array, more * size);
    if (larger == NULL) {
        return wrong(reader, "out of memory");
    }
    memset((char *)larger + *capacity * size, 0, (more - *capacity) * size);
    *array = larger;
    *capacity = more;
    return true;
}

/* ---- bytes */

static bool has(struct reader *reader, uint64_t size)
{
    return size <= reader->size - reader->at || wrong(reader, "it ends too early");
}

/* Little endian; what is not there is 0 and wrong. */
static uint64_t number(struct reader *reader, unsigned size)
{
    uint64_t value = 0;

    if (!has(reader, size)) {
        return 0;
    }
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)reader->bytes[reader->at + i] << (8 * i);
    }
    reader->at += size;
    return value;
}

static bool skip_line(struct reader *reader)
{
    const unsigned char *const end =
        reader->at < reader->size
            ? memchr(reader->bytes + reader->at, '\n', reader->size - reader->at)
            : NULL;

    if (end == NULL) {
        return wrong(reader, "a line does not end");
    }
    reader->at = (size_t)(end - reader->bytes) + 1;
    return true;
}

/* ---- values */

static struct lac_hang_value *push_known(struct reader *reader, struct lac_hang_value *value)
{
    if (value == NULL || !grow(reader, (void **)&reader->stack, &reader->stack_capacity,
                               reader->depth, sizeof(reader->stack[0]))) {
        return NULL;
    }
    reader->stack[reader->depth++] = value;
    return value;
}

static struct lac_hang_value *make(struct reader *reader, enum lac_hang_value_kind kind)
{
    struct lac_hang_value *const value =
        count_one(reader) ? take(reader, sizeof(struct lac_hang_value)) : NULL;

    if (value != NULL) {
        memset(value, 0, sizeof(*value));
        value->kind = kind;
    }
    return value;
}

static struct lac_hang_value *push(struct reader *reader, enum lac_hang_value_kind kind)
{
    return push_known(reader, make(reader, kind));
}

static bool push_integer(struct reader *reader, enum lac_hang_value_kind kind, int64_t integer)
{
    struct lac_hang_value *const value = push(reader, kind);

    if (value != NULL) {
        value->integer = integer;
    }
    return value != NULL;
}

static bool push_real(struct reader *reader, double real)
{
    struct lac_hang_value *const value = push(reader, LAC_HANG_VALUE_REAL);

    if (value != NULL) {
        value->real = real;
    }
    return value != NULL;
}

static bool push_text(struct reader *reader, enum lac_hang_value_kind kind, const char *at,
                      size_t size)
{
    struct lac_hang_value *const value = push(reader, kind);

    if (value != NULL) {
        value->text.at = at;
        value->text.size = size;
    }
    return value != NULL;
}

/* The lowest of the values above the last mark, or of the whole stack. */
static size_t floor_of(const struct reader *reader)
{
    return reader->mark_count > 0 ? reader->marks[reader->mark_count - 1] : 0;
}

static struct lac_hang_value *pop(struct reader *reader)
{
    if (reader->depth <= floor_of(reader)) {
        (void)wrong(reader, "a value is missing");
        return NULL;
    }
    return reader->stack[--reader->depth];
}

static struct lac_hang_value *top(struct reader *reader)
{
    if (reader->depth <= floor_of(reader)) {
        (void)wrong(reader, "a value is missing");
        return NULL;
    }
    return reader->stack[reader->depth - 1];
}

static bool push_mark(struct reader *reader)
{
    if (!count_one(reader) || !grow(reader, (void **)&reader->marks, &reader->mark_capacity,
                                    reader->mark_count, sizeof(reader->marks[0]))) {
        return false;
    }
    reader->marks[reader->mark_count++] = reader->depth;
    return true;
}

/* Forget the last mark. @return where it was, or SIZE_MAX */
static size_t pop_mark(struct reader *reader)
{
    if (reader->mark_count == 0) {
        (void)wrong(reader, "a mark is missing");
        return SIZE_MAX;
    }
    return reader->marks[--reader->mark_count];
}

static bool can_hold(const struct lac_hang_value *value)
{
    return value->kind >= LAC_HANG_VALUE_LIST;
}

static bool add_item(struct reader *reader, struct lac_hang_value *to,
                     const struct lac_hang_value *key, const struct lac_hang_value *value)
{
    struct lac_hang_item *item;

    if (!can_hold(to)) {
        return wrong(reader, "a value is put into one that holds none");
    }
    item = count_one(reader) ? take(reader, sizeof(*item)) : NULL;
    if (item == NULL) {
        return false;
    }
    *item = (struct lac_hang_item){.key = key, .value = value};
    if (to->last != NULL) {
        to->last->next = item;
    } else {
        to->items = item;
    }
    to->last = item;
    to->item_count++;
    return true;
}

/* What lies above `from` goes into `to`, one by one or as pairs. */
static bool add_all(struct reader *reader, struct lac_hang_value *to, size_t from, bool as_pairs)
{
    const size_t step = as_pairs ? 2 : 1;

    if (as_pairs && (reader->depth - from) % 2 != 0) {
        return wrong(reader, "a key has no value");
    }
    for (size_t i = from; i < reader->depth; i += step) {
        if (!add_item(reader, to, as_pairs ? reader->stack[i] : NULL,
                      reader->stack[i + step - 1])) {
            return false;
        }
    }
    reader->depth = from;
    return true;
}

/* ---- numbers */

/* Two's complement of any length. */
static bool push_long(struct reader *reader, uint64_t size)
{
    const unsigned char *const bytes = reader->bytes + reader->at;
    uint64_t low = 0;
    double real = 0;

    if (!has(reader, size)) {
        return false;
    }
    reader->at += size;
    if (size == 0) {
        return push_integer(reader, LAC_HANG_VALUE_INTEGER, 0);
    }
    if (size <= 8) {
        for (uint64_t i = 0; i < 8; i++) {
            low |= (uint64_t)(i < size ? bytes[i] : bytes[size - 1] >= 0x80 ? 0xff : 0) << (8 * i);
        }
        return push_integer(reader, LAC_HANG_VALUE_INTEGER, (int64_t)low);
    }
    for (uint64_t i = size; i > 0 && size <= 128; i--) { /* 2^1024 is no double */
        real = real * 256 + (i == size ? (double)(signed char)bytes[i - 1] : (double)bytes[i - 1]);
    }
    return push_real(reader, real);
}

static bool push_binfloat(struct reader *reader)
{
    uint64_t bits = 0;
    double real;

    if (!has(reader, 8)) {
        return false;
    }
    for (unsigned i = 0; i < 8; i++) {
        bits = bits << 8 | reader->bytes[reader->at++];
    }
    memcpy(&real, &bits, sizeof(real));
    return push_real(reader, real);
}

/* @return false: it is none of these, or it is wrong */
static bool read_scalar(struct reader *reader, unsigned opcode, bool *ret_is_known)
{
    switch (opcode) {
    case OP_NONE:
        return push(reader, LAC_HANG_VALUE_NONE) != NULL;
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push_integer(reader, LAC_HANG_VALUE_BOOL, opcode == OP_NEWTRUE);
    case OP_BININT:
        return push_integer(reader, LAC_HANG_VALUE_INTEGER, (int32_t)number(reader, 4));
    case OP_BININT1:
        return push_integer(reader, LAC_HANG_VALUE_INTEGER, (int64_t)number(reader, 1));
    case OP_BININT2:
        return push_integer(reader, LAC_HANG_VALUE_INTEGER, (int64_t)number(reader, 2));
    case OP_LONG1:
        return push_long(reader, number(reader, 1));
    case OP_LONG4:
        return push_long(reader, number(reader, 4));
    case OP_BINFLOAT:
        return push_binfloat(reader);
    default:
        *ret_is_known = false;
        return false;
    }
}

/* ---- text */

static bool push_counted(struct reader *reader, enum lac_hang_value_kind kind, unsigned width)
{
    const uint64_t size = number(reader, width);
    const char *const at = (const char *)reader->bytes + reader->at;

    if (reader->why != NULL || !has(reader, size)) {
        return false;
    }
    reader->at += size;
    return push_text(reader, kind, at, size);
}

static bool read_text(struct reader *reader, unsigned opcode, bool *ret_is_known)
{
    switch (opcode) {
    case OP_SHORT_BINUNICODE:
        return push_counted(reader, LAC_HANG_VALUE_TEXT, 1);
    case OP_BINUNICODE:
        return push_counted(reader, LAC_HANG_VALUE_TEXT, 4);
    case OP_BINUNICODE8:
        return push_counted(reader, LAC_HANG_VALUE_TEXT, 8);
    case OP_SHORT_BINBYTES:
        return push_counted(reader, LAC_HANG_VALUE_BYTES, 1);
    case OP_BINBYTES:
        return push_counted(reader, LAC_HANG_VALUE_BYTES, 4);
    case OP_BINBYTES8:
        return push_counted(reader, LAC_HANG_VALUE_BYTES, 8);
    default:
        *ret_is_known = false;
        return false;
    }
}

/* ---- containers */

/* Of what lies above the last mark. */
static bool gather_tuple(struct reader *reader)
{
    const size_t from = pop_mark(reader);
    struct lac_hang_value *const value =
        from != SIZE_MAX ? make(reader, LAC_HANG_VALUE_TUPLE) : NULL;

    return value != NULL && add_all(reader, value, from, false) &&
           push_known(reader, value) != NULL;
}

/* What lies above the last mark goes into what lies below it. */
static bool fill(struct reader *reader, bool as_pairs)
{
    const size_t from = pop_mark(reader);

    if (from == SIZE_MAX || from <= floor_of(reader)) {
        return wrong(reader, "a container is missing");
    }
    return add_all(reader, reader->stack[from - 1], from, as_pairs);
}

static bool push_tuple(struct reader *reader, size_t count)
{
    struct lac_hang_value *const value = make(reader, LAC_HANG_VALUE_TUPLE);

    if (reader->depth - floor_of(reader) < count) {
        return wrong(reader, "a value is missing");
    }
    return value != NULL && add_all(reader, value, reader->depth - count, false) &&
           push_known(reader, value) != NULL;
}

static bool append_one(struct reader *reader)
{
    struct lac_hang_value *const value = pop(reader);
    struct lac_hang_value *const list = value != NULL ? top(reader) : NULL;

    return list != NULL && add_item(reader, list, NULL, value);
}

static bool set_one(struct reader *reader)
{
    struct lac_hang_value *const value = pop(reader);
    struct lac_hang_value *const key = value != NULL ? pop(reader) : NULL;
    struct lac_hang_value *const dict = key != NULL ? top(reader) : NULL;

    return dict != NULL && add_item(reader, dict, key, value);
}

static bool read_container(struct reader *reader, unsigned opcode, bool *ret_is_known)
{
    switch (opcode) {
    case OP_EMPTY_LIST:
        return push(reader, LAC_HANG_VALUE_LIST) != NULL;
    case OP_EMPTY_DICT:
        return push(reader, LAC_HANG_VALUE_DICT) != NULL;
    case OP_EMPTY_SET:
        return push(reader, LAC_HANG_VALUE_SET) != NULL;
    case OP_EMPTY_TUPLE:
        return push(reader, LAC_HANG_VALUE_TUPLE) != NULL;
    case OP_TUPLE:
        return gather_tuple(reader);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return push_tuple(reader, opcode - OP_TUPLE1 + 1);
    case OP_APPEND:
        return append_one(reader);
    case OP_APPENDS:
    case OP_ADDITEMS:
        return fill(reader, false);
    case OP_SETITEM:
        return set_one(reader);
    case OP_SETITEMS:
        return fill(reader, true);
    default:
        *ret_is_known = false;
        return false;
    }
}

/* ---- calls, which are not made: their arguments stand in the place of what they would return */

static bool read_call(struct reader *reader, unsigned opcode, bool *ret_is_known)
{
    struct lac_hang_value *arguments;

    switch (opcode) {
    case OP_GLOBAL: /* the lines of a module and a name */
        if (!skip_line(reader)) {
            return false;
        }
        return skip_line(reader) && push(reader, LAC_HANG_VALUE_NONE) != NULL;
    case OP_REDUCE:
        arguments = pop(reader);
        return arguments != NULL && pop(reader) != NULL && push_known(reader, arguments) != NULL;
    default:
        *ret_is_known = false;
        return false;
    }
}

/* ---- the memo and the stack */

static bool remember(struct reader *reader, uint64_t index)
{
    struct lac_hang_value *const value = top(reader);

    if (value == NULL || reader->why != NULL ||
        !grow(reader, (void **)&reader->memo, &reader->memo_capacity, index,
              sizeof(struct lac_hang_value *))) {
        return false;
    }
    reader->memo[index] = value;
    reader->memo_used = index >= reader->memo_used ? index + 1 : reader->memo_used;
    return true;
}

static bool recall(struct reader *reader, uint64_t index)
{
    if (reader->why != NULL || index >= reader->memo_used || reader->memo[index] == NULL) {
        return wrong(reader, "it names a value that was not kept");
    }
    return push_known(reader, reader->memo[index]) != NULL;
}

static bool read_stack(struct reader *reader, unsigned opcode, bool *ret_is_known)
{
    size_t from;

    switch (opcode) {
    case OP_MARK:
        return push_mark(reader);
    case OP_POP: /* a mark, where it is the topmost */
        if (reader->mark_count > 0 && reader->depth == floor_of(reader)) {
            return pop_mark(reader) != SIZE_MAX;
        }
        return pop(reader) != NULL;
    case OP_POP_MARK:
        from = pop_mark(reader);
        reader->depth = from != SIZE_MAX ? from : reader->depth;
        return from != SIZE_MAX;
    case OP_DUP:
        return push_known(reader, top(reader)) != NULL;
    case OP_BINPUT:
        return remember(reader, number(reader, 1));
    case OP_LONG_BINPUT:
        return remember(reader, number(reader, 4));
    case OP_MEMOIZE:
        return remember(reader, reader->memo_used);
    case OP_BINGET:
        return recall(reader, number(reader, 1));
    case OP_LONG_BINGET:
        return recall(reader, number(reader, 4));
    case OP_PROTO:
        return number(reader, 1) <= 5 && reader->why == NULL;
    case OP_FRAME:
        return has(reader, number(reader, 8)) && reader->why == NULL;
    default:
        *ret_is_known = false;
        return false;
    }
}

/* ---- all of it */

static bool read_one(struct reader *reader, unsigned opcode)
{
    static bool (*const groups[])(struct reader *, unsigned, bool *) = {
        read_stack, read_scalar, read_text, read_container, read_call};

    for (size_t i = 0; i < LAC_COUNT_OF(groups); i++) {
        bool is_known = true;
        const bool is_right = groups[i](reader, opcode, &is_known);

        if (is_known) {
            return is_right && reader->why == NULL;
        }
    }
    return wrong(reader, "it holds an unknown instruction");
}

static bool read_all(struct reader *reader)
{
    while (reader->at < reader->size) {
        const unsigned opcode = reader->bytes[reader->at++];

        if (opcode == OP_STOP) {
            reader->pickle->root = reader->mark_count == 0 ? pop(reader) : NULL;
            return reader->pickle->root != NULL || wrong(reader, "a value is missing");
        }
        if (!read_one(reader, opcode)) {
            return wrong(reader, "it is no pickle of protocol 2 to 5");
        }
    }
    return wrong(reader, "it ends too early");
}

struct lac_hang_pickle *lac_hang_pickle_read(const void *bytes, size_t size, uint32_t values_max,
                                             const char **ret_why, size_t *ret_at)
{
    assert(bytes != NULL || size == 0);
    struct reader reader = {
        .bytes = bytes, .size = size, .values_left = values_max, .values_max = values_max};
    bool is_right;

    reader.pickle = calloc(1, sizeof(*reader.pickle));
    is_right = reader.pickle != NULL && read_all(&reader);
    if (!is_right) {
        lac_hang_pickle_free(reader.pickle);
        reader.pickle = NULL;
    }
    free(reader.stack);
    free(reader.marks);
    free(reader.memo);
    if (ret_why != NULL) {
        *ret_why = is_right ? NULL : reader.why != NULL ? reader.why : "out of memory";
    }
    if (ret_at != NULL) {
        *ret_at = reader.at;
    }
    return reader.pickle;
}

void lac_hang_pickle_free(struct lac_hang_pickle *pickle)
{
    while (pickle != NULL && pickle->chunks != NULL) {
        struct chunk *const next = pickle->chunks->next;

        free(pickle->chunks);
        pickle->chunks = next;
    }
    free(pickle);
}

const struct lac_hang_value *lac_hang_pickle_root(const struct lac_hang_pickle *pickle)
{
    assert(pickle != NULL);
    return pickle->root;
}

const struct lac_hang_value *lac_hang_value_get(const struct lac_hang_value *dict, const char *key)
{
    assert(key != NULL);
    const struct lac_hang_value *found = NULL;

    if (dict == NULL || dict->kind < LAC_HANG_VALUE_LIST) {
        return NULL;
    }
    for (const struct lac_hang_item *item = dict->items; item != NULL; item = item->next) {
        if (lac_hang_value_is_text(item->key, key)) {
            found = item->value;
        }
    }
    return found;
}

int64_t lac_hang_value_integer(const struct lac_hang_value *value, int64_t otherwise)
{
    return value != NULL &&
                   (value->kind == LAC_HANG_VALUE_INTEGER || value->kind == LAC_HANG_VALUE_BOOL)
               ? value->integer
               : otherwise;
}

bool lac_hang_value_is_text(const struct lac_hang_value *value, const char *text)
{
    assert(text != NULL);
    return value != NULL && value->kind == LAC_HANG_VALUE_TEXT &&
           value->text.size == strlen(text) && memcmp(value->text.at, text, value->text.size) == 0;
}
