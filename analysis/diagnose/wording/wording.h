#ifndef LAC_ANALYSIS_DIAGNOSE_WORDING_WORDING_H
#define LAC_ANALYSIS_DIAGNOSE_WORDING_WORDING_H

/* What is said of the trace as a whole, after the findings: the verdict and the notes. */

#include "analysis/diagnose/findings/findings.h"          // IWYU pragma: export
#include "analysis/diagnose/wording/wording_thresholds.h" // IWYU pragma: export

/** unit_words.c: findings of inference, and of what does not train, in its own words. Before the verdict. */
void lac_unit_words_apply(struct lac_facts *facts);

/** verdict.c: the one sentence, what was checked and is fine, what was not recorded. */
void lac_verdict_say(struct lac_facts *facts);

/** The same, and what was not recorded, of a profile without times. */
void lac_verdict_without_time(struct lac_facts *facts);
/** profile_words.c: the functions that most of a profile lies in, "" where none is. O(slices).
 *  @return NULL: out of memory */
const char *lac_profile_top(struct lac_facts *facts);

/** log_words.c: the verdict of a log of counters. O(samples). */
void lac_log_say(struct lac_facts *facts);

/** What records the GPU in a trace of that kind: "profile with CUDA activities", "nsys profile --trace=cuda"; NULL
 *  of logs of counters and of profiles of the host, which are never of the GPU's work. */
const char *lac_records_gpu(const struct lac_model *model);
void lac_notes_write(struct lac_facts *facts);
/** notes_samples.c: of those not recorded, what "lacuna run" samples. */
void lac_note_missing_samples(struct lac_facts *facts);

#endif
