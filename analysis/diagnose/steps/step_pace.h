#ifndef LAC_ANALYSIS_DIAGNOSE_STEP_PACE_H
#define LAC_ANALYSIS_DIAGNOSE_STEP_PACE_H

/* Private to steps/: steps as the device takes them, beside those between the host's marks. */

#include "analysis/diagnose/steps/steps.h" // IWYU pragma: export

/** A step on the device; dur_ns LAC_UNKNOWN_NS where the recording does not show the next one. */
struct lac_paced_step {
    int64_t start_ns, dur_ns, starved_ns;
    int64_t end_ns;   /**< of what is seen of it: also where its length is not known */
    int64_t first_ns; /**< start of its first kernel */
    int64_t busy_ns;  /**< its kernels, of one stream */
    bool is_alike;    /**< both it and the next one have the kernel that the distance goes by */
};

/** Steps on the device, and what the last one's mark adds. */
struct lac_pace {
    struct lac_paced_step *steps; /**< as many as the analysis has; NULL: not to be told */
    int64_t place_ns;  /**< from where steps begin to the kernel that their distances go by */
    bool is_last_late; /**< after its last launch the last step waits much longer than the others:
                            the loop was left, and its mark closed later */
};

/**
 * The distance on the device between the k-th kernel launched in one step and the k-th of the next.
 * It needs no end of a step and no clock of the host: work from before the recording, a host that
 * runs ahead and a last mark that comes late do not change it. One k serves all steps, so that their
 * lengths add up: the one whose distances lie closest to the median over all k.
 *
 * @param ret_pace the caller frees its steps
 */
LAC_MUST_USE enum lac_status lac_pace_measure(struct lac_facts *facts, struct lac_pace *ret_pace);

/** The mean of the kept steps. */
struct lac_step_mean {
    uint32_t kept_count;
    double mean_ns;
    double error_pct;     /**< its standard error; NaN below two */
    double uncertain_pct; /**< in 95 of 100 cases it is known to this part; NaN below two */
};

/* step_filter.c */
/** Leading steps unlike those at the end. */
void lac_steps_leave_out_warm_up(struct lac_facts *facts, int64_t *scratch);
/** Steps after which the same comes again: workers that take turns, micro-steps up to an update. */
uint32_t lac_steps_cycle(const struct lac_facts *facts, uint32_t kept);
/** Keep whole cycles: of the loader's workers, also those that were not recorded, and of updates. */
void lac_steps_cut_to_cycles(struct lac_facts *facts, int64_t *scratch);

/** step_clock.c: the host's marks or the device's distances; before it the kinds are known. */
LAC_MUST_USE enum lac_status lac_steps_choose_clock(struct lac_facts *facts, int64_t *scratch);

/* step_numbers.c; scratch: room for a number a step */
/** For qsort() of int64_t. */
int lac_by_int64(const void *a, const void *b);
/** Nearest-rank percentile of sorted values, of which there is one at least. */
int64_t lac_percentile(const int64_t *sorted, uint32_t count, uint32_t percent);
/** How well the mean of numbers is known, by sums of `at_once` of them: in 95 of 100 cases, in percent;
 *  NaN below two. */
double lac_uncertain_pct(const int64_t *lengths_ns, uint32_t count, uint32_t at_once,
                         double *ret_error_pct);
struct lac_step_mean lac_steps_mean(const struct lac_facts *facts, int64_t *scratch);
void lac_steps_mark_outliers(struct lac_facts *facts, int64_t *scratch);
void lac_steps_summarise(struct lac_facts *facts, int64_t *scratch);

/**
 * step_credit.c: after how many steps the waits for data come again, where workers were not recorded.
 * Kept steps before such periods that took less are left out.
 *
 * @param scratch room for a number a step
 */
void lac_steps_find_rhythm(struct lac_facts *facts, int64_t *scratch);

/** Time of a step that is not waiting for data. */
static inline int64_t lac_step_fed_ns(const struct lac_step *step)
{
    return step->dur_ns - step->wait_ns;
}

/**
 * The step that follows on the device: a wait for a batch that did not come, at the end of an epoch,
 * launches nothing. step_count: none.
 */
static inline uint32_t lac_step_next_on_device(const struct lac_analysis *analysis, uint32_t s)
{
    for (s++; s < analysis->step_count && analysis->steps[s].kind == LAC_KIND_EPOCH_END &&
              analysis->steps[s].op_count == 0;
         s++) {
    }
    return s;
}

/** Whether its length is that of a step. */
static inline bool lac_step_is_timed(const struct lac_step *step)
{
    return step->left_out != LAC_STEP_TRUNCATED && step->left_out != LAC_STEP_UNTIMED;
}

#endif
