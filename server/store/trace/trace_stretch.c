/* The slices of a stretch of time as a model. */

#include "analysis/model/chunk.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 31 };

static enum lac_status grow(struct lac_slices *slices, uint64_t *capacity)
{
    const struct lac_array_ref columns[] = {
        LAC_ARRAY_REF(slices->start_ns), LAC_ARRAY_REF(slices->dur_ns),
        LAC_ARRAY_REF(slices->name),     LAC_ARRAY_REF(slices->detail),
        LAC_ARRAY_REF(slices->lane),     LAC_ARRAY_REF(slices->kind)};
    uint64_t grown = *capacity;
    enum lac_status status = LAC_OK;

    for (size_t c = 0; c < LAC_COUNT_OF(columns) && status == LAC_OK; c++) {
        grown = *capacity;
        if (!lac_reserve(columns[c].array, &grown, sizeof(grown), slices->count + 1,
                         columns[c].element_bytes)) {
            status = LAC_ERR_NOMEM;
        }
    }
    *capacity = status == LAC_OK ? grown : *capacity;
    return status;
}

/** Append those of a chunk that overlap [t0_ns, t1_ns). */
static enum lac_status take_chunk(struct lac_slices *to, uint64_t *capacity,
                                  const struct lac_slices *from, int64_t t0_ns, int64_t t1_ns)
{
    enum lac_status status = LAC_OK;

    for (uint64_t i = 0; i < from->count && from->start_ns[i] < t1_ns && status == LAC_OK; i++) {
        if (from->start_ns[i] + from->dur_ns[i] <= t0_ns && from->start_ns[i] < t0_ns) {
            continue;
        }
        status = grow(to, capacity);
        if (status == LAC_OK) {
            to->start_ns[to->count] = from->start_ns[i];
            to->dur_ns[to->count] = from->dur_ns[i];
            to->name[to->count] = from->name[i];
            to->detail[to->count] = from->detail[i];
            to->lane[to->count] = from->lane[i];
            to->kind[to->count++] = from->kind[i];
        }
    }
    return status;
}

static enum lac_status take_track(struct lac_trace_file *file, uint32_t track, int64_t t0_ns,
                                  int64_t t1_ns, struct lac_slices *slices, uint64_t *capacity,
                                  struct lac_error *reterr)
{
    const unsigned wanted = LAC_COLUMNS_TILE | 1U << LAC_COLUMN_DETAIL;
    enum lac_status status = LAC_OK;

    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && file->chunks[c].start_first < t1_ns &&
         status == LAC_OK;
         c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        if (file->chunks[c].end_last < t0_ns) {
            continue;
        }
        status = lac_trace_chunk(file, c, wanted, &columns, &pin, reterr);
        if (status == LAC_OK) {
            status = take_chunk(slices, capacity, &columns->at, t0_ns, t1_ns);
            lac_cache_unpin(file->cache, pin);
        }
        if (status == LAC_OK &&
            slices->count > lac_cache_max_bytes(file->model_cache) / SLICE_BYTES) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                              "%lld ms of this trace take more memory than the model cache has "
                              "(--model-cache)",
                              (long long)((t1_ns - t0_ns) / 1000000));
        }
    }
    return status;
}

static enum lac_status fill(struct lac_trace_file *file, int64_t t0_ns, int64_t t1_ns,
                            struct lac_model *model, struct lac_error *reterr)
{
    uint64_t capacity = 0;
    /* one entry at least: a NULL column means that it is not there */
    enum lac_status status = grow(&model->slices, &capacity);

    for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
        struct lac_track *track = &model->tracks[t];

        track->first = model->slices.count;
        if (track->kind != LAC_TRACK_COUNTER) {
            status = take_track(file, t, t0_ns, t1_ns, &model->slices, &capacity, reterr);
        }
        track->count = model->slices.count - track->first;
    }
    return status == LAC_OK ? lac_trace_read_loader_infos(file, model, reterr) : status;
}

enum lac_status lac_trace_file_stretch(struct lac_trace_file *file, int64_t t0_ns, int64_t t1_ns,
                                       struct lac_model **ret_model, struct lac_error *reterr)
{
    assert(file != NULL && ret_model != NULL);
    struct lac_model *model = calloc(1, sizeof(*model));
    enum lac_status status = LAC_ERR_NOMEM;

    if (model != NULL) {
        *model = file->head;
        model->slices = (struct lac_slices){0};
        model->tracks = calloc((size_t)model->track_count + 1, sizeof(*model->tracks));
        if (model->tracks != NULL) {
            memcpy(model->tracks, file->head.tracks, model->track_count * sizeof(*model->tracks));
            status = fill(file, t0_ns, t1_ns, model, reterr);
        }
    }
    if (status != LAC_OK) {
        lac_trace_stretch_destroy(model);
        return status;
    }
    *ret_model = model;
    return LAC_OK;
}

void lac_trace_stretch_destroy(struct lac_model *model)
{
    if (model != NULL) {
        lac_model_free_columns(model);
        free(model->tracks);
        free(model);
    }
}
