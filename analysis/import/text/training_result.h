#ifndef LAC_ANALYSIS_IMPORT_TEXT_TRAINING_RESULT_H
#define LAC_ANALYSIS_IMPORT_TEXT_TRAINING_RESULT_H

/* Results of a training (loss, accuracy): what is told of the values of one over the run, as the
 * host's setting "metric.NAME": the last, the best and how many there are, "1.83 1.79 200". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_RESULT_TEXT_BYTES = 96 };

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

/** The same with the time of the last value behind it, ns since 1970: logs of results that are
 *  joined to one trace, as a training that was resumed writes them, are told as one. */
int lac_result_text_timed(const struct lac_result *result, const char *name, char *out);

/** Two texts with times as one. @param out LAC_RESULT_TEXT_BYTES
 *  @return false: one of them has no time */
bool lac_result_join(const char *name, const char *a, const char *b, char *out);

#endif
