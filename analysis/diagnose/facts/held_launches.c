/*
 * Launches that a full queue holds up: each returns when the device has taken one operation from it,
 * which may be sooner than QUEUE_FULL_MIN_NS. That is no work of the host.
 */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/facts/operations.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    AHEAD_MIN = 256,     /* operations that were launched and have not begun: a queue holds about
                            1,000, of which events and markers are not recorded */
    OWN_ONE_OF = 10,     /* what a launch takes itself: the shortest tenth takes no longer */
    HELD_TIMES_OWN = 3,  /* a launch that takes so many times that was held up */
    LAUNCHES_MIN = 1000, /* of fewer that is not known */
    SAMPLES_MAX = 4096   /* so many tell what one takes itself */
};

/** The call, where a thread of the main host launched that operation; else LAC_NONE, as where it begins
 *  before its call (clocks that disagree). */
static uint32_t launch_of_host(const struct lac_facts *facts, uint64_t operation)
{
    const struct lac_model *model = facts->model;
    uint32_t call = model->slices.link[operation];
    if (!lac_is_gpu_work(model->slices.kind[operation]) || call == LAC_NONE ||
        model->slices.start_ns[call] > model->slices.start_ns[operation] ||
        lac_api_class_of(facts, model->slices.name[call]) != LAC_API_LAUNCH) {
        return LAC_NONE;
    }
    uint32_t process = model->tracks[lac_model_track_of(model, call)].process;
    return process == facts->hosts[facts->main_host].process ? call : LAC_NONE;
}

/** By when it began. */
static int64_t begun_ns(const struct lac_facts *facts, uint64_t operation)
{
    return launch_of_host(facts, operation) != LAC_NONE ? facts->model->slices.start_ns[operation]
                                                        : LAC_UNKNOWN_NS;
}

/** By when it was launched: what is launched to a stream begins in that order. */
static int64_t launched_ns(const struct lac_facts *facts, uint64_t operation)
{
    const uint32_t call = launch_of_host(facts, operation);
    return call != LAC_NONE ? facts->model->slices.start_ns[call] : LAC_UNKNOWN_NS;
}

/** @param has_any set for each track with one */
static uint64_t count_launches(const struct lac_facts *facts, bool *has_any)
{
    const struct lac_model *model = facts->model;
    uint64_t count = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        uint64_t of_track = 0;
        if ((facts->track_flags[t] & LAC_TRACK_HAS_GPU) == 0) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            of_track += launch_of_host(facts, s) != LAC_NONE;
        }
        has_any[t] = of_track > 0;
        count += track->kind == LAC_TRACK_STREAM ? of_track : 0;
    }
    return count;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return LAC_ORDER(*x, *y);
}

/** What a launch takes that nothing holds up. */
static enum lac_status measure_own(const struct lac_facts *facts, const bool *has_any,
                                   uint64_t launch_count, int64_t *ret_own_ns)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t samples_ns[SAMPLES_MAX];
    const uint64_t every = launch_count / SAMPLES_MAX + 1;
    uint64_t count = 0;
    uint64_t operation = 0;
    struct lac_operations launched;
    const enum lac_status status = lac_operations_init_by(&launched, facts, launched_ns, has_any);
    for (uint64_t i = 0; !status && lac_operations_next(&launched, &operation); i++) {
        if (i % every == 0 && count < SAMPLES_MAX) {
            samples_ns[count++] = slices->dur_ns[slices->link[operation]];
        }
    }
    lac_operations_done(&launched);
    qsort(samples_ns, count, sizeof(*samples_ns), by_time);
    *ret_own_ns = count > 0 ? samples_ns[count / OWN_ONE_OF] : 0;
    return status;
}

/** What a launch takes itself is the host's; the rest of one that was held up is added. */
static enum lac_status add_held(const struct lac_facts *facts, const bool *has_any, int64_t own_ns,
                                struct lac_spans *held)
{
    const struct lac_slices *slices = &facts->model->slices;
    const int64_t least_ns = own_ns > LAUNCH_LEAST_NS ? own_ns : LAUNCH_LEAST_NS;
    struct lac_operations launched;
    struct lac_operations begun;
    uint64_t operation = 0;
    uint64_t next = 0; /* the first that has not begun */
    uint64_t begun_count = 0;
    enum lac_status status = lac_operations_init_by(&launched, facts, launched_ns, has_any);
    if (!status) {
        status = lac_operations_init_by(&begun, facts, begun_ns, has_any);
        bool has_next = !status && lac_operations_next(&begun, &next);
        for (uint64_t i = 0; !status && lac_operations_next(&launched, &operation); i++) {
            const uint32_t call = slices->link[operation];
            const int64_t start_ns = slices->start_ns[call];
            while (has_next && slices->start_ns[next] <= start_ns) {
                has_next = lac_operations_next(&begun, &next);
                begun_count++;
            }
            if (i >= begun_count + AHEAD_MIN && slices->dur_ns[call] / HELD_TIMES_OWN >= least_ns) {
                status = lac_spans_add_unsorted(held, start_ns + own_ns,
                                                start_ns + slices->dur_ns[call]);
            }
        }
        lac_operations_done(&begun);
    }
    lac_operations_done(&launched);
    return status;
}

enum lac_status lac_held_launches_collect(const struct lac_facts *facts, struct lac_spans *held)
{
    bool *const has_any = calloc((size_t)facts->model->recorded_track_count + 1, sizeof(*has_any));
    int64_t own_ns = 0;
    if (has_any == NULL) {
        return LAC_ERR_NOMEM;
    }
    const uint64_t count = count_launches(facts, has_any);
    enum lac_status status = LAC_OK;
    if (count >= LAUNCHES_MIN) {
        status = measure_own(facts, has_any, count, &own_ns);
        status = status ? status : add_held(facts, has_any, own_ns, held);
        lac_spans_normalize(held, 0);
    }
    free(has_any);
    return status;
}
