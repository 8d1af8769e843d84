/*
 * Where the time of the mean kept step goes, as parts that sum to it exactly. Each is measured inside
 * the kept steps and divided by their number; what rounding leaves goes where it cut most.
 */

#include "analysis/diagnose/steps/steps.h"

#include <stdint.h>
#include <string.h>

static enum lac_status without(const struct lac_facts *facts, const struct lac_spans *spans,
                               const struct lac_spans *hidden_by, int64_t *ret_ns)
{
    struct lac_spans exposed = {0};
    enum lac_status status = lac_spans_subtract(spans, hidden_by, &exposed);
    if (!status) {
        *ret_ns = lac_spans_intersection_length(&exposed, &facts->kept);
    }
    lac_spans_done(&exposed);
    return status;
}

/** What the device worked at inside kept steps. */
static enum lac_status sum_work(const struct lac_facts *facts, int64_t *part_ns)
{
    const struct lac_device_sets *sets = &facts->device_sets[facts->analysis->main_device];
    int64_t kernels_ns = lac_spans_intersection_length(&sets->kernels, &facts->kept);
    part_ns[LAC_PART_COMPUTE] = lac_spans_intersection_length(&sets->compute, &facts->kept);
    part_ns[LAC_PART_EXPOSED_COMM] = kernels_ns - part_ns[LAC_PART_COMPUTE];
    enum lac_status status =
        without(facts, &sets->copies, &sets->kernels, &part_ns[LAC_PART_EXPOSED_COPY]);
    part_ns[LAC_PART_EXPOSED_MEMSET] = lac_spans_intersection_length(&sets->busy, &facts->kept) -
                                       kernels_ns - part_ns[LAC_PART_EXPOSED_COPY];
    return status;
}

/** Why it was idle inside kept steps. */
static void sum_idle(const struct lac_facts *facts, int64_t *part_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
            int64_t start_ns = analysis->pieces[p].start_ns;
            part_ns[lac_time_part_of(analysis->pieces[p].cause)] += lac_spans_length_inside(
                &facts->kept, start_ns, start_ns + lac_gap_piece_dur_ns(analysis, p));
        }
    }
    for (uint64_t i = 0; i < facts->outside_count; i++) {
        const struct lac_idle_piece *piece = &facts->outside[i];
        part_ns[lac_time_part_of(piece->cause)] +=
            lac_spans_length_inside(&facts->kept, piece->start_ns, piece->end_ns);
    }
}

static uint32_t largest_of(const int64_t *part_ns)
{
    uint32_t largest = 0;
    for (uint32_t part = 1; part < LAC_TIME_PART_COUNT; part++) {
        largest = part_ns[part] > part_ns[largest] ? part : largest;
    }
    return largest;
}

/** From sums over kept steps to parts of `total_ns`, none off by a nanosecond. Steps that overlap are one interval of `kept`,
 *  so that the factor is not always one by their number. */
static void divide(int64_t *part_ns, int64_t total_ns)
{
    int64_t all_ns = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        all_ns += part_ns[part];
    }
    double factor = all_ns > 0 ? (double)total_ns / (double)all_ns : 0.0;
    double cut[LAC_TIME_PART_COUNT];
    int64_t left_ns = total_ns;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        double exact = (double)part_ns[part] * factor;
        part_ns[part] = (int64_t)exact;
        cut[part] = exact - (double)part_ns[part];
        left_ns -= part_ns[part];
    }
    for (; left_ns > 0 && left_ns < LAC_TIME_PART_COUNT; left_ns--) {
        uint32_t most = 0;
        for (uint32_t part = 1; part < LAC_TIME_PART_COUNT; part++) {
            most = cut[part] > cut[most] ? part : most;
        }
        part_ns[most]++;
        cut[most] = -1.0;
    }
    part_ns[all_ns > 0 ? largest_of(part_ns) : lac_time_part_of(LAC_CAUSE_UNATTRIBUTED)] += left_ns;
}

enum lac_status lac_partition_of_step(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_time_partition *partition = &analysis->partition;
    if (analysis->main_device == LAC_NONE || analysis->step_kept_count == 0 ||
        analysis->step_mean_ns < STEP_LEAST_NS || facts->kept.count == 0) {
        return LAC_OK;
    }
    enum lac_status status = sum_work(facts, partition->part_ns);
    if (status) {
        return status;
    }
    sum_idle(facts, partition->part_ns);
    divide(partition->part_ns, analysis->step_mean_ns);
    partition->of = LAC_OF_STEP;
    partition->device = analysis->main_device;
    partition->total_ns = analysis->step_mean_ns;
    return LAC_OK;
}

/** Whether what repeats is a loop to speak of, rather than a layer or first use. */
static bool has_loop(const struct lac_analysis *analysis)
{
    switch (analysis->workload) {
    case LAC_WORKLOAD_TRAINING:
    case LAC_WORKLOAD_HOST_TRAINING:
        return true;
    case LAC_WORKLOAD_INFERENCE:
    case LAC_WORKLOAD_FEW_STEPS:
        return analysis->step_confidence >= STEPS_SURE_MIN;
    case LAC_WORKLOAD_NO_GPU:
    case LAC_WORKLOAD_COLD_START:
    case LAC_WORKLOAD_NO_STEPS:
        break;
    }
    return false;
}

const char *lac_step_unit(const struct lac_analysis *analysis)
{
    if (analysis->workload != LAC_WORKLOAD_INFERENCE) {
        return "step";
    }
    return strcmp(analysis->step_method, "nvtx") == 0 ? "iteration" : "batch";
}

void lac_partition_settle(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_time_partition *partition = &analysis->partition;
    if (analysis->main_device == LAC_NONE) {
        return;
    }
    if (partition->of == LAC_OF_STEP && has_loop(analysis)) {
        partition->per = lac_step_unit(analysis);
        return;
    }
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    *partition = (struct lac_time_partition){.of = LAC_OF_RECORDING,
                                             .device = analysis->main_device,
                                             .per = "recording",
                                             .total_ns = device->span_ns};
    for (int part = 0; part < LAC_PART_IDLE; part++) {
        partition->part_ns[part] = device->partition_ns[part];
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        partition->part_ns[lac_time_part_of((enum lac_cause)cause)] =
            device->idle_by_cause_ns[cause];
    }
}
