#ifndef LAC_SERVER_JSON_COMPARE_JSON_H
#define LAC_SERVER_JSON_COMPARE_JSON_H

#include "analysis/compare/compare.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "server/base/buffer.h"

/** A condition that was asked for, and how it came out. */
struct lac_compare_result {
    const struct lac_compare_condition *condition;
    enum lac_compare_holds holds;
};

/** What the two sides are besides traces: in the API their ids, on the command line runs of which
 *  one rank each is compared. NULL when there are none. Borrowed. */
struct lac_compare_names {
    const char *id[2];
    const struct lac_run *run[2];
};

/**
 * Append `lacuna.compare/1` (README.md). Failures stick in the buffer.
 *
 * @param names may be NULL
 * @param results `result_count` conditions; the member is left out when there are none
 */
void lac_compare_write_json(struct lac_buffer *out, const struct lac_compare_side *a,
                            const struct lac_compare_side *b,
                            const struct lac_comparison *comparison,
                            const struct lac_compare_names *names,
                            const struct lac_compare_result *results, uint32_t result_count);

#endif
