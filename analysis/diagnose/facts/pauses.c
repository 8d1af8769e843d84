/*
 * When the launcher did not record: our own recordings have windows. A counter of the host tells. A
 * step with a hole in it says nothing about steps, and a device that seems idle there was not seen:
 * such time is the recorder's.
 */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>
#include <string.h>

static const char counter_name[] = "recording (on)";

static enum lac_status add_track(struct lac_facts *facts, const struct lac_track *track)
{
    const struct lac_model *model = facts->model;
    enum lac_status status = LAC_OK;
    for (uint64_t i = track->first; i < track->first + track->count && !status; i++) {
        bool is_last = i + 1 == track->first + track->count;
        if (model->sample_value[i] != 0.0 || is_last) {
            continue; /* behind the last one nothing was recorded: that is no hole */
        }
        int64_t start_ns = model->sample_ts_ns[i];
        int64_t end_ns = model->sample_ts_ns[i + 1];
        status = lac_spans_add_unsorted(&facts->pauses, start_ns, end_ns);
        if (!status) {
            status = lac_spans_add_unsorted(&facts->profiler, start_ns, end_ns);
        }
    }
    return status;
}

enum lac_status lac_pauses_collect(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    enum lac_status status = LAC_OK;
    if (model->info.format != LAC_FORMAT_LACUNA) {
        return LAC_OK;
    }
    for (uint32_t t = 0; t < model->track_count && !status; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind == LAC_TRACK_COUNTER &&
            strcmp(lac_strings_get(&model->strings, track->name), counter_name) == 0) {
            status = add_track(facts, track);
        }
    }
    lac_spans_normalize(&facts->pauses, 0);
    lac_spans_normalize(&facts->profiler, 0);
    return status;
}

void lac_pauses_leave_out(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_spans *pauses = &facts->pauses;
    uint64_t next = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        while (next < pauses->count && pauses->at[next].end_ns <= step->start_ns) {
            next++;
        }
        if (next < pauses->count && pauses->at[next].start_ns < step->start_ns + step->dur_ns) {
            step->left_out = LAC_STEP_TRUNCATED;
        }
    }
}
