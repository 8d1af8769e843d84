/* The document: an object with traceEvents, or a bare array of events; whole or cut short. */

#include "analysis/import/chrome.h"

#include "analysis/import/json_scan.h"
#include "analysis/model/grow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All top-level members together are kept up to the first size; after damage an event may have the
 * second. */
enum { METADATA_BYTES_MAX = 1 << 20, RESYNC_EVENT_BYTES = 128 << 10 };

/* What is skipped while looking for the next event after damage, in all. */
static const uint64_t resync_bytes_max = (uint64_t)64 << 20;

struct document {
    struct lac_chrome chrome;
    struct lac_json_window window;
    char *metadata; /**< JSON object under construction, without its closing brace */
    uint64_t metadata_size, metadata_capacity;
    const struct lac_import_options *options;
    uint64_t resync_bytes;
    bool resynced;   /**< the window was moved to the next event after damage */
    bool has_events; /**< a traceEvents array, or the bare array, was seen */
    bool truncated;
};

enum lac_status lac_chrome_no_memory(struct lac_chrome *chrome)
{
    return lac_fail(chrome->reterr, LAC_ERR_NOMEM, chrome->event_offset, "out of memory");
}

enum lac_status lac_chrome_pass(struct lac_chrome *chrome, enum lac_status status)
{
    if (status == LAC_ERR_NOMEM)
        return lac_chrome_no_memory(chrome);
    if (status == LAC_ERR_LIMIT)
        return lac_fail(chrome->reterr, status, chrome->event_offset,
                        "the trace has more tracks, slices or text than a trace may have (at byte "
                        "%" PRIu64 ")",
                        chrome->event_offset);
    return status;
}

void lac_chrome_note(struct lac_chrome *chrome, enum lac_report_severity severity, const char *code,
                     uint64_t count, const char *text)
{
    lac_model_report(chrome->model, severity, code, count, chrome->event_offset, text);
}

/* --- reading on
 * ----------------------------------------------------------------------------------*/

/* Read more of the input, and tell how far it got. */
static enum lac_status more(struct document *document)
{
    const struct lac_import_options *options = document->options;
    enum lac_status status = lac_json_window_more(&document->window, document->chrome.reterr);
    if (status != LAC_OK || !options->progress)
        return status;
    const struct lac_source_budget *budget = lac_source_get_budget(document->window.source);
    if (!options->progress(options->progress_context, budget->input_bytes,
                           budget->input_bytes_total, document->chrome.model->info.event_count))
        return lac_fail(document->chrome.reterr, LAC_ERR_IO, budget->input_bytes, "cancelled");
    return LAC_OK;
}

/* Skip white space; *ret_byte is 0 at the end of the input. */
static enum lac_status next_byte(struct document *document, uint8_t *ret_byte)
{
    struct lac_json_window *window = &document->window;
    for (;;) {
        const uint8_t *p = window->at;
        while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
            p++;
        window->at = p;
        if (p < window->end || window->ended) {
            *ret_byte = p < window->end ? *p : 0;
            return LAC_OK;
        }
        enum lac_status status = more(document);
        if (status != LAC_OK)
            return status;
    }
}

static bool at_end(const struct document *document)
{
    return document->window.at >= document->window.end && document->window.ended;
}

static uint64_t here(const struct document *document)
{
    return lac_json_window_offset(&document->window, document->window.at);
}

static enum lac_status fail_depth(struct document *document)
{
    return lac_fail(document->chrome.reterr, LAC_ERR_LIMIT, here(document),
                    "more than %u nested brackets after byte %" PRIu64 " (limit depth_max)",
                    document->chrome.scratch.depth_max, here(document));
}

static void note_repairs(struct document *document, const struct lac_json_repairs *repairs)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct {
        uint32_t count;
        const char *code, *text;
    } notes[] = {
        {repairs->trailing_comma, "trailing_comma",
         "Commas before a closing bracket were ignored."},
        {repairs->control_character, "control_character",
         "Raw control characters in strings were kept as escapes."},
        {repairs->bad_utf8, "bad_utf8", "Bytes that are no UTF-8 were replaced by U+FFFD."},
        {repairs->bad_escape, "bad_escape", "Backslashes that begin no escape were kept as such."},
        {repairs->odd_literal, "odd_literal",
         "Values that JSON does not have (NaN, inf, 007) were kept as strings."},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (notes[i].count)
            lac_chrome_note(chrome, LAC_REPORT_REPAIRED, notes[i].code, notes[i].count,
                            notes[i].text);
}

static bool any_repair(const struct lac_json_repairs *repairs)
{
    return (repairs->trailing_comma | repairs->control_character | repairs->bad_utf8 |
            repairs->bad_escape | repairs->odd_literal) != 0;
}

/* --- members beside traceEvents
 * ------------------------------------------------------------------*/

static enum lac_status add_metadata(struct document *document, const struct lac_text *key,
                                    const uint8_t *json, size_t json_size)
{
    struct lac_chrome *chrome = &document->chrome;
    uint64_t need = document->metadata_size + key->size_bytes * 6 + json_size + 8;
    if (need > METADATA_BYTES_MAX) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "member_not_kept", 1,
                        "Members beside traceEvents that were too large were not kept.");
        return LAC_OK;
    }
    enum lac_status status = lac_grow(&document->metadata, &document->metadata_capacity, need, 1);
    if (status != LAC_OK)
        return lac_chrome_pass(chrome, status);
    uint8_t *to = (uint8_t *)document->metadata + document->metadata_size;
    *to++ = document->metadata_size ? ',' : '{';
    *to++ = '"';
    struct lac_json_repairs ignored = {0};
    (void)lac_json_string_copy(key->at, key->at + key->size_bytes + 1, &to, &ignored);
    *to++ = ':';
    memcpy(to, json, json_size);
    to += json_size;
    document->metadata_size = (uint64_t)((char *)to - document->metadata);
    return LAC_OK;
}

/* Skip a value of any size, token by token. Brackets are matched. */
static enum lac_status skip_value(struct document *document)
{
    struct lac_json_window *window = &document->window;
    uint64_t objects = 0;
    uint32_t depth = 0;
    do {
        uint8_t byte = 0;
        enum lac_status status = next_byte(document, &byte);
        if (status != LAC_OK || byte == 0)
            return status;
        if (byte == '"') {
            const uint8_t *close = lac_json_string_end(window->at + 1, window->end);
            while (!close && !window->ended) {
                status = more(document);
                if (status != LAC_OK)
                    return status;
                close = lac_json_string_end(window->at + 1, window->end);
            }
            window->at = close ? close + 1 : window->end;
            continue;
        }
        if (byte == '{' || byte == '[') {
            if (depth >= document->chrome.scratch.depth_max)
                return fail_depth(document);
            objects = objects << 1 | (byte == '{');
            depth++;
        } else if (byte == '}' || byte == ']') {
            if (depth == 0 || (objects & 1) != (byte == '}'))
                return lac_fail(document->chrome.reterr, LAC_ERR_CORRUPT, here(document),
                                "brackets do not match at byte %" PRIu64, here(document));
            objects >>= 1;
            depth--;
        } else if (depth == 0 && byte == ',') {
            return LAC_OK;
        }
        window->at++;
    } while (depth > 0 || (window->at < window->end && *window->at != ',' && *window->at != '}' &&
                           *window->at != ']'));
    return LAC_OK;
}

/* A member beside traceEvents: `key` lies in the window before its value. */
static enum lac_status read_member(struct document *document, const char *key, size_t key_size)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    for (;;) {
        const uint8_t *next = NULL;
        size_t size = 0;
        memset(&chrome->raw, 0, sizeof chrome->raw);
        enum lac_parse parse = chrome->parser->copy_value(&chrome->scratch, window->at, window->end,
                                                          &chrome->raw, &next, &size);
        if (parse == LAC_PARSE_NOMEM)
            return lac_chrome_no_memory(chrome);
        if (parse == LAC_PARSE_DEPTH)
            return fail_depth(document);
        if (parse == LAC_PARSE_OK) {
            note_repairs(document, &chrome->raw.repairs);
            struct lac_text text = {(const uint8_t *)key, (uint32_t)key_size, true};
            window->at = next;
            enum lac_status status = add_metadata(document, &text, chrome->scratch.text, size);
            if (status == LAC_OK)
                status = lac_kineto_member(chrome, key, key_size,
                                           (const char *)chrome->scratch.text, size);
            return status;
        }
        bool too_large = (size_t)(window->end - window->at) > METADATA_BYTES_MAX;
        if (parse == LAC_PARSE_BAD || too_large) {
            lac_chrome_note(
                chrome, LAC_REPORT_DROPPED, too_large ? "member_not_kept" : "member_damaged", 1,
                too_large ? "Members beside traceEvents that were too large were not kept."
                          : "Members beside traceEvents that are no JSON were dropped.");
            return skip_value(document);
        }
        if (window->ended) {
            window->at = window->end;
            return LAC_OK;
        }
        enum lac_status status = more(document);
        if (status != LAC_OK)
            return status;
    }
}

/* --- events ------------------------------------------------------------------------------------*/

/* Whether an event begins at p. What was looked at counts toward the limit of repair. */
static enum lac_status try_event(struct document *document, const uint8_t *p, bool *ret_found,
                                 bool *ret_more)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_json_window *window = &document->window;
    const uint8_t *next = window->end;
    enum lac_parse parse =
        chrome->parser->parse_event(&chrome->scratch, p, window->end, &chrome->raw, &next);
    *ret_found = parse == LAC_PARSE_OK && chrome->raw.phase != 0;
    *ret_more = parse == LAC_PARSE_MORE;
    if (parse == LAC_PARSE_NOMEM)
        return lac_chrome_no_memory(chrome);
    if (*ret_found)
        return LAC_OK;
    document->resync_bytes += (uint64_t)((parse == LAC_PARSE_BAD ? chrome->raw.bad_at : next) - p);
    if (document->resync_bytes > resync_bytes_max)
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, chrome->event_offset,
                        "damaged beyond repair after byte %" PRIu64, chrome->event_offset);
    return LAC_OK;
}

/* After damage: go to the next '{' that begins an event. What is skipped is counted. */
static enum lac_status resync(struct document *document)
{
    struct lac_json_window *window = &document->window;
    lac_chrome_note(&document->chrome, LAC_REPORT_DROPPED, "event_damaged", 1,
                    "Events that are no JSON were skipped up to the next event.");
    document->resynced = true;
    window->at++;
    for (;;) {
        bool found = false, wants_more = false;
        const uint8_t *p = memchr(window->at, '{', (size_t)(window->end - window->at));
        enum lac_status status = LAC_OK;
        window->at = p ? p : window->end;
        if (p)
            status = try_event(document, p, &found, &wants_more);
        if (status != LAC_OK || found)
            return status;
        /* an event that seems to go on and on is none: the damage upset its quotes */
        bool waits = !p || (wants_more && (size_t)(window->end - p) < RESYNC_EVENT_BYTES);
        if (waits && !window->ended)
            status = more(document);
        else if (p)
            window->at++;
        else
            return LAC_OK;
        if (status != LAC_OK)
            return status;
    }
}

/* The event at the window's start is no JSON: mend its quotes, or leave it. */
static enum lac_status mend(struct document *document, const uint8_t **ret_next)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_json_window *window = &document->window;
    const uint8_t *next = NULL, *after = NULL;
    size_t size = 0;
    *ret_next = NULL;
    enum lac_status status = LAC_OK;
    for (bool again = true; again && status == LAC_OK;) {
        size_t limit = (size_t)(window->end - window->at);
        limit = limit < RESYNC_EVENT_BYTES ? limit : RESYNC_EVENT_BYTES;
        status = lac_chrome_rewrite(chrome, window->at, window->at + limit, &size, &after);
        again = size == 0 && after == window->end && !window->ended && limit < RESYNC_EVENT_BYTES;
        if (again && status == LAC_OK)
            status = more(document);
    }
    document->resync_bytes += size == 0 ? (uint64_t)(after - window->at) : 0;
    if (status != LAC_OK || size == 0)
        return status;
    enum lac_parse parse = chrome->parser->parse_event(
        &chrome->scratch, chrome->rewritten, chrome->rewritten + size, &chrome->raw, &next);
    if (parse == LAC_PARSE_NOMEM)
        return lac_chrome_no_memory(chrome);
    if (parse == LAC_PARSE_OK && chrome->raw.phase) {
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "unescaped_quote", 1,
                        "Events with unescaped quotes inside strings were mended.");
        *ret_next = after;
    }
    return LAC_OK;
}

/* One event; the window is at its '{'. At the end of the input an unfinished event is dropped. */
static enum lac_status read_event(struct document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    const uint8_t *next = NULL;
    enum lac_status status = LAC_OK;
    chrome->event_offset = here(document);
    enum lac_parse parse =
        chrome->parser->parse_event(&chrome->scratch, window->at, window->end, &chrome->raw, &next);
    while (parse == LAC_PARSE_MORE && !window->ended) {
        status = more(document);
        if (status != LAC_OK)
            return status;
        parse = chrome->parser->parse_event(&chrome->scratch, window->at, window->end, &chrome->raw,
                                            &next);
    }
    switch (parse) {
    case LAC_PARSE_OK:
        break;
    case LAC_PARSE_MORE:
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "event_cut_off", 1,
                        "The last event is cut off and was dropped.");
        document->truncated = true;
        window->at = window->end;
        return LAC_OK;
    case LAC_PARSE_BAD:
        status = mend(document, &next);
        if (status != LAC_OK || !next)
            return status != LAC_OK ? status : resync(document);
        break;
    case LAC_PARSE_DEPTH:
        return fail_depth(document);
    case LAC_PARSE_NOMEM:
    default:
        return lac_chrome_no_memory(chrome);
    }
    if ((size_t)(next - window->at) > chrome->limits->event_bytes_max)
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "an event of %zu bytes at byte %" PRIu64 " (limit event_bytes_max is %u)",
                        (size_t)(next - window->at), chrome->event_offset,
                        chrome->limits->event_bytes_max);
    status = lac_chrome_event(chrome);
    if (any_repair(&chrome->raw.repairs))
        note_repairs(document, &chrome->raw.repairs);
    if (chrome->raw.unknown_members)
        lac_chrome_note(chrome, LAC_REPORT_INFO, "event_member_not_kept",
                        chrome->raw.unknown_members,
                        "Members of events themselves (not of args) that have no place here.");
    window->at = next;
    return status;
}

/* The array of events; the window is at its '['. */
static enum lac_status read_events(struct document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    bool after_comma = false, after_event = false;
    document->has_events = true;
    window->at++;
    for (;;) {
        uint8_t byte = 0;
        enum lac_status status = next_byte(document, &byte);
        if (status != LAC_OK)
            return status;
        if (byte == '{') {
            if (after_event && !document->resynced)
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "missing_comma", 1,
                                "Commas missing between events were supplied.");
            document->resynced = false;
            status = read_event(document);
            after_event = true;
            after_comma = false;
        } else if (byte == ',') {
            if (!after_event)
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "extra_comma", 1,
                                "Commas without an event between them were ignored.");
            window->at++;
            after_event = false;
            after_comma = true;
        } else if (byte == ']') {
            if (after_comma)
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "trailing_comma", 1,
                                "Commas before a closing bracket were ignored.");
            window->at++;
            return LAC_OK;
        } else if (at_end(document)) {
            document->truncated = true;
            return LAC_OK;
        } else {
            chrome->event_offset = here(document);
            lac_chrome_note(chrome, LAC_REPORT_DROPPED, "event_not_an_object", 1,
                            "Entries of traceEvents that are no objects were dropped.");
            status = skip_value(document);
            after_event = true;
            after_comma = false;
        }
        if (status != LAC_OK)
            return status;
    }
}

/* --- the whole ---------------------------------------------------------------------------------*/

/* Key of a top-level member, up to and with its colon. */
static enum lac_status read_key(struct document *document, char *key, size_t capacity,
                                size_t *ret_size)
{
    struct lac_json_window *window = &document->window;
    const uint8_t *close = lac_json_string_end(window->at + 1, window->end);
    while (!close && !window->ended) {
        enum lac_status status = more(document);
        if (status != LAC_OK)
            return status;
        close = lac_json_string_end(window->at + 1, window->end);
    }
    if (!close) {
        window->at = window->end;
        return LAC_OK;
    }
    size_t size = (size_t)(close - window->at - 1);
    *ret_size = size < capacity - 1 ? size : capacity - 1;
    memcpy(key, window->at + 1, *ret_size);
    key[*ret_size] = '"'; /* so that the key reads as the inside of a string */
    window->at = close + 1;
    uint8_t byte = 0;
    enum lac_status status = next_byte(document, &byte);
    if (status == LAC_OK && byte == ':') {
        window->at++;
        status = next_byte(document, &byte);
    } else if (status == LAC_OK && byte != 0) {
        status = lac_fail(document->chrome.reterr, LAC_ERR_CORRUPT, here(document),
                          "expected ':' at byte %" PRIu64, here(document));
    }
    return status;
}

static enum lac_status read_object(struct document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    bool after_comma = false;
    window->at++;
    for (;;) {
        uint8_t byte = 0;
        char key[256];
        size_t key_size = 0;
        enum lac_status status = next_byte(document, &byte);
        if (status != LAC_OK)
            return status;
        chrome->event_offset = here(document);
        if (byte == '}') {
            if (after_comma)
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "trailing_comma", 1,
                                "Commas before a closing bracket were ignored.");
            window->at++;
            return LAC_OK;
        }
        if (byte == ',') {
            window->at++;
            after_comma = true;
            continue;
        }
        if (at_end(document)) {
            document->truncated = true;
            return LAC_OK;
        }
        if (byte != '"') {
            if (!document->has_events)
                return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, here(document),
                                "not JSON: expected a member name at byte %" PRIu64,
                                here(document));
            return LAC_OK; /* the caller counts what follows as stray */
        }
        after_comma = false;
        status = read_key(document, key, sizeof key, &key_size);
        if (status != LAC_OK)
            return status;
        if (at_end(document)) {
            document->truncated = true;
            return LAC_OK;
        }
        bool is_events = key_size == 11 && memcmp(key, "traceEvents", 11) == 0;
        if (is_events && *window->at == '[')
            status = read_events(document);
        else
            status = read_member(document, key, key_size);
        if (status != LAC_OK)
            return status;
        if (at_end(document)) {
            document->truncated = true;
            return LAC_OK;
        }
    }
}

static enum lac_status skip_byte_order_mark(struct document *document)
{
    struct lac_json_window *window = &document->window;
    while (window->end - window->at < 3 && !window->ended) {
        enum lac_status status = more(document);
        if (status != LAC_OK)
            return status;
    }
    if (window->end - window->at >= 3 && memcmp(window->at, "\xef\xbb\xbf", 3) == 0)
        window->at += 3;
    return LAC_OK;
}

/* Count what follows the end of the document. */
static enum lac_status read_rest(struct document *document)
{
    struct lac_json_window *window = &document->window;
    uint64_t count = 0, first = 0;
    for (;;) {
        uint8_t byte = 0;
        enum lac_status status = next_byte(document, &byte);
        if (status != LAC_OK)
            return status;
        if (at_end(document))
            break;
        if (count == 0)
            first = here(document);
        count += (uint64_t)(window->end - window->at);
        window->at = window->end;
    }
    if (count) {
        document->chrome.event_offset = first;
        lac_chrome_note(&document->chrome, LAC_REPORT_DROPPED, "stray_bytes", count,
                        "Bytes after the end of the trace were ignored.");
    }
    return LAC_OK;
}

static enum lac_status read_document(struct document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    uint8_t byte = 0;
    enum lac_status status = skip_byte_order_mark(document);
    if (status == LAC_OK)
        status = next_byte(document, &byte);
    if (status != LAC_OK)
        return status;
    if (byte == '{')
        status = read_object(document);
    else if (byte == '[')
        status = read_events(document);
    else
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, here(document),
                        at_end(document)
                            ? "the input is empty"
                            : "not a trace format that Lacuna knows: it does not begin as JSON");
    if (status == LAC_OK && !document->truncated)
        status = read_rest(document);
    return status;
}

/* Was it a trace, and whole? */
static enum lac_status judge(struct document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_trace_info *info = &chrome->model->info;
    const char *damage = lac_source_damage(document->window.source);
    uint64_t end = here(document);
    if (damage) {
        chrome->event_offset = end;
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "input_damaged", 1, damage);
    }
    if (document->truncated && info->event_count == 0)
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, end,
                        "the trace ends at byte %" PRIu64 ", before its first event%s%s", end,
                        damage ? ": " : "", damage ? damage : "");
    if (!document->has_events)
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, end,
                        "no trace: the JSON object has no traceEvents array");
    if (info->event_count > 0 && info->phase_count[0] == info->event_count)
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, 0,
                        "no trace: none of its %" PRIu64 " objects has a phase (ph)",
                        info->event_count);
    if (info->event_count == 0 && info->dropped_count > 0)
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, 0, "no trace: nothing in it is an event");
    if (document->truncated) {
        chrome->event_offset = end;
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "truncated", 1,
                        "The trace ends before its closing brackets; they were supplied.");
    }
    return LAC_OK;
}

static enum lac_status finish(struct document *document, const char *name,
                              struct lac_model **ret_model)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_trace_info *info = &chrome->model->info;
    enum lac_status status = lac_tensorflow_flush(chrome, LAC_NONE);
    if (status == LAC_OK)
        status = lac_chrome_pairs_finish(chrome);
    if (status == LAC_OK)
        status = lac_chrome_name_tracks(chrome);
    if (status != LAC_OK)
        return status;
    if (chrome->launch_arrow_count)
        lac_chrome_note(chrome, LAC_REPORT_INFO, "launch_arrows", chrome->launch_arrow_count,
                        "Arrow ends that repeat correlation ids: launches are bound by those.");
    if (chrome->has_time) {
        lac_builder_saw_time(chrome->builder, chrome->first_ns);
        lac_builder_saw_time(chrome->builder, chrome->last_ns);
    }
    if (document->metadata_size) {
        document->metadata[document->metadata_size] = '}';
        status = lac_strings_intern(&chrome->model->strings, document->metadata,
                                    document->metadata_size + 1, &info->metadata);
    }
    if (status == LAC_OK)
        status = lac_strings_intern(&chrome->model->strings, name, strlen(name), &info->name);
    if (status != LAC_OK)
        return lac_chrome_pass(chrome, status);
    info->format = chrome->has_lacuna_mark    ? LAC_FORMAT_LACUNA
                   : chrome->has_device_rows  ? LAC_FORMAT_TENSORFLOW
                   : chrome->has_kineto_marks ? LAC_FORMAT_KINETO
                                              : LAC_FORMAT_CHROME;
    info->expanded_bytes = here(document);
    status = lac_builder_finish(chrome->builder, chrome->base_ns, ret_model);
    if (status != LAC_OK)
        return lac_chrome_pass(chrome, status);
    chrome->builder = NULL;
    return LAC_OK;
}

static enum lac_status begin(struct document *document, struct lac_source *source,
                             const struct lac_import_options *options, size_t window_bytes,
                             struct lac_error *reterr)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_import_limits *limits = &options->limits;
    document->options = options;
    chrome->limits = limits;
    chrome->reterr = reterr;
    chrome->window = &document->window;
    chrome->parser = lac_chrome_parser_get(options->force_scalar);
    chrome->scratch.depth_max = limits->depth_max > 64 ? 64 : limits->depth_max;
    chrome->scratch.hash_seed = lac_hash_seed();
    chrome->names = calloc(LAC_NAME_CACHE_SLOTS, sizeof *chrome->names);
    if (!chrome->names)
        return lac_chrome_no_memory(chrome);
    enum lac_status status = lac_chrome_pass(chrome, lac_builder_create(&chrome->builder));
    if (status == LAC_OK)
        chrome->model = lac_builder_model(chrome->builder);
    if (status == LAC_OK)
        status = lac_chrome_pairs_create(chrome);
    if (status == LAC_OK)
        status = lac_json_window_init(&document->window, source, window_bytes,
                                      limits->event_bytes_max, reterr);
    return status;
}

enum lac_status lac_chrome_import(struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, struct lac_model **ret_model,
                                  struct lac_error *reterr)
{
    struct document *document = calloc(1, sizeof *document);
    if (!document)
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    struct lac_chrome *chrome = &document->chrome;
    enum lac_status status = begin(document, source, options, window_bytes, reterr);
    if (status == LAC_OK)
        status = read_document(document);
    if (status == LAC_OK)
        status = judge(document);
    if (status == LAC_OK)
        status = finish(document, name, ret_model);
    lac_builder_destroy(chrome->builder);
    lac_chrome_pairs_destroy(chrome->pairs);
    lac_chrome_pending_destroy(chrome->pending);
    lac_chrome_tracks_done(chrome);
    lac_chrome_scratch_done(&chrome->scratch);
    lac_args_cache_done(&chrome->args);
    lac_json_window_done(&document->window);
    free(document->metadata);
    free(document);
    return status;
}
