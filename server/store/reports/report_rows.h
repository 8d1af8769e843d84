#ifndef LAC_SERVER_STORE_REPORTS_REPORT_ROWS_H
#define LAC_SERVER_STORE_REPORTS_REPORT_ROWS_H

/* Private to report_*.c and shares.c. */

#include "server/store/store_private.h"

#include <stdbool.h>

/** With the store's lock held: whether the catalog has these tables; `writes`: begin a durable
 *  transaction, to be ended by lac_db_end(). */
LAC_MUST_USE enum lac_status lac_report_rows_begin(struct lac_store *store, bool writes,
                                                   struct lac_error *reterr);

#endif
