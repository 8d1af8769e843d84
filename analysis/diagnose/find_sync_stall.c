/*
 * Synchronisations that empty the queue. A call that waits lasts as long as the device has work;
 * that is not its cost. What it costs is the time the device then has none: from its return until
 * the host has launched again.
 */

#include "analysis/diagnose/findings.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CULPRITS_MAX = 16 };

/** A kind of call: its name and the operator around it. */
struct culprit {
    const char *call, *around;
    int64_t exposed_ns;
    uint64_t count;
};

/** Idle time of kept steps by the call that opened it; the most costly in *ret_worst. */
static bool find_culprit(const struct lac_diagnosis *diagnosis, struct culprit *ret_worst)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_model *model = diagnosis->model;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct culprit culprits[CULPRITS_MAX];
    uint32_t count = 0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        if (gap->root_kind != LAC_ROOT_SYNC || gap->cause != LAC_CAUSE_SYNC) {
            continue;
        }
        int64_t ns =
            lac_spans_length_inside(&diagnosis->kept, gap->start_ns, gap->start_ns + gap->dur_ns);
        const char *call = lac_model_str(model, model->slices.name[gap->root]);
        const char *around = ns > 0 ? lac_enclosing_name(model, gap->root) : "";
        uint32_t c = 0;
        while (c < count &&
               (strcmp(culprits[c].call, call) != 0 || strcmp(culprits[c].around, around) != 0)) {
            c++;
        }
        if (ns == 0 || c == CULPRITS_MAX) {
            continue;
        }
        if (c == count) {
            culprits[count++] = (struct culprit){.call = call, .around = around};
        }
        culprits[c].exposed_ns += ns;
        culprits[c].count++;
    }
    for (uint32_t c = 0; c < count; c++) {
        if (c == 0 || culprits[c].exposed_ns > ret_worst->exposed_ns) {
            *ret_worst = culprits[c];
        }
    }
    return count > 0;
}

/** What to write instead, by what waits. */
static const char *change_for(const struct culprit *culprit)
{
    bool is_item =
        strstr(culprit->around, "item") || strstr(culprit->around, "_local_scalar_dense");
    bool is_sized = strstr(culprit->around, "nonzero") || strstr(culprit->around, "index") ||
                    strstr(culprit->around, "unique") || strstr(culprit->around, "masked");
    if (is_item) {
        return "total += loss.detach()          # stays on the GPU\n"
               "if step % 50 == 0:\n"
               "    print(total.item() / 50)    # one wait in 50 steps";
    }
    if (is_sized) {
        return "x = torch.where(mask, x, zero)  # instead of x[mask]: the size stays known, so "
               "nobody waits for it";
    }
    if (strstr(culprit->call, "Memcpy")) {
        return "value = value.to('cpu', non_blocking=True)  # read it a step later";
    }
    return "# take the wait out of the loop, or make it once in 50 steps:\n"
           "if step % 50 == 0:\n"
           "    torch.cuda.synchronize()";
}

void lac_find_sync_stall(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_sync = 1;
    struct culprit worst = {.call = "", .around = ""};
    double cost_ns = diagnosis->time->idle_ns[LAC_CAUSE_SYNC];
    if (!find_culprit(diagnosis, &worst)) {
        return;
    }
    double per_step = (double)worst.count / (double)analysis->step_kept_count;
    struct lac_finding *finding =
        lac_finding_open(diagnosis, "sync-stall", cost_ns, per_step >= 5.0 ? 1.0 : 3.0, &what_if);
    if (!finding) {
        return;
    }
    finding->title = lac_texts_add(
        &analysis->texts,
        "After synchronisations the GPU has nothing to do for %s of every %s step (%s)",
        lac_say_ns(llround(cost_ns)).text, lac_say_ns(analysis->step_mean_ns).text,
        lac_say_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "The most costly is %.60s%s%.60s, %s times a step: each time the queue is empty when it "
        "returns, and the GPU idles %s until the host has launched again. How long the call itself "
        "waits costs nothing.",
        worst.call, worst.around[0] != '\0' ? " in " : "", worst.around,
        lac_say_rate(per_step).text,
        lac_say_ns(worst.exposed_ns / (int64_t)(worst.count ? worst.count : 1)).text);
    finding->brief = "synchronise less often";
    finding->change = change_for(&worst);
    finding->expect = lac_texts_add(&analysis->texts, "%s; the host's own work is the next limit.",
                                    lac_finding_expect(diagnosis, finding));
    finding->costs = "The value is known later. Keep a wait that guards something: timing code, "
                     "early stopping, a gradient scaler that checks for overflow.";
    finding->wrong_if = "another call then waits in its place: the step stays as long.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps and analyze them: %s a step",
                                   lac_say_ns(finding->step_mid_ns).text);
    lac_evidence_gaps(diagnosis, finding, LAC_CAUSE_SYNC, 3);
}
