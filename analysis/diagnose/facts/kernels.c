/* Kernels by name: totals and the order in which they are shown. CUDA graphs that were recorded as
 * a whole compute, and are no kernels: their rows come last, beyond what the analysis counts. */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_total(const void *a, const void *b, void *context)
{
    const struct lac_kernel_facts *x = a;
    const struct lac_kernel_facts *y = b;
    const struct lac_model *model = ((const struct lac_facts *)context)->model;
    if (x->names.is_graph != y->names.is_graph) {
        return x->names.is_graph ? 1 : -1;
    }
    if (x->total_ns != y->total_ns) {
        return x->total_ns > y->total_ns ? -1 : 1;
    }
    return strcmp(lac_model_str(model, lac_model_raw_name(model, x->name)),
                  lac_model_str(model, lac_model_raw_name(model, y->name)));
}

void lac_kernels_sort(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->kernel_name_count > 1) {
        qsort_r(analysis->kernels, analysis->kernel_name_count, sizeof(*analysis->kernels),
                by_total, facts);
    }
    facts->kernel_row_count = analysis->kernel_name_count;
    for (uint32_t row = 0; row < facts->kernel_row_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        facts->kernel_row[kernel_facts->name] = row;
        if (kernel_facts->names.is_graph) {
            analysis->kernel_name_count--;
            continue;
        }
        analysis->kernel_count += kernel_facts->count;
        analysis->kernel_total_ns = lac_sum_ns(analysis->kernel_total_ns, kernel_facts->total_ns);
    }
    analysis->has_kernels = analysis->kernel_count > 0;
    int64_t unknown_ns = 0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        bool is_unknown = kernel_facts->names.family == LAC_FAMILY_OTHER;
        unknown_ns = lac_sum_ns(unknown_ns, is_unknown ? kernel_facts->total_ns : 0);
    }
    analysis->unknown_kernels_pct = lac_pct(unknown_ns, analysis->kernel_total_ns);
}
