/*
 * Kernels with fewer blocks than the GPU has multiprocessors: the rest of the GPU does nothing
 * while they run. Said as a fact: what a larger grid would gain, the trace does not tell.
 */

#include "analysis/diagnose/facts/gpu_counters.h"
#include "analysis/diagnose/findings/findings.h"

#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_UNKNOWN = 0, TOLERANCE_PCT = 10 };

struct small {
    double ns, wasted_ns; /**< of all covered steps */
    double all_ns;        /**< computing kernels */
    uint64_t count;
    uint32_t top; /**< slice of the kernel that wastes most */
    double top_ns;
    uint64_t top_blocks;
};

static uint64_t blocks_of(const struct lac_model *model, uint64_t slice)
{
    uint32_t row = model->slices.detail[slice];
    if (row >= model->kernel_config_count) {
        return BLOCKS_UNKNOWN;
    }
    const struct lac_kernel_config *config = &model->kernel_configs[row];
    return (uint64_t)config->grid[0] * config->grid[1] * (uint64_t)config->grid[2];
}

bool lac_find_small_grid(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_operations *work = facts->step_operations;
    const struct lac_device *device = lac_main_device(facts);
    if (device == NULL || device->sm_count <= 0 || work->steps <= 0.0) {
        return false;
    }
    struct small small = {.top = LAC_NONE};
    uint64_t sm_count = (uint64_t)device->sm_count;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        if (kernel == NULL || kernel->names.is_comm) {
            continue;
        }
        const double ns = work->ops[i].sole_ns; /* beside others it may fill the device with them */
        small.all_ns += ns;
        uint64_t blocks = blocks_of(facts->model, work->ops[i].slice);
        if (blocks == BLOCKS_UNKNOWN || blocks >= sm_count) {
            continue;
        }
        double wasted_ns = ns * (1.0 - (double)blocks / (double)sm_count);
        small.ns += ns;
        small.wasted_ns += wasted_ns;
        small.count++;
        if (wasted_ns > small.top_ns) {
            small.top_ns = wasted_ns;
            small.top = work->ops[i].slice;
            small.top_blocks = blocks;
        }
    }
    double cost_ns = small.wasted_ns / work->steps;
    if (small.top == LAC_NONE || lac_pct_of_step(facts, cost_ns) < FACT_MIN_PCT) {
        return false;
    }
    struct lac_gpu_counters counters;
    lac_gpu_counters_measure(facts, &counters);
    if (counters.sms_active > 100.0 - lac_pct_of_step(facts, cost_ns) + TOLERANCE_PCT) {
        return false; /* others run beside them: the multiprocessors do have work */
    }
    lac_finding_open_fact(finding);
    lac_finding_cost(facts, finding, cost_ns);
    finding->title = lac_texts_add(
        &analysis->texts, "Kernels with fewer blocks than SMs take %s of every %s step (%s)",
        lac_format_ns(lac_round(small.ns / work->steps)).text,
        lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(lac_pct_of_step(facts, small.ns / work->steps)).text);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "%s kernels per step have fewer blocks than the GPU's %d SMs and waste %s of "
                      "its compute time.%s",
                      lac_format_rate((double)small.count / work->steps).text, device->sm_count,
                      lac_format_pct(100.0 * small.wasted_ns / small.all_ns).text,
                      lac_gpu_counters_text(facts, &counters));
    finding->change = "Do more work per launch: batch small GEMMs (torch.bmm), merge branches that "
                      "run one after the other, or run several models on one GPU.";
    finding->costs = "A larger batch would also fill the GPU but changes training: recheck "
                     "learning rate and accuracy.";
    finding->wrong_if = "these kernels are memory-bound: more blocks would not be faster.";
    lac_evidence_slice(facts, finding, small.top,
                       lac_texts_add(&analysis->texts, "%s: %llu of %d SMs have a block",
                                     lac_step_operation_kernel_name(facts, small.top),
                                     (unsigned long long)small.top_blocks, device->sm_count));
    return true;
}
