/*
 * What the host does while the GPU waits for it: operators and steps of the optimizer by their own time,
 * without what is inside them. Where to look, where no other finding names a cause: no change is
 * proposed.
 */

#include "analysis/diagnose/findings/host/host_thresholds.h"
#include "analysis/diagnose/findings/host/host_walk.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct own_time {
    const struct lac_spans *idle;
    struct row {
        double ns;          /**< own time while the device was idle */
        uint64_t count;     /**< calls that are work */
        int64_t longest_ns; /**< of one of them, what is inside included */
        uint32_t longest;   /**< its slice */
    } * rows;               /**< by string id of the name */
};

static bool is_work(const struct lac_facts *facts, uint64_t slice)
{
    enum lac_host_class host_class = lac_host_class_of(facts, facts->model->slices.name[slice]);
    return facts->model->slices.kind[slice] == LAC_SLICE_OP
               ? host_class != LAC_HOST_LOADER_WAIT && host_class != LAC_HOST_STEP &&
                     host_class != LAC_HOST_COMM && host_class != LAC_HOST_PROFILER
               : host_class == LAC_HOST_OPTIMIZER;
}

static void visit(void *context, const struct lac_host_open *open, uint64_t slice)
{
    struct own_time *own = context;
    const struct lac_slices *slices = &open->facts->model->slices;
    int64_t idle_ns = lac_spans_length_inside(own->idle, slices->start_ns[slice],
                                              slices->start_ns[slice] + slices->dur_ns[slice]);
    if (open->depth > 0) { /* not the time of what it is inside of */
        own->rows[slices->name[open->slice[open->depth - 1]]].ns -= (double)idle_ns;
    }
    struct row *row = &own->rows[slices->name[slice]];
    row->ns += (double)idle_ns;
    if (!is_work(open->facts, slice)) {
        return;
    }
    row->count++;
    if (idle_ns > row->longest_ns) {
        row->longest_ns = idle_ns;
        row->longest = (uint32_t)slice;
    }
}

enum { NAMED_MAX = 3 };

struct named {
    uint32_t name[NAMED_MAX]; /**< string ids by (-time, id) */
    uint32_t count;
};

static struct named most(const struct own_time *own, uint32_t names, double least_ns)
{
    struct named named = {.count = 0};
    for (uint32_t n = 0; n < names; n++) {
        const struct row *row = &own->rows[n];
        if (row->longest_ns <= 0 || row->ns < least_ns ||
            row->ns < 1e6 * HOST_CALL_LONG_MS * (double)row->count) {
            continue;
        }
        uint32_t at = named.count < NAMED_MAX ? named.count++ : NAMED_MAX;
        for (; at > 0 && own->rows[named.name[at - 1]].ns < row->ns; at--) {
            if (at < NAMED_MAX) {
                named.name[at] = named.name[at - 1];
            }
        }
        if (at < NAMED_MAX) {
            named.name[at] = n;
        }
    }
    return named;
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct own_time *own, const struct named *named, double steps)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text **texts = &analysis->texts;
    double first_ns = own->rows[named->name[0]].ns / steps;
    lac_finding_open_fact(finding);
    lac_finding_cost(facts, finding, first_ns);
    finding->title = lac_texts_add(
        texts, "The longest host work while the GPU waits is %.60s: %s of every %s step (%s)",
        lac_model_str(facts->model, named->name[0]), lac_format_ns(lac_round(first_ns)).text,
        lac_format_ns(analysis->step_mean_ns).text, lac_format_pct(finding->cost_pct).text);
    const char *list = "";
    for (uint32_t i = 0; i < named->count; i++) {
        uint32_t name = named->name[i];
        list = lac_texts_add(texts, "%s%s%.60s %s", list, i > 0 ? ", " : "",
                             lac_model_str(facts->model, name),
                             lac_format_ns(lac_round(own->rows[name].ns / steps)).text);
        lac_evidence_slice(facts, finding, own->rows[name].longest,
                           i == 0 ? "the longest of them" : "the longest of its kind");
    }
    finding->why =
        lac_texts_add(texts,
                      "Own time while the GPU is idle, per step: %s. What operators call "
                      "inside is counted there.",
                      list);
}

/** Idle time of a step for which the host is to blame, or nobody known. */
static double host_idle_ns(const struct lac_step_time *time)
{
    return time->idle_ns[LAC_CAUSE_HOST] + time->idle_ns[LAC_CAUSE_LAUNCH] +
           time->idle_ns[LAC_CAUSE_UNATTRIBUTED];
}

bool lac_find_host_work(const struct lac_facts *facts, struct lac_finding *finding)
{
    if (lac_pct_of_step(facts, host_idle_ns(facts->time)) < FACT_MIN_PCT ||
        facts->analysis->main_device == LAC_NONE) {
        return false;
    }
    uint32_t names = facts->model->strings.count;
    struct own_time own = {
        .idle = &facts->device_sets[facts->analysis->main_device].idle,
        .rows = calloc(names, sizeof(*own.rows)),
    };
    bool is_found = false;
    if (own.rows != NULL) {
        double steps = lac_host_walk(facts, visit, &own);
        double least_ns = HOST_WORK_MIN_PCT / 100.0 * facts->time->step_ns * fmax(1.0, steps);
        struct named named = most(&own, names, least_ns);
        is_found = steps > 0.0 && named.count > 0;
        if (is_found) {
            explain(facts, finding, &own, &named, steps);
        }
    }
    free(own.rows);
    return is_found;
}
