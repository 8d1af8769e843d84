/* How much of the time that tensor cores could take they did take, by the kernels' names. */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>

void lac_tensor_core_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (!kernel_facts->names.is_eligible) {
            continue;
        }
        analysis->tensor_eligible_ns =
            lac_sum_ns(analysis->tensor_eligible_ns, kernel_facts->total_ns);
        if (kernel_facts->names.tensor_core == LAC_TENSOR_CORE_YES) {
            analysis->tensor_used_ns = lac_sum_ns(analysis->tensor_used_ns, kernel_facts->total_ns);
        } else if (kernel_facts->names.tensor_core == LAC_TENSOR_CORE_UNKNOWN) {
            analysis->tensor_unknown_ns =
                lac_sum_ns(analysis->tensor_unknown_ns, kernel_facts->total_ns);
        }
    }
    analysis->tensor_used_pct = lac_pct(analysis->tensor_used_ns, analysis->tensor_eligible_ns);
}
