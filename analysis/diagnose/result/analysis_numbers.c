/* Whether what is said of a trace can be true of any trace: no cost beyond the step, no gain beyond the
 * cost, no length beyond the recording, nothing that JSON does not carry. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/saturate.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Means and scaled times are rounded. */
static const int64_t SLACK_NS = 1000;

static bool is_number(int64_t value)
{
    return value >= 0 && value <= LAC_NUMBER_MAX;
}

static bool is_known_number(int64_t value)
{
    return value == LAC_UNKNOWN_NS || is_number(value);
}

/** At most as long as the recording. */
static bool is_inside(const struct lac_analysis *analysis, int64_t ns)
{
    return ns == LAC_UNKNOWN_NS || (ns >= 0 && ns <= analysis->duration_ns + SLACK_NS);
}

static bool is_pct(double pct)
{
    return isnan(pct) || (pct >= -1e-6 && pct <= 100.0 + 1e-6);
}

static bool devices_are_sane(const struct lac_analysis *analysis)
{
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        const struct lac_device_facts *device = &analysis->devices[d];
        bool is_sane = device->first_ns >= 0 && is_inside(analysis, device->span_ns) &&
                       is_pct(device->busy_pct) && is_pct(device->not_computing_pct);
        for (int part = 0; part < LAC_PART_COUNT_; part++) {
            is_sane = is_sane && is_number(device->partition_ns[part]);
        }
        for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
            is_sane = is_sane && is_number(device->idle_by_cause_ns[cause]);
        }
        if (!is_sane) {
            return false;
        }
    }
    return true;
}

static bool steps_are_sane(const struct lac_analysis *analysis)
{
    return is_inside(analysis, analysis->step_mean_ns) &&
           is_inside(analysis, analysis->step_median_ns) &&
           is_inside(analysis, analysis->step_p95_ns) &&
           is_inside(analysis, analysis->step_host_ns) &&
           is_inside(analysis, analysis->step_without_starvation_ns) &&
           !isinf(analysis->throughput_per_s) && !isinf(analysis->step_spread_pct) &&
           !isinf(analysis->step_uncertain_pct) && is_pct(analysis->padding_pct);
}

static bool tables_are_sane(const struct lac_analysis *analysis)
{
    bool is_sane = is_number(analysis->kernel_total_ns) && is_pct(analysis->layout_pct) &&
                   is_pct(analysis->tensor_used_pct);
    for (uint32_t k = 0; k < analysis->kernel_name_count && is_sane; k++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[k];
        is_sane = is_number(kernel->total_ns) && kernel->min_ns <= kernel->max_ns &&
                  kernel->max_ns <= kernel->total_ns;
    }
    for (uint32_t c = 0; c < analysis->copy_count && is_sane; c++) {
        const struct lac_copy_facts *copy = &analysis->copies[c];
        is_sane = is_number(copy->total_ns) && is_known_number(copy->exposed_ns) &&
                  copy->exposed_ns <= copy->total_ns && is_known_number(copy->bytes);
    }
    return is_sane;
}

static bool loader_is_sane(const struct lac_analysis *analysis)
{
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_loading_facts *loading = &analysis->loading;
    bool is_sane =
        is_known_number(loader->wait_ns) && is_known_number(loader->starved_ns) &&
        is_known_number(loader->fetch_mean_ns) && is_known_number(loader->fetch_p95_ns) &&
        is_known_number(loader->fetch_cpu_mean_ns) && is_known_number(loader->pin_mean_ns) &&
        is_pct(loader->wait_pct_of_steps) && is_pct(loader->worker_busy_pct);
    for (uint32_t p = 0; p < loading->part_count && is_sane; p++) {
        is_sane = is_number(loading->parts[p].own_ns) &&
                  is_known_number(loading->parts[p].cpu_ns) &&
                  is_known_number(loading->parts[p].bytes);
    }
    return is_sane;
}

static bool needs_are_sane(const struct lac_needs *needs)
{
    return is_known_number(needs->data_ns) && is_known_number(needs->host_ns) &&
           is_known_number(needs->copies_ns) && is_known_number(needs->gpu_ns) &&
           is_known_number(needs->comm_ns) && is_known_number(needs->alone_ns);
}

/** Best, expected, worst. */
static bool is_band(int64_t low_ns, int64_t mid_ns, int64_t high_ns)
{
    bool is_unknown = low_ns == LAC_UNKNOWN_NS && mid_ns == low_ns && high_ns == low_ns;
    return is_unknown ||
           (is_number(low_ns) && low_ns <= mid_ns && mid_ns <= high_ns && is_number(high_ns));
}

/** No change saves more of the step than its finding costs. */
static bool is_paid_for(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    enum { ROUNDED_NS = 1 };
    return finding->step_low_ns == LAC_UNKNOWN_NS ||
           analysis->step_mean_ns - finding->step_low_ns <= finding->cost_ns_per_step + ROUNDED_NS;
}

static bool findings_are_sane(const struct lac_analysis *analysis)
{
    bool is_sane = true;
    for (uint32_t i = 0; i < analysis->finding_count && is_sane; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        is_sane = is_inside(analysis, finding->cost_ns_per_step) && is_pct(finding->cost_pct) &&
                  is_pct(finding->gain_low_pct) && is_pct(finding->gain_mid_pct) &&
                  is_pct(finding->gain_high_pct) && finding->confidence >= 0.0 &&
                  finding->confidence <= 1.0 && is_paid_for(analysis, finding) &&
                  is_band(finding->step_low_ns, finding->step_mid_ns, finding->step_high_ns);
    }
    for (uint32_t i = 0; i < analysis->plan_count && is_sane; i++) {
        is_sane = is_number(analysis->plan[i].step_ns) && is_pct(analysis->plan[i].gain_pct);
    }
    return is_sane && (!analysis->has_what_if ||
                       is_band(analysis->what_if_step.low_ns, analysis->what_if_step.mean_ns,
                               analysis->what_if_step.high_ns));
}

bool lac_analysis_is_sane(const struct lac_analysis *analysis)
{
    return devices_are_sane(analysis) && steps_are_sane(analysis) && tables_are_sane(analysis) &&
           loader_is_sane(analysis) && needs_are_sane(&analysis->needs) &&
           findings_are_sane(analysis);
}
