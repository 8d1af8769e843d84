#ifndef LAC_ANALYSIS_COMPARE_COMPARE_H
#define LAC_ANALYSIS_COMPARE_COMPARE_H

/*
 * Two diagnosed traces, before and after: whether B is faster than A beyond the noise of their
 * steps, what was changed between them, where the milliseconds went, and whether what A's findings
 * predicted came true. Pure, and the same every time: the resampling has a fixed seed.
 *
 * Unknown numbers are LAC_UNKNOWN_NS or NaN, as in an analysis.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One trace with what was found in it. All borrowed. */
struct lac_compare_side {
    const struct lac_model *model;       /**< with facts its head is enough: slices are not read */
    const struct lac_analysis *analysis; /**< with facts, gaps are not needed */
    const struct lac_compare_facts *facts; /**< NULL: made of the two for the comparison */
};

enum lac_compare_verdict {
    LAC_COMPARE_UNKNOWN = 0, /**< one of them has no step to measure */
    LAC_COMPARE_FASTER,      /**< B is, beyond the noise */
    LAC_COMPARE_SLOWER,
    LAC_COMPARE_SAME,    /**< no difference that these steps can show */
    LAC_COMPARE_TOO_FEW, /**< fewer than three steps: no noise test */
};
/** "unknown", "faster", "slower", "same", "too_few". */
const char *lac_compare_verdict_name(enum lac_compare_verdict verdict);

/** Why two traces are not compared. Names are stable: they stand in the API. */
enum lac_compare_refusal {
    LAC_COMPARE_COMPARABLE = 0,
    LAC_COMPARE_NO_STEPS,
    LAC_COMPARE_COLD_START,
    LAC_COMPARE_PART_OF_STEP,
    LAC_COMPARE_UNKNOWN_PERIOD, /**< something repeats; what it is is not known */
    LAC_COMPARE_DIFFERENT_WORK, /**< one trains, the other does not; unlike batches in a step */
    LAC_COMPARE_DIFFERENT_PROGRAMS,
};
/** "" (comparable), "no_steps", "cold_start", "part_of_step", "unknown_period", "different_work",
 *  "different_programs". */
const char *lac_compare_refusal_name(enum lac_compare_refusal refusal);

/** What the two are to each other. */
enum lac_compare_relation {
    LAC_COMPARE_RUNS = 0, /**< before and after */
    LAC_COMPARE_RANKS,    /**< another rank */
    LAC_COMPARE_HARDWARE, /**< another GPU */
};
/** "runs", "ranks", "hardware". */
const char *lac_compare_relation_name(enum lac_compare_relation relation);

/** What is compared: a step, or (batch sizes differ) the time of one sample. */
enum lac_compare_basis { LAC_COMPARE_PER_STEP = 0, LAC_COMPARE_PER_SAMPLE };

/** B against A, in percent of A: 95 % of the resampled differences lie in [low, high]. */
struct lac_compare_change {
    double pct, low_pct, high_pct;
};

/** What one kept step consists of, on the device that computes most. The parts sum to the mean
 *  step, the causes to its idle part. */
struct lac_compare_steps {
    bool is_known;
    int64_t part_ns[LAC_PART_COUNT_];
    int64_t cause_ns[LAC_CAUSE_COUNT_];
    int64_t family_ns[LAC_FAMILY_COUNT_]; /**< kernel time: streams side by side add up */
};

/** GPU time that an operator launched. */
struct lac_compare_part_of {
    const char *name;
    int64_t ns;
};

/** What the training comes to: the end of the values of a metric. */
struct lac_compare_end {
    uint64_t count;      /**< values */
    double mean, spread; /**< of the last tenth; NaN without values */
};
enum { LAC_COMPARE_METRIC_COUNT = 6 };
/** "loss", "accuracy", ... */
const char *lac_compare_metric_name(int metric);

/** What a comparison needs to know of a trace that an analysis does not say: made once of the whole
 *  model, kept with the trace. */
struct lac_compare_facts {
    struct lac_compare_steps steps;
    struct lac_compare_part_of *operators; /**< of one step, ascending name */
    uint32_t operator_count;
    struct lac_compare_end ends[LAC_COMPARE_METRIC_COUNT]; /**< loss, accuracy, ... */
    uint8_t *packed; /**< owner of the names, of facts that were read back; else the model is */
};

/**
 * Measure what a comparison needs.
 *
 * @param model whole @param analysis with its gaps
 * @return LAC_OK or LAC_ERR_NOMEM
 * Cost: O(n log n) in the operations of the device, 16 bytes each.
 */
LAC_MUST_USE enum lac_status lac_compare_facts_create(const struct lac_model *model,
                                                      const struct lac_analysis *analysis,
                                                      struct lac_compare_facts **ret_facts);

/** As bytes (server/store/FORMAT.md). @param ret_bytes the caller frees */
LAC_MUST_USE enum lac_status lac_compare_facts_pack(const struct lac_compare_facts *facts,
                                                    uint8_t **ret_bytes, size_t *ret_size_bytes);

/** The inverse. @param bytes allocated; taken, whatever is returned. They may be anybody's.
 *  @return LAC_OK, LAC_ERR_CORRUPT (of another version too), LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_compare_facts_unpack(uint8_t *bytes, size_t size_bytes,
                                                      struct lac_compare_facts **ret_facts);

/** NULL is allowed. */
void lac_compare_facts_destroy(struct lac_compare_facts *facts);

/** What a step is for. Steps of different kinds are never compared with each other. */
enum lac_compare_kind {
    LAC_COMPARE_TRAIN = 0,
    LAC_COMPARE_VALIDATION,
    LAC_COMPARE_CHECKPOINT,
    LAC_COMPARE_OTHER, /**< other work that no range names */
    LAC_COMPARE_KIND_COUNT_
};
/** The word of the kind of step that it is. */
const struct lac_word *lac_compare_kind_word(enum lac_compare_kind kind);

/** Steps of one kind; of training the kept ones. */
struct lac_compare_kind_facts {
    uint32_t count;
    int64_t mean_ns; /**< LAC_UNKNOWN_NS without one */
};

/** GPU time of a step that an operator launched. */
struct lac_compare_operator {
    const char *name;
    int64_t a_ns, b_ns;
};
enum { LAC_COMPARE_OPERATORS_MAX = 40 };

/** What the training comes to, where the traces say. */
struct lac_compare_result_metric {
    bool is_known;
    bool is_same;     /**< the ends are no further apart than values there spread */
    const char *name; /**< "loss" */
    double value[2];  /**< mean of the last tenth of the values; NaN unknown */
    double spread;    /**< standard deviation of A's there; NaN unknown */
    const char *text; /**< one sentence, also when not known */
};

/** A setting or a fact of the host that differs. */
struct lac_compare_difference {
    const char *key;
    const char *a, *b; /**< as people write them; "not recorded" */
    bool is_setting;   /**< somebody changed it; else a fact of host, recording or data */
    bool is_known;     /**< recorded on both sides */
};

/** A finding as it stands in one of the two, or in both. */
struct lac_compare_finding {
    enum lac_finding_kind kind;
    const char *id, *title, *brief;
};

enum { LAC_COMPARE_DIFFERENCES_MAX = 64 };

struct lac_compare_prediction {
    const struct lac_finding *finding; /**< of A; NULL: nothing was predicted for this change */
    const char *change; /**< in a few words: "num_workers=7", or several of the plan */
    int64_t low_ns, mid_ns, high_ns;
    bool is_matched; /**< its change, or several of A's plan together, are all that differs */
    bool is_within;  /**< the mean step of B reaches into the band, widened by 1 % */
    const char *text;
};

struct lac_comparison {
    enum lac_compare_verdict verdict;
    enum lac_compare_basis basis;
    const char *headline; /**< one sentence */
    const char *why_not;  /**< what cannot be compared and why; "" when all can */
    enum lac_compare_refusal refusal;
    enum lac_compare_relation relation;
    bool is_one_run;           /**< of RANKS: recorded at the same time */
    double kernels_common_pct; /**< time under the same names, each side's being 100; NaN unknown */
    double operators_common_pct; /**< the same of the outermost operators */

    struct lac_compare_change step;       /**< of the basis: negative is faster */
    struct lac_compare_change throughput; /**< positive is faster */
    const char *throughput_unit;          /**< of both; "steps" when they differ */
    double throughput_per_s[2];
    double rank_test_p;     /**< chance that steps of one kind fall like this (Mann-Whitney); NaN */
    double noise_floor_pct; /**< smallest difference that these steps can show */
    uint32_t steps_needed;  /**< of each for 2 %; 0 when they show it or it cannot be told */

    struct lac_compare_steps steps[2];
    struct lac_compare_kind_facts kinds[2][LAC_COMPARE_KIND_COUNT_];
    struct lac_compare_operator operators[LAC_COMPARE_OPERATORS_MAX]; /**< largest change first */
    uint32_t operator_count; /**< 0: steps or GPU are missing in one of the two */
    struct lac_compare_result_metric result;
    struct lac_compare_difference differences[LAC_COMPARE_DIFFERENCES_MAX];
    uint32_t difference_count;
    uint32_t setting_count;      /**< of them, settings */
    uint32_t differences_beyond; /**< that found no room */
    uint32_t change_count;       /**< recorded on both sides and different, facts included */
    bool is_one_change;  /**< one, or several that are one piece of A's advice and nothing else */
    const char *changed; /**< one sentence on what differs */

    struct lac_compare_finding gone[LAC_FINDINGS_MAX], come[LAC_FINDINGS_MAX],
        stayed[LAC_FINDINGS_MAX]; /**< in the order of A, B and B */
    uint32_t gone_count, come_count, stayed_count;
    struct lac_compare_prediction prediction;

    struct lac_text *texts; /**< owner of the strings above */
};

/**
 * Compare B with A. Both stay borrowed by the comparison.
 *
 * @param ret_comparison on LAC_OK, which the caller frees with lac_comparison_destroy()
 * @return LAC_OK or LAC_ERR_NOMEM
 * Cost: 2000 resamples of the steps, and of sides without facts what makes those.
 */
LAC_MUST_USE enum lac_status lac_compare(const struct lac_compare_side *a,
                                         const struct lac_compare_side *b,
                                         struct lac_comparison **ret_comparison);

/** NULL is allowed. */
void lac_comparison_destroy(struct lac_comparison *comparison);

/* -- conditions: compare_condition.c ------------------------------------------------------ */

/** "step_time>+3%": METRIC OPERATOR VALUE. */
struct lac_compare_condition {
    char text[64];   /**< as given, for messages */
    int metric;      /**< private */
    bool is_greater; /**< > or >=, else < or <= */
    bool has_equal;
    bool is_change; /**< B against A in percent (of a share: in points); else B itself */
    double value;
};

enum { LAC_COMPARE_CONDITIONS_MAX = 16 };

/**
 * Parse conditions separated by commas. Metrics: step_time, throughput (percent are of A's value,
 * with the noise test), and the shares of a step in percent idle, not_computing, compute,
 * exposed_comm, exposed_copy and the causes of idle time (percent are points). Operators > >= < <=.
 * A value with % is a change from A to B; without, it is B's own: 300ms, 900, 20.
 *
 * @return LAC_OK, or LAC_ERR_MISUSE with a sentence that says what is wrong and what is right
 */
LAC_MUST_USE enum lac_status lac_compare_conditions_parse(const char *text,
                                                          struct lac_compare_condition *conditions,
                                                          uint32_t *ret_count,
                                                          struct lac_error *reterr);

enum lac_compare_holds {
    LAC_COMPARE_HOLDS_NOT = 0,
    LAC_COMPARE_HOLDS,
    LAC_COMPARE_HOLDS_IN_NOISE, /**< the figures hold, but are within the noise: taken as not */
    LAC_COMPARE_HOLDS_UNKNOWN,  /**< not measured in one of the two */
};

/** Whether the condition holds. */
enum lac_compare_holds lac_compare_condition_holds(const struct lac_compare_condition *condition,
                                                   const struct lac_comparison *comparison,
                                                   const struct lac_compare_side *b);

#endif
