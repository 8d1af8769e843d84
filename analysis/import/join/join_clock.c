/* Where a joined file lies in the time of the trace. */

#include "analysis/import/join/join_models.h"
#include "analysis/import/join/join_private.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <string.h>

/* Times of day lie between 2001 and 2096; what counts from a start or a boot does not. */
#define DAY_FIRST_NS INT64_C(1000000000000000000)
#define DAY_LAST_NS  INT64_C(4000000000000000000)

/* Zones differ from UTC by quarters of an hour, 14 hours at most. */
#define ZONE_STEP_NS INT64_C(900000000000)
enum { ZONE_STEPS = 56 };

static bool tells_time_of_day(const struct lac_model *model)
{
    return model->info.t0_ns >= DAY_FIRST_NS && model->info.t0_ns < DAY_LAST_NS;
}

static bool names_no_zone(const struct lac_model *model)
{
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strcmp(model->report[i].code, "times_without_zone") == 0) {
            return true;
        }
    }
    return false;
}

bool lac_join_has_slices(const struct lac_model *model)
{
    return model->slices.count > 0;
}

bool lac_join_has_gpu_work(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_STREAM && model->tracks[t].count > 0) {
            return true;
        }
    }
    return false;
}

/* Whether what begins at `shift_ns` meets the trace at all. */
static bool meets(const struct lac_model *trace, const struct lac_model *other, int64_t shift_ns)
{
    return shift_ns <= trace->info.duration_ns && shift_ns + other->info.duration_ns >= 0;
}

/* The one zone in which a log meets the trace. @return whether there is exactly one */
static bool guess_zone(const struct lac_model *trace, const struct lac_model *other,
                       int64_t shift_ns, int64_t *ret_zone_ns)
{
    uint32_t count = 0;
    for (int step = -ZONE_STEPS; step <= ZONE_STEPS; step++) {
        int64_t zone_ns = step * ZONE_STEP_NS;
        if (meets(trace, other, shift_ns + zone_ns)) {
            *ret_zone_ns = zone_ns;
            count++;
        }
    }
    return count == 1;
}

static enum lac_status do_not_meet(const struct lac_model *trace, const char *trace_name,
                                   const struct lac_join_member *member, int64_t shift_ns,
                                   struct lac_error *reterr)
{
    const bool is_before = shift_ns < 0;
    const int64_t apart_ns = is_before ? -(shift_ns + member->model->info.duration_ns)
                                       : shift_ns - trace->info.duration_ns;
    return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                    "%.80s %s %.80s by %.3g s: where their clocks differ, say by how much with "
                    "--offset SECONDS",
                    member->name, is_before ? "ends before" : "begins after", trace_name,
                    (double)apart_ns * 1e-9);
}

enum lac_status lac_join_clock_of(const struct lac_model *trace, const char *trace_name,
                                  const struct lac_join_member *member,
                                  struct lac_join_clock *ret_clock, struct lac_error *reterr)
{
    const struct lac_model *other = member->model;
    *ret_clock = (struct lac_join_clock){.shift_ns = 0};
    if (other->info.has_no_time) {
        return LAC_OK;
    }
    const bool is_told = tells_time_of_day(trace) && tells_time_of_day(other);
    if (!is_told && !member->has_offset) {
        const bool knows_trace = tells_time_of_day(trace);
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the times of %.80s are not times of day: say with --offset SECONDS when "
                        "%.80s begins, counted from the start of %.80s",
                        knows_trace ? member->name : trace_name, member->name, trace_name);
    }
    const int64_t given_ns = member->has_offset ? member->offset_ns : 0;
    int64_t shift_ns = given_ns;
    if (is_told) {
        shift_ns += other->info.t0_ns - trace->info.t0_ns;
    }
    if (!meets(trace, other, shift_ns)) {
        int64_t zone_ns = 0;
        const bool may_guess = is_told && !member->has_offset && names_no_zone(other);
        if (!may_guess || !guess_zone(trace, other, shift_ns, &zone_ns)) {
            return do_not_meet(trace, trace_name, member, shift_ns, reterr);
        }
        ret_clock->guessed_zone_ns = zone_ns;
        shift_ns += zone_ns;
    }
    ret_clock->shift_ns = shift_ns;
    return LAC_OK;
}

/* ---- counters ---- */

uint64_t lac_join_cut_counters(struct lac_model *model, int64_t from_ns, int64_t to_ns)
{
    uint64_t kept = 0;
    const uint64_t before = model->sample_count;
    for (uint32_t t = 0; t < model->track_count; t++) {
        struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_COUNTER) {
            continue;
        }
        const uint64_t end = track->first + track->count;
        uint64_t i = track->first;
        while (i < end && model->sample_ts_ns[i] < from_ns) {
            i++;
        }
        const bool has_value_before =
            i > track->first && (i == end || model->sample_ts_ns[i] > from_ns);
        uint64_t at = kept;
        if (has_value_before) { /* it still stood at the start */
            model->sample_value[at] = model->sample_value[i - 1];
            model->sample_ts_ns[at] = from_ns;
            at++;
        }
        for (; i < end && model->sample_ts_ns[i] <= to_ns; i++, at++) {
            model->sample_value[at] = model->sample_value[i];
            model->sample_ts_ns[at] = model->sample_ts_ns[i];
        }
        track->first = kept;
        track->count = at - kept;
        kept = at;
    }
    model->sample_count = kept;
    return before - kept;
}
