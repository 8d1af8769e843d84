/* Workers are started anew for every epoch, and have nothing ready when it begins. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

/** Epochs that begin inside the recording; one is enough where workers were seen to be replaced. */
enum { EPOCHS_MIN = 2, EPOCHS_MIN_REPLACED = 1 };

/** What is saved at the first batch of an epoch where neither workers nor batches were recorded: a batch
 *  takes its worker as many steps as there are workers at most, since the others come in time. */
static double saved_by_signs(const struct lac_facts *facts)
{
    const struct lac_late_batches *late = &facts->loading->late;
    double steps = fmax(1.0, (double)facts->analysis->step_kept_count);
    double fetches_ns = FETCH_OF_STEPS * facts->time->s_ns * (double)late->epochs / steps;
    return fmax(0.0, late->first_ns - fetches_ns);
}

static const char *why_by_signs(const struct lac_facts *facts, double each_ns)
{
    const struct lac_late_batches *late = &facts->loading->late;
    return lac_texts_add(
        &facts->analysis->texts,
        "%u epochs began in this trace, each after a request that got no batch. The first batch "
        "was "
        "awaited for %s on average (%s of all waiting for data); later ones come in time. How the "
        "workers start was not recorded.",
        (unsigned)late->epochs, lac_format_ns(lac_round(each_ns)).text,
        lac_format_pct(100.0 * late->first_ns / facts->time->starved_ns).text);
}

/** Whether it is known that the workers of an epoch are new, or nothing else explains its first wait. */
static bool starts_workers(const struct lac_facts *facts, bool is_anew)
{
    const struct lac_loading *loading = facts->loading;
    const struct lac_late_batches *late = &loading->late;
    int persistent = lac_setting_truth(facts, "settings", "persistent_workers");
    if (persistent == 1 || loading->is_threads) {
        return false;
    }
    if (late->is_by_signs) {
        double each_ns = late->first_ns * (double)facts->analysis->step_kept_count /
                         fmax(1.0, (double)late->epochs);
        double others_ns = facts->time->starved_ns - late->first_ns - late->begin_ns;
        return each_ns >= FIRST_OF_STEPS_MIN * facts->time->s_ns &&
               lac_pct_of_step(facts, others_ns) < STARVED_PCT;
    }
    return is_anew || (persistent == 0 && loading->workers > 0);
}

bool lac_find_worker_respawn(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_late_batches *late = &loading->late;
    const struct lac_step_time *time = facts->time;
    bool is_anew = loading->workers > 0 && loading->respawned >= loading->workers;
    if (late->epochs < (is_anew ? EPOCHS_MIN_REPLACED : EPOCHS_MIN) ||
        !starts_workers(facts, is_anew)) {
        return false;
    }
    double saved_ns = late->is_by_signs ? saved_by_signs(facts) : late->first_saved_ns;
    /* the first epoch's start is the job's: nothing would shorten it */
    bool is_main = late->first_ns >= MAIN_PART_MIN * (time->starved_ns - late->begin_ns);
    if (!is_main || lac_pct_of_step(facts, saved_ns) < COST_MIN_PCT) {
        return false;
    }
    lac_loading_open(facts, finding);
    lac_finding_cost(facts, finding, late->first_ns);
    lac_loading_estimate(facts, finding, time->step_ns - late->first_ns, time->step_ns - saved_ns,
                         time->step_ns - RESPAWN_WORST * saved_ns);
    double each_ns = late->first_ns * (double)analysis->step_kept_count / (double)late->epochs;
    finding->title = lac_texts_add(
        &analysis->texts, "The first batch of %s epoch is %s late: its workers have just started",
        late->epochs > 1 ? "every" : "the next", lac_format_ns(lac_round(each_ns)).text);
    if (late->is_by_signs) {
        finding->confidence -= 0.2;
        finding->why = why_by_signs(facts, each_ns);
    } else {
        finding->why = lac_texts_add(
            &analysis->texts,
            "%u epoch%s began in this trace. The first batch was awaited for %s on average (%s of "
            "all "
            "waiting for data); a later batch takes %s per worker. %s",
            (unsigned)late->epochs, late->epochs == 1 ? "" : "s",
            lac_format_ns(lac_round(each_ns)).text,
            lac_format_pct(100.0 * late->first_ns / time->starved_ns).text,
            lac_format_ns(lac_round(loading->median_ns)).text,
            is_anew ? lac_texts_add(&analysis->texts, "%u worker processes replaced others.",
                                    (unsigned)loading->respawned)
                    : "persistent_workers is False: each epoch starts its workers.");
    }
    finding->change = lac_texts_add(
        &analysis->texts, "%s   # needs num_workers > 0; create the loader once, not per epoch",
        lac_loader_code(facts, "persistent_workers", "True"));
    finding->brief = "persistent_workers=True";
    finding->where = facts->settings.loader_at;
    finding->expect = lac_texts_add(
        &analysis->texts,
        "%s. Averaged over epochs of %.0f steps; the first batch still takes as long as any other.",
        lac_finding_expect(facts, finding),
        (double)analysis->step_kept_count / fmax(1.0, (double)late->epochs));
    finding->costs = "The workers' memory between epochs. Dataset changes between epochs no longer "
                     "reach the workers.";
    finding->wrong_if = "the first batch of an epoch is as late with persistent_workers=True.";
    finding->check = "record three epochs with persistent_workers=True";
    if (late->longest_first != LAC_NONE) {
        lac_evidence_slice(facts, finding, late->longest_first,
                           "waited for the first batch of an epoch");
    }
    return true;
}
