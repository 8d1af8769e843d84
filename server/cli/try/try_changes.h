#ifndef LAC_SERVER_CLI_TRY_CHANGES_H
#define LAC_SERVER_CLI_TRY_CHANGES_H

/* What `lacuna try` can change from outside, and what it cannot. */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAC_TRY_CHANGES_MAX = 16, LAC_TRY_TEXT_BYTES = 512 };

struct lac_try_changes {
    char text[LAC_TRY_TEXT_BYTES];    /**< as the hook reads them: "workers=7,pinned=1" */
    char what_if[LAC_TRY_TEXT_BYTES]; /**< those that a replay can predict; "" none or not all */
    const char *key[LAC_TRY_CHANGES_MAX];
    uint32_t count;
    int64_t threads; /**< 0: as it is */
};

/**
 * Parse "workers=7,pinned=1".
 *
 * @return LAC_OK, or LAC_ERR_MISUSE with a sentence: which keys there are, which value a key takes,
 *         or which line of the script a change needs
 */
LAC_MUST_USE enum lac_status lac_try_changes_parse(const char *text,
                                                   struct lac_try_changes *ret_changes,
                                                   struct lac_error *reterr);

#endif
