/* The document: an object with traceEvents, or a bare array of events; whole or cut short. */

#include "analysis/import/chrome/chrome.h"

#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/chrome/chrome_document.h"
#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_window.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/text/json_text.h"
#include "analysis/import/text/settings_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All top-level members together are kept up to this size. */
enum { METADATA_BYTES_MAX = 1 << 20 };

enum lac_status lac_chrome_no_memory(struct lac_chrome *chrome)
{
    return lac_fail(chrome->reterr, LAC_ERR_NOMEM, chrome->event_offset, "out of memory");
}

enum lac_status lac_chrome_pass(struct lac_chrome *chrome, enum lac_status status)
{
    if (status == LAC_ERR_NOMEM) {
        return lac_chrome_no_memory(chrome);
    }
    if (status == LAC_ERR_LIMIT) {
        return lac_fail(chrome->reterr, status, chrome->event_offset,
                        "the trace has more tracks, slices or text than a trace may have (at byte "
                        "%" PRIu64 ")",
                        chrome->event_offset);
    }
    return status;
}

void lac_chrome_note(struct lac_chrome *chrome, enum lac_report_severity severity, const char *code,
                     uint64_t count, const char *text)
{
    lac_model_report(chrome->model, severity, code, count, chrome->event_offset, text);
}

/* --- reading on ------------------------------------------------------------------------------- */

/* Read more of the input, and report the progress. */
enum lac_status lac_document_more(struct lac_chrome_document *document)
{
    const struct lac_import_options *options = document->options;
    enum lac_status status = lac_json_window_more(&document->window, document->chrome.reterr);
    if (status != LAC_OK || !options->progress) {
        return status;
    }
    const struct lac_source_budget *budget = lac_source_get_budget(document->window.source);
    if (!options->progress(options->progress_context, budget->input_bytes,
                           budget->input_bytes_total, document->chrome.model->info.event_count)) {
        return lac_fail(document->chrome.reterr, LAC_ERR_IO, budget->input_bytes, "canceled");
    }
    return LAC_OK;
}

/* Skip white space; *ret_byte is 0 at the end of the input. */
enum lac_status lac_document_next(struct lac_chrome_document *document, uint8_t *ret_byte)
{
    struct lac_json_window *window = &document->window;
    for (;;) {
        const uint8_t *p = window->at;
        while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
            p++;
        }
        window->at = p;
        if (p < window->end || window->ended) {
            *ret_byte = p < window->end ? *p : 0;
            return LAC_OK;
        }
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
    }
}

bool lac_document_at_end(const struct lac_chrome_document *document)
{
    return document->window.at >= document->window.end && document->window.ended;
}

uint64_t lac_document_here(const struct lac_chrome_document *document)
{
    return lac_json_window_offset(&document->window, document->window.at);
}

enum lac_status lac_document_fail_depth(struct lac_chrome_document *document)
{
    return lac_fail(document->chrome.reterr, LAC_ERR_LIMIT, lac_document_here(document),
                    "more than %u nested brackets after byte %" PRIu64 " (limit depth_max)",
                    document->chrome.scratch.depth_max, lac_document_here(document));
}

void lac_document_note_repairs(struct lac_chrome_document *document,
                               const struct lac_json_repairs *repairs)
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
        {repairs->bad_utf8, "bad_utf8", "Bytes that are not UTF-8 were replaced by U+FFFD."},
        {repairs->bad_escape, "bad_escape", "Backslashes that begin no escape were kept as such."},
        {repairs->odd_literal, "odd_literal",
         "Values that JSON does not have (NaN, inf, 007) were kept as strings."},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(notes); i++) {
        if (notes[i].count) {
            lac_chrome_note(chrome, LAC_REPORT_REPAIRED, notes[i].code, notes[i].count,
                            notes[i].text);
        }
    }
}

/* --- members other than traceEvents ----------------------------------------------------------- */

static enum lac_status add_metadata(struct lac_chrome_document *document,
                                    const struct lac_json_span *key, const uint8_t *json,
                                    size_t json_size)
{
    struct lac_chrome *chrome = &document->chrome;
    uint64_t need = document->metadata_size + (uint64_t)key->size_bytes * 6 + json_size + 8;
    if (need > METADATA_BYTES_MAX) {
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "member_not_kept", 1,
                        "Members next to traceEvents that were too large were dropped.");
        return LAC_OK;
    }
    enum lac_status status = LAC_GROW(document->metadata, &document->metadata_capacity, need);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    uint8_t *to = (uint8_t *)document->metadata + document->metadata_size;
    *to++ = document->metadata_size ? ',' : '{';
    *to++ = '"';
    struct lac_json_repairs ignored = {0};
    if (lac_json_string_copy(key->at, key->at + key->size_bytes + 1, &to, &ignored) == NULL) {
        *to++ = '"'; /* a key cut off inside an escape */
    }
    *to++ = ':';
    memcpy(to, json, json_size);
    to += json_size;
    document->metadata_size = (uint64_t)((char *)to - document->metadata);
    return LAC_OK;
}

/* The string at the window's start, of any size that the window may take. */
static enum lac_status skip_string(struct lac_chrome_document *document)
{
    struct lac_json_window *window = &document->window;
    const uint8_t *close = lac_json_string_end(window->at + 1, window->end);
    while (close == NULL && !window->ended) {
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
        close = lac_json_string_end(window->at + 1, window->end);
    }
    window->at = close != NULL ? close + 1 : window->end;
    return LAC_OK;
}

enum lac_status lac_document_skip(struct lac_chrome_document *document)
{
    struct lac_json_window *window = &document->window;
    uint64_t objects = 0;
    uint32_t depth = 0;
    bool in_word = false;
    for (;;) {
        uint8_t byte = 0;
        enum lac_status status = lac_document_next(document, &byte);
        if (status != LAC_OK || lac_document_at_end(document)) {
            return status;
        }
        bool opens = byte == '{' || byte == '[', closes = byte == '}' || byte == ']';
        if (depth == 0 && (closes || byte == ',' || (in_word && (opens || byte == '"')))) {
            return LAC_OK;
        }
        if (byte == '"') {
            status = skip_string(document);
            if (status != LAC_OK || depth == 0) {
                return status;
            }
            continue;
        }
        if (opens && depth >= document->chrome.scratch.depth_max) {
            return lac_document_fail_depth(document);
        }
        if (closes && (objects & 1) != (byte == '}')) {
            return lac_fail(document->chrome.reterr, LAC_ERR_CORRUPT, lac_document_here(document),
                            "brackets do not match at byte %" PRIu64, lac_document_here(document));
        }
        window->at++;
        objects = opens ? objects << 1 | (byte == '{') : closes ? objects >> 1 : objects;
        depth += opens;
        depth -= closes;
        if (closes && depth == 0) {
            return LAC_OK;
        }
        in_word = in_word || (depth == 0 && !opens);
    }
}

/* A member other than traceEvents: `key` is in the window before its value. */
static enum lac_status read_member(struct lac_chrome_document *document, const char *key,
                                   size_t key_size)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    for (;;) {
        const uint8_t *next = NULL;
        size_t size = 0;
        memset(&chrome->raw, 0, sizeof(chrome->raw));
        enum lac_parse parse = chrome->parser->copy_value(&chrome->scratch, window->at, window->end,
                                                          &chrome->raw, &next, &size);
        if (parse == LAC_PARSE_NOMEM) {
            return lac_chrome_no_memory(chrome);
        }
        if (parse == LAC_PARSE_DEPTH) {
            return lac_document_fail_depth(document);
        }
        if (parse == LAC_PARSE_OK) {
            lac_document_note_repairs(document, &chrome->raw.repairs);
            struct lac_json_span text = {(const uint8_t *)key, (uint32_t)key_size, true};
            window->at = next;
            enum lac_status status = add_metadata(document, &text, chrome->scratch.text, size);
            if (status == LAC_OK) {
                status = lac_kineto_member(chrome, key, key_size,
                                           (const char *)chrome->scratch.text, size);
            }
            return status;
        }
        bool too_large = (size_t)(window->end - window->at) > METADATA_BYTES_MAX;
        if (parse == LAC_PARSE_BAD || too_large) {
            lac_chrome_note(
                chrome, LAC_REPORT_DROPPED, too_large ? "member_not_kept" : "member_damaged", 1,
                too_large ? "Members next to traceEvents that were too large were dropped."
                          : "Members next to traceEvents that are not JSON were dropped.");
            return lac_document_skip(document);
        }
        if (window->ended) {
            window->at = window->end;
            return LAC_OK;
        }
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
    }
}

/* --- the whole ---------------------------------------------------------------------------------*/

/* Key of a top-level member, up to and with its colon. */
static enum lac_status read_key(struct lac_chrome_document *document, char *key, size_t capacity,
                                size_t *ret_size, bool *ret_has_colon)
{
    struct lac_json_window *window = &document->window;
    *ret_has_colon = true;
    const uint8_t *close = lac_json_string_end(window->at + 1, window->end);
    while (close == NULL && !window->ended) {
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
        close = lac_json_string_end(window->at + 1, window->end);
    }
    if (close == NULL) {
        window->at = window->end;
        return LAC_OK;
    }
    size_t size = (size_t)(close - window->at - 1);
    *ret_size = size < capacity - 1 ? size : capacity - 1;
    memcpy(key, window->at + 1, *ret_size);
    key[*ret_size] = '"'; /* so that the key reads as the inside of a string */
    window->at = close + 1;
    uint8_t byte = 0;
    enum lac_status status = lac_document_next(document, &byte);
    if (status == LAC_OK && byte == ':') {
        window->at++;
        status = lac_document_next(document, &byte);
    } else if (status == LAC_OK && !lac_document_at_end(document)) {
        *ret_has_colon = false;
    }
    return status;
}

/* A member before the events is not JSON: skip the rest of it, up to "traceEvents". */
static enum lac_status find_events(struct lac_chrome_document *document)
{
    static const char wanted[] = "\"traceEvents\"";
    struct lac_json_window *window = &document->window;
    uint64_t from = lac_document_here(document);
    for (;;) {
        size_t size = (size_t)(window->end - window->at);
        const uint8_t *found = memmem(window->at, size, wanted, sizeof(wanted) - 1);
        if (found != NULL) {
            window->at = found;
            lac_chrome_note(&document->chrome, LAC_REPORT_INFO, "stray_bytes",
                            lac_document_here(document) - from,
                            "Bytes that are not part of the trace were ignored.");
            return LAC_OK;
        }
        if (window->ended) {
            return lac_fail(document->chrome.reterr, LAC_ERR_CORRUPT, from,
                            "not JSON at byte %" PRIu64 ", and no traceEvents after it", from);
        }
        window->at = size < sizeof(wanted) ? window->at : window->end - (sizeof(wanted) - 2);
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
    }
}

/* A member of the top-level object; the window is at its key. Sets *ret_done when what follows is
 * no part of the object: the caller counts it as stray. */
static enum lac_status read_pair(struct lac_chrome_document *document, bool *ret_done)
{
    struct lac_json_window *window = &document->window;
    char key[256];
    size_t key_size = 0;
    bool has_colon = false;
    enum lac_status status = LAC_OK;
    if (*window->at == '"') {
        status = read_key(document, key, sizeof(key), &key_size, &has_colon);
    }
    if (status != LAC_OK || lac_document_at_end(document)) {
        return status;
    }
    if (!has_colon) {
        *ret_done = document->has_events;
        return *ret_done ? LAC_OK : find_events(document);
    }
    if (key_size == 11 && memcmp(key, "traceEvents", 11) == 0 && *window->at == '[') {
        return lac_document_read_events(document);
    }
    return read_member(document, key, key_size);
}

static enum lac_status read_object(struct lac_chrome_document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    bool after_comma = false, done = false;
    enum lac_status status = LAC_OK;
    window->at++;
    while (status == LAC_OK && !done) {
        uint8_t byte = 0;
        status = lac_document_next(document, &byte);
        chrome->event_offset = lac_document_here(document);
        if (status == LAC_OK && lac_document_at_end(document)) {
            document->truncated = true;
            done = true;
        } else if (status == LAC_OK && byte == '}') {
            if (after_comma) {
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "trailing_comma", 1,
                                "Commas before a closing bracket were ignored.");
            }
            window->at++;
            done = true;
        } else if (status == LAC_OK && byte == ',') {
            window->at++;
            after_comma = true;
        } else if (status == LAC_OK) {
            after_comma = false;
            status = read_pair(document, &done);
        }
    }
    return status;
}

static enum lac_status skip_byte_order_mark(struct lac_chrome_document *document)
{
    struct lac_json_window *window = &document->window;
    while (window->end - window->at < 3 && !window->ended) {
        enum lac_status status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
    }
    if (window->end - window->at >= 3 && memcmp(window->at, "\xef\xbb\xbf", 3) == 0) {
        window->at += 3;
    }
    return LAC_OK;
}

/* Count what follows the end of the document. */
static enum lac_status read_rest(struct lac_chrome_document *document)
{
    struct lac_json_window *window = &document->window;
    uint8_t byte = 0;
    enum lac_status status = lac_document_next(document, &byte);
    if (status != LAC_OK || lac_document_at_end(document)) {
        return status;
    }
    uint64_t first = lac_document_here(document);
    while (status == LAC_OK && !lac_document_at_end(document)) {
        window->at = window->end;
        status = lac_document_next(document, &byte);
    }
    document->chrome.event_offset = first;
    lac_chrome_note(&document->chrome, LAC_REPORT_INFO, "stray_bytes",
                    lac_document_here(document) - first,
                    "Bytes that are not part of the trace were ignored.");
    return status;
}

/** What a file that is not a trace seems to be, and what to do with it; NULL: no idea. */
static const char *say_unknown(const struct lac_chrome_document *document)
{
    static const struct {
        const char *begins;
        size_t size;
        const char *text;
    } known[] = {
        {"\xfd"
         "7zXZ",
         5, "compressed by xz, which is not read: unpack it first (xz -d)"},
        {"<?xml", 5,
         "XML; of a workspace of the Visual Profiler, give the database: nvprof -o FILE.nvvp "
         "writes one"},
        {"BZh", 3, "compressed by bzip2, which is not read: unpack it first (bzip2 -d)"},
        {"PK\x03\x04", 4, "a zip archive, which is not read: unpack it first (unzip)"},
        {"\xff\xfe", 2, "text in UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
        {"\xfe\xff", 2, "text in UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    };
    const struct lac_json_window *window = &document->window;
    if (lac_document_at_end(document)) {
        const char *damage = lac_source_damage(window->source);
        return damage != NULL ? damage
                              : "the input is empty: was the trace written, or copied, to its end?";
    }
    for (size_t i = 0; i < LAC_COUNT_OF(known); i++) {
        if ((size_t)(window->end - window->at) >= known[i].size &&
            memcmp(window->at, known[i].begins, known[i].size) == 0) {
            return known[i].text;
        }
    }
    return NULL;
}

static enum lac_status read_document(struct lac_chrome_document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    uint8_t byte = 0;
    enum lac_status status = skip_byte_order_mark(document);
    if (status == LAC_OK) {
        status = lac_document_next(document, &byte);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (byte == '{') {
        status = read_object(document);
    } else if (byte == '[') {
        status = lac_document_read_events(document);
    } else {
        const char *seems = say_unknown(document);
        return lac_fail(chrome->reterr, seems != NULL ? LAC_ERR_CORRUPT : LAC_ERR_NOT_FOUND,
                        lac_document_here(document), "%s",
                        seems != NULL ? seems : "unknown format");
    }
    if (status == LAC_OK && !document->truncated) {
        status = read_rest(document);
    }
    return status;
}

/* Was it a trace, and whole? */
static enum lac_status judge(struct lac_chrome_document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_trace_info *info = &chrome->model->info;
    const char *damage = lac_source_damage(document->window.source);
    uint64_t end = lac_document_here(document);
    if (damage != NULL) {
        chrome->event_offset = end;
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "input_damaged", 1, damage);
    }
    if (document->truncated && info->event_count == 0) {
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, end,
                        "the trace ends at byte %" PRIu64 ", before its first event%s%s", end,
                        damage != NULL ? ": " : "", damage != NULL ? damage : "");
    }
    if (!document->has_events) {
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, end,
                        "not a trace: the JSON object has no traceEvents array");
    }
    if (info->event_count > 0 && info->phase_count[0] == info->event_count) {
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, 0,
                        "not a trace: none of its %" PRIu64 " objects has a phase (ph)",
                        info->event_count);
    }
    if (info->event_count == 0 && info->dropped_count > 0) {
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, 0,
                        "not a trace: nothing in it is an event");
    }
    if (document->truncated) {
        chrome->event_offset = end;
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "truncated", 1,
                        "The trace ends before its closing brackets; they were supplied.");
    }
    return LAC_OK;
}

static enum lac_status finish(struct lac_chrome_document *document, const char *name,
                              struct lac_model **ret_model)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_trace_info *info = &chrome->model->info;
    enum lac_status status = lac_chrome_wait_finish(chrome);
    if (status == LAC_OK) {
        status = lac_chrome_pairs_finish(chrome);
    }
    if (status == LAC_OK) {
        status = lac_chrome_name_tracks(chrome);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_device_rows_report(chrome);
    if (chrome->launch_arrow_count) {
        lac_chrome_note(chrome, LAC_REPORT_INFO, "launch_arrows", chrome->launch_arrow_count,
                        "Arrow ends that repeat correlation ids: launches are bound by those.");
    }
    if (chrome->has_time) {
        lac_builder_saw_time(chrome->builder, chrome->first_ns);
        lac_builder_saw_time(chrome->builder, chrome->last_ns);
    }
    if (document->metadata_size) {
        document->metadata[document->metadata_size] = '}';
        status = lac_strings_intern(&chrome->model->strings, document->metadata,
                                    document->metadata_size + 1, &info->metadata);
    }
    if (status == LAC_OK) {
        status = lac_settings_read_text(chrome->model);
    }
    if (status == LAC_OK) {
        status = lac_strings_intern(&chrome->model->strings, name, strlen(name), &info->name);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    info->format = chrome->has_lacuna_mark    ? LAC_FORMAT_LACUNA
                   : chrome->has_device_rows  ? LAC_FORMAT_TENSORFLOW
                   : chrome->has_kineto_marks ? LAC_FORMAT_KINETO
                                              : LAC_FORMAT_CHROME;
    info->expanded_bytes = lac_document_here(document);
    status = lac_builder_finish(chrome->builder, chrome->base_ns, ret_model);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    chrome->builder = NULL;
    return LAC_OK;
}

static enum lac_status begin(struct lac_chrome_document *document, struct lac_source *source,
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
    chrome->names = calloc(LAC_NAME_CACHE_SLOTS, sizeof(*chrome->names));
    if (!chrome->names) {
        return lac_chrome_no_memory(chrome);
    }
    enum lac_status status = lac_chrome_pass(chrome, lac_builder_create(&chrome->builder));
    if (status == LAC_OK) {
        chrome->model = lac_builder_model(chrome->builder);
        lac_builder_use_crew(chrome->builder, options->crew);
    }
    if (status == LAC_OK) {
        status = lac_chrome_pairs_create(chrome);
    }
    if (status == LAC_OK) {
        status = lac_json_window_init(&document->window, source, window_bytes,
                                      limits->event_bytes_max, reterr);
    }
    return status;
}

enum lac_status lac_chrome_import(struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, struct lac_model **ret_model,
                                  struct lac_error *reterr)
{
    struct lac_chrome_document *document = calloc(1, sizeof(*document));
    if (document == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    struct lac_chrome *chrome = &document->chrome;
    enum lac_status status = begin(document, source, options, window_bytes, reterr);
    if (status == LAC_OK) {
        status = read_document(document);
    }
    if (status == LAC_OK) {
        status = judge(document);
    }
    if (status == LAC_OK) {
        status = finish(document, name, ret_model);
    }
    lac_builder_destroy(chrome->builder);
    lac_chrome_pairs_destroy(chrome->pairs);
    lac_chrome_wait_destroy(chrome->waiting);
    lac_chrome_tracks_done(chrome);
    lac_chrome_scratch_done(&chrome->scratch);
    lac_args_cache_done(&chrome->args);
    lac_json_window_done(&document->window);
    free(document->metadata);
    free(document);
    return status;
}
