#include "analysis/import/spool/spool_events.h"

#include "analysis/import/spool/spool_devices.h"
#include "analysis/import/spool/spool_external.h"
#include "analysis/import/spool/spool_members.h"
#include "analysis/import/spool/spool_metrics.h"
#include "analysis/import/spool/spool_names.h"
#include "analysis/import/spool/spool_payload.h"
#include "analysis/import/spool/spool_schema.h"
#include "analysis/import/spool/spool_stacks.h"
#include "analysis/import/spool/spool_sync.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "collector/base/utf8.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_RANGES_MAX = 4096, SYNCS_MAX = 512 };

struct open_range {
    int64_t start_ns;
    uint32_t name;
    uint16_t domain;
    int64_t batch;
    int64_t cpu_ns;
    int32_t worker;
    bool is_loader;
    bool has_payload;
    uint8_t payload_type;
    uint64_t payload;
    uint32_t category;
    uint32_t color;
    struct lac_spool_members *members; /* owned until the range is put */
    uint16_t before, after;            /* in the order of their pushes: places from 1, 0 none */
    uint16_t below; /* the one before it of its domain; of a free place the next free one */
};

struct lac_spool_range {
    uint64_t id; /* 0: free slot */
    struct open_range open;
    int64_t end_ns;
    bool has_start;
    bool has_end;
};

struct lac_spool_thread {
    struct lac_spool_process *process;
    uint32_t track; /* LAC_NONE until it is needed: who samples stacks has no row */
    uint32_t name;
    bool has_stacks;
    uint32_t marks_track;   /* LAC_NONE until the first mark */
    struct open_range mark; /* the last one, until the event after it */
    bool has_mark;
    uint64_t last_start;        /* id of the START or END that extra events may follow; 0 none */
    struct lac_spool_data data; /* the payload that is being read */
    uint32_t id_text;
    int32_t tid;
    int64_t last_ns;
    int64_t clock_ns; /* of the last push or pop: as read, and as it is shown */
    int64_t shown_ns;
    struct open_range *open; /* from place 1 on a list: a pop of any domain is one step */
    uint32_t open_capacity;
    uint32_t open_count;
    uint16_t open_used; /* places that were ever taken */
    uint16_t open_free; /* the first free one of these, 0 none */
    uint16_t open_top;
    uint16_t *top_of_domain; /* top_in() */
    uint32_t domain_capacity;
    /* of the segment being read: where both clocks are known, ascending */
    struct lac_sync_point syncs[SYNCS_MAX];
    size_t sync_count;
    size_t sync_at; /* the interval the last event was in */
};

enum lac_status lac_spool_intern(struct lac_strings *strings, const char *text, size_t length,
                                 uint32_t *ret_id)
{
    char fixed[4096 * 3];

    return lac_strings_intern(strings, fixed,
                              lac_utf8_repair(text, length, fixed, sizeof(fixed), NULL), ret_id);
}

static struct lac_strings *strings_of(const struct lac_spool_process *process)
{
    return &lac_builder_model(process->builder)->strings;
}

enum lac_status lac_spool_process_open(struct lac_spool_process *process, int32_t pid,
                                       const char *comm, const char *argv)
{
    char text[32];
    uint32_t id_text;
    uint32_t name;
    uint32_t labels;
    const int length = snprintf(text, sizeof(text), "%" PRId32, pid);
    enum lac_status status =
        lac_strings_intern(strings_of(process), text, (size_t)length, &id_text);

    if (status == LAC_OK) {
        status = lac_spool_intern(strings_of(process), comm, strnlen(comm, 64), &name);
    }
    if (status == LAC_OK) {
        status = lac_spool_intern(strings_of(process), argv, strnlen(argv, 1024), &labels);
    }
    if (status == LAC_OK) {
        status = lac_builder_process(process->builder, id_text, pid, &process->process);
    }
    if (status == LAC_OK) {
        struct lac_process *const entry =
            lac_builder_process_at(process->builder, process->process);

        entry->name = name;
        entry->labels = labels;
    }
    return status;
}

uint32_t lac_spool_name_of(struct lac_spool_process *process, uint32_t id)
{
    if (id >= process->string_count || (id != 0 && process->string_of_id[id] == 0)) {
        process->missing_names++;
        return 0;
    }
    return id == 0 ? 0 : process->string_of_id[id];
}

enum lac_status lac_spool_thread_open(struct lac_spool_process *process, int32_t tid,
                                      const char *name, uint32_t name_id_of_spool,
                                      struct lac_spool_thread **ret_thread)
{
    struct lac_spool_thread *const thread = calloc(1, sizeof(*thread));
    char text[32];
    const int length = snprintf(text, sizeof(text), "%" PRId32, tid);
    enum lac_status status;

    if (thread == NULL) {
        return LAC_ERR_NOMEM;
    }
    thread->process = process;
    thread->tid = tid;
    thread->track = LAC_NONE;
    thread->marks_track = LAC_NONE;
    thread->shown_ns = INT64_MIN;
    status = lac_strings_intern(strings_of(process), text, (size_t)length, &thread->id_text);
    if (status == LAC_OK) {
        status = lac_spool_intern(strings_of(process), name, strnlen(name, 16), &thread->name);
    }
    if (name[0] == '\0') {
        thread->name = lac_spool_name_of(process, name_id_of_spool);
    }
    if (status != LAC_OK) {
        free(thread);
        return status;
    }
    *ret_thread = thread;
    return LAC_OK;
}

static enum lac_status need_track(struct lac_spool_thread *thread)
{
    struct lac_builder *const builder = thread->process->builder;
    enum lac_status status = LAC_OK;

    if (thread->track == LAC_NONE) {
        status = lac_builder_track(builder, LAC_TRACK_THREAD, thread->process->process,
                                   thread->id_text, thread->tid, &thread->track);
        if (status == LAC_OK) {
            lac_builder_track_at(builder, thread->track)->name = thread->name;
        }
    }
    return status;
}

/* Whether a thread that records nothing else has no row for it. */
static bool is_without_row(uint8_t type)
{
    return type == LAC_EVENT_STACK_FRAME || type == LAC_EVENT_STACK_SAMPLE ||
           type == LAC_EVENT_SETTING || type == LAC_EVENT_SYNC || type == LAC_EVENT_SYNC_NS ||
           type == LAC_EVENT_DROPPED || type == LAC_EVENT_THREAD;
}

void lac_spool_thread_destroy(struct lac_spool_thread *thread)
{
    for (uint16_t at = thread != NULL ? thread->open_top : 0; at != 0;
         at = thread->open[at].before) {
        lac_spool_members_destroy(thread->open[at].members);
    }
    if (thread != NULL) {
        lac_spool_members_destroy(thread->mark.members);
        free(thread->open);
        free(thread->top_of_domain);
    }
    free(thread);
}

/* ---- time */

static void add_sync(struct lac_spool_thread *thread, struct lac_sync_point sync)
{
    const struct lac_sync_point *const last =
        thread->sync_count > 0 ? &thread->syncs[thread->sync_count - 1] : NULL;

    /* hostile or torn ones must not make time run backwards */
    if ((last == NULL || (sync.ticks > last->ticks && sync.monotonic_ns >= last->monotonic_ns))) {
        if (thread->sync_count == SYNCS_MAX) { /* every other one of a thread that says little */
            for (size_t i = 1; 2 * i < SYNCS_MAX; i++) {
                thread->syncs[i] = thread->syncs[2 * i];
            }
            thread->sync_count = SYNCS_MAX / 2;
        }
        thread->syncs[thread->sync_count++] = sync;
    }
}

static void collect_syncs(struct lac_spool_thread *thread, const struct lac_event *events,
                          size_t count, const struct lac_sync_point *sync,
                          const struct lac_sync_point *next)
{
    thread->sync_count = 0;
    thread->sync_at = 0;
    add_sync(thread, *sync);
    for (size_t i = 0; i + 1 < count && events[i].type != 0; i++) {
        if (events[i].type == LAC_EVENT_SYNC && events[i + 1].type == LAC_EVENT_SYNC_NS) {
            add_sync(thread, (struct lac_sync_point){.ticks = events[i].ts,
                                                     .monotonic_ns = events[i + 1].ts});
        }
    }
    if (next != NULL) {
        add_sync(thread, *next);
    }
}

static int64_t clamp_ns(double ns)
{
    const double end_ns = (double)LAC_SPOOL_NS_END;

    return (int64_t)(ns > end_ns ? end_ns : ns < -end_ns ? -end_ns : ns);
}

static int64_t unbounded_ns(struct lac_spool_thread *thread, uint64_t ticks)
{
    const struct lac_spool_process *const process = thread->process;
    const struct lac_sync_point *from;
    double rate = process->ns_per_tick;

    if (process->ticks_are_ns) {
        return lac_spool_ns(ticks) + process->offset_ns;
    }
    while (thread->sync_at + 1 < thread->sync_count &&
           ticks >= thread->syncs[thread->sync_at + 1].ticks) {
        thread->sync_at++;
    }
    from = &thread->syncs[thread->sync_at];
    if (thread->sync_at + 1 < thread->sync_count) {
        rate = (double)(from[1].monotonic_ns - from->monotonic_ns) /
               (double)(from[1].ticks - from->ticks);
    } else if (thread->sync_count > 1) {
        rate = (double)(from->monotonic_ns - from[-1].monotonic_ns) /
               (double)(from->ticks - from[-1].ticks);
    }
    return clamp_ns((double)(int64_t)(ticks - from->ticks) * rate) +
           lac_spool_ns(from->monotonic_ns) + process->offset_ns;
}

/* A beginning whose time cannot be still has an end: it is put at the nearer end of the recording,
 * which no event stretches. */
static int64_t ns_of(struct lac_spool_thread *thread, uint64_t ticks)
{
    struct lac_spool_process *const process = thread->process;
    const int64_t ns = unbounded_ns(thread, ticks);

    process->moved += !lac_spool_is_inside(process, ns);
    return ns < process->begin_ns ? process->begin_ns : ns > process->end_ns ? process->end_ns : ns;
}

/* ---- ranges by id */

static size_t slot_of(const struct lac_spool_process *process, uint64_t id, size_t slots)
{
    return (size_t)lac_hash_bytes(&id, sizeof(id), strings_of(process)->seed) & (slots - 1);
}

static struct lac_spool_range *find_range(struct lac_spool_process *process, uint64_t id)
{
    size_t at;

    if ((process->range_count + 1) * 2 > process->range_slots) {
        const size_t bigger = process->range_slots == 0 ? 256 : process->range_slots * 2;
        struct lac_spool_range *const fresh = calloc(bigger, sizeof(*fresh));

        if (fresh == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < process->range_slots; i++) {
            if (process->ranges[i].id != 0) {
                at = slot_of(process, process->ranges[i].id, bigger);
                while (fresh[at].id != 0) {
                    at = (at + 1) & (bigger - 1);
                }
                fresh[at] = process->ranges[i];
            }
        }
        free(process->ranges);
        process->ranges = fresh;
        process->range_slots = bigger;
    }
    at = slot_of(process, id, process->range_slots);
    while (process->ranges[at].id != 0 && process->ranges[at].id != id) {
        at = (at + 1) & (process->range_slots - 1);
    }
    if (process->ranges[at].id == 0) {
        process->ranges[at].id = id;
        process->range_count++;
    }
    return &process->ranges[at];
}

/* The domain, category, color and payload of a range as its arguments. */
static enum lac_status set_args(struct lac_spool_process *process, const struct open_range *range,
                                struct lac_slice_in *slice)
{
    /* the payload of a number and one with a schema exclude each other */
    struct lac_spool_extras extras = {
        .domain = range->domain,
        .category = range->category,
        .color = range->color,
        .payload_type = range->has_payload && range->members == NULL ? range->payload_type : 0,
        .payload = range->payload,
        .members = range->members};

    return (extras.domain | extras.category | extras.color) == 0 && extras.payload_type == 0 &&
                   extras.members == NULL
               ? LAC_OK
               : lac_spool_extras_store(process, &extras, slice);
}

static void free_members(struct open_range *range)
{
    lac_spool_members_destroy(range->members);
    range->members = NULL;
}

static enum lac_status put_range(struct lac_spool_process *process, uint32_t track,
                                 struct open_range *range, int64_t end_ns)
{
    enum lac_status status;
    struct lac_slice_in slice = {.start_ns = range->start_ns,
                                 .dur_ns = end_ns > range->start_ns ? end_ns - range->start_ns : 0,
                                 .track = track,
                                 .name = range->name,
                                 .detail = LAC_NONE,
                                 .kind = LAC_SLICE_RANGE};

    lac_builder_model(process->builder)->info.slice_count++;
    status = set_args(process, range, &slice);
    free_members(range);
    if (status != LAC_OK) {
        return status;
    }
    if (range->is_loader) {
        /* the CPU clock is read around the range: its first steps must not make it compute for
         * longer than it took */
        const struct lac_loader_info info = {.batch = range->batch,
                                             .cpu_ns = range->cpu_ns < slice.dur_ns ? range->cpu_ns
                                                                                    : slice.dur_ns,
                                             .worker = range->worker};

        status = lac_builder_loader_info(process->builder, &info, &slice.detail);
        if (status != LAC_OK) {
            return status;
        }
    }
    return lac_builder_slice(process->builder, &slice);
}

/* START/END ranges need not nest and may end elsewhere: they get a row of their own. */
static enum lac_status put_async(struct lac_spool_process *process, struct lac_spool_range *range)
{
    uint32_t id_text;
    uint32_t track;
    enum lac_status status =
        lac_strings_intern(strings_of(process), "ranges", strlen("ranges"), &id_text);

    if (status == LAC_OK) {
        status = lac_builder_track(process->builder, LAC_TRACK_ASYNC, process->process, id_text, -1,
                                   &track);
    }
    return status != LAC_OK ? status : put_range(process, track, &range->open, range->end_ns);
}

/* ---- ranges that are open on a thread */

static struct open_range *top_of(struct lac_spool_thread *thread)
{
    return thread->open_top != 0 ? &thread->open[thread->open_top] : NULL;
}

/* The place of the last range of that domain, 0: none is open. */
static uint16_t top_in(const struct lac_spool_thread *thread, uint16_t domain)
{
    return domain < thread->domain_capacity ? thread->top_of_domain[domain] : 0;
}

static enum lac_status make_room(struct lac_spool_thread *thread, uint16_t domain)
{
    const uint32_t before = thread->domain_capacity;
    enum lac_status status =
        LAC_GROW(thread->open, &thread->open_capacity, (uint64_t)thread->open_used + 2);

    if (status == LAC_OK) {
        status = LAC_GROW(thread->top_of_domain, &thread->domain_capacity, (uint64_t)domain + 1);
    }
    if (thread->domain_capacity > before) {
        memset(thread->top_of_domain + before, 0,
               (size_t)(thread->domain_capacity - before) * sizeof(*thread->top_of_domain));
    }
    return status;
}

/* Put `range` on top of those that are open, of which there are fewer than OPEN_RANGES_MAX. */
static enum lac_status put_in(struct lac_spool_thread *thread, const struct open_range *range)
{
    const enum lac_status status = make_room(thread, range->domain);
    uint16_t at = thread->open_free;

    if (status != LAC_OK) {
        return status;
    }
    if (at != 0) {
        thread->open_free = thread->open[at].below;
    } else {
        at = ++thread->open_used;
    }
    thread->open[at] = *range;
    thread->open[at].before = thread->open_top;
    thread->open[at].after = 0;
    thread->open[at].below = thread->top_of_domain[range->domain];
    if (thread->open_top != 0) {
        thread->open[thread->open_top].after = at;
    }
    thread->open_top = at;
    thread->top_of_domain[range->domain] = at;
    thread->open_count++;
    return LAC_OK;
}

/* Take out the last one of its domain. */
static void take_out(struct lac_spool_thread *thread, uint16_t at)
{
    struct open_range *const range = &thread->open[at];

    if (range->before != 0) {
        thread->open[range->before].after = range->after;
    }
    if (range->after != 0) {
        thread->open[range->after].before = range->before;
    } else {
        thread->open_top = range->before;
    }
    thread->top_of_domain[range->domain] = range->below;
    range->below = thread->open_free;
    thread->open_free = at;
    thread->open_count--;
}

/* ---- one event */

static enum lac_status on_pop(struct lac_spool_thread *thread, const struct lac_event *event,
                              int64_t now_ns)
{
    const uint16_t at = top_in(thread, event->domain);
    enum lac_status status;

    if (at == 0) {
        thread->process->unmatched_pops++;
        return LAC_OK;
    }
    status = put_range(thread->process, thread->track, &thread->open[at], now_ns);
    take_out(thread, at);
    return status;
}

/* A mark waits for the events that belong to it. */
static enum lac_status put_mark(struct lac_spool_thread *thread)
{
    struct lac_spool_process *const process = thread->process;
    struct lac_slice_in slice = {.start_ns = thread->mark.start_ns,
                                 .name = thread->mark.name,
                                 .detail = LAC_NONE,
                                 .kind = LAC_SLICE_INSTANT};

    enum lac_status status;

    thread->has_mark = false;
    if (thread->marks_track == LAC_NONE) {
        status = lac_builder_track(process->builder, LAC_TRACK_MARKS, process->process,
                                   thread->id_text, thread->tid, &thread->marks_track);
        if (status != LAC_OK) {
            free_members(&thread->mark);
            return status;
        }
    }
    slice.track = thread->marks_track;
    status = set_args(process, &thread->mark, &slice);
    free_members(&thread->mark);
    return status == LAC_OK ? lac_builder_slice(process->builder, &slice) : status;
}

/* What the payload or style that follows an event belongs to, or NULL. */
static struct open_range *owner_of_extras(struct lac_spool_thread *thread)
{
    if (thread->has_mark) {
        return &thread->mark;
    }
    if (thread->last_start != 0) {
        struct lac_spool_range *const range = find_range(thread->process, thread->last_start);

        return range != NULL ? &range->open : NULL;
    }
    return top_of(thread);
}

static enum lac_status on_setting(struct lac_spool_process *process, uint32_t text)
{
    bool is_device = false;
    const enum lac_status status =
        lac_spool_device_setting(process, lac_strings_get(strings_of(process), text), &is_device);

    if (!is_device) {
        lac_spool_settings_add(process->settings, strings_of(process), text);
    }
    return status;
}

static void on_extra(struct lac_spool_thread *thread, const struct lac_event *event)
{
    struct open_range *const range = owner_of_extras(thread);

    if (range == NULL) {
        return;
    }
    if (event->type == LAC_EVENT_STYLE) {
        range->color = (uint32_t)(event->ts >> 32);
        range->category = (uint32_t)event->ts;
    } else {
        range->has_payload =
            event->flags >= LAC_PAYLOAD_UINT64 && event->flags <= LAC_PAYLOAD_FLOAT;
        range->payload_type = event->flags;
        range->payload = event->ts;
    }
}

/* What the payload that was read belongs to, or NULL. */
static struct open_range *owner_of_data(struct lac_spool_thread *thread)
{
    struct lac_spool_range *range;
    uint16_t at;

    switch (thread->data.owner) {
    case LAC_EVENT_PUSH:
    case LAC_EVENT_POP:
        at = top_in(thread, thread->data.domain);
        return at != 0 ? &thread->open[at] : NULL;
    case LAC_EVENT_MARK:
        return thread->has_mark ? &thread->mark : NULL;
    case LAC_EVENT_START:
    case LAC_EVENT_END:
        range = thread->last_start != 0 ? find_range(thread->process, thread->last_start) : NULL;
        return range != NULL ? &range->open : NULL;
    default:
        return NULL;
    }
}

/* Color and category in a payload come later than the event's own. */
static enum lac_status decode_data(struct lac_spool_thread *thread, struct open_range *range)
{
    const enum lac_status status =
        lac_spool_data_decode(thread->process, &thread->data, &range->members);

    if (status == LAC_OK && range->members->has_color) {
        range->color = range->members->color;
    }
    if (status == LAC_OK && range->members->has_category) {
        range->category = range->members->category;
    }
    return status;
}

static enum lac_status on_data(struct lac_spool_thread *thread, const struct lac_event *event)
{
    struct open_range *range;
    bool is_whole;

    if (event->type == LAC_EVENT_DATA) {
        (void)lac_spool_data_begin(thread->process, &thread->data, event);
        return LAC_OK;
    }
    is_whole = thread->data.owner != 0 &&
               lac_spool_data_add(&thread->data, event,
                                  event->type == LAC_EVENT_DATA_TEXT && event->name != 0
                                      ? lac_spool_name_of(thread->process, event->name)
                                      : 0);
    if (!is_whole) {
        return LAC_OK;
    }
    range = owner_of_data(thread);
    thread->data.owner = 0;
    if (range == NULL) {
        thread->process->payload_members_left_out++;
        return LAC_OK;
    }
    return decode_data(thread, range);
}

static enum lac_status on_push(struct lac_spool_thread *thread, const struct lac_event *event,
                               int64_t now_ns)
{
    struct open_range range = {
        .start_ns = now_ns, .domain = event->domain, .batch = -1, .cpu_ns = -1, .worker = -1};

    if (thread->open_count == OPEN_RANGES_MAX) {
        thread->process->open_ranges++;
        return LAC_OK;
    }
    range.name = lac_spool_name_of(thread->process, event->name);
    return put_in(thread, &range);
}

static enum lac_status on_start_end(struct lac_spool_thread *thread, const struct lac_event *event,
                                    const struct lac_event *id, int64_t now_ns)
{
    struct lac_spool_range *range;

    if (id == NULL || id->type != LAC_EVENT_ID || id->ts == 0) {
        thread->process->unmatched_pops++;
        return LAC_OK;
    }
    range = find_range(thread->process, id->ts);
    if (range == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (event->type == LAC_EVENT_START) {
        range->open = (struct open_range){.start_ns = now_ns,
                                          .name = lac_spool_name_of(thread->process, event->name),
                                          .domain = event->domain,
                                          .members = range->open.members};
        range->has_start = true;
    } else {
        range->end_ns = now_ns;
        range->has_end = true;
    }
    thread->last_start = id->ts;
    return LAC_OK;
}

/*
 * When a push or pop is shown. Some clocks step by 10 ns or more, and two ranges that begin in one
 * step and end in another would have equal times: which is the outer one, only the order of the
 * events tells. So each is shown 1 ns after the one before it where the clock could not tell them
 * apart. A clock that goes back is shown as it is.
 */
static int64_t in_order(struct lac_spool_thread *thread, int64_t clock_ns)
{
    const bool is_ambiguous = clock_ns >= thread->clock_ns && clock_ns <= thread->shown_ns;

    thread->clock_ns = clock_ns;
    thread->shown_ns = is_ambiguous ? thread->shown_ns + 1 : clock_ns;
    return thread->shown_ns;
}

/* A range begins or ends, or a mark. */
static enum lac_status on_range(struct lac_spool_thread *thread, const struct lac_event *event,
                                const struct lac_event *next)
{
    struct lac_spool_process *const process = thread->process;
    const bool is_nested = event->type == LAC_EVENT_PUSH || event->type == LAC_EVENT_POP;
    const int64_t clock_ns = ns_of(thread, event->ts);
    const int64_t now_ns = is_nested ? in_order(thread, clock_ns) : clock_ns;

    lac_builder_model(process->builder)->info.event_count++;
    thread->last_start = 0;
    thread->last_ns = now_ns > thread->last_ns ? now_ns : thread->last_ns;
    if (event->type == LAC_EVENT_PUSH) {
        return on_push(thread, event, now_ns);
    }
    if (event->type == LAC_EVENT_MARK) {
        thread->mark = (struct open_range){.start_ns = now_ns,
                                           .name = lac_spool_name_of(process, event->name),
                                           .domain = event->domain};
        thread->has_mark = true;
        return LAC_OK;
    }
    return event->type == LAC_EVENT_POP ? on_pop(thread, event, now_ns)
                                        : on_start_end(thread, event, next, now_ns);
}

static enum lac_status on_stack_sample(struct lac_spool_thread *thread,
                                       const struct lac_event *event)
{
    const int64_t now_ns = ns_of(thread, event->ts);

    thread->has_stacks = true;
    thread->last_ns = now_ns > thread->last_ns ? now_ns : thread->last_ns;
    return lac_spool_stack_sample(thread->process, event, now_ns);
}

static enum lac_status on_event(struct lac_spool_thread *thread, const struct lac_event *event,
                                const struct lac_event *next)
{
    struct lac_spool_process *const process = thread->process;
    struct open_range *const top = top_of(thread);

    switch (event->type) {
    case LAC_EVENT_PUSH:
    case LAC_EVENT_POP:
    case LAC_EVENT_MARK:
    case LAC_EVENT_START:
    case LAC_EVENT_END:
        return on_range(thread, event, next);
    case LAC_EVENT_LOADER:
        if (top != NULL) {
            top->batch = (int64_t)event->ts;
            top->worker = event->name <= INT32_MAX ? (int32_t)event->name - 1 : -1;
            top->is_loader = true;
        }
        return LAC_OK;
    case LAC_EVENT_CPU:
        if (top != NULL) {
            top->cpu_ns = event->ts <= INT64_MAX ? (int64_t)event->ts : -1;
            top->is_loader = true;
        }
        return LAC_OK;
    case LAC_EVENT_THREAD_NAME:
    case LAC_EVENT_DEVICE_NAME:
    case LAC_EVENT_STREAM_NAME:
        return lac_spool_name_given(process, thread->tid, event);
    case LAC_EVENT_THREAD: /* where a segment is cut: lac_spool_read() */
        return LAC_OK;
    case LAC_EVENT_SETTING:
        return on_setting(process, lac_spool_name_of(process, event->name));
    case LAC_EVENT_PAYLOAD:
    case LAC_EVENT_STYLE:
        on_extra(thread, event);
        return LAC_OK;
    case LAC_EVENT_DATA:
    case LAC_EVENT_DATA_BYTES:
    case LAC_EVENT_DATA_TEXT:
    case LAC_EVENT_DATA_LENGTH:
        return on_data(thread, event);
    case LAC_EVENT_STACK_FRAME:
        return lac_spool_stack_frame(process, event);
    case LAC_EVENT_STACK_SAMPLE:
        return on_stack_sample(thread, event);
    case LAC_EVENT_METRIC:
        return lac_spool_metric(process, event, next, ns_of(thread, event->ts));
    case LAC_EVENT_METRIC_VALUE: /* read with it */
    case LAC_EVENT_SCHEMA:       /* read before, as names are */
    case LAC_EVENT_SCHEMA_ENTRY:
    case LAC_EVENT_SCHEMA_PLACE:
    case LAC_EVENT_DOMAIN_NAME: /* names were read before: lac_spool_names_collect() */
    case LAC_EVENT_ID:
    case LAC_EVENT_SYNC:
    case LAC_EVENT_SYNC_NS:
    case LAC_EVENT_DROPPED: /* the header's count is the one that is reported */
    case LAC_EVENT_CATEGORY_NAME:
        return LAC_OK;
    default:
        process->unknown_events++;
        return LAC_OK;
    }
}

/* What belongs to a mark, and what may come between the two. */
static bool can_follow_mark(uint8_t type)
{
    return type == LAC_EVENT_PAYLOAD || type == LAC_EVENT_STYLE || type == LAC_EVENT_SYNC ||
           type == LAC_EVENT_SYNC_NS || type == LAC_EVENT_DROPPED ||
           (type >= LAC_EVENT_SCHEMA && type <= LAC_EVENT_DATA_LENGTH);
}

enum lac_status lac_spool_thread_events(struct lac_spool_thread *thread,
                                        const struct lac_event *events, size_t count,
                                        const struct lac_sync_point *sync,
                                        const struct lac_sync_point *next)
{
    enum lac_status status = LAC_OK;

    collect_syncs(thread, events, count, sync, next);
    for (size_t i = 0; i < count && events[i].type != 0 && status == LAC_OK; i++) {
        if (thread->has_mark && !can_follow_mark(events[i].type)) {
            status = put_mark(thread);
            if (status != LAC_OK) {
                break;
            }
        }
        status = is_without_row(events[i].type) ? LAC_OK : need_track(thread);
        if (status != LAC_OK) {
            break;
        }
        status = on_event(thread, &events[i], i + 1 < count ? &events[i + 1] : NULL);
    }
    return status;
}

enum lac_status lac_spool_thread_close(struct lac_spool_thread *thread)
{
    struct lac_spool_process *const process = thread->process;
    enum lac_status status = LAC_OK;

    if (!thread->has_stacks) {
        status = need_track(thread);
    }
    if (thread->has_mark && status == LAC_OK) {
        status = put_mark(thread);
    }
    process->open_ranges += thread->open_count;
    while (thread->open_top != 0 && status == LAC_OK) {
        const uint16_t at = thread->open_top;

        thread->open_top = thread->open[at].before;
        status = put_range(process, thread->track, &thread->open[at], thread->last_ns);
    }
    process->last_ns = thread->last_ns > process->last_ns ? thread->last_ns : process->last_ns;
    lac_spool_thread_destroy(thread);
    return status;
}

static int by_id(const void *left, const void *right)
{
    const struct lac_spool_range *const a = left;
    const struct lac_spool_range *const b = right;

    if ((a->id == 0) != (b->id == 0)) {
        return a->id == 0 ? 1 : -1;
    }
    return LAC_ORDER(a->id, b->id);
}

enum lac_status lac_spool_process_close(struct lac_spool_process *process, enum lac_status status)
{
    if (status == LAC_OK) {
        status = lac_spool_sync_finish(process);
    }
    lac_spool_sync_destroy(process->syncs);
    process->syncs = NULL;
    lac_spool_externals_destroy(process->externals);
    process->externals = NULL;
    /* free places last; else the order would be that of a hash with a seed */
    if (process->range_slots > 0) {
        qsort(process->ranges, process->range_slots, sizeof(*process->ranges), by_id);
    }
    for (size_t i = 0; i < process->range_count && status == LAC_OK; i++) {
        struct lac_spool_range *const range = &process->ranges[i];

        if (!range->has_start) {
            process->unmatched_pops++;
            continue;
        }
        if (!range->has_end) {
            range->end_ns = process->last_ns;
            process->open_ranges++;
        }
        status = put_async(process, range);
    }
    for (size_t i = 0; i < process->range_slots; i++) {
        free_members(&process->ranges[i].open);
    }
    free(process->ranges);
    process->ranges = NULL;
    if (status == LAC_OK) {
        status = lac_spool_stacks_store(process);
    }
    lac_spool_stacks_destroy(process->stacks);
    process->stacks = NULL;
    status = lac_spool_metrics_close(process, status);
    free(process->categories);
    process->categories = NULL;
    if (status == LAC_OK) {
        status = lac_spool_names_store(process);
    }
    lac_spool_devices_store(process);
    lac_spool_names_destroy(process);
    lac_spool_schemas_destroy(process->schemas);
    process->schemas = NULL;
    lac_spool_report_counts(process);
    return status;
}
