#ifndef LAC_ANALYSIS_IMPORT_TEXT_TRAINING_RESULT_H
#define LAC_ANALYSIS_IMPORT_TEXT_TRAINING_RESULT_H

/* Results of a training (loss, accuracy): what is told of the values of one over the run, as the
 * host's setting "metric.NAME": the last, the best and how many there are, "1.83 1.79 200". */

#include <stddef.h>
#include <stdint.h>

enum { LAC_RESULT_TEXT_BYTES = 64 };

/** Zeroed: none yet. */
struct lac_result {
    int64_t last_ns;
    double last, least, most;
    uint64_t count;
};

/** One more value, finite. They may come in any order of time. */
void lac_result_add(struct lac_result *result, int64_t at_ns, double value);

/** @param name of the result: of losses, errors and times the least is the best, else the most
 *  @param out LAC_RESULT_TEXT_BYTES @return its length */
int lac_result_text(const struct lac_result *result, const char *name, char *out);

#endif
