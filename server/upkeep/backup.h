#ifndef LAC_SERVER_UPKEEP_BACKUP_H
#define LAC_SERVER_UPKEEP_BACKUP_H

/*
 * A copy of a data folder as it was at one moment, also beside a running server.
 *
 *   folder.lock exclusive:  the catalog copied, everything else linked into DIR/backup/
 *   without a lock:         DIR/backup/ copied to TO.part, synced, renamed to TO
 *
 * Files of traces and originals never change, so a link keeps them as they were, whatever is deleted
 * meanwhile. Uploads that were acknowledged, and what came of resumable ones, are in it as well: a
 * server on TO goes on with them.
 */

#include "analysis/model/status.h"

#include <stdint.h>

struct lac_store;

struct lac_backup_counts {
    uint32_t traces; /**< their files in the folder */
    uint32_t files;
    uint64_t bytes;
    uint64_t objects; /**< that stay in object storage, and that the copy needs */
};

/**
 * @param to a folder that does not exist, or is empty; made with mode 0700. It holds the local key
 * @return LAC_OK; LAC_ERR_MISUSE (`to` holds something, is inside of the data folder, or another
 *         backup is under way), LAC_ERR_NO_SPACE, LAC_ERR_IO, LAC_ERR_NOMEM. After a failure `to` is
 *         as it was
 * Cost: uploads, deletions and publications wait for about 30 us a file and the copy of the
 * catalog; the rest is the speed of the disks.
 */
LAC_MUST_USE enum lac_status lac_backup(struct lac_store *store, const char *to,
                                        struct lac_backup_counts *ret_counts,
                                        struct lac_error *reterr);

#endif
