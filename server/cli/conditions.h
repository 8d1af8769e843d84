#ifndef LAC_SERVER_CLI_CONDITIONS_H
#define LAC_SERVER_CLI_CONDITIONS_H

/* --fail-if of compare and analyze: what was asked, and the exit status that it gives. */

#include "analysis/compare/compare.h" // IWYU pragma: export
#include "server/cli/options.h"       // IWYU pragma: export
#include "server/json/compare_json.h" // IWYU pragma: export

#include <stdbool.h>
#include <stdint.h> // IWYU pragma: export

enum { LAC_EXIT_HOLDS = 3 };

/** Conditions with their results. */
struct lac_conditions {
    struct lac_compare_condition at[LAC_COMPARE_CONDITIONS_MAX];
    struct lac_compare_result results[LAC_COMPARE_CONDITIONS_MAX];
    uint32_t count;
};

/** What --fail-if asks, none without it. @return false with a line on stderr that begins with
 *  `command` */
bool lac_conditions_read(const char *command, const struct lac_options *options,
                         struct lac_conditions *ret_conditions);

/**
 * Decide them, and say on stderr what decided.
 *
 * @param is_compared  there is a trace before; else one alone, compared with itself
 * @return 0, LAC_EXIT_HOLDS when one holds, 1 when one is unknown
 */
int lac_conditions_decide(const char *command, struct lac_conditions *conditions,
                          const struct lac_comparison *comparison, const struct lac_compare_side *b,
                          bool is_compared);

#endif
