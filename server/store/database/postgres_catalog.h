#ifndef LAC_SERVER_STORE_DATABASE_POSTGRES_CATALOG_H
#define LAC_SERVER_STORE_DATABASE_POSTGRES_CATALOG_H

/* The catalog of a data folder in PostgreSQL. DIR/catalog.url (mode 0600) says where it is, and by
 * which id it knows the folder: one folder has one catalog, and a catalog one folder at a time. */

#include "server/store/database/database.h"
#include "server/store/database/holder.h" // IWYU pragma: export
#include "server/store/database/watch.h"  // IWYU pragma: export

#include <stdbool.h>

enum { LAC_CATALOG_ADDRESS_BYTES = 2048 };

struct lac_postgres_catalog {
    const char *data_dir;
    const char *address;           /**< NULL: where catalog.url says */
    const char *fresh_owner;       /**< an id for a folder that has none yet: [a-z0-9], below 32 */
    const char *const *migrations; /**< what takes a catalog from version N to N + 1, as SQLite's */
    int version;                   /**< how many */
    const char *node;              /**< of a server: how it is called (holder.h); else NULL */
    bool only_reads; /**< of a server that stands by: nothing is migrated, taken over or written */
    bool *ret_is_arriving; /**< whether the folder is not set up for it yet; may be NULL */
    bool
        is_arriving; /**< a catalog.db is being moved there: until lac_db_settle_elsewhere() the place
                           is in catalog.url.part, and the folder's catalog is the file */
};

/** Whether the folder's catalog is not in catalog.db. `address`: of the options, may be NULL. */
bool lac_db_is_elsewhere(const char *data_dir, const char *address);

/**
 * Open, create or migrate. With the folder's lock. Where the folder has no catalog.url yet, and where
 * a given address is another one of the same catalog, it is written.
 * @return LAC_OK, LAC_ERR_MISUSE (the folder has a catalog.db, or the catalog another folder),
 *         LAC_ERR_BUSY (another server holds it), LAC_ERR_LIMIT (a newer version), LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_CORRUPT
 */
LAC_MUST_USE enum lac_status lac_db_open_elsewhere(const struct lac_postgres_catalog *catalog,
                                                   struct lac_db **ret_db,
                                                   struct lac_error *reterr);

/** Watch from now on what the holder says (watch.h). @return as lac_watch_start() */
LAC_MUST_USE enum lac_status lac_db_watch_elsewhere(const char *data_dir,
                                                    const struct lac_watch_ears *ears,
                                                    struct lac_watch **ret_watch,
                                                    struct lac_error *reterr);

/** Say from now on that this server is there (holder.h). @return as lac_hold_start() */
LAC_MUST_USE enum lac_status lac_db_hold_elsewhere(const char *data_dir,
                                                   void (*is_lost)(void *context), void *context,
                                                   struct lac_hold **ret_hold,
                                                   struct lac_error *reterr);

/** From now on the catalog is where lac_db_open_elsewhere() with `is_arriving` made it.
 *  @return LAC_OK, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_db_settle_elsewhere(const char *data_dir,
                                                     struct lac_error *reterr);

#endif
