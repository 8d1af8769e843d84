#ifndef LAC_SERVER_STORE_REPORTS_REPORT_ROWS_H
#define LAC_SERVER_STORE_REPORTS_REPORT_ROWS_H

/* Private to report_*.c and shares.c. */

#include "server/store/database/database.h"
#include "server/store/store_private.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_NUMBER_SIZE = 24 };

/** With the store's lock held: whether the catalog has these tables; `writes`: begin a durable
 *  transaction, to be ended by lac_db_end(). */
LAC_MUST_USE enum lac_status lac_report_rows_begin(struct lac_store *store, bool writes,
                                                   struct lac_error *reterr);

/** A number as text, for lac_catalog_change(). @param out LAC_NUMBER_SIZE bytes @return out */
const char *lac_report_rows_number(char *out, int64_t number);

/** A column as text, "" for null; borrowed until the next step. */
static inline const char *lac_report_rows_text(struct lac_statement *get, int column)
{
    const char *text = lac_db_text(get, column);

    return text != NULL ? text : "";
}

#endif
