#ifndef LAC_ANALYSIS_COMPARE_COMPARE_PRIVATE_H
#define LAC_ANALYSIS_COMPARE_COMPARE_PRIVATE_H

/* Private to analysis/compare: one function a file, in the order in which
 * lac_compare() calls them. */

#include "analysis/compare/compare.h"

/** What a step consists of. */
LAC_MUST_USE enum lac_status lac_compare_measure(const struct lac_model *model,
                                                 const struct lac_analysis *analysis,
                                                 struct lac_compare_steps *ret_steps);

/** Fills operators. */
LAC_MUST_USE enum lac_status lac_compare_operators_measure(const struct lac_model *model,
                                                           const struct lac_analysis *analysis,
                                                           struct lac_compare_facts *facts);

/** How loss or accuracy end; `ends` has LAC_COMPARE_METRIC_COUNT entries. */
LAC_MUST_USE enum lac_status lac_compare_ends(const struct lac_model *model,
                                              struct lac_compare_end *ends);

/** Whether and why not: fills refusal, why_not, what both have in common. */
LAC_MUST_USE enum lac_status lac_compare_programs(const struct lac_compare_side sides[2],
                                                  struct lac_comparison *comparison);

/** Whether a step of one takes more batches than one of the other, as far as is known. */
bool lac_compare_batches_differ(const struct lac_analysis *a, const struct lac_analysis *b);

/** Samples that a step takes, of all its batches where both of the two are known; below 0 unknown. */
double lac_compare_samples(const struct lac_analysis *analysis, const struct lac_analysis *other);

/** What the two are to each other: fills relation. */
void lac_compare_relate(const struct lac_compare_side sides[2], struct lac_comparison *comparison);

/** A setting that a recording shows by itself; "" on both sides where one does not. */
struct lac_compare_trait {
    const char *key;
    const char *value[2];
};
enum { LAC_COMPARE_TRAITS = 5 };
void lac_compare_traits(const struct lac_compare_side sides[2],
                        struct lac_compare_trait traits[LAC_COMPARE_TRAITS]);

/** The noise test: fills step, throughput, noise floor, verdict. */
LAC_MUST_USE enum lac_status lac_compare_noise(const struct lac_compare_side *a,
                                               const struct lac_compare_side *b,
                                               struct lac_comparison *comparison);

/** Steps by kind; `ret_facts` has an entry a kind, zeroed. */
void lac_compare_kinds(const struct lac_compare_side *side,
                       struct lac_compare_kind_facts *ret_facts);

/** GPU time by operator. */
LAC_MUST_USE enum lac_status lac_compare_operators(const struct lac_compare_facts *a,
                                                   const struct lac_compare_facts *b,
                                                   struct lac_comparison *comparison);

/** Loss or accuracy, where recorded. */
void lac_compare_outcome(const struct lac_compare_facts *a, const struct lac_compare_facts *b,
                         struct lac_comparison *comparison);

/** Settings and facts that differ. */
LAC_MUST_USE enum lac_status lac_compare_differences(const struct lac_compare_side *a,
                                                     const struct lac_compare_side *b,
                                                     struct lac_comparison *comparison);

/** The sentence on what differs; after the findings are known. */
void lac_compare_say_changed(struct lac_comparison *comparison);

/** Findings gone, come and stayed; what was predicted. */
void lac_compare_findings(const struct lac_compare_side *a, const struct lac_compare_side *b,
                          struct lac_comparison *comparison);

#endif
