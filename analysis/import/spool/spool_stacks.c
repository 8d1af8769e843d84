#include "analysis/import/spool/spool_stacks.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LAC_SAMPLED_EVERY_NS == LAC_STACK_PERIOD_NS, "what rows of samples say");
_Static_assert((int)LAC_SAMPLED_DEPTH_MAX == (int)LAC_STACK_DEPTH_MAX, "what rows of samples say");

enum { FRAMES = UINT16_MAX + 1, NAME_BYTES = 4096 };

struct frame {
    uint32_t name; /* string id of "path(line): function", the line that runs; 0: not defined */
    uint16_t caller;
    uint16_t depth; /* from 1 on */
};

struct sample {
    int64_t ns;
    uint64_t order; /* in the file */
    uint32_t tid;
    uint16_t frame;
    uint8_t periods;
};

struct lac_spool_stacks {
    struct frame frames[FRAMES];
    struct sample *samples;
    uint64_t count;
    uint64_t capacity;
    uint64_t lost; /* samples whose stack could not be kept */
};

/* Of the thread whose row is being made. */
struct row {
    struct lac_spool_process *process;
    uint32_t track;
    uint32_t tid;
    uint32_t depth;
    uint32_t names[LAC_STACK_DEPTH_MAX];
    int64_t since_ns[LAC_STACK_DEPTH_MAX];
    int64_t until_ns;
};

static struct lac_spool_stacks *stacks_of(struct lac_spool_process *process)
{
    if (process->stacks == NULL) {
        process->stacks = calloc(1, sizeof(*process->stacks));
    }
    return process->stacks;
}

/* "path(line that runs): function", of "path(first line): function" */
static enum lac_status name_with_line(struct lac_spool_process *process, const char *text,
                                      uint32_t line, uint32_t *ret_name)
{
    const char *end = strstr(text, "): ");
    const char *open = end;
    char name[NAME_BYTES];
    int length;

    while (open != NULL && open > text && open[-1] >= '0' && open[-1] <= '9') {
        open--;
    }
    if (end == NULL || open == text || open[-1] != '(') { /* as it is */
        return lac_spool_intern(&lac_builder_model(process->builder)->strings, text,
                                strnlen(text, NAME_BYTES), ret_name);
    }
    length = snprintf(name, sizeof(name), "%.*s%" PRIu32 "%s", (int)(open - text), text, line, end);
    length = length < (int)sizeof(name) ? length : (int)sizeof(name) - 1;
    return lac_spool_intern(&lac_builder_model(process->builder)->strings, name, (size_t)length,
                            ret_name);
}

enum lac_status lac_spool_stack_frame(struct lac_spool_process *process,
                                      const struct lac_event *event)
{
    struct lac_spool_stacks *const stacks = stacks_of(process);
    const uint64_t caller = event->ts >> 32;
    const uint32_t text = lac_spool_name_of(process, event->name);

    if (stacks == NULL) {
        return LAC_ERR_NOMEM;
    }
    /* a caller's number is smaller, so no stack goes in circles */
    if (event->domain == 0 || caller >= event->domain || text == 0 ||
        stacks->frames[event->domain].name != 0) {
        process->unknown_events++;
        return LAC_OK;
    }
    stacks->frames[event->domain].caller = (uint16_t)caller;
    return name_with_line(process, lac_model_str(lac_builder_model(process->builder), text),
                          (uint32_t)event->ts, &stacks->frames[event->domain].name);
}

enum lac_status lac_spool_stack_sample(struct lac_spool_process *process,
                                       const struct lac_event *event, int64_t now_ns)
{
    struct lac_spool_stacks *const stacks = stacks_of(process);

    lac_builder_model(process->builder)->info.event_count++;
    if (stacks == NULL || !LAC_RESERVE(stacks->samples, stacks->capacity, stacks->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    stacks->samples[stacks->count] = (struct sample){
        .ns = now_ns,
        .order = stacks->count,
        .tid = event->name,
        .frame = event->domain,
        .periods = event->flags > 0 ? event->flags : 1,
    };
    stacks->count++;
    return LAC_OK;
}

/* ---- rows */

/* How deep frames are; those whose callers are not there, and too deep ones, are not there either.
 * Any thread may have defined a caller, so this waits until all have been read. */
static void find_depths(struct lac_spool_process *process, struct lac_spool_stacks *stacks)
{
    for (uint32_t i = 1; i < FRAMES; i++) {
        struct frame *const frame = &stacks->frames[i];
        const struct frame *const caller = &stacks->frames[frame->caller];
        const bool has_callers = frame->caller == 0 || caller->name != 0;

        if (frame->name != 0 && (!has_callers || caller->depth == LAC_STACK_DEPTH_MAX)) {
            frame->name = 0;
            process->unknown_events++;
        }
        frame->depth = (uint16_t)(frame->name != 0 ? caller->depth + 1 : 0);
    }
}

/* End the frames from that depth on: the outer ones first, as they are to be drawn. */
static enum lac_status close_from(struct row *row, uint32_t depth)
{
    enum lac_status status = LAC_OK;

    for (uint32_t i = depth; i < row->depth && status == LAC_OK; i++) {
        const struct lac_slice_in slice = {.start_ns = row->since_ns[i],
                                           .dur_ns = row->until_ns - row->since_ns[i],
                                           .track = row->track,
                                           .name = row->names[i],
                                           .detail = LAC_NONE,
                                           .kind = LAC_SLICE_PYTHON};

        lac_builder_model(row->process->builder)->info.slice_count++;
        status = lac_builder_slice(row->process->builder, &slice);
    }
    row->depth = depth < row->depth ? depth : row->depth;
    return status;
}

static enum lac_status begin_row(struct row *row, struct lac_spool_process *process, uint32_t tid)
{
    struct lac_builder *const builder = process->builder;
    char text[32];
    uint32_t id;
    uint32_t name = 0;
    const int length = snprintf(text, sizeof(text), "%" PRIu32, tid);
    enum lac_status status =
        lac_strings_intern(&lac_builder_model(builder)->strings, text, (size_t)length, &id);

    *row = (struct row){.process = process, .tid = tid};
    if (status == LAC_OK) {
        const uint32_t thread =
            lac_builder_find_track(builder, LAC_TRACK_THREAD, process->process, id);

        name = thread != LAC_NONE ? lac_builder_track_at(builder, thread)->name : 0;
        status = lac_builder_track(builder, LAC_TRACK_STACKS, process->process, id,
                                   tid > 0 ? (int64_t)tid : -1, &row->track);
    }
    if (status == LAC_OK) {
        lac_builder_track_at(builder, row->track)->name = name;
    }
    return status;
}

/* Since when a thread has been in what it was found in. */
static int64_t begin_of(const struct row *row, const struct sample *sample)
{
    const int64_t stands_ns = (int64_t)sample->periods * LAC_STACK_PERIOD_NS;
    const int64_t since_ns = sample->ns - row->until_ns;

    /* looks are late now and then, by less than a period */
    return row->until_ns != 0 && since_ns >= 0 && since_ns <= stands_ns + LAC_STACK_PERIOD_NS
               ? row->until_ns
               : sample->ns - stands_ns;
}

static enum lac_status add(struct row *row, const struct lac_spool_stacks *stacks,
                           const struct sample *sample)
{
    uint32_t names[LAC_STACK_DEPTH_MAX];
    const uint32_t depth = stacks->frames[sample->frame].depth;
    const int64_t begin_ns = begin_of(row, sample);
    uint32_t same = 0;
    enum lac_status status;

    for (uint32_t at = sample->frame, i = depth; i > 0; i--, at = stacks->frames[at].caller) {
        names[i - 1] = stacks->frames[at].name;
    }
    while (begin_ns == row->until_ns && same < row->depth && same < depth &&
           names[same] == row->names[same]) {
        same++;
    }
    status = close_from(row, same);
    for (uint32_t i = same; i < depth; i++) {
        row->names[i] = names[i];
        row->since_ns[i] = begin_ns;
    }
    row->depth = depth;
    row->until_ns = sample->ns > begin_ns ? sample->ns : begin_ns;
    return status;
}

static int by_thread(const void *left, const void *right)
{
    const struct sample *const a = left;
    const struct sample *const b = right;

    int order = LAC_ORDER(a->tid, b->tid);
    order = order != 0 ? order : LAC_ORDER(a->ns, b->ns);
    return order != 0 ? order : LAC_ORDER(a->order, b->order);
}

enum lac_status lac_spool_stacks_store(struct lac_spool_process *process)
{
    struct lac_spool_stacks *const stacks = process->stacks;
    const uint64_t count = stacks != NULL ? stacks->count : 0;
    struct row row = {0};
    enum lac_status status = LAC_OK;

    if (stacks != NULL) {
        find_depths(process, stacks);
    }
    if (count > 0) {
        qsort(stacks->samples, count, sizeof(*stacks->samples), by_thread);
    }
    for (uint64_t i = 0; i < count && status == LAC_OK; i++) {
        const struct sample *const sample = &stacks->samples[i];

        if (stacks->frames[sample->frame].name == 0) { /* 0, or one that was not defined */
            stacks->lost++;
            continue;
        }
        if (row.process == NULL || sample->tid != row.tid) {
            status = row.process != NULL ? close_from(&row, 0) : LAC_OK;
            status = status == LAC_OK ? begin_row(&row, process, sample->tid) : status;
        }
        status = status == LAC_OK ? add(&row, stacks, sample) : status;
    }
    if (status == LAC_OK && row.process != NULL) {
        status = close_from(&row, 0);
    }
    if (stacks != NULL && stacks->lost > 0) {
        lac_model_report(lac_builder_model(process->builder), LAC_REPORT_DROPPED, "stacks_lost",
                         stacks->lost, 0,
                         "samples of Python threads whose stacks the recorder had no room for");
    }
    return status;
}

void lac_spool_stacks_destroy(struct lac_spool_stacks *stacks)
{
    if (stacks != NULL) {
        free(stacks->samples);
        free(stacks);
    }
}
