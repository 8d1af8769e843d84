#include "tests/support/json_mutator.h"

#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_MAX = 2048, DEPTH_MAX = 64, PIECE_MAX = 4096 };

/** A value, or a member with its key. */
struct span {
    size_t begin, end;
    size_t member; /**< where its key begins, or `begin` */
    bool is_number;
};

struct spans {
    struct span at[SPANS_MAX];
    uint32_t count;
};

uint32_t lac_mutator_draw(uint64_t *random, uint32_t count)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) % count);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/** Behind the string or word at `at`. */
static size_t skip_scalar(const uint8_t *text, size_t size, size_t at)
{
    if (text[at] != '"') {
        while (at < size && !is_blank(text[at]) && memchr(",:{}[]\"", text[at], 7) == NULL) {
            at++;
        }
        return at;
    }
    for (at++; at < size && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    return at < size ? at + 1 : size;
}

static void add(struct spans *spans, size_t member, size_t begin, size_t end, bool is_number)
{
    if (spans->count < SPANS_MAX && end > begin) {
        spans->at[spans->count++] = (struct span){begin, end, member, is_number};
    }
}

static void find_spans(const uint8_t *text, size_t size, struct spans *spans)
{
    struct {
        size_t begin, member;
    } open[DEPTH_MAX];
    uint32_t depth = 0;
    size_t key = SIZE_MAX;
    for (size_t at = 0; at < size;) {
        uint8_t c = text[at];
        if (c == '{' || c == '[') {
            if (depth < DEPTH_MAX) {
                open[depth].begin = at;
                open[depth].member = key != SIZE_MAX ? key : at;
            }
            depth++;
            key = SIZE_MAX;
            at++;
        } else if (c == '}' || c == ']') {
            at++;
            if (depth > 0 && --depth < DEPTH_MAX) {
                add(spans, open[depth].member, open[depth].begin, at, false);
            }
            key = SIZE_MAX;
        } else if (c == ',' || c == ':' || is_blank(c)) {
            key = c == ',' ? SIZE_MAX : key;
            at++;
        } else {
            size_t end = skip_scalar(text, size, at);
            size_t next = end;
            while (next < size && is_blank(text[next])) {
                next++;
            }
            bool is_key = next < size && text[next] == ':' && key == SIZE_MAX;
            if (is_key) {
                key = at;
            } else {
                add(spans, key != SIZE_MAX ? key : at, at, end, c == '-' || (c >= '0' && c <= '9'));
                key = SIZE_MAX;
            }
            at = end > at ? end : at + 1;
        }
    }
}

/** Put `piece` in the place of [begin, end). @return the new size, or the old one for
 *  want of room */
static size_t put(uint8_t *text, size_t size, size_t capacity, size_t begin, size_t end,
                  const uint8_t *piece, size_t length)
{
    if (size - (end - begin) + length > capacity) {
        return size;
    }
    memmove(text + begin + length, text + end, size - end);
    if (length > 0) {
        memcpy(text + begin, piece, length);
    }
    return size - (end - begin) + length;
}

static const char *const words[] = {"0",
                                    "-1",
                                    "1e308",
                                    "-1e308",
                                    "1e-308",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "-9223372036854775808",
                                    "18446744073709551616",
                                    "9007199254740993",
                                    "0.1e19",
                                    "1e18",
                                    "4294967296",
                                    "2147483648",
                                    "65536",
                                    "0.0000001",
                                    "null",
                                    "true",
                                    "{}",
                                    "[]",
                                    "\"\"",
                                    "\"\\u0000\"",
                                    "\"\\ud800\"",
                                    "\"\\u202e\"",
                                    "\"kernel\"",
                                    "\"gpu_memcpy\"",
                                    "\"cuda_runtime\"",
                                    "\"ProfilerStep#1\"",
                                    "\"X\"",
                                    "\"B\"",
                                    "\"E\"",
                                    "\"b\"",
                                    "\"e\"",
                                    "\"s\"",
                                    "\"f\"",
                                    "\"C\"",
                                    "\"M\"",
                                    "\"i\"",
                                    "\"thread_name\"",
                                    "\"process_name\"",
                                    "\"ac2g\"",
                                    "\"enumerate(DataLoader)#x.__next__\"",
                                    "\"loader.fetch\"",
                                    "\"cudaStreamSynchronize\"",
                                    "\"ncclKernel\"",
                                    "\"0x7f\"",
                                    "1.5",
                                    "00",
                                    "1e",
                                    "-",
                                    "\"a",
                                    "NaN"};
static const char *const members[] = {"\"ts\":1,",
                                      "\"ts\":1e15,",
                                      "\"dur\":1e15,",
                                      "\"dur\":-1,",
                                      "\"ph\":\"B\",",
                                      "\"ph\":\"b\",\"id\":1,",
                                      "\"ph\":\"E\",",
                                      "\"ph\":\"X\",\"cat\":\"kernel\",",
                                      "\"pid\":0,",
                                      "\"tid\":7,",
                                      "\"id\":1,",
                                      "\"id2\":{\"local\":1},",
                                      "\"bp\":\"e\",",
                                      "\"name\":\"a\",",
                                      "\"args\":{\"correlation\":1,\"stream\":7,\"device\":0},",
                                      "\"scope\":\"s\",",
                                      "\"cat\":\"kernel\",",
                                      "\"s\":\"g\","};
enum { WORD_COUNT = LAC_COUNT_OF(words), MEMBER_COUNT = LAC_COUNT_OF(members) };

/** The member or element of a span once more, behind it. */
static size_t repeat(uint8_t *text, size_t size, size_t capacity, const struct span *from,
                     const struct span *to)
{
    uint8_t piece[PIECE_MAX + 1];
    size_t length = from->end - from->member;
    if (length > PIECE_MAX) {
        return size;
    }
    piece[0] = ',';
    memcpy(piece + 1, text + from->member, length);
    return put(text, size, capacity, to->end, to->end, piece, length + 1);
}

static size_t copy_over(uint8_t *text, size_t size, size_t capacity, const struct span *from,
                        const struct span *to)
{
    uint8_t piece[PIECE_MAX];
    size_t length = from->end - from->begin;
    if (length > PIECE_MAX) {
        return size;
    }
    memcpy(piece, text + from->begin, length);
    return put(text, size, capacity, to->begin, to->end, piece, length);
}

static size_t nest(uint8_t *text, size_t size, size_t capacity, const struct span *span,
                   uint64_t *random)
{
    static const char *const around[][2] = {{"[", "]"}, {"{\"a\":", "}"}, {"[1,", ",2]"}};
    const char *const *pair = around[lac_mutator_draw(random, 3)];
    uint32_t depth = 1 + lac_mutator_draw(random, 70);
    size_t begin = span->begin;
    size_t end = span->end;
    for (uint32_t i = 0; i < depth; i++) {
        size_t grown =
            put(text, size, capacity, end, end, (const uint8_t *)pair[1], strlen(pair[1]));
        grown = put(text, grown, capacity, begin, begin, (const uint8_t *)pair[0], strlen(pair[0]));
        if (grown < size + strlen(pair[0]) + strlen(pair[1])) {
            return grown;
        }
        end += strlen(pair[0]) + strlen(pair[1]);
        size = grown;
    }
    return size;
}

/** Swap the letters of two phases, or put another one. */
static size_t change_phase(uint8_t *text, size_t size, uint64_t *random)
{
    static const char letters[] = "XBEbnesftiICMOND";
    size_t from = lac_mutator_draw(random, (uint32_t)size);
    const uint8_t *found = memmem(text + from, size - from, "\"ph\"", 4);
    for (size_t at = found != NULL ? (size_t)(found - text) + 4 : size;
         at + 1 < size && at < from + 4096; at++) {
        if (text[at] == '"') {
            text[at + 1] = (uint8_t)letters[lac_mutator_draw(random, sizeof(letters) - 1)];
            break;
        }
    }
    return size;
}

static size_t change_once(uint8_t *text, size_t size, size_t capacity, uint64_t *random,
                          const struct spans *spans)
{
    const struct span *a = &spans->at[lac_mutator_draw(random, spans->count)];
    const struct span *b = &spans->at[lac_mutator_draw(random, spans->count)];
    const char *word = words[lac_mutator_draw(random, WORD_COUNT)];
    const char *member = members[lac_mutator_draw(random, MEMBER_COUNT)];
    switch (lac_mutator_draw(random, 9)) {
    case 0:
    case 1:
        return copy_over(text, size, capacity, a, b);
    case 2:
        return repeat(text, size, capacity, a, b);
    case 3:
        return repeat(text, size, capacity, a, a);
    case 4:
        return put(text, size, capacity, a->begin, a->end, (const uint8_t *)word, strlen(word));
    case 5:
        return put(text, size, capacity, a->member, a->end, (const uint8_t *)"", 0);
    case 6:
        return nest(text, size, capacity, a, random);
    case 7:
        return a->member < a->begin ? put(text, size, capacity, a->member, a->member,
                                          (const uint8_t *)member, strlen(member))
                                    : size;
    default:
        return change_phase(text, size, random);
    }
}

size_t lac_json_mutate(uint8_t *text, size_t size, size_t capacity, uint64_t *random)
{
    static struct spans spans;
    uint32_t times = 1 + lac_mutator_draw(random, 4);
    for (uint32_t i = 0; i < times && size > 0; i++) {
        spans.count = 0;
        find_spans(text, size, &spans);
        if (spans.count == 0) {
            break;
        }
        size = change_once(text, size, capacity, random, &spans);
    }
    return size;
}
