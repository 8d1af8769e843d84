#ifndef LAC_SERVER_STORE_DATABASE_SQLITE_DATABASE_H
#define LAC_SERVER_STORE_DATABASE_SQLITE_DATABASE_H

/* A file of SQLite as a database of database.h. */

#include "server/store/database/database.h"
#include "server/store/trace/sql.h"

/** Make a connection of an open file, which belongs to it then; on an error it is closed.
 *  @return LAC_OK, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_db_of_sqlite(sqlite3 *file, struct lac_db **ret_db,
                                              struct lac_error *reterr);

/** The open file, for what only a file needs: its checksums, its repair. NULL: it is none. */
sqlite3 *lac_db_sqlite(struct lac_db *db);

#endif
