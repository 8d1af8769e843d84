/* Modules that annotations of CUDA graphs name, as rows below the streams. */

#include "analysis/diagnose/facts/recorded/stream_rows.h"
#include "analysis/model/strings.h"
#include "collector/base/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct modules {
    struct lac_derived_slice *at;
    uint32_t count, capacity;
};

enum lac_status lac_stream_row_name(struct lac_model *model, const char *what,
                                    const struct lac_track *stream, uint32_t *ret_name)
{
    char text[128];
    const int length = stream->name != 0 ? snprintf(text, sizeof(text), "%s %s", what,
                                                    lac_model_str(model, stream->name))
                                         : snprintf(text, sizeof(text), "%s stream %s", what,
                                                    lac_model_str(model, stream->id_text));

    if (length < 0 || (size_t)length >= sizeof(text)) {
        *ret_name = stream->name;
        return LAC_OK;
    }
    return lac_strings_intern(&model->strings, text, (size_t)length, ret_name);
}

static bool names_a_module(const struct lac_model *model)
{
    for (uint32_t i = 0; i < model->kernel_config_count; i++) {
        if (model->kernel_configs[i].module != 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < model->copy_count; i++) {
        if (model->copies[i].module != 0) {
            return true;
        }
    }
    return false;
}

static uint32_t module_of(const struct lac_model *model, uint64_t slice)
{
    const uint32_t detail = model->slices.detail[slice];

    return detail == LAC_NONE                              ? 0
           : model->slices.kind[slice] == LAC_SLICE_KERNEL ? model->kernel_configs[detail].module
                                                           : model->copies[detail].module;
}

/** Whether it says of what module the work is. A copy that names none says nothing. */
static bool tells(const struct lac_model *model, uint64_t slice)
{
    const uint8_t kind = model->slices.kind[slice];

    return kind == LAC_SLICE_KERNEL ||
           ((kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) && module_of(model, slice) != 0);
}

static enum lac_status walk(const struct lac_model *model, const struct lac_track *stream,
                            struct modules *modules)
{
    const struct lac_slices *const slices = &model->slices;
    bool is_open = false;
    uint32_t launch = LAC_NONE;

    modules->count = 0;
    for (uint64_t s = stream->first; s < stream->first + stream->count; s++) {
        if (!tells(model, s)) {
            continue;
        }
        const uint32_t module = module_of(model, s);
        const int64_t end_ns = slices->start_ns[s] + slices->dur_ns[s];

        if (is_open && module == modules->at[modules->count - 1].name &&
            slices->link[s] == launch) {
            struct lac_derived_slice *const last = &modules->at[modules->count - 1];

            last->dur_ns =
                end_ns - last->start_ns > last->dur_ns ? end_ns - last->start_ns : last->dur_ns;
            continue;
        }
        is_open = module != 0;
        launch = slices->link[s];
        if (is_open && !LAC_RESERVE(modules->at, modules->capacity, modules->count, 1)) {
            return LAC_ERR_NOMEM;
        }
        if (is_open) {
            modules->at[modules->count++] =
                (struct lac_derived_slice){.start_ns = slices->start_ns[s],
                                           .dur_ns = slices->dur_ns[s],
                                           .name = module,
                                           .link = LAC_NONE,
                                           .kind = LAC_SLICE_GPU_RANGE};
        }
    }
    return LAC_OK;
}

enum lac_status lac_graph_modules_add(struct lac_model *model)
{
    struct modules modules = {NULL, 0, 0};
    enum lac_status status = LAC_OK;

    if (!names_a_module(model)) {
        return LAC_OK;
    }
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        struct lac_track track = model->tracks[t];

        if (track.kind != LAC_TRACK_STREAM) {
            continue;
        }
        status = walk(model, &track, &modules);
        if (!status && modules.count > 0) {
            qsort(modules.at, modules.count, sizeof(*modules.at), lac_derived_slice_order);
            track.kind = LAC_TRACK_GPU_RANGE;
            status = lac_stream_row_name(model, LAC_GRAPH_MODULES, &track, &track.name);
            status =
                status ? status : lac_model_add_track(model, &track, modules.at, modules.count);
        }
    }
    free(modules.at);
    return status == LAC_ERR_LIMIT ? LAC_OK : status;
}
