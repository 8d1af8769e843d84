/*
 * The host's own limits: one thread that does everything, at all of a core; and collections of
 * Python's garbage while the device waits.
 */

#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- one thread -------------------------------------------------------------------------------- */

/** The thread that launched the first covered operation outside the backward pass, or LAC_NONE. */
static uint32_t launching_thread(const struct lac_facts *facts)
{
    const struct lac_step_operations *work = facts->step_operations;
    for (uint64_t i = 0; i < work->count; i++) {
        uint32_t call = facts->model->slices.link[work->ops[i].slice];
        if (call != LAC_NONE && (work->ops[i].context & LAC_OPERATION_IN_BACKWARD) == 0) {
            return lac_model_track_of(facts->model, call);
        }
    }
    return LAC_NONE;
}

/** Mean of a series over the kept steps, in its unit; a value holds until the next one. */
static double mean_of(const struct lac_facts *facts, const struct lac_track *track)
{
    const struct lac_model *model = facts->model;
    double sum = 0.0;
    double length = 0.0;
    for (uint64_t i = track->first; i + 1 < track->first + track->count; i++) {
        double ns = (double)lac_spans_length_inside(&facts->host_kept, model->sample_ts_ns[i],
                                                    model->sample_ts_ns[i + 1]);
        sum += ns * model->sample_value[i];
        length += ns;
    }
    return length > 0.0 ? sum / length : (double)NAN;
}

struct thread_load {
    double of_thread, of_busiest_other; /**< percent of a core; NaN unknown */
};

static void measure_load(const struct lac_facts *facts, uint32_t thread, struct thread_load *load)
{
    static const char what[] = ": on a core (%)";
    const struct lac_model *model = facts->model;
    *load = (struct thread_load){(double)NAN, (double)NAN};
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        const char *name = lac_model_str(model, track->name);
        const char *at = strstr(name, what);
        if (track->kind != LAC_TRACK_COUNTER || track->process != model->tracks[thread].process ||
            at == NULL || at[sizeof(what) - 1] != '\0') {
            continue;
        }
        const char *tid = at;
        while (tid > name && tid[-1] >= '0' && tid[-1] <= '9') {
            tid--;
        }
        double mean = mean_of(facts, track);
        if (strtoll(tid, NULL, 10) == model->tracks[thread].tid) {
            load->of_thread = mean;
        } else if (!isnan(mean)) {
            load->of_busiest_other =
                isnan(load->of_busiest_other) ? mean : fmax(load->of_busiest_other, mean);
        }
    }
}

bool lac_find_host_single_thread(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    uint32_t thread = launching_thread(facts);
    double cost_ns = time->idle_ns[LAC_CAUSE_LAUNCH] + time->idle_ns[LAC_CAUSE_HOST];
    if (thread == LAC_NONE || lac_pct_of_step(facts, cost_ns) < FACT_MIN_PCT) {
        return false;
    }
    struct thread_load load;
    measure_load(facts, thread, &load);
    if (isnan(load.of_thread) || load.of_thread < THREAD_FULL_PCT ||
        load.of_busiest_other >= THREAD_OTHER_PCT) {
        return false;
    }
    lac_finding_open_fact(finding);
    lac_finding_cost(facts, finding, cost_ns);
    finding->title = lac_texts_add(
        &analysis->texts,
        "One host thread is the limit: the GPU waits %s of every %s step for it (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "It runs on a core for %.0f %% of the time%s. More cores do not help: Python "
                      "runs one thread at a time.",
                      load.of_thread,
                      isnan(load.of_busiest_other)
                          ? ""
                          : lac_texts_add(&analysis->texts,
                                          ", no other thread of the process for more than %.0f "
                                          "%%",
                                          load.of_busiest_other));
    finding->change = "# move logging, metrics and augmentation to workers or a separate process\n"
                      "# fewer Python steps: foreach optimizer, torch.compile, CUDA graphs";
    finding->costs = "Engineering effort; compilation takes minutes at the start.";
    finding->wrong_if = "the thread spins in a synchronization.";
    return true;
}

/* -- collections of garbage -------------------------------------------------------------------- */

struct collections {
    struct lac_edits *edits; /**< the steps without them */
    double idle_ns;          /**< the device idle meanwhile, all kept steps */
    uint64_t count;
    uint32_t longest;
    int64_t longest_ns;
};

/** Idle time of the main device inside [start, end), also behind its last operation. */
static double idle_inside(const struct lac_facts *facts, int64_t start_ns, int64_t end_ns)
{
    const struct lac_spans *idle = &facts->device_sets[facts->analysis->main_device].idle;
    int64_t idle_ns = lac_spans_length_inside(idle, start_ns, end_ns);
    for (uint64_t i = 0; i < facts->outside_count; i++) {
        const struct lac_idle_piece *piece = &facts->outside[i];
        int64_t from_ns = piece->start_ns > start_ns ? piece->start_ns : start_ns;
        int64_t to_ns = piece->end_ns < end_ns ? piece->end_ns : end_ns;
        idle_ns += to_ns > from_ns ? lac_spans_length_inside(&facts->kept, from_ns, to_ns) : 0;
    }
    return (double)idle_ns;
}

/** Ranges named "gc" on threads of the main host, in kept steps. */
static void collect(const struct lac_facts *facts, uint32_t name, struct collections *collections)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    uint32_t process = facts->hosts[facts->main_host].process;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_THREAD || track->process != process) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            int64_t start_ns = slices->start_ns[i];
            if (slices->name[i] != name || slices->kind[i] != LAC_SLICE_RANGE ||
                lac_spans_length_inside(&facts->host_kept, start_ns, start_ns + 1) == 0) {
                continue;
            }
            int64_t end_ns = start_ns + slices->dur_ns[i];
            collections->count++;
            collections->idle_ns += idle_inside(facts, start_ns, end_ns);
            lac_edits_host_time(collections->edits, t, start_ns, end_ns, 0.0);
            if (slices->dur_ns[i] > collections->longest_ns) {
                collections->longest_ns = slices->dur_ns[i];
                collections->longest = (uint32_t)i;
            }
        }
    }
}

bool lac_find_gc_pauses(const struct lac_facts *facts, struct lac_finding *finding)
{
    static const double left[LAC_CASE_COUNT_] = {0.0, 0.1, 0.5};
    struct lac_analysis *analysis = facts->analysis;
    uint32_t name = lac_strings_find(&facts->model->strings, "gc", 2);
    if (name == 0 || name == LAC_NONE || facts->main_host == LAC_NONE) {
        return false;
    }
    struct collections collections = {.edits = lac_edits_begin(facts, finding->kind),
                                      .longest = LAC_NONE};
    collect(facts, name, &collections);
    double cost_ns = collections.idle_ns / (double)analysis->step_kept_count;
    struct lac_change changes[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        lac_change_clear(&changes[which]);
        lac_change_edit(&changes[which], collections.edits, 1.0 - left[which]);
    }
    if (!lac_finding_open_changes(facts, finding, cost_ns, COST_MIN_PCT, changes)) {
        return false;
    }
    finding->confidence = 0.8;
    finding->title = lac_texts_add(
        &analysis->texts, "The GPU waits %s of every %s step while Python collects garbage (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s of the oldest generation in %s, the longest %s; every Python thread stops during it.",
        lac_format_count((int64_t)collections.count, "collection").text,
        lac_format_count(analysis->step_kept_count, "step").text,
        lac_format_ns(collections.longest_ns).text);
    finding->brief = "collect between steps";
    finding->change =
        "import gc\n"
        "gc.collect(); gc.freeze(); gc.disable()   # before the loop\n"
        "if step % 1000 == 0: gc.collect()         # in the loop, on all ranks at once";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "Host memory: reference cycles stay until the next collection.";
    finding->wrong_if = "host memory keeps growing between collections.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    if (collections.longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, collections.longest, "the longest collection");
    }
    return true;
}
