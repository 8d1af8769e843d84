/*
 * Clocks that the GPU holds down while steps run, and energy. Only from samples: readings of power
 * are means over up to a second, so energy is told over windows of several seconds alone.
 */

#include "analysis/diagnose/facts/gpu_memory.h"
#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REASON_POWER_CAP = 0x4,
    REASON_HARDWARE = 0x8,
    REASON_THERMAL = 0x20 | 0x40,
    REASON_POWER_BRAKE = 0x80,
    WINDOW_MIN_S = 5,
    QUIET_MIN_S = 2,
};
#define NS_PER_S 1e9

/** From the first kept step to the last; false when it is too short for samples. */
static bool window_of(const struct lac_facts *facts, int64_t *ret_start_ns, int64_t *ret_end_ns,
                      double least_s)
{
    const struct lac_spans *kept = &facts->kept;
    if (kept->count == 0) {
        return false;
    }
    *ret_start_ns = kept->at[0].start_ns;
    *ret_end_ns = kept->at[kept->count - 1].end_ns;
    return (double)(*ret_end_ns - *ret_start_ns) >= least_s * NS_PER_S;
}

/** How much slower computing was than at the highest clock that was seen: 0.9 is a tenth. */
static double clock_share(const struct lac_facts *facts, int64_t start_ns, int64_t end_ns)
{
    struct lac_gpu_series clock;
    if (!lac_gpu_series_find(facts, "SM clock (MHz)", &clock)) {
        return (double)NAN;
    }
    double most = lac_gpu_series_max(&clock, 0, end_ns);
    double mean = lac_gpu_series_mean(&clock, start_ns, end_ns);
    return most > 0.0 && mean > 0.0 ? fmin(1.0, mean / most) : (double)NAN;
}

static void say_clocks(const struct lac_facts *facts, struct lac_finding *finding, double hot_pct,
                       double braked_pct, double capped_pct, double share)
{
    /* kernels that wait for memory do not get faster with the clock */
    static const double follows[LAC_CASE_COUNT_] = {1.0, 0.5, 0.0};
    struct lac_analysis *analysis = facts->analysis;
    bool is_hot = hot_pct >= HELD_FAULT_PCT;
    bool is_braked = !is_hot && braked_pct >= HELD_FAULT_PCT;
    bool is_estimated = false;
    if (!isnan(share) && share < 1.0) {
        struct lac_change changes[LAC_CASE_COUNT_];
        for (int which = 0; which < LAC_CASE_COUNT_; which++) {
            lac_change_clear(&changes[which]);
            double factor = 1.0 - follows[which] * (1.0 - share);
            changes[which].factor[LAC_OP_COMPUTE] = factor;
            changes[which].factor[LAC_OP_LAYOUT] = factor;
            changes[which].factor[LAC_OP_UNUSED_TENSOR] = factor;
        }
        double cost_ns = (1.0 - share) * facts->time->compute_ns;
        is_estimated = lac_finding_open_changes(facts, finding, cost_ns, COST_MIN_PCT, changes);
    }
    if (!is_estimated) {
        lac_finding_open_fact(finding);
    }
    finding->severity =
        is_hot || is_braked ? LAC_SEVERITY_WARNING : (enum lac_severity)LAC_SEVERITY_INFO;
    finding->title = lac_texts_add(&analysis->texts, "The GPU was throttled for %s of the time: %s",
                                   lac_format_pct(is_hot      ? hot_pct
                                                  : is_braked ? braked_pct
                                                              : capped_pct)
                                       .text,
                                   is_hot      ? "temperature"
                                   : is_braked ? "power brake"
                                               : "power limit reached");
    const char *clocks =
        isnan(share) ? "The clock itself was not recorded."
                     : lac_texts_add(&analysis->texts,
                                     "The clock was %.0f %% of the highest in this recording.",
                                     100.0 * share);
    finding->why = lac_texts_add(&analysis->texts, "The reason is from the driver. %s", clocks);
    finding->brief = is_hot ? "cool the GPU" : is_braked ? "check the power supply" : "power limit";
    finding->change =
        is_hot
            ? "nvidia-smi -q -d TEMPERATURE,PERFORMANCE   # check fans, dust and neighboring GPUs"
        : is_braked ? "nvidia-smi -q -d POWER,PERFORMANCE   # and tell the administrator: power "
                      "brake"
                    : "nvidia-smi -q -d POWER   # the limit; raise it with sudo nvidia-smi -pl "
                      "WATTS if allowed";
    if (finding->step_mid_ns != LAC_UNKNOWN_NS) {
        finding->expect = lac_texts_add(
            &analysis->texts, "%s. Assumes that compute scales with the clock, at most fully.",
            lac_finding_expect(facts, finding));
    }
    finding->costs = is_hot || is_braked
                         ? "None."
                         : "Power and heat. Large GEMMs usually reach the power limit.";
    finding->wrong_if = "the highest clock was a short peak while the GPU was idle.";
    finding->check = "nvidia-smi -q -d PERFORMANCE during training shows the active reasons";
}

bool lac_find_clocks_held_down(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_gpu_series reasons;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    if (!window_of(facts, &start_ns, &end_ns, 1.0) ||
        !lac_gpu_series_find(facts, "clocks held down (reasons)", &reasons)) {
        return false;
    }
    double hot_pct = lac_gpu_series_bits_pct(&reasons, REASON_THERMAL, start_ns, end_ns);
    double braked_pct =
        lac_gpu_series_bits_pct(&reasons, REASON_POWER_BRAKE | REASON_HARDWARE, start_ns, end_ns);
    double capped_pct = lac_gpu_series_bits_pct(&reasons, REASON_POWER_CAP, start_ns, end_ns);
    if (hot_pct < HELD_FAULT_PCT && braked_pct < HELD_FAULT_PCT && capped_pct < HELD_LIMIT_PCT) {
        return false;
    }
    say_clocks(facts, finding, hot_pct, braked_pct, capped_pct,
               clock_share(facts, start_ns, end_ns));
    return true;
}

/* -- energy ------------------------------------------------------------------------------------ */

/** The counter at `at_ns`, between two readings in proportion; NaN before the first or behind the
 *  last one. */
static double counter_at(const struct lac_gpu_series *energy, int64_t at_ns)
{
    for (uint64_t i = 0; i + 1 < energy->count; i++) {
        if (energy->ts_ns[i] <= at_ns && at_ns <= energy->ts_ns[i + 1]) {
            double length = (double)(energy->ts_ns[i + 1] - energy->ts_ns[i]);
            double part = length > 0.0 ? (double)(at_ns - energy->ts_ns[i]) / length : 0.0;
            return energy->value[i] + part * (energy->value[i + 1] - energy->value[i]);
        }
    }
    return (double)NAN;
}

/** Power while nothing runs: least mean over two seconds in which the GPU was not used; NaN. */
static double idle_power(const struct lac_facts *facts)
{
    struct lac_gpu_series power;
    struct lac_gpu_series use;
    bool has_use = lac_gpu_series_find(facts, "GPU utilization (%)", &use) ||
                   lac_gpu_series_find(facts, "GPU utilisation (%)", &use); /* older recordings */
    if (!lac_gpu_series_find(facts, "power (W)", &power) || !has_use) {
        return (double)NAN;
    }
    double least = (double)NAN;
    for (uint64_t i = 0; i + 1 < use.count; i++) {
        double length_s = (double)(use.ts_ns[i + 1] - use.ts_ns[i]) / NS_PER_S;
        if (use.value[i] > 0.0 || length_s < QUIET_MIN_S) {
            continue;
        }
        /* its first second still shows what was before */
        double mean =
            lac_gpu_series_mean(&power, use.ts_ns[i] + (int64_t)NS_PER_S, use.ts_ns[i + 1]);
        least = isnan(least) ? mean : fmin(least, mean);
    }
    return least;
}

bool lac_find_energy(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_gpu_series energy;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    if (!window_of(facts, &start_ns, &end_ns, WINDOW_MIN_S) ||
        !lac_gpu_series_find(facts, "energy (J)", &energy)) {
        return false;
    }
    double joules = counter_at(&energy, end_ns) - counter_at(&energy, start_ns);
    double window_s = (double)(end_ns - start_ns) / NS_PER_S;
    if (!(joules > 0.0)) { /* or not a number */
        return false;
    }
    lac_finding_open_fact(finding);
    double steps = window_s * NS_PER_S / facts->time->step_ns;
    double idle_w = idle_power(facts);
    double idle_ns = 0.0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        idle_ns += facts->time->idle_ns[cause];
    }
    finding->title = lac_texts_add(&analysis->texts, "Energy: about %s J per step, %s W on average",
                                   lac_format_rate(joules / steps).text,
                                   lac_format_rate(joules / window_s).text);
    const char *waiting =
        isnan(idle_w)
            ? " Idle power was not measured: the GPU was never idle for seconds."
            : lac_texts_add(&analysis->texts,
                            " Idle time accounts for about %s J: %s per step at %s W.",
                            lac_format_rate(idle_w * idle_ns / NS_PER_S).text,
                            lac_format_ns(lac_round(idle_ns)).text, lac_format_rate(idle_w).text);
    const char *samples = isfinite(lac_step_samples(analysis))
                              ? lac_texts_add(&analysis->texts, ", %.2g J per sample",
                                              joules / steps / lac_step_samples(analysis))
                              : "";
    finding->why =
        lac_texts_add(&analysis->texts, "From the GPU's energy counter over %.0f s (%s%s).%s",
                      window_s, lac_format_count(lac_round(steps), "step").text, samples, waiting);
    finding->wrong_if = "other jobs used the same GPU at the same time.";
    return true;
}
