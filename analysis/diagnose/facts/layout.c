/* How much kernel time rearranges data, by the strict rule and by class. */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>

void lac_layout_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        int64_t *class_ns = &analysis->layout_by_class_ns[kernel_facts->names.layout];
        *class_ns = lac_sum_ns(*class_ns, kernel_facts->total_ns);
        analysis->layout_by_class_count[kernel_facts->names.layout] += kernel_facts->count;
        if (kernel_facts->names.is_strict_layout) {
            analysis->layout_count += kernel_facts->count;
            analysis->layout_total_ns =
                lac_sum_ns(analysis->layout_total_ns, kernel_facts->total_ns);
        }
    }
    analysis->layout_pct = analysis->kernel_count > 0 && analysis->layout_count == 0
                               ? 0.0 /* kernels of no length have no share, but none is layout */
                               : lac_pct(analysis->layout_total_ns, analysis->kernel_total_ns);
}

void lac_layout_expose(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        analysis->layout_exposed_ns += facts->device_sets[d].strict_exposed_ns;
    }
}
