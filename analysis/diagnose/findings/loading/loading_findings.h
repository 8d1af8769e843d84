#ifndef LAC_ANALYSIS_DIAGNOSE_FINDINGS_LOADING_LOADING_FINDINGS_H
#define LAC_ANALYSIS_DIAGNOSE_FINDINGS_LOADING_LOADING_FINDINGS_H

/*
 * Private: the findings that explain a wait for data by what was measured of the loading
 * (loading.h), one file each. The first that is sure takes the wait; if none is,
 * lac_find_input_starvation() says how many workers it takes.
 */

#include "analysis/diagnose/findings/findings.h" // IWYU pragma: export
#include "analysis/diagnose/loading/loading.h"   // IWYU pragma: export

/** A finding about the whole wait for data: its cost, title and severity. */
void lac_loading_open(const struct lac_facts *facts, struct lac_finding *finding);
/** Estimate it: mean steps at best, as expected and at worst. */
void lac_loading_estimate(const struct lac_facts *facts, struct lac_finding *finding,
                          double best_ns, double mid_ns, double worst_ns);
/** Evidence: the longest waits for data, with the batch that was late. */
void lac_loading_evidence(const struct lac_facts *facts, struct lac_finding *finding);
/** The change to an argument of the loader as the user's framework writes it:
 *  "DataLoader(..., num_workers=7)", "TrainingArguments(..., dataloader_num_workers=7)". */
const char *lac_loader_code(const struct lac_facts *facts, const char *argument, const char *value);
/** Mean step when a batch takes `fetch_ns` and cores allow it: never below what else needs. */
double lac_loading_step(const struct lac_facts *facts, double fetch_ns);
/** More workers than there are, as the change of a finding: number, estimate, costs, what would refute
 *  it. @return false when they are not known to help: nothing was filled */
bool lac_propose_workers(const struct lac_facts *facts, struct lac_finding *finding);
/** Cores that keep the batches coming: CPU time of a batch over what everything else needs. */
int32_t lac_cores_wanted(const struct lac_facts *facts);
/** Whether the CPU time of batches alone keeps the allowed cores busy. */
bool lac_is_short_of_cores(const struct lac_facts *facts);

#endif
