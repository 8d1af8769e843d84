#ifndef LAC_ANALYSIS_DIAGNOSE_FINDINGS_LOADING_LOADING_FINDINGS_H
#define LAC_ANALYSIS_DIAGNOSE_FINDINGS_LOADING_LOADING_FINDINGS_H

/*
 * Private: the findings that explain a wait for data by what was measured of the loading
 * (loading.h), one file each. The first that is sure takes the wait; if none is,
 * lac_find_input_starvation() says how many workers it takes.
 */

#include "analysis/diagnose/findings/findings.h" // IWYU pragma: export
#include "analysis/diagnose/loading/loading.h"   // IWYU pragma: export

/** Whether a finding is one of those that explain a wait for data. */
bool lac_is_about_loading(const char *id);
/** Whether more workers may be proposed: nothing that is sure says that they do not help. */
bool lac_may_add_workers(const struct lac_diagnosis *diagnosis);
/** All findings about loading: the explanation of the wait, else how many workers. */
void lac_find_loading(struct lac_diagnosis *diagnosis);
/* Each returns whether it took the wait. */
bool lac_find_cpu_throttled(struct lac_diagnosis *diagnosis);
bool lac_find_affinity(struct lac_diagnosis *diagnosis);
bool lac_find_cpu_oversubscription(struct lac_diagnosis *diagnosis);
bool lac_find_workers_serialized(struct lac_diagnosis *diagnosis);
bool lac_find_worker_respawn(struct lac_diagnosis *diagnosis);
bool lac_find_worker_hand_over(struct lac_diagnosis *diagnosis);
bool lac_find_small_files(struct lac_diagnosis *diagnosis);
bool lac_find_storage_latency(struct lac_diagnosis *diagnosis);
bool lac_find_slow_samples(struct lac_diagnosis *diagnosis);

/* -- for those findings ------------------------------------------------------------------------ */

/** A finding about the whole wait for data, with its cost, title and severity; NULL when there is
 *  no room. */
struct lac_finding *lac_loading_open(struct lac_diagnosis *diagnosis, const char *id);
/** Price it: mean steps at best, as expected and at worst. */
void lac_loading_price(struct lac_diagnosis *diagnosis, struct lac_finding *finding, double best_ns,
                       double mid_ns, double worst_ns);
/** Evidence: the longest waits for data, with the batch that was late. */
void lac_loading_evidence(struct lac_diagnosis *diagnosis, struct lac_finding *finding);
/** The change to an argument of the loader as the user's framework writes it:
 *  "DataLoader(..., num_workers=7)", "TrainingArguments(..., dataloader_num_workers=7)". */
const char *lac_loader_code(struct lac_diagnosis *diagnosis, const char *argument,
                            const char *value);
/** Mean step when a batch takes `fetch_ns` and cores allow it: never below what else needs. */
double lac_loading_step(const struct lac_diagnosis *diagnosis, double fetch_ns);
/** More workers than there are, as the change of a finding: number, price, costs, what would refute
 *  it. @return false when they are not known to help: nothing was filled */
bool lac_propose_workers(struct lac_diagnosis *diagnosis, struct lac_finding *finding);
/** Cores that keep the batches coming: CPU time of a batch over what everything else needs. */
int32_t lac_cores_wanted(const struct lac_diagnosis *diagnosis);
/** Whether the CPU time of batches alone keeps the allowed cores busy. */
bool lac_is_short_of_cores(const struct lac_diagnosis *diagnosis);

#endif
