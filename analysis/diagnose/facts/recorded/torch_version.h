#ifndef LAC_ANALYSIS_DIAGNOSE_TORCH_VERSION_H
#define LAC_ANALYSIS_DIAGNOSE_TORCH_VERSION_H

/* How old the PyTorch of a trace is, as far as advice has to know: what it lacks is not proposed without
 * saying from which release on it is there. */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** Releases that brought what advice proposes. */
enum lac_torch_release {
    LAC_TORCH_1_12 = 0, /**< foreach=True of the optimizers */
    LAC_TORCH_2_0,      /**< torch.compile */
    LAC_TORCH_2_3,      /**< torch.amp.GradScaler */
    LAC_TORCH_RELEASE_COUNT_
};

/**
 * Whether the trace is of a PyTorch before that release: by its version where the recorder wrote it, else by
 * a recording from before the release, or by stacks of a Python that the release does not run on. False
 * where nothing tells. O(names)
 */
bool lac_torch_is_before(const struct lac_facts *facts, enum lac_torch_release release);

/** "  # from PyTorch 2.0" behind a line that needs the release, where the trace is of an older one; else "". */
const char *lac_torch_from(const struct lac_facts *facts, enum lac_torch_release release);

#endif
