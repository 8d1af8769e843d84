/*
 * Launches that a full queue holds up: each returns when the device has taken one operation from it,
 * which may be sooner than QUEUE_FULL_MIN_NS. That is no work of the host.
 */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/order.h"

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

struct launch {
    int64_t start_ns, end_ns;
};

struct launches {
    struct launch *calls; /* by start */
    int64_t *begun_ns;    /* when what they launched began, sorted */
    uint64_t count;
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

/** Count the launches of the main host, and write them down once there is room for them. */
static void collect(const struct lac_facts *facts, struct launches *launches)
{
    const struct lac_model *model = facts->model;
    launches->count = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        for (uint64_t s = track->first;
             track->kind == LAC_TRACK_STREAM && s < track->first + track->count; s++) {
            uint32_t call = launch_of_host(facts, s);
            if (call == LAC_NONE) {
                continue;
            }
            if (launches->calls != NULL) {
                int64_t start_ns = model->slices.start_ns[call];
                int64_t dur_ns = model->slices.dur_ns[call];
                launches->calls[launches->count] = (struct launch){start_ns, start_ns + dur_ns};
                launches->begun_ns[launches->count] = model->slices.start_ns[s];
            }
            launches->count++;
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const struct launch *x = a;
    const struct launch *y = b;
    return x->start_ns != y->start_ns ? LAC_ORDER(x->start_ns, y->start_ns)
                                      : LAC_ORDER(x->end_ns, y->end_ns);
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return LAC_ORDER(*x, *y);
}

/** Those of one thread and one stream are sorted as they come. */
static void sort(struct launches *launches)
{
    bool are_calls = true;
    bool are_begun = true;
    for (uint64_t i = 1; i < launches->count; i++) {
        are_calls = are_calls && by_start(&launches->calls[i - 1], &launches->calls[i]) <= 0;
        are_begun = are_begun && launches->begun_ns[i - 1] <= launches->begun_ns[i];
    }
    if (!are_calls) {
        qsort(launches->calls, launches->count, sizeof(*launches->calls), by_start);
    }
    if (!are_begun) {
        qsort(launches->begun_ns, launches->count, sizeof(*launches->begun_ns), by_time);
    }
}

/** What a launch takes that nothing holds up. */
static int64_t own_of(const struct launches *launches)
{
    int64_t samples_ns[SAMPLES_MAX];
    uint64_t every = launches->count / SAMPLES_MAX + 1;
    uint64_t count = 0;
    for (uint64_t i = 0; i < launches->count; i += every) {
        samples_ns[count++] = launches->calls[i].end_ns - launches->calls[i].start_ns;
    }
    qsort(samples_ns, count, sizeof(*samples_ns), by_time);
    return samples_ns[count / OWN_ONE_OF];
}

/** What a launch takes itself is the host's; the rest of one that was held up is added. */
static enum lac_status add_held(const struct launches *launches, struct lac_spans *held)
{
    int64_t own_ns = own_of(launches);
    int64_t least_ns = own_ns > LAUNCH_LEAST_NS ? own_ns : LAUNCH_LEAST_NS;
    uint64_t begun = 0;
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0; i < launches->count && !status; i++) {
        const struct launch *call = &launches->calls[i];
        while (begun < launches->count && launches->begun_ns[begun] <= call->start_ns) {
            begun++;
        }
        int64_t dur_ns = call->end_ns - call->start_ns;
        if (i >= begun + AHEAD_MIN && dur_ns / HELD_TIMES_OWN >= least_ns) {
            status = lac_spans_add_unsorted(held, call->start_ns + own_ns, call->end_ns);
        }
    }
    return status;
}

enum lac_status lac_held_launches_collect(const struct lac_facts *facts, struct lac_spans *held)
{
    struct launches launches = {.calls = NULL};
    collect(facts, &launches);
    if (launches.count < LAUNCHES_MIN) {
        return LAC_OK;
    }
    launches.calls = malloc(launches.count * sizeof(*launches.calls));
    launches.begun_ns = malloc(launches.count * sizeof(*launches.begun_ns));
    enum lac_status status = LAC_ERR_NOMEM;
    if (launches.calls != NULL && launches.begun_ns != NULL) {
        collect(facts, &launches);
        sort(&launches);
        status = add_held(&launches, held);
        lac_spans_normalize(held, 0);
    }
    free(launches.calls);
    free(launches.begun_ns);
    return status;
}
