/*
 * PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot, memory_snapshot()): the segments that
 * the caching allocator holds, their blocks with the stacks that allocated them, and the last
 * allocations and releases of each device.
 *
 * What is in use when the snapshot was taken becomes a profile in bytes: stacks, and what is cached
 * but not in use by its pool. What the allocations came to becomes counters over time, where they
 * have times (PyTorch 2.1 on): the end is known from the segments, what was before from the events.
 *
 * Source: docs.pytorch.org/docs/stable/torch_cuda_memory.html, "Snapshot API Reference"
 */

#include "analysis/import/profilers/pickled.h"
#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 1024, FRAMES_MAX = 512 };

/* 1 PiB: no device has more, and sums of as many as there are stay exact. */
#define BYTES_MAX ((int64_t)1 << 50)

struct device {
    double reserved, allocated; /**< at the snapshot, then at the event */
    uint32_t bottom;            /**< of its stacks, LAC_NONE: none yet */
};

struct reader {
    struct lac_profile_file *document;
    struct lac_profile *profile;
    struct device devices[DEVICES_MAX];
    uint32_t process;
    int64_t first_ns, last_ns; /**< of all events */
    bool has_times;
};

static const struct lac_plain *segments_of(const struct lac_plain *root)
{
    return lac_plain_is(root, LAC_PLAIN_LIST) ? root : lac_plain_get(root, "segments");
}

bool lac_torch_memory_is_pickled(const struct lac_plain *root)
{
    const struct lac_plain *const segments = segments_of(root);
    const struct lac_plain *const traces = lac_plain_get(root, "device_traces");
    return (lac_plain_is(segments, LAC_PLAIN_LIST) && segments->count > 0 &&
            lac_plain_is(lac_plain_get(segments->items[0], "blocks"), LAC_PLAIN_LIST)) ||
           (lac_plain_is(segments, LAC_PLAIN_LIST) && lac_plain_is(traces, LAC_PLAIN_LIST));
}

static bool bytes_of(const struct lac_plain *value, int64_t *ret_bytes)
{
    return lac_plain_integer(value, ret_bytes) && *ret_bytes >= 0 && *ret_bytes <= BYTES_MAX;
}

/* -- what is in use ---------------------------------------------------------------------------- */

static enum lac_status bottom_of(struct reader *reader, uint32_t index, uint32_t *ret_bottom)
{
    struct device *device = &reader->devices[index];
    char text[32];
    uint32_t name = 0;
    enum lac_status status = LAC_OK;
    if (device->bottom == LAC_NONE) {
        const int length = snprintf(text, sizeof(text), "GPU %" PRIu32, index);
        status = lac_stacks_name(reader->profile->stacks, text, (size_t)length, &name);
        if (status == LAC_OK) {
            status = lac_stacks_numbered_thread(reader->profile->stacks, 0, index, index, name,
                                                &device->bottom);
        }
    }
    *ret_bottom = device->bottom;
    return status;
}

/* Frames come innermost first. */
static enum lac_status push_frames(struct reader *reader, const struct lac_plain *frames,
                                   uint32_t *stack)
{
    const uint32_t count = frames->count < FRAMES_MAX ? frames->count : FRAMES_MAX;
    enum lac_status status = lac_document_visit(reader->document, count) ? LAC_OK : LAC_ERR_LIMIT;
    for (uint32_t i = count; i > 0 && status == LAC_OK; i--) {
        const struct lac_plain *const frame = frames->items[i - 1];
        int64_t line = 0;
        uint32_t name = 0;
        (void)lac_plain_integer(lac_plain_get(frame, "line"), &line);
        status = lac_document_frame(reader->document, lac_plain_get(frame, "name"),
                                    lac_plain_get(frame, "filename"), line, &name);
        status = status == LAC_OK ? lac_stacks_push(reader->profile->stacks, *stack, name, stack)
                                  : status;
    }
    return status;
}

static enum lac_status weigh(struct reader *reader, uint32_t device, const struct lac_plain *frames,
                             const char *instead, int64_t bytes)
{
    uint32_t stack = 0;
    uint32_t name = 0;
    enum lac_status status = bottom_of(reader, device, &stack);
    if (status == LAC_OK && frames != NULL && lac_plain_is(frames, LAC_PLAIN_LIST) &&
        frames->count > 0) {
        status = push_frames(reader, frames, &stack);
    } else if (status == LAC_OK) {
        status = lac_stacks_name(reader->profile->stacks, instead, strlen(instead), &name);
        status = status == LAC_OK ? lac_stacks_push(reader->profile->stacks, stack, name, &stack)
                                  : status;
    }
    return status == LAC_OK && bytes > 0
               ? lac_stacks_weigh(reader->profile->stacks, stack, bytes, 0)
               : status;
}

/* Of older snapshots: blocks have a list of what was allocated there. */
static const struct lac_plain *frames_of(const struct lac_plain *block)
{
    const struct lac_plain *const frames = lac_plain_get(block, "frames");
    return lac_plain_is(frames, LAC_PLAIN_LIST)
               ? frames
               : lac_plain_get(lac_plain_at(lac_plain_get(block, "history"), 0), "frames");
}

static enum lac_status read_block(struct reader *reader, uint32_t device, bool is_small,
                                  const struct lac_plain *block, int64_t *sum)
{
    const struct lac_plain *const state = lac_plain_get(block, "state");
    int64_t bytes = 0;
    reader->profile->model->info.event_count++;
    if (!lac_document_visit(reader->document, 1)) {
        return LAC_ERR_LIMIT;
    }
    if (!bytes_of(lac_plain_get(block, "size"), &bytes)) {
        lac_document_drop(reader->document, "block_not_understood", "blocks without a size");
        return LAC_OK;
    }
    *sum += bytes;
    if (lac_plain_equals(state, "active_allocated")) {
        reader->devices[device].allocated += (double)bytes;
        return weigh(reader, device, frames_of(block), "allocated, no stack was recorded", bytes);
    }
    if (lac_plain_equals(state, "active_pending_free") ||
        lac_plain_equals(state, "active_awaiting_free")) {
        return weigh(reader, device, frames_of(block), "released, waiting for a stream", bytes);
    }
    return weigh(reader, device, NULL,
                 is_small ? "cached, not in use (small pool)" : "cached, not in use (large pool)",
                 bytes);
}

static enum lac_status read_segment(struct reader *reader, const struct lac_plain *segment)
{
    const struct lac_plain *const blocks = lac_plain_get(segment, "blocks");
    const bool is_small = lac_plain_equals(lac_plain_get(segment, "segment_type"), "small");
    int64_t device = 0;
    int64_t total = 0;
    int64_t sum = 0;
    enum lac_status status = LAC_OK;
    (void)lac_plain_integer(lac_plain_get(segment, "device"), &device);
    if (device < 0 || device >= DEVICES_MAX || !lac_plain_is(blocks, LAC_PLAIN_LIST)) {
        lac_document_drop(reader->document, "segment_not_understood",
                          "segments without blocks, or of a device beyond 1024");
        return LAC_OK;
    }
    for (uint32_t i = 0; i < blocks->count && status == LAC_OK; i++) {
        status = read_block(reader, (uint32_t)device, is_small, blocks->items[i], &sum);
    }
    if (!bytes_of(lac_plain_get(segment, "total_size"), &total)) {
        total = sum;
    }
    reader->devices[device].reserved += (double)total;
    return status;
}

/* -- over time --------------------------------------------------------------------------------- */

struct change {
    int64_t time_ns;
    int64_t reserved, allocated;
};

/* What an event changes; false: nothing that is counted, or it has no time. */
static bool change_of(const struct lac_plain *event, struct change *ret)
{
    static const struct {
        const char *action;
        int reserved, allocated;
    } actions[] = {{"alloc", 0, 1},         {"free_requested", 0, -1}, {"segment_alloc", 1, 0},
                   {"segment_free", -1, 0}, {"segment_map", 1, 0},     {"segment_unmap", -1, 0}};
    const struct lac_plain *const action = lac_plain_get(event, "action");
    int64_t time_us = 0;
    int64_t bytes = 0;
    if (!lac_plain_integer(lac_plain_get(event, "time_us"), &time_us) || time_us < 0 ||
        time_us > INT64_MAX / 1000 || !bytes_of(lac_plain_get(event, "size"), &bytes)) {
        return false;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(actions); i++) {
        if (lac_plain_equals(action, actions[i].action)) {
            *ret = (struct change){time_us * 1000, bytes * actions[i].reserved,
                                   bytes * actions[i].allocated};
            return true;
        }
    }
    return false;
}

/* Where the counters of a device begin, that they end at what the segments hold. */
static void rewind_events(struct reader *reader, struct device *device,
                          const struct lac_plain *events)
{
    for (uint32_t i = 0; i < events->count; i++) {
        struct change change;
        if (!change_of(events->items[i], &change)) {
            continue;
        }
        device->reserved -= (double)change.reserved;
        device->allocated -= (double)change.allocated;
        reader->first_ns = !reader->has_times || change.time_ns < reader->first_ns
                               ? change.time_ns
                               : reader->first_ns;
        reader->last_ns = !reader->has_times || change.time_ns > reader->last_ns ? change.time_ns
                                                                                 : reader->last_ns;
        reader->has_times = true;
    }
}

static enum lac_status counter(struct reader *reader, uint32_t device, const char *what,
                               uint32_t *ret_track)
{
    char text[64];
    uint32_t name = 0;
    const int length = snprintf(text, sizeof(text), "GPU %" PRIu32 ": %s", device, what);
    enum lac_status status = lac_stacks_name(reader->profile->stacks, text, (size_t)length, &name);
    if (status == LAC_OK) {
        status = lac_builder_track(reader->profile->builder, LAC_TRACK_COUNTER, reader->process,
                                   name, -1, ret_track);
    }
    if (status == LAC_OK) {
        struct lac_track *const track = lac_builder_track_at(reader->profile->builder, *ret_track);
        track->name = name;
        track->device = device;
    }
    return status;
}

static void tell_oom(const struct reader *reader, const struct lac_plain *event)
{
    char text[128];
    int64_t bytes = 0;
    int64_t left = 0;
    if (lac_plain_equals(lac_plain_get(event, "action"), "oom") &&
        bytes_of(lac_plain_get(event, "size"), &bytes)) {
        (void)bytes_of(lac_plain_get(event, "device_free"), &left);
        (void)snprintf(text, sizeof(text),
                       "The first allocation that failed asked for %.1f MB; the device had %.1f MB "
                       "left.",
                       (double)bytes / 1e6, (double)left / 1e6);
        lac_model_report(reader->profile->model, LAC_REPORT_INFO, "out_of_memory", 1, 0, text);
    }
}

static enum lac_status play_events(struct reader *reader, uint32_t index,
                                   const struct lac_plain *events)
{
    struct device *const device = &reader->devices[index];
    struct lac_builder *const builder = reader->profile->builder;
    uint32_t allocated = 0;
    uint32_t reserved = 0;
    bool is_begun = false; /* both counters begin with the first event */
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < events->count && status == LAC_OK; i++) {
        struct change change;
        reader->profile->model->info.event_count++;
        tell_oom(reader, events->items[i]);
        if (!change_of(events->items[i], &change)) {
            continue;
        }
        const bool is_first = !is_begun;
        if (is_first) {
            is_begun = true;
            status = counter(reader, index, "allocated by PyTorch (MB)", &allocated);
            status = status == LAC_OK
                         ? counter(reader, index, "reserved by PyTorch (MB)", &reserved)
                         : status;
        }
        device->reserved += (double)change.reserved;
        device->allocated += (double)change.allocated;
        const int64_t at_ns = change.time_ns - reader->first_ns;
        if (status == LAC_OK && (change.allocated != 0 || is_first)) {
            status = lac_builder_sample(builder, allocated, at_ns, device->allocated / 1e6);
        }
        if (status == LAC_OK && (change.reserved != 0 || is_first)) {
            status = lac_builder_sample(builder, reserved, at_ns, device->reserved / 1e6);
        }
    }
    return status;
}

static enum lac_status read_events(struct reader *reader, const struct lac_plain *traces)
{
    const uint32_t count = !lac_plain_is(traces, LAC_PLAIN_LIST) ? 0
                           : traces->count < DEVICES_MAX         ? traces->count
                                                                 : DEVICES_MAX;
    uint32_t id = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (lac_plain_is(traces->items[i], LAC_PLAIN_LIST)) {
            if (!lac_document_visit(reader->document, traces->items[i]->count)) {
                return LAC_ERR_LIMIT;
            }
            rewind_events(reader, &reader->devices[i], traces->items[i]);
        }
    }
    enum lac_status status = lac_stacks_name(reader->profile->stacks, "memory", 6, &id);
    if (status == LAC_OK && reader->has_times) {
        status = lac_builder_process(reader->profile->builder, id, -1, &reader->process);
        if (status == LAC_OK) {
            lac_builder_process_at(reader->profile->builder, reader->process)->name = id;
        }
    }
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (lac_plain_is(traces->items[i], LAC_PLAIN_LIST)) {
            status = play_events(reader, i, traces->items[i]);
        }
    }
    return status;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Counters have times, stacks have none: as where a profile was joined to a trace. */
static void part(const struct reader *reader, struct lac_model *model)
{
    for (uint32_t i = 0; i < model->track_count; i++) {
        if (model->tracks[i].kind != LAC_TRACK_COUNTER) {
            model->tracks[i].kind = LAC_TRACK_PROFILE;
        }
    }
    model->info.profile_count = 1;
    model->info.profile_unit = model->info.weight_unit;
    model->info.profile_scale = model->info.weight_scale;
    model->info.weight_unit = 0;
    model->info.weight_scale = 0;
    model->info.has_no_time = false;
    model->info.t0_ns = reader->first_ns;
    model->info.duration_ns = reader->last_ns - reader->first_ns;
}

static enum lac_status read_all(struct reader *reader)
{
    const struct lac_plain *const root = reader->document->root;
    const struct lac_plain *const segments = segments_of(root);
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < DEVICES_MAX; i++) {
        reader->devices[i].bottom = LAC_NONE;
    }
    for (uint32_t i = 0; i < segments->count && status == LAC_OK; i++) {
        status = lac_document_visit(reader->document, 1) ? read_segment(reader, segments->items[i])
                                                         : LAC_ERR_LIMIT;
    }
    if (status == LAC_OK && lac_stacks_is_empty(reader->profile->stacks)) {
        status = weigh(reader, 0, NULL, "nothing is allocated", 1);
    }
    return status == LAC_OK ? read_events(reader, lac_plain_get(root, "device_traces")) : status;
}

enum lac_status lac_torch_memory_read(struct lac_profile_file *document,
                                      struct lac_model **ret_model)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return lac_fail(document->reterr, LAC_ERR_NOMEM, 0, "no memory for the snapshot");
    }
    reader->document = document;
    reader->profile = &document->profile;
    enum lac_status status = lac_document_begin(document, LAC_FORMAT_TORCH_MEMORY);
    status = status == LAC_OK ? read_all(reader) : status;
    status = lac_document_end(document, status, "memory snapshot", "bytes", ret_model);
    if (status == LAC_OK && reader->has_times) {
        part(reader, *ret_model);
    }
    free(reader);
    return status;
}
