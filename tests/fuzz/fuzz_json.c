/*
 * Any bytes as the text of one event: the AVX2 and the scalar parser agree on all of it, what they
 * write is sound JSON (copying it again changes nothing), and decoded strings are UTF-8.
 */

#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_window.h"
#include "analysis/model/args.h"
#include "collector/base/utf8.h"
#include "tests/support/json_mutator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static void require(bool holds)
{
    if (!holds)
        abort();
}

struct outcome {
    struct lac_chrome_scratch scratch;
    struct lac_raw_event event;
    enum lac_parse parse;
    const uint8_t *next;
};

static void same_text(struct lac_json_span a, struct lac_json_span b)
{
    require(a.at == b.at && a.size_bytes == b.size_bytes && a.plain == b.plain);
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
    require(a->parse == b->parse);
    if (a->parse == LAC_PARSE_BAD)
        require(a->event.bad_at == b->event.bad_at);
    if (a->parse != LAC_PARSE_OK)
        return;
    require(a->next == b->next && a->event.phase == b->event.phase);
    require(a->event.ts_state == b->event.ts_state && a->event.ts_ns == b->event.ts_ns);
    require(a->event.dur_state == b->event.dur_state && a->event.dur_ns == b->event.dur_ns);
    same_text(a->event.name, b->event.name);
    same_text(a->event.cat, b->event.cat);
    same_text(a->event.pid, b->event.pid);
    same_text(a->event.tid, b->event.tid);
    same_text(a->event.id, b->event.id);
    same_text(a->event.id2, b->event.id2);
    require(memcmp(&a->event.repairs, &b->event.repairs, sizeof(a->event.repairs)) == 0);
    require(a->event.args_size == b->event.args_size && a->event.args_hash == b->event.args_hash &&
            a->event.number_count == b->event.number_count);
    require(a->event.args_size == 0 ||
            memcmp(a->scratch.text, b->scratch.text, a->event.args_size) == 0);
    for (uint32_t i = 0; i < a->event.number_count; i++)
        require(a->scratch.numbers[i] == b->scratch.numbers[i]);
}

/* Times by another road: every decimal is exact in 128 bits when it has few digits. */
static void check_time(const struct lac_json_span *text)
{
    int64_t value = 0, digits = 0, scale = 0;
    if (text->size_bytes == 0 || text->size_bytes > 17)
        return;
    for (uint32_t i = 0; i < text->size_bytes; i++) {
        uint8_t c = text->at[i];
        if (c == '.' && scale == 0 && i > 0 && i + 1 < text->size_bytes)
            scale = 1;
        else if (c < '0' || c > '9')
            return;
        else {
            digits = digits * 10 + (c - '0');
            scale *= scale ? 10 : 1;
        }
    }
    scale = scale ? scale : 1;
    __extension__ __int128 numerator = (__int128)digits * 1000 * 2;
    __extension__ __int128 doubled = numerator / scale;
    bool exact = numerator % scale == 0;
    __extension__ __int128 expected =
        doubled / 2 + ((doubled & 1) && (!exact || (doubled / 2 & 1)));
    if (expected > INT64_MAX)
        return;
    require(lac_decimal_scaled(text->at, text->size_bytes, 3, &value) && value == expected);
}

static void check_string(const struct lac_json_span *text)
{
    if (text->at == NULL)
        return;
    uint8_t *decoded = malloc((size_t)text->size_bytes * 3 + 4);
    struct lac_json_repairs repairs = {0};
    require(decoded != NULL);
    size_t size = lac_json_string_decode(text->at, text->size_bytes, decoded, &repairs);
    require(size <= (size_t)text->size_bytes * 3 + 4);
    require(!text->plain || (size == text->size_bytes && memcmp(decoded, text->at, size) == 0));
    for (size_t i = 0; i < size;) {
        uint32_t length = lac_utf8_length(decoded + i, decoded + size);
        require(length > 0 && decoded[i] != 0);
        i += length;
    }
    free(decoded);
}

/* Copying the value gives JSON that copies to itself, without any repair. */
static void check_copy(const struct lac_chrome_parser *parser, const uint8_t *p, const uint8_t *end)
{
    struct lac_chrome_scratch first = {.depth_max = 64}, second = {.depth_max = 64};
    struct lac_raw_event event = {0}, again = {0};
    const uint8_t *next = NULL;
    size_t size = 0, size_again = 0;
    if (parser->copy_value(&first, p, end, &event, &next, &size) == LAC_PARSE_OK) {
        static const struct lac_json_repairs none;
        uint8_t *text = calloc(1, size + 1 + LAC_JSON_PAD);
        require(text != NULL && next <= end);
        memcpy(text, first.text, size);
        text[size] = ' ';
        require(parser->copy_value(&second, text, text + size + 1, &again, &next, &size_again) ==
                LAC_PARSE_OK);
        require(size_again == size && memcmp(second.text, first.text, size) == 0);
        require(memcmp(&again.repairs, &none, sizeof(none)) == 0);
        free(text);
    }
    lac_chrome_scratch_done(&first);
    lac_chrome_scratch_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome outcome[2];
    const struct lac_chrome_parser *parsers[2] = {lac_chrome_parser_get(false),
                                                  lac_chrome_parser_get(true)};
    uint8_t *text = malloc(size + 1 + LAC_JSON_PAD);
    require(text != NULL);
    text[0] = '{';
    if (size > 0)
        memcpy(text + 1, data, size);
    memset(text + size + 1, 0, LAC_JSON_PAD);
    const uint8_t *end = text + size + 1;
    for (size_t i = 0; i < 2; i++) {
        memset(&outcome[i], 0, sizeof(outcome[i]));
        outcome[i].scratch.depth_max = 64;
        outcome[i].parse = parsers[i]->parse_event(&outcome[i].scratch, text, end,
                                                   &outcome[i].event, &outcome[i].next);
        check_copy(parsers[i], text, end);
        check_copy(parsers[i], text + 1, end);
    }
    check_same(&outcome[0], &outcome[1]);
    if (outcome[0].parse == LAC_PARSE_OK) {
        const struct lac_raw_event *event = &outcome[0].event;
        require(event->args_size == 0 ||
                lac_args_number_count((const char *)outcome[0].scratch.text, event->args_size) ==
                    event->number_count);
        check_string(&event->name);
        check_string(&event->cat);
        check_string(&event->pid);
        check_time(&event->pid);
    }
    lac_chrome_scratch_done(&outcome[0].scratch);
    lac_chrome_scratch_done(&outcome[1].scratch);
    free(text);
    return 0;
}

/* Half of the changes know what JSON is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t random = seed;
    size_t changed = 0;
    if (lac_mutator_draw(&random, 2) == 0)
        changed = lac_json_mutate(data, size, max_size, &random);
    return changed > 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
