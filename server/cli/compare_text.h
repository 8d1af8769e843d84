#ifndef LAC_SERVER_CLI_COMPARE_TEXT_H
#define LAC_SERVER_CLI_COMPARE_TEXT_H

/*
 * The comparison that `lacuna compare` prints: one page (text_page.h).
 */

#include "analysis/compare/compare.h"
#include "server/base/buffer.h"
#include "server/json/compare_json.h"

#include <stdbool.h>

/** Append the text in so many columns (text_page.h); `names` may be NULL. Failures stick in the buffer. */
void lac_compare_text(struct lac_buffer *out, const struct lac_compare_side *a,
                      const struct lac_compare_side *b, const struct lac_comparison *comparison,
                      const struct lac_compare_names *names, bool is_ascii, int columns);

#endif
