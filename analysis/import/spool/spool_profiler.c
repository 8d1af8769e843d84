#include "analysis/import/spool/spool_profiler.h"

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MONTH_NS = (int64_t)30 * 86400 * 1000000000;

/* Correlation ids of two recorders of one process may be the same: theirs get a bit
 * of their own. */
static const uint32_t THEIR_CORRELATION = 1u << 31;

struct join {
    struct lac_builder *builder;
    const struct lac_model *from;
    uint32_t *names; /* their string id -> ours, 0 not asked for yet */
    uint64_t joined;
    int64_t near_ns;
};

static enum lac_status text_of(struct join *join, uint32_t id, uint32_t *ret_id)
{
    const char *const text = lac_strings_get(&join->from->strings, id);

    if (id == 0 || join->names[id] != 0) {
        *ret_id = join->names[id];
        return LAC_OK;
    }
    const enum lac_status status = lac_spool_intern(&lac_builder_model(join->builder)->strings,
                                                    text, strlen(text), &join->names[id]);
    *ret_id = join->names[id];
    return status;
}

static enum lac_status number_text(struct join *join, const char *format, int64_t number,
                                   uint32_t *ret_id)
{
    char text[40];
    const int length = snprintf(text, sizeof(text), "%s%" PRId64, format, number);

    return lac_strings_intern(&lac_builder_model(join->builder)->strings, text, (size_t)length,
                              ret_id);
}

static enum lac_status join_device(struct join *join, int64_t id)
{
    struct lac_device *const device = lac_builder_device(join->builder, id);
    uint32_t name = 0;
    enum lac_status status = LAC_OK;

    if (device == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < join->from->device_count && device->name == 0; i++) {
        const struct lac_device *const theirs = &join->from->devices[i];

        if (theirs->id == id && theirs->name != 0) {
            status = text_of(join, theirs->name, &name);
            *device = *theirs;
            device->name = name;
        }
    }
    return status;
}

/* The row of ours that is theirs: a stream of a device, or a thread of a process. */
static enum lac_status join_track(struct join *join, const struct lac_track *theirs,
                                  uint32_t *ret_track)
{
    const bool is_stream = theirs->device >= 0;
    const int64_t pid = is_stream ? -1 : join->from->processes[theirs->process].pid;
    uint32_t process_text;
    uint32_t track_text;
    uint32_t process;
    enum lac_status status = is_stream ? number_text(join, "GPU ", theirs->device, &process_text)
                                       : number_text(join, "", pid, &process_text);

    if (status == LAC_OK) {
        status = number_text(join, "", theirs->tid, &track_text);
    }
    if (status == LAC_OK) {
        status = lac_builder_process(join->builder, process_text, pid, &process);
    }
    if (status == LAC_OK && is_stream) {
        lac_builder_process_at(join->builder, process)->is_gpu = true;
        lac_builder_process_at(join->builder, process)->name = process_text;
    }
    if (status == LAC_OK) {
        status = lac_builder_track(join->builder, is_stream ? LAC_TRACK_STREAM : LAC_TRACK_THREAD,
                                   process, track_text, theirs->tid, ret_track);
    }
    if (status == LAC_OK && is_stream) {
        lac_builder_track_at(join->builder, *ret_track)->device = theirs->device;
        status = join_device(join, theirs->device);
    }
    return status;
}

static enum lac_status join_detail(struct join *join, enum lac_slice_kind kind, uint32_t row,
                                   uint32_t *ret_row)
{
    *ret_row = LAC_NONE;
    if (row == LAC_NONE) {
        return LAC_OK;
    }
    if (kind == LAC_SLICE_KERNEL && row < join->from->kernel_config_count) {
        struct lac_kernel_config config = join->from->kernel_configs[row];
        const enum lac_status status = text_of(join, config.module, &config.module);

        return status != LAC_OK ? status
                                : lac_builder_kernel_config(join->builder, &config, ret_row);
    }
    if ((kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) && row < join->from->copy_count) {
        struct lac_copy copy = join->from->copies[row];
        const enum lac_status status = text_of(join, copy.module, &copy.module);

        return status != LAC_OK ? status : lac_builder_copy(join->builder, &copy, ret_row);
    }
    return LAC_OK;
}

static bool is_wanted(const struct lac_track *track, enum lac_slice_kind kind)
{
    return track->device >= 0
               ? kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET
               : track->kind == LAC_TRACK_THREAD && kind == LAC_SLICE_API;
}

static enum lac_status join_slices(struct join *join, const struct lac_track *theirs)
{
    const struct lac_slices *const slices = &join->from->slices;
    struct lac_trace_info *const info = &lac_builder_model(join->builder)->info;
    uint32_t track = LAC_NONE;
    enum lac_status status = LAC_OK;

    for (uint64_t i = theirs->first; i < theirs->first + theirs->count && status == LAC_OK; i++) {
        const enum lac_slice_kind kind = (enum lac_slice_kind)slices->kind[i];
        struct lac_slice_in slice = {
            .start_ns = join->from->info.t0_ns + slices->start_ns[i],
            .dur_ns = slices->dur_ns[i],
            .corr = slices->corr[i] != 0 ? slices->corr[i] | THEIR_CORRELATION : 0,
            .kind = kind};

        if (!is_wanted(theirs, kind)) {
            continue;
        }
        if (track == LAC_NONE) {
            status = join_track(join, theirs, &track);
        }
        if (status == LAC_OK) {
            status = text_of(join, slices->name[i], &slice.name);
        }
        if (status == LAC_OK) {
            status = join_detail(join, kind, slices->detail[i], &slice.detail);
        }
        if (status == LAC_OK) {
            slice.track = track;
            status = lac_builder_slice(join->builder, &slice);
        }
        if (status == LAC_OK) {
            info->event_count++;
            info->slice_count++;
            join->joined++;
        }
    }
    return status;
}

/* The sink of their import: takes the model apart. */
static enum lac_status join_model(struct join *join, const struct lac_model *model)
{
    struct lac_model *const ours = lac_builder_model(join->builder);
    enum lac_status status = LAC_OK;

    join->from = model;
    join->names = calloc((size_t)model->strings.count + 1, sizeof(*join->names));
    if (join->names == NULL) {
        status = LAC_ERR_NOMEM;
    } else if (model->info.t0_ns < join->near_ns - MONTH_NS ||
               model->info.t0_ns > join->near_ns + MONTH_NS) {
        lac_model_report(ours, LAC_REPORT_INFO, "profiler_clock", 1, 0,
                         "a file of torch.profiler is left out: its clock is not the time of day");
    } else {
        for (uint32_t t = 0; t < model->recorded_track_count && status == LAC_OK; t++) {
            status = join_slices(join, &model->tracks[t]);
        }
    }
    free(join->names);
    join->names = NULL;
    return status;
}

/** A Chrome trace, packed or not; no archive or recording inside it is looked into. */
static enum lac_status read_trace(struct lac_source *source,
                                  const struct lac_import_options *options,
                                  struct lac_model **ret_model, struct lac_error *reterr)
{
    struct lac_source *layer = NULL;
    enum lac_source_kind kind = LAC_SOURCE_PLAIN;
    enum lac_status status = lac_source_detect(source, &kind, reterr);

    if (status == LAC_OK && kind == LAC_SOURCE_GZIP) {
        status = lac_source_open_gzip(source, &layer, reterr);
    }
    if (status == LAC_OK) {
        status = lac_chrome_import(layer != NULL ? layer : source, options, LAC_CHROME_WINDOW_BYTES,
                                   LAC_SPOOL_PROFILER, ret_model, reterr);
    }
    lac_source_destroy(layer);
    return status;
}

enum lac_status lac_spool_profiler_join(struct lac_source *source,
                                        const struct lac_import_options *options, int64_t near_ns,
                                        struct lac_builder *builder, struct lac_error *reterr)
{
    struct join join = {.builder = builder, .near_ns = near_ns};
    struct lac_import_options theirs = *options;
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    enum lac_status status;

    theirs.progress = NULL;
    status = read_trace(source, &theirs, &model, &error);
    if (status == LAC_OK) {
        status = join_model(&join, model);
        lac_model_destroy(model);
    }
    if (status == LAC_ERR_NOMEM || status == LAC_ERR_LIMIT) {
        return lac_fail(reterr, status, 0, "%s", error.message);
    }
    if (status != LAC_OK) {
        lac_model_report(lac_builder_model(builder), LAC_REPORT_DROPPED, "profiler_unreadable", 1,
                         0, error.message);
        return LAC_OK;
    }
    if (join.joined > 0) {
        lac_model_report(
            lac_builder_model(builder), LAC_REPORT_INFO, "profiler_joined", join.joined, 0,
            "device activity and launches come from torch.profiler, which the job ran");
    }
    return LAC_OK;
}
