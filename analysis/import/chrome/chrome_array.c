/* The array of events: one after another, over damage to the next one that is whole. */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_document.h"
#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_window.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

/* After damage, what looks like an event longer than this is not one. */
enum { RESYNC_EVENT_BYTES = 128 << 10 };

/* What is skipped while looking for the next event after damage, in all. */
static const uint64_t resync_bytes_max = (uint64_t)64 << 20;

static bool any_repair(const struct lac_json_repairs *repairs)
{
    return (repairs->trailing_comma | repairs->control_character | repairs->bad_utf8 |
            repairs->bad_escape | repairs->odd_literal) != 0;
}

/* Whether an event begins at p. What was looked at counts toward the limit of repair. */
static enum lac_status try_event(struct lac_chrome_document *document, const uint8_t *p,
                                 bool *ret_found, bool *ret_more)
{
    struct lac_chrome *chrome = &document->chrome;
    const struct lac_json_window *window = &document->window;
    const uint8_t *next = window->end;
    enum lac_parse parse =
        chrome->parser->parse_event(&chrome->scratch, p, window->end, &chrome->raw, &next);
    *ret_found = parse == LAC_PARSE_OK && chrome->raw.phase != 0;
    *ret_more = parse == LAC_PARSE_MORE;
    if (parse == LAC_PARSE_NOMEM) {
        return lac_chrome_no_memory(chrome);
    }
    if (*ret_found) {
        return LAC_OK;
    }
    document->resync_bytes += (uint64_t)((parse == LAC_PARSE_BAD ? chrome->raw.bad_at : next) - p);
    if (document->resync_bytes > resync_bytes_max) {
        return lac_fail(chrome->reterr, LAC_ERR_CORRUPT, chrome->event_offset,
                        "damaged beyond repair after byte %" PRIu64, chrome->event_offset);
    }
    return LAC_OK;
}

/* After damage: go to the next '{' that begins an event. What is skipped is counted. */
static enum lac_status resync(struct lac_chrome_document *document)
{
    struct lac_json_window *window = &document->window;
    lac_chrome_note(&document->chrome, LAC_REPORT_DROPPED, "event_damaged", 1,
                    "Events that are not JSON were skipped up to the next event.");
    document->resynced = true;
    window->at++;
    for (;;) {
        bool found = false, wants_more = false;
        const uint8_t *p = memchr(window->at, '{', (size_t)(window->end - window->at));
        enum lac_status status = LAC_OK;
        window->at = p != NULL ? p : window->end;
        if (p != NULL) {
            status = try_event(document, p, &found, &wants_more);
        }
        if (status != LAC_OK || found) {
            return status;
        }
        /* an event that seems to go on and on is none: the damage upset its quotes */
        bool waits = p == NULL || (wants_more && (size_t)(window->end - p) < RESYNC_EVENT_BYTES);
        if (waits && !window->ended) {
            status = lac_document_more(document);
        } else if (p != NULL) {
            window->at++;
        } else {
            return LAC_OK;
        }
        if (status != LAC_OK) {
            return status;
        }
    }
}

/* Whether another event begins in it: then a string that lost its quote would take that one in. */
static bool holds_two_events(const uint8_t *from, const uint8_t *end)
{
    static const char *const keys[] = {"\"ph\"", "\"name\"", "\"cat\"",
                                       "\"ts\"", "\"pid\"",  "\"tid\""};
    for (const uint8_t *p = from; (p = memchr(p, '}', (size_t)(end - p))) != NULL; p++) {
        const char *steps = ",{";
        const uint8_t *at = p + 1;
        for (; at < end && *steps != '\0'; at++) {
            if (*at == (uint8_t)*steps) {
                steps++;
            } else if (*at != ' ' && *at != '\n' && *at != '\r' && *at != '\t') {
                break;
            }
        }
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
            at++;
        }
        for (size_t i = 0; *steps == '\0' && i < LAC_COUNT_OF(keys); i++) {
            const size_t length = strlen(keys[i]);
            if ((size_t)(end - at) >= length && memcmp(at, keys[i], length) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The event at the window's start is not JSON: repair its quotes, or skip it. */
static enum lac_status mend(struct lac_chrome_document *document, const uint8_t **ret_next)
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
        if (again && status == LAC_OK) {
            status = lac_document_more(document);
        }
    }
    document->resync_bytes += size == 0 ? (uint64_t)(after - window->at) : 0;
    if (status != LAC_OK || size == 0) {
        return status;
    }
    enum lac_parse parse = chrome->parser->parse_event(
        &chrome->scratch, chrome->rewritten, chrome->rewritten + size, &chrome->raw, &next);
    if (parse == LAC_PARSE_NOMEM) {
        return lac_chrome_no_memory(chrome);
    }
    if (parse == LAC_PARSE_OK && chrome->raw.phase && !holds_two_events(window->at, after)) {
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "unescaped_quote", 1,
                        "Events with unescaped quotes inside strings were repaired.");
        *ret_next = after;
    }
    return LAC_OK;
}

/* One event; the window is at its '{'. At the end of the input an unfinished event is dropped. */
static enum lac_status read_event(struct lac_chrome_document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    const uint8_t *next = NULL;
    enum lac_status status = LAC_OK;
    chrome->event_offset = lac_document_here(document);
    enum lac_parse parse =
        chrome->parser->parse_event(&chrome->scratch, window->at, window->end, &chrome->raw, &next);
    while (parse == LAC_PARSE_MORE && !window->ended) {
        status = lac_document_more(document);
        if (status != LAC_OK) {
            return status;
        }
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
        if (status != LAC_OK || next == NULL) {
            return status != LAC_OK ? status : resync(document);
        }
        break;
    case LAC_PARSE_DEPTH:
        return lac_document_fail_depth(document);
    case LAC_PARSE_NOMEM:
    default:
        return lac_chrome_no_memory(chrome);
    }
    if ((size_t)(next - window->at) > chrome->limits->event_bytes_max) {
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "an event of %zu bytes at byte %" PRIu64 " (limit event_bytes_max is %u)",
                        (size_t)(next - window->at), chrome->event_offset,
                        chrome->limits->event_bytes_max);
    }
    status = lac_chrome_event(chrome);
    if (any_repair(&chrome->raw.repairs)) {
        lac_document_note_repairs(document, &chrome->raw.repairs);
    }
    if (chrome->raw.unknown_members) {
        lac_chrome_note(chrome, LAC_REPORT_INFO, "event_member_not_kept",
                        chrome->raw.unknown_members,
                        "Members of events themselves (not of args) that have no place here.");
    }
    window->at = next;
    return status;
}

/* The array of events; the window is at its '['. */
enum lac_status lac_document_read_events(struct lac_chrome_document *document)
{
    struct lac_chrome *chrome = &document->chrome;
    struct lac_json_window *window = &document->window;
    bool after_comma = false, after_event = false;
    document->has_events = true;
    window->at++;
    for (;;) {
        uint8_t byte = 0;
        enum lac_status status = lac_document_next(document, &byte);
        if (status != LAC_OK) {
            return status;
        }
        if (byte == '{') {
            if (after_event && !document->resynced) {
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "missing_comma", 1,
                                "Missing commas between events were added.");
            }
            document->resynced = false;
            status = read_event(document);
            after_event = true;
            after_comma = false;
        } else if (byte == ',') {
            if (!after_event) {
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "extra_comma", 1,
                                "Commas without an event between them were ignored.");
            }
            window->at++;
            after_event = false;
            after_comma = true;
        } else if (byte == ']') {
            if (after_comma) {
                lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "trailing_comma", 1,
                                "Commas before a closing bracket were ignored.");
            }
            window->at++;
            return LAC_OK;
        } else if (lac_document_at_end(document)) {
            document->truncated = true;
            return LAC_OK;
        } else if (byte == '}') {
            chrome->event_offset = lac_document_here(document);
            lac_chrome_note(chrome, LAC_REPORT_INFO, "stray_bytes", 1,
                            "Bytes that are not part of the trace were ignored.");
            window->at++;
        } else {
            chrome->event_offset = lac_document_here(document);
            lac_chrome_note(chrome, LAC_REPORT_DROPPED, "event_not_an_object", 1,
                            "Entries of traceEvents that are not objects were dropped.");
            status = lac_document_skip(document);
            after_event = true;
            after_comma = false;
        }
        if (status != LAC_OK) {
            return status;
        }
    }
}
