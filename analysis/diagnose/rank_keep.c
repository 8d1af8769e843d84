#include "analysis/diagnose/rank_keep.h"

#include <stdint.h>
#include <stdlib.h>

struct lac_rank_kept {
    struct lac_model model;
    struct lac_analysis *analysis;
    uint64_t capacity;
};

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/** String ids of the kernels that communicate, ascending; the caller frees. NULL: no memory. */
static uint32_t *comm_names(const struct lac_analysis *analysis, uint32_t *ret_count)
{
    uint32_t *names = malloc(((size_t)analysis->kernel_name_count + 1) * sizeof *names);
    uint32_t count = 0;
    for (uint32_t row = 0; names && row < analysis->kernel_name_count; row++) {
        if (analysis->kernels[row].names.is_comm) {
            names[count++] = analysis->kernels[row].name;
        }
    }
    if (names && count > 1) {
        qsort(names, count, sizeof *names, by_id);
    }
    *ret_count = count;
    return names;
}

/** Room for one more slice. */
static enum lac_status reserve(struct lac_rank_kept *kept)
{
    struct lac_slices *to = &kept->model.slices;
    if (to->count < kept->capacity) {
        return LAC_OK;
    }
    uint64_t capacity = kept->capacity ? kept->capacity * 2 : 256;
    int64_t *start_ns = realloc(to->start_ns, capacity * sizeof *start_ns);
    to->start_ns = start_ns ? start_ns : to->start_ns;
    int64_t *dur_ns = realloc(to->dur_ns, capacity * sizeof *dur_ns);
    to->dur_ns = dur_ns ? dur_ns : to->dur_ns;
    uint32_t *name = realloc(to->name, capacity * sizeof *name);
    to->name = name ? name : to->name;
    uint8_t *kind = realloc(to->kind, capacity * sizeof *kind);
    to->kind = kind ? kind : to->kind;
    if (!start_ns || !dur_ns || !name || !kind) {
        return LAC_ERR_NOMEM;
    }
    kept->capacity = capacity;
    return LAC_OK;
}

static enum lac_status keep_track(struct lac_rank_kept *kept, const struct lac_model *model,
                                  uint32_t index, const uint32_t *names, uint32_t name_count)
{
    const struct lac_slices *from = &model->slices;
    const struct lac_track *track = &model->tracks[index];
    struct lac_track *own = &kept->model.tracks[index];
    struct lac_slices *to = &kept->model.slices;
    own->first = to->count;
    own->count = 0;
    if (track->kind != LAC_TRACK_STREAM || index >= model->recorded_track_count) {
        return LAC_OK;
    }
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        if (from->kind[i] != LAC_SLICE_KERNEL ||
            !bsearch(&from->name[i], names, name_count, sizeof *names, by_id)) {
            continue;
        }
        if (reserve(kept)) {
            return LAC_ERR_NOMEM;
        }
        to->start_ns[to->count] = from->start_ns[i];
        to->dur_ns[to->count] = from->dur_ns[i];
        to->name[to->count] = from->name[i];
        to->kind[to->count++] = from->kind[i];
        own->count++;
    }
    return LAC_OK;
}

enum lac_status lac_rank_keep(const struct lac_model *model, struct lac_analysis *analysis,
                              struct lac_rank_kept **ret_kept)
{
    uint32_t name_count = 0;
    uint32_t *names = comm_names(analysis, &name_count);
    struct lac_rank_kept *kept = calloc(1, sizeof *kept);
    struct lac_track *tracks = calloc((size_t)model->track_count + 1, sizeof *tracks);
    enum lac_status status = names && kept && tracks ? LAC_OK : LAC_ERR_NOMEM;
    if (status) {
        free(names);
        free(kept);
        free(tracks);
        return status;
    }
    kept->model = (struct lac_model){
        .info = model->info,
        .strings = model->strings,
        .processes = model->processes,
        .process_count = model->process_count,
        .tracks = tracks,
        .track_count = model->track_count,
        .recorded_track_count = model->recorded_track_count,
        .devices = model->devices,
        .device_count = model->device_count,
    };
    for (uint32_t t = 0; t < model->track_count && !status; t++) {
        tracks[t] = model->tracks[t];
        status = keep_track(kept, model, t, names, name_count);
    }
    free(names);
    if (status) {
        lac_rank_kept_destroy(kept);
        return status;
    }
    kept->analysis = analysis;
    *ret_kept = kept;
    return LAC_OK;
}

void lac_rank_kept_destroy(struct lac_rank_kept *kept)
{
    if (kept) {
        lac_analysis_destroy(kept->analysis);
        free(kept->model.tracks);
        free(kept->model.slices.start_ns);
        free(kept->model.slices.dur_ns);
        free(kept->model.slices.name);
        free(kept->model.slices.kind);
        free(kept);
    }
}

const struct lac_model *lac_rank_kept_model(const struct lac_rank_kept *kept)
{
    return &kept->model;
}

const struct lac_analysis *lac_rank_kept_analysis(const struct lac_rank_kept *kept)
{
    return kept->analysis;
}

uint64_t lac_rank_kept_bytes(const struct lac_rank_kept *kept)
{
    const struct lac_analysis *analysis = kept->analysis;
    return sizeof *kept + sizeof *analysis + kept->capacity * 21 +
           kept->model.track_count * sizeof(struct lac_track) +
           analysis->gap_count * sizeof(struct lac_gap) +
           analysis->piece_count * sizeof(struct lac_gap_piece) +
           analysis->signature_count * sizeof(struct lac_gap_signature) +
           analysis->kernel_name_count * sizeof(struct lac_kernel_facts) +
           analysis->step_count * sizeof(struct lac_step);
}
