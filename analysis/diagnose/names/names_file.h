#ifndef LAC_ANALYSIS_DIAGNOSE_NAMES_FILE_H
#define LAC_ANALYSIS_DIAGNOSE_NAMES_FILE_H

/* Private to names: rows that somebody added. */

#include "analysis/diagnose/names/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Its rows; names may be NULL. */
const struct lac_names_row *lac_names_own_rows(const struct lac_names *names, uint32_t *ret_count);

/** Whether a pattern that is well formed matches the name. */
bool lac_names_pattern_matches(const char *pattern, const char *name, size_t length);

#endif
