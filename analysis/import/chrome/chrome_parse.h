#ifndef LAC_ANALYSIS_IMPORT_CHROME_CHROME_PARSE_H
#define LAC_ANALYSIS_IMPORT_CHROME_CHROME_PARSE_H

/*
 * Text of one event -> struct lac_raw_event, in one pass.
 *
 * The members of the event that have a meaning are found where they lie in the window; "args" is
 * turned into a template and numbers (analysis/model/args.h) on the way. A parse that runs into
 * the end of the window says so and is begun again with more, so nothing here keeps state between
 * calls but the buffers of struct lac_chrome_scratch.
 */

#include "analysis/import/text/json_text.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_parse {
    LAC_PARSE_OK = 0,
    LAC_PARSE_MORE,  /**< the text ends before the value does */
    LAC_PARSE_BAD,   /**< no JSON, see lac_raw_event.bad_at */
    LAC_PARSE_DEPTH, /**< nested too deeply */
    LAC_PARSE_NOMEM,
};

/** Buffers that parsing reuses from event to event. */
struct lac_chrome_scratch {
    uint8_t *text; /**< the args template, then room for values that are only skipped */
    size_t text_capacity;
    int64_t *numbers; /**< of the template */
    uint32_t number_capacity;
    uint32_t depth_max; /**< at most 64 */
    uint64_t hash_seed;
    bool extract_all_integers; /**< templates repeat too rarely: take every integer out */
};

enum lac_time_state { LAC_TIME_ABSENT = 0, LAC_TIME_OK, LAC_TIME_BAD };

struct lac_raw_event {
    uint8_t phase;       /**< 0 absent, '?' no single ASCII letter */
    bool bind_enclosing; /**< "bp": "e" */
    bool id_is_number;
    uint8_t ts_state; /**< enum lac_time_state */
    uint8_t dur_state;
    bool dur_was_negative;
    int64_t ts_ns;
    int64_t dur_ns;
    struct lac_json_span name, cat, pid, tid; /**< at == NULL: absent */
    struct lac_json_span id, scope;
    struct lac_json_span id2; /**< raw JSON of the value */
    uint32_t args_size;       /**< bytes of the template in scratch->text, 0: none */
    uint32_t number_count;
    uint32_t unknown_members; /**< members of the event itself that are not kept */
    uint64_t args_hash;       /**< of the template */
    struct lac_json_repairs repairs;
    const uint8_t *bad_at; /**< with LAC_PARSE_BAD */
};

/**
 * Parse the object at p (a '{').
 *
 * @param end of the text; LAC_JSON_PAD zero bytes follow it
 * @param ret_next past the closing brace, on LAC_PARSE_OK
 */
typedef enum lac_parse (*lac_chrome_parse_fn)(struct lac_chrome_scratch *scratch, const uint8_t *p,
                                              const uint8_t *end, struct lac_raw_event *event,
                                              const uint8_t **ret_next);
/**
 * Copy the value at p, white space removed and repaired, to scratch->text.
 *
 * @param ret_size bytes written
 */
typedef enum lac_parse (*lac_chrome_value_fn)(struct lac_chrome_scratch *scratch, const uint8_t *p,
                                              const uint8_t *end, struct lac_raw_event *event,
                                              const uint8_t **ret_next, size_t *ret_size);

struct lac_chrome_parser {
    lac_chrome_parse_fn parse_event;
    lac_chrome_value_fn copy_value;
};

extern const struct lac_chrome_parser lac_chrome_parser_scalar;
#if defined(__x86_64__)
extern const struct lac_chrome_parser lac_chrome_parser_avx2;
#endif

/** The fastest parser that this machine has. */
const struct lac_chrome_parser *lac_chrome_parser_get(bool force_scalar);

void lac_chrome_scratch_done(struct lac_chrome_scratch *scratch);

/** Make room for `used` bytes kept and `more` to come. False when out of memory. */
bool lac_chrome_scratch_text(struct lac_chrome_scratch *scratch, size_t used, size_t more);
bool lac_chrome_scratch_number(struct lac_chrome_scratch *scratch, uint32_t count);

/** What to do with a number right under args, by its key (without quotes). */
enum lac_key_class { LAC_KEY_BY_LENGTH = 0, LAC_KEY_VARIES, LAC_KEY_REPEATS };
enum lac_key_class lac_chrome_key_class(const uint8_t *key, size_t size_bytes);

#endif
