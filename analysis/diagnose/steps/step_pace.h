#ifndef LAC_ANALYSIS_DIAGNOSE_STEP_PACE_H
#define LAC_ANALYSIS_DIAGNOSE_STEP_PACE_H

/* Private to steps/: steps as the device takes them, beside those between the host's marks. */

#include "analysis/diagnose/steps/steps.h" // IWYU pragma: export

/** A step on the device; dur_ns LAC_UNKNOWN_NS where the recording does not show the next one. */
struct lac_paced_step {
    int64_t start_ns, dur_ns, starved_ns;
    int64_t first_ns; /**< start of its first kernel */
    bool is_alike;    /**< both it and the next one have the kernel that the distance goes by */
};

/** Steps on the device, and what the last one's mark adds. */
struct lac_pace {
    struct lac_paced_step *steps; /**< as many as the analysis has; NULL: not to be told */
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

/**
 * step_credit.c: after how many steps the waits for data come again, where workers were not recorded;
 * 0 where they do not. Kept steps before such periods that took less are left out.
 *
 * @param scratch room for a number a step
 */
uint32_t lac_steps_loader_period(struct lac_facts *facts, int64_t *scratch);

#endif
