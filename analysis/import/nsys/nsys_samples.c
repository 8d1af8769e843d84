/* What the host's threads were found in (`nsys profile --sample`): a flame graph of its own, and
 * how many threads of each process ran, as a counter. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A thread that runs is looked at every millisecond or so: this many ns hold some of them. */
enum { BIN_NS = 20000000 };

struct sample {
    int64_t id;
    int64_t time_ns;
    int64_t thread; /**< global id */
    uint32_t process;
};

struct frame {
    int64_t sample;
    int64_t symbol;
    int64_t module;
    int64_t depth; /**< 0: the function that ran */
    bool is_unknown;
};

struct lac_nsys_samples {
    struct sample *samples;
    uint64_t sample_count, sample_capacity;
    struct frame *frames;
    uint64_t frame_count, frame_capacity;
};

static enum lac_status on_event(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { ID, START, THREAD };
    struct lac_nsys_samples *all = nsys->samples;
    struct sample sample = {.id = 0};
    if (!lac_nsys_rows_integer(rows, ID, &sample.id) ||
        !lac_nsys_rows_integer(rows, START, &sample.time_ns) ||
        !lac_nsys_rows_integer(rows, THREAD, &sample.thread) || !lac_nsys_is_time(sample.time_ns)) {
        lac_model_report(nsys->model, LAC_REPORT_DROPPED, "row_without_times", 1, 0,
                         "Rows whose start or end is missing or not a time were dropped.");
        return LAC_OK;
    }
    enum lac_status status = lac_nsys_process(nsys, sample.thread, &sample.process);
    if (status == LAC_OK &&
        !LAC_RESERVE(all->samples, all->sample_capacity, all->sample_count, 1)) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    if (status == LAC_OK) {
        all->samples[all->sample_count++] = sample;
    }
    return status;
}

static enum lac_status on_frame(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    enum { ID, SYMBOL, MODULE, UNRESOLVED, DEPTH };
    struct lac_nsys_samples *all = nsys->samples;
    struct frame frame = {.sample = 0};
    if (!lac_nsys_rows_integer(rows, ID, &frame.sample) ||
        !lac_nsys_rows_integer(rows, SYMBOL, &frame.symbol) ||
        !lac_nsys_rows_integer(rows, DEPTH, &frame.depth)) {
        return LAC_OK;
    }
    frame.module = lac_nsys_rows_integer_or(rows, MODULE, frame.symbol);
    frame.is_unknown = lac_nsys_rows_integer_or(rows, UNRESOLVED, 0) != 0;
    if (!LAC_RESERVE(all->frames, all->frame_capacity, all->frame_count, 1)) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    all->frames[all->frame_count++] = frame;
    return LAC_OK;
}

static int by_id(const void *left, const void *right)
{
    const struct sample *a = left;
    const struct sample *b = right;
    int order = LAC_ORDER(a->id, b->id);
    return order != 0 ? order : LAC_ORDER(a->time_ns, b->time_ns);
}

static int by_process(const void *left, const void *right)
{
    const struct sample *a = left;
    const struct sample *b = right;
    int order = LAC_ORDER(a->process, b->process);
    return order != 0 ? order : LAC_ORDER(a->time_ns, b->time_ns);
}

/* Of a sample the outermost frame first. */
static int by_sample(const void *left, const void *right)
{
    const struct frame *a = left;
    const struct frame *b = right;
    int order = LAC_ORDER(a->sample, b->sample);
    return order != 0 ? order : LAC_ORDER(b->depth, a->depth);
}

/* Its function; where there is no symbol, the library, so that addresses do not split the graph. */
static enum lac_status frame_name(struct lac_nsys *nsys, const struct frame *frame,
                                  uint32_t *ret_name)
{
    enum lac_status status =
        lac_nsys_string(nsys, frame->is_unknown ? frame->module : frame->symbol, ret_name);
    if (status == LAC_OK && frame->is_unknown) {
        char copy[256];
        const char *text = lac_model_str(nsys->model, *ret_name);
        const char *slash = strrchr(text, '/');
        (void)strncpy(copy, slash != NULL ? slash + 1 : text, sizeof(copy) - 1);
        copy[sizeof(copy) - 1] = '\0';
        status = lac_nsys_intern_own(nsys, ret_name, copy[0] == '[' ? "%s" : "[%s]", copy);
    }
    return status;
}

/* The row of the sample's thread. */
static enum lac_status bottom_of(struct lac_nsys *nsys, struct lac_stacks *stacks,
                                 struct lac_nsys_map *bottoms, int64_t thread, uint32_t *ret_bottom)
{
    uint32_t track = 0;
    uint32_t *entry = lac_nsys_map_at(bottoms, (uint64_t)thread);
    if (entry == NULL) {
        return lac_nsys_pass(nsys, LAC_ERR_NOMEM);
    }
    enum lac_status status = LAC_OK;
    if (*entry == LAC_NONE) {
        status = lac_nsys_thread(nsys, LAC_TRACK_PROFILE, thread, &track);
        if (status == LAC_OK) {
            status = lac_stacks_fail(lac_stacks_row(stacks, track, entry), 0, nsys->reterr);
        }
    }
    *ret_bottom = *entry;
    return status;
}

/* Both lists are in the order of the samples' ids. */
static enum lac_status stack_up(struct lac_nsys *nsys, struct lac_stacks *stacks,
                                struct lac_nsys_map *bottoms)
{
    const struct lac_nsys_samples *all = nsys->samples;
    enum lac_status status = LAC_OK;
    uint64_t at = 0;
    for (uint64_t i = 0; i < all->sample_count && status == LAC_OK; i++) {
        const struct sample *sample = &all->samples[i];
        uint32_t stack = LAC_NONE;
        uint32_t name = 0;
        while (at < all->frame_count && all->frames[at].sample < sample->id) {
            at++;
        }
        if (at == all->frame_count || all->frames[at].sample != sample->id) {
            continue; /* it was looked at, and its stack was not kept */
        }
        status = bottom_of(nsys, stacks, bottoms, sample->thread, &stack);
        for (; at < all->frame_count && all->frames[at].sample == sample->id && status == LAC_OK;
             at++) {
            status = frame_name(nsys, &all->frames[at], &name);
            if (status == LAC_OK) {
                status =
                    lac_stacks_fail(lac_stacks_push(stacks, stack, name, &stack), 0, nsys->reterr);
            }
        }
        if (status == LAC_OK) {
            status =
                lac_stacks_fail(lac_stacks_sample(stacks, stack, sample->time_ns), 0, nsys->reterr);
        }
    }
    return status;
}

static enum lac_status counter_of(struct lac_nsys *nsys, uint32_t process, uint32_t *ret_track)
{
    uint32_t name = 0;
    enum lac_status status = lac_nsys_intern_own(nsys, &name, "Running threads (sampled)");
    if (status == LAC_OK) {
        status = lac_nsys_pass(nsys, lac_builder_track(nsys->builder, LAC_TRACK_COUNTER, process,
                                                       name, -1, ret_track));
    }
    if (status == LAC_OK) {
        lac_builder_track_at(nsys->builder, *ret_track)->name = name;
        lac_builder_track_at(nsys->builder, *ret_track)->device = -1;
    }
    return status;
}

/* Samples of a process per bin, each of which stands for a period of one thread. */
static enum lac_status count_running(struct lac_nsys *nsys, int64_t period_ns)
{
    const struct lac_nsys_samples *all = nsys->samples;
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0, end; i < all->sample_count && status == LAC_OK; i = end) {
        const uint32_t process = all->samples[i].process;
        const int64_t from_ns = all->samples[i].time_ns;
        uint32_t track = 0;
        int64_t last = -1;
        end = i;
        status = counter_of(nsys, process, &track);
        while (end < all->sample_count && all->samples[end].process == process && !status) {
            const int64_t bin = (all->samples[end].time_ns - from_ns) / BIN_NS;
            uint64_t count = 0;
            for (; end < all->sample_count && all->samples[end].process == process &&
                   (all->samples[end].time_ns - from_ns) / BIN_NS == bin;
                 end++) {
                count++;
            }
            if (last >= 0 && bin > last + 1) { /* nobody was found running in between */
                status = lac_nsys_pass(nsys, lac_builder_sample(nsys->builder, track,
                                                                from_ns + (last + 1) * BIN_NS, 0));
            }
            if (status == LAC_OK) {
                const double running = (double)count * (double)period_ns / BIN_NS;
                status = lac_nsys_pass(nsys, lac_builder_sample(nsys->builder, track,
                                                                from_ns + bin * BIN_NS, running));
            }
            last = bin;
        }
    }
    return status;
}

static void put_in_order(struct lac_nsys_samples *all)
{
    if (all->sample_count > 1) {
        qsort(all->samples, all->sample_count, sizeof(*all->samples), by_id);
    }
    if (all->frame_count > 1) {
        qsort(all->frames, all->frame_count, sizeof(*all->frames), by_sample);
    }
}

static enum lac_status lay(struct lac_nsys *nsys)
{
    struct lac_nsys_samples *all = nsys->samples;
    struct lac_stacks *stacks = NULL;
    struct lac_nsys_map bottoms = {0};
    put_in_order(all);
    enum lac_status status =
        lac_nsys_pass(nsys, lac_stacks_open(nsys->builder, nsys->db.options, &stacks));
    if (status == LAC_OK) {
        status = stack_up(nsys, stacks, &bottoms);
    }
    if (status == LAC_OK && !lac_stacks_is_empty(stacks)) {
        status = lac_stacks_fail(lac_stacks_finish(stacks, NULL, 0), 0, nsys->reterr);
        nsys->slice_count = status == LAC_OK ? nsys->slice_count + nsys->model->info.slice_count
                                             : nsys->slice_count;
    }
    if (status == LAC_OK && nsys->model->info.profile_count > 0) {
        qsort(all->samples, all->sample_count, sizeof(*all->samples), by_process);
        status = count_running(nsys, nsys->model->info.profile_scale);
    }
    lac_stacks_close(stacks);
    lac_nsys_map_done(&bottoms);
    return status;
}

enum lac_status lac_nsys_read_samples(struct lac_nsys *nsys)
{
    static const char *const EVENTS[] = {"id", "start", "globalTid", NULL};
    static const char *const FRAMES[] = {"id",         "symbol",     "module",
                                         "unresolved", "stackDepth", NULL};
    struct lac_nsys_samples all = {.samples = NULL};
    nsys->samples = &all;
    enum lac_status status = lac_nsys_each(nsys, "COMPOSITE_EVENTS", EVENTS, true, on_event);
    if (status == LAC_OK && all.sample_count > 0) {
        status = lac_nsys_each(nsys, "SAMPLING_CALLCHAINS", FRAMES, false, on_frame);
    }
    if (status == LAC_OK && all.frame_count > 0) {
        status = lay(nsys);
    }
    nsys->samples = NULL;
    free(all.samples);
    free(all.frames);
    return status;
}
