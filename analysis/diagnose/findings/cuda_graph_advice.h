#ifndef LAC_ANALYSIS_DIAGNOSE_CUDA_GRAPH_ADVICE_H
#define LAC_ANALYSIS_DIAGNOSE_CUDA_GRAPH_ADVICE_H

/*
 * Private: whether CUDA graphs can hold the steps. A graph repeats the same launches; what waits,
 * allocates or differs from step to step stands in the way, and is named.
 */

#include "analysis/diagnose/findings/findings.h" // IWYU pragma: export

struct lac_cuda_graph_advice {
    double captured_pct;   /**< of the kernels are launched by graphs now */
    double waits_per_step; /**< blocking calls of the host */
    bool allocates;        /**< memory is allocated or released inside steps */
    bool varies;           /**< steps differ in how many operations they launch */
};
void lac_cuda_graph_advice_measure(const struct lac_facts *facts,
                                   struct lac_cuda_graph_advice *ret_capture);

/** What stands in the way of a graph, or that nothing was seen: a sentence with a space before. */
const char *lac_cuda_graph_advice_text(const struct lac_facts *facts,
                                       const struct lac_cuda_graph_advice *capture);

/** The cheap change first, then compiling; with graphs only where nothing stands in the way. */
const char *lac_cuda_graph_advice_change(const struct lac_facts *facts,
                                         const struct lac_cuda_graph_advice *capture);

#endif
