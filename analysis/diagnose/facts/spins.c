/*
 * A host that asks again and again whether the device is done waits for it, though no call of it
 * lasts: `while not event.query(): pass` is a synchronization. Calls that ask, one soon after the
 * other with no other call of the device between them, are one wait; a single one is a look. So are
 * those of an allocator, which asks for many events in a row: what is waited for ends when the last
 * one is asked for, and its stream has nothing more to do until the host goes on.
 */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>

/** Whether a stream's last operation ended since `from_ns`, and its next one starts when the host can
 *  have launched it behind `end_ns`. */
static bool has_drained(const struct lac_model *model, uint32_t track, int64_t from_ns,
                        int64_t end_ns)
{
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *at = &model->tracks[track];
    uint64_t next = lac_model_lower_bound(model, track, end_ns);
    if (next == at->first) {
        return false;
    }
    int64_t ended_ns = slices->start_ns[next - 1] + slices->dur_ns[next - 1];
    bool is_last =
        next == at->first + at->count || slices->start_ns[next] >= end_ns + LAUNCH_LEAST_NS;
    return is_last && ended_ns >= from_ns - SYNC_RETURN_NS && ended_ns <= end_ns + LAUNCH_LEAST_NS;
}

/** Whether the device is done with something when the row of queries ends. */
static bool ends_with_device(const struct lac_facts *facts, int64_t from_ns, int64_t end_ns)
{
    const struct lac_model *model = facts->model;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        bool is_stream = model->tracks[t].kind == LAC_TRACK_STREAM &&
                         (facts->track_flags[t] & LAC_TRACK_HAS_GPU) != 0;
        if (is_stream && has_drained(model, t, from_ns, end_ns)) {
            return true;
        }
    }
    return false;
}

bool lac_spin_at(const struct lac_facts *facts, uint64_t first, struct lac_spin *ret_spin)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, first)];
    uint64_t count = 0;
    int64_t before_ns = slices->start_ns[first]; /* the last but one was asked then, */
    int64_t asked_ns = before_ns;                /* and the last one */
    *ret_spin = (struct lac_spin){.last = first, .end_ns = slices->start_ns[first]};
    for (uint64_t i = first; i < track->first + track->count; i++) {
        if (slices->start_ns[i] - ret_spin->end_ns > QUERIES_APART_MAX_NS) {
            break;
        }
        enum lac_api_class api_class = slices->kind[i] == LAC_SLICE_API
                                           ? lac_api_class_of(facts, slices->name[i])
                                           : LAC_API_OTHER;
        if (api_class == LAC_API_QUERY) {
            before_ns = asked_ns;
            asked_ns = slices->start_ns[i];
            ret_spin->last = i;
            ret_spin->end_ns = slices->start_ns[i] + slices->dur_ns[i];
            count++;
        } else if (api_class != LAC_API_OTHER) {
            break;
        }
    }
    return count >= SPIN_QUERIES_MIN && ret_spin->end_ns - slices->start_ns[first] >= SPIN_MIN_NS &&
           ends_with_device(facts, before_ns, ret_spin->end_ns);
}
