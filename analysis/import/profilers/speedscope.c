/*
 * speedscope's file format: shared frames, and profiles of two kinds. "sampled" says for each stack
 * how much weight it has: in order, but not when (py-spy leaves out what is idle). "evented" opens
 * and closes frames at times: a timeline. Beside sampled profiles, or where the unit is no time,
 * what lies between two events is weight of the stack that is open.
 *
 * Source: https://www.speedscope.app/file-format-schema.json
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 4096 };

/* Weights of fractions keep so many digits behind the point. */
enum { DIGITS = 6 };

/* Times beyond are none: 146 years. */
#define TIME_MOST_NS ((int64_t)1 << 62)

bool lac_speedscope_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const size_t size = size_bytes < HEAD_BYTES ? size_bytes : HEAD_BYTES;
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", head[at]) != NULL && head[at] != '\0') {
        at++;
    }
    return at < size && head[at] == '{' &&
           (lac_document_has(head, size, "speedscope.app/file-format-schema") ||
            lac_document_has(head, size, "\"speedscope@"));
}

/** What a unit of time is in ns, and what weights count. */
struct unit {
    const char *name;
    double ns;        /**< 0: not a time */
    const char *says; /**< NULL: ns */
};

static const struct unit *unit_of(const struct lac_plain *profile)
{
    static const struct unit units[] = {{"seconds", 1e9, NULL},      {"milliseconds", 1e6, NULL},
                                        {"microseconds", 1e3, NULL}, {"nanoseconds", 1.0, NULL},
                                        {"bytes", 0.0, "bytes"},     {"none", 0.0, "samples"}};
    const struct lac_plain *unit = lac_plain_get(profile, "unit");
    for (size_t i = 0; i < LAC_COUNT_OF(units); i++) {
        if (lac_plain_equals(unit, units[i].name)) {
            return &units[i];
        }
    }
    return &units[5];
}

struct reader {
    struct lac_profile_file document;
    uint32_t *frames; /**< string ids */
    uint32_t frame_count;
    const struct unit *unit; /**< of all profiles that are read */
    bool is_timeline;        /**< all of them are events with times */
};

/* -- frames ------------------------------------------------------------------------------------ */

static enum lac_status read_frames(struct reader *reader)
{
    const struct lac_plain *shared = lac_plain_get(reader->document.root, "shared");
    const struct lac_plain *frames = lac_plain_get(shared, "frames");
    enum lac_status status = LAC_OK;
    if (!lac_plain_is(frames, LAC_PLAIN_LIST)) {
        return lac_fail(reader->document.profile.reterr, LAC_ERR_CORRUPT, 0,
                        "no frames in this speedscope profile");
    }
    reader->frames = calloc((size_t)frames->count + 1, sizeof(*reader->frames));
    if (reader->frames == NULL) {
        return lac_profile_failed(&reader->document.profile, LAC_ERR_NOMEM);
    }
    for (; reader->frame_count < frames->count && status == LAC_OK; reader->frame_count++) {
        const struct lac_plain *frame = frames->items[reader->frame_count];
        int64_t line = 0;
        if (!lac_plain_integer(lac_plain_get(frame, "line"), &line)) {
            line = 0;
        }
        status = lac_document_frame(&reader->document, lac_plain_get(frame, "name"),
                                    lac_plain_get(frame, "file"), line,
                                    &reader->frames[reader->frame_count]);
    }
    return lac_profile_failed(&reader->document.profile, status);
}

/* The name of the frame that a number stands for. */
static bool frame_of(const struct reader *reader, const struct lac_plain *number,
                     uint32_t *ret_name)
{
    int64_t index = -1;
    if (!lac_plain_integer(number, &index) || index < 0 || index >= reader->frame_count) {
        return false;
    }
    *ret_name = reader->frames[index];
    return true;
}

/* -- weights ----------------------------------------------------------------------------------- */

static enum lac_status weigh(struct reader *reader, uint32_t stack, double weight)
{
    const double scaled = reader->unit->ns > 0.0 ? weight * reader->unit->ns : weight;
    const double fraction = scaled - floor(scaled);
    enum lac_status status = LAC_OK;
    if (!(scaled >= 0.0) || scaled > 9e15) {
        lac_document_drop(&reader->document, "weight_not_understood",
                          "weights that are negative or beyond 2^53");
    } else if (reader->unit->ns > 0.0 || fraction == 0.0 || scaled > 1e9) {
        status =
            lac_stacks_weigh(reader->document.profile.stacks, stack, (int64_t)llround(scaled), 0);
    } else {
        status = lac_stacks_weigh(reader->document.profile.stacks, stack,
                                  (int64_t)llround(scaled * 1e6), DIGITS);
    }
    return lac_profile_failed(&reader->document.profile, status);
}

static enum lac_status read_sampled(struct reader *reader, const struct lac_plain *profile,
                                    uint32_t bottom)
{
    const struct lac_plain *samples = lac_plain_get(profile, "samples");
    const struct lac_plain *weights = lac_plain_get(profile, "weights");
    const uint32_t count = lac_plain_is(samples, LAC_PLAIN_LIST) ? samples->count : 0;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const struct lac_plain *sample = samples->items[i];
        const uint32_t depth = lac_plain_is(sample, LAC_PLAIN_LIST) ? sample->count : 0;
        uint32_t stack = bottom;
        double weight = 1.0;
        bool is_known = true;
        reader->document.profile.model->info.event_count++;
        for (uint32_t f = 0; f < depth && is_known && status == LAC_OK; f++) {
            uint32_t name = 0;
            is_known = frame_of(reader, sample->items[f], &name);
            status = is_known
                         ? lac_stacks_push(reader->document.profile.stacks, stack, name, &stack)
                         : LAC_OK;
        }
        if (status != LAC_OK) {
            return lac_profile_failed(&reader->document.profile, status);
        }
        if (!is_known) {
            lac_document_drop(&reader->document, "frame_not_there",
                              "samples with frames that are not in the file");
        } else if (depth > 0 && (!lac_plain_is(weights, LAC_PLAIN_LIST) ||
                                 lac_plain_number(lac_plain_at(weights, i), &weight))) {
            status = weigh(reader, stack, weight);
        }
    }
    return status;
}

static void drop_event(const struct reader *reader)
{
    lac_document_drop(&reader->document, "event_not_understood",
                      "events that close a frame which is not the innermost, or that are none");
}

/** Frames that are open, the innermost last. */
struct open_frames {
    uint32_t name[LAC_STACK_FRAMES_MAX];
    uint32_t stack[LAC_STACK_FRAMES_MAX];
    uint32_t depth;
};

static enum lac_status take_event(struct reader *reader, struct open_frames *open,
                                  const struct lac_plain *type, uint32_t name, uint32_t bottom)
{
    const uint32_t below = open->depth > 0 ? open->stack[open->depth - 1] : bottom;
    if (lac_plain_equals(type, "O") && open->depth < LAC_STACK_FRAMES_MAX) {
        const enum lac_status status = lac_stacks_push(reader->document.profile.stacks, below, name,
                                                       &open->stack[open->depth]);
        open->name[open->depth] = name;
        open->depth += status == LAC_OK;
        return lac_profile_failed(&reader->document.profile, status);
    }
    if (lac_plain_equals(type, "C") && open->depth > 0 && open->name[open->depth - 1] == name) {
        open->depth--;
    } else {
        drop_event(reader);
    }
    return LAC_OK;
}

static enum lac_status read_evented(struct reader *reader, const struct lac_plain *profile,
                                    uint32_t bottom, struct open_frames *open)
{
    const struct lac_plain *events = lac_plain_get(profile, "events");
    const uint32_t count = lac_plain_is(events, LAC_PLAIN_LIST) ? events->count : 0;
    enum lac_status status = LAC_OK;
    double last = (double)NAN;
    open->depth = 0;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const struct lac_plain *event = events->items[i];
        double at = 0.0;
        uint32_t name = 0;
        reader->document.profile.model->info.event_count++;
        if (!lac_plain_number(lac_plain_get(event, "at"), &at) ||
            !frame_of(reader, lac_plain_get(event, "frame"), &name)) {
            drop_event(reader);
            continue;
        }
        if (open->depth > 0 && at > last) {
            status = weigh(reader, open->stack[open->depth - 1], at - last);
        }
        last = at;
        if (status == LAC_OK) {
            status = take_event(reader, open, lac_plain_get(event, "type"), name, bottom);
        }
    }
    return status;
}

/* -- calls with their times -------------------------------------------------------------------- */

/** A call, in the order of their beginnings. */
struct call {
    int64_t start_ns;
    int64_t end_ns; /**< INT64_MAX: open */
    uint32_t stack;
};

struct calls {
    struct call *items;
    uint64_t count;
    uint64_t capacity;
    uint64_t open[LAC_STACK_FRAMES_MAX]; /**< the same depth as that of the open frames */
};

/* Whole nanoseconds stay exact: epochs do not fit a double. */
static bool time_of(const struct reader *reader, const struct lac_plain *value, int64_t *ret_ns)
{
    double at = 0.0;
    if (lac_plain_is(value, LAC_PLAIN_INT) &&
        !__builtin_mul_overflow(value->integer, (int64_t)reader->unit->ns, ret_ns)) {
        return *ret_ns > -TIME_MOST_NS && *ret_ns < TIME_MOST_NS;
    }
    if (!lac_plain_number(value, &at) || !(fabs(at * reader->unit->ns) < (double)TIME_MOST_NS)) {
        return false;
    }
    *ret_ns = (int64_t)llround(at * reader->unit->ns);
    return true;
}

static enum lac_status take_call(struct reader *reader, struct open_frames *open,
                                 struct calls *calls, const struct lac_plain *event,
                                 uint32_t bottom, int64_t at_ns)
{
    const uint32_t before = open->depth;
    uint32_t name = 0;
    if (!frame_of(reader, lac_plain_get(event, "frame"), &name)) {
        drop_event(reader);
        return LAC_OK;
    }
    if (!LAC_RESERVE(calls->items, calls->capacity, calls->count, 1)) {
        return lac_profile_failed(&reader->document.profile, LAC_ERR_NOMEM);
    }
    const enum lac_status status =
        take_event(reader, open, lac_plain_get(event, "type"), name, bottom);
    if (open->depth > before) {
        calls->open[before] = calls->count;
        calls->items[calls->count++] =
            (struct call){.start_ns = at_ns, .end_ns = INT64_MAX, .stack = open->stack[before]};
    } else if (open->depth < before) {
        calls->items[calls->open[open->depth]].end_ns = at_ns;
    }
    return status;
}

/* What is open at the end lasts until then, and is counted. */
static enum lac_status give_calls(struct reader *reader, const struct calls *calls, int64_t end_ns)
{
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0; i < calls->count && status == LAC_OK; i++) {
        const struct call *call = &calls->items[i];
        if (call->end_ns == INT64_MAX) {
            lac_model_report(reader->document.profile.model, LAC_REPORT_REPAIRED, "call_not_closed",
                             1, 0, "frames that no event closes last to the end of their profile");
        }
        status =
            lac_stacks_call(reader->document.profile.stacks, call->stack, call->start_ns,
                            (call->end_ns == INT64_MAX ? end_ns : call->end_ns) - call->start_ns);
    }
    return lac_profile_failed(&reader->document.profile, status);
}

static enum lac_status read_timeline(struct reader *reader, const struct lac_plain *profile,
                                     uint32_t bottom, struct open_frames *open)
{
    const struct lac_plain *events = lac_plain_get(profile, "events");
    const uint32_t count = lac_plain_is(events, LAC_PLAIN_LIST) ? events->count : 0;
    struct calls calls = {.count = 0};
    int64_t last_ns = INT64_MIN;
    int64_t end_ns = 0;
    enum lac_status status = LAC_OK;
    open->depth = 0;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        int64_t at_ns = 0;
        reader->document.profile.model->info.event_count++;
        if (!time_of(reader, lac_plain_get(events->items[i], "at"), &at_ns)) {
            drop_event(reader);
            continue;
        }
        if (at_ns < last_ns) {
            lac_model_report(reader->document.profile.model, LAC_REPORT_REPAIRED, "time_backward",
                             1, 0, "events before the one that they follow take its time");
            at_ns = last_ns;
        }
        last_ns = at_ns;
        status = take_call(reader, open, &calls, events->items[i], bottom, at_ns);
    }
    if (status == LAC_OK && calls.count > 0) {
        const bool has_end = time_of(reader, lac_plain_get(profile, "endValue"), &end_ns);
        status = give_calls(reader, &calls, has_end && end_ns > last_ns ? end_ns : last_ns);
    }
    free(calls.items);
    return status;
}

/* -- the document ------------------------------------------------------------------------------ */

static enum lac_status read_profile(struct reader *reader, const struct lac_plain *profile,
                                    uint32_t index, struct open_frames *open)
{
    const struct lac_plain *name = lac_plain_get(profile, "name");
    const struct unit *const unit = unit_of(profile);
    const bool is_sampled = lac_plain_equals(lac_plain_get(profile, "type"), "sampled");
    uint32_t thread_name = 0;
    uint32_t bottom = 0;
    enum lac_status status = LAC_OK;
    if (reader->unit == NULL) {
        reader->unit = unit;
    }
    if ((reader->unit->ns > 0.0) != (unit->ns > 0.0) || (unit->ns == 0.0 && unit != reader->unit)) {
        lac_document_drop(&reader->document, "unit_differs",
                          "profiles whose unit is not that of the first: a flame graph has one");
        return LAC_OK;
    }
    if (lac_plain_is(name, LAC_PLAIN_TEXT)) {
        status =
            lac_stacks_name(reader->document.profile.stacks, name->text, name->count, &thread_name);
    }
    if (status == LAC_OK) {
        status = lac_stacks_numbered_thread(reader->document.profile.stacks, 0, index, index,
                                            thread_name, &bottom);
    }
    if (status != LAC_OK) {
        return lac_profile_failed(&reader->document.profile, status);
    }
    const struct unit *const shared = reader->unit;
    reader->unit = unit; /* seconds beside milliseconds are fine */
    status = is_sampled            ? read_sampled(reader, profile, bottom)
             : reader->is_timeline ? read_timeline(reader, profile, bottom, open)
                                   : read_evented(reader, profile, bottom, open);
    reader->unit = shared;
    return status;
}

/* Samples say how much and not when: one sampled profile, and all are a flame graph. */
static bool is_timeline(const struct lac_plain *profiles)
{
    const uint32_t count = lac_plain_is(profiles, LAC_PLAIN_LIST) ? profiles->count : 0;
    bool is_it = count > 0;
    for (uint32_t i = 0; i < count && is_it; i++) {
        is_it = lac_plain_equals(lac_plain_get(profiles->items[i], "type"), "evented") &&
                unit_of(profiles->items[i])->ns > 0.0;
    }
    return is_it;
}

static enum lac_status read_document(struct reader *reader)
{
    const struct lac_plain *profiles = lac_plain_get(reader->document.root, "profiles");
    const uint32_t count = lac_plain_is(profiles, LAC_PLAIN_LIST) ? profiles->count : 0;
    struct open_frames *open = malloc(sizeof(*open));
    enum lac_status status = open != NULL
                                 ? read_frames(reader)
                                 : lac_profile_failed(&reader->document.profile, LAC_ERR_NOMEM);
    reader->is_timeline = is_timeline(profiles);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = read_profile(reader, profiles->items[i], i, open);
    }
    free(open);
    return status;
}

enum lac_status lac_speedscope_import(struct lac_source *source,
                                      const struct lac_import_options *options, size_t window_bytes,
                                      const char *name, struct lac_model **ret_model,
                                      struct lac_error *reterr)
{
    struct reader reader = {.unit = NULL};
    enum lac_status status = lac_document_open(&reader.document, source, options, window_bytes,
                                               name, LAC_DOCUMENT_JSON, reterr);
    if (status == LAC_OK) {
        status = lac_document_begin(&reader.document, LAC_FORMAT_SPEEDSCOPE);
        status = status == LAC_OK ? read_document(&reader) : status;
        status = lac_document_end(&reader.document, status, "speedscope profile",
                                  reader.unit != NULL ? reader.unit->says : NULL, ret_model);
    }
    free(reader.frames);
    lac_document_close(&reader.document);
    return status;
}
