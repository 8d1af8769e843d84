#ifndef LAC_SERVER_STORE_DATABASE_COPY_H
#define LAC_SERVER_STORE_DATABASE_COPY_H

/* A catalog from one database into another, row by row. */

#include "server/store/database/database.h"

#include <stdint.h>

struct lac_db_copied {
    uint32_t table_count;
    uint64_t row_count;
};

/**
 * Replace all rows of `to` with those of `from`, within one transaction of each, and let `to` number
 * its next rows behind the largest number that `from` ever gave. Both have the same tables, which a
 * file is asked for: one of both is a file. Nobody else waits for `from` for longer than this takes.
 * Cost: a statement a row; PostgreSQL's rows of one table are in memory at a time.
 * @return LAC_OK; LAC_ERR_IO, LAC_ERR_NO_SPACE, LAC_ERR_CORRUPT, LAC_ERR_NOMEM: `to` is as it was
 */
LAC_MUST_USE enum lac_status lac_db_copy(struct lac_db *from, struct lac_db *to,
                                         struct lac_db_copied *ret_copied,
                                         struct lac_error *reterr);

#endif
