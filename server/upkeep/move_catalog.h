#ifndef LAC_SERVER_UPKEEP_MOVE_CATALOG_H
#define LAC_SERVER_UPKEEP_MOVE_CATALOG_H

/*
 * The catalog of a data folder from DIR/catalog.db into PostgreSQL, and back.
 *
 *   there: the place in catalog.url.part, all rows in one transaction, catalog.url, catalog.db to
 *          catalog.db.moved
 *   back:  all rows into catalog.db.new, catalog.db, catalog.url to catalog.url.part
 *
 * At each moment one of both is whole. While both are there they are equal, for no server starts, and
 * the same call finishes what was interrupted.
 */

#include "analysis/model/status.h"
#include "server/store/database/copy.h"

struct lac_move_catalog {
    const char *data_dir;
    const char *address; /**< where to, as of `serve --catalog`; NULL: back into the folder */
};

/**
 * No server may run, and none starts meanwhile: the caller holds DIR/serve.lock.
 * @param ret_copied all 0 where only the rest of an interrupted move was left
 * @return LAC_OK; LAC_ERR_MISUSE (it is there already, another process has the folder open, no
 *         address of PostgreSQL, or a catalog of another folder), LAC_ERR_LIMIT (a newer version),
 *         LAC_ERR_IO, LAC_ERR_NO_SPACE, LAC_ERR_CORRUPT, LAC_ERR_NOMEM: the catalog is where it was
 */
LAC_MUST_USE enum lac_status lac_move_catalog(const struct lac_move_catalog *move,
                                              struct lac_db_copied *ret_copied,
                                              struct lac_error *reterr);

#endif
