#ifndef LAC_SERVER_STORE_REMOTE_H
#define LAC_SERVER_STORE_REMOTE_H

/*
 * Traces and originals in object storage: the data folder holds the catalog and copies. Objects are
 * named by content; the row of an object is committed with the row of its trace, after the object
 * was put. A file of the folder that has no row in `objects` is no copy: it stays until it was put.
 */

#include "analysis/model/status.h"
#include "server/objects/objects.h" // IWYU pragma: export
#include "server/store/database/database.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum lac_object_kind {
    LAC_OBJECT_TRACE = 0,
    LAC_OBJECT_ORIGINAL = 1,
    LAC_OBJECT_UPLOAD = 2, /**< acknowledged, not imported: for the server that takes over */
    LAC_OBJECT_KINDS
};

/** What the catalog says of an object. */
struct lac_object_row {
    enum lac_object_kind kind;
    char id[LAC_ID_SIZE];
    uint8_t sha256[LAC_SHA256_SIZE];
    uint64_t bytes;
};

/** "traces/ab/<sha256>.<id>": the id keeps two uploads of the same bytes apart, so that the deletion
 *  of one cannot take the other's. @param out LAC_OBJECT_NAME_SIZE bytes */
void lac_object_name(const struct lac_object_row *row, char *out);

/** @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_catalog_get_object(struct lac_db *db, enum lac_object_kind kind,
                                                    const char *id, struct lac_object_row *ret_row,
                                                    struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_catalog_put_object(struct lac_db *db,
                                                    const struct lac_object_row *row,
                                                    struct lac_error *reterr);
/** All rows; the caller frees them. */
LAC_MUST_USE enum lac_status lac_catalog_list_objects(struct lac_db *db,
                                                      struct lac_object_row **ret_rows,
                                                      uint32_t *ret_count,
                                                      struct lac_error *reterr);

/** Whether the catalog has a row of the object. In doubt yes. With the store's lock. */
bool lac_remote_has(struct lac_store *store, enum lac_object_kind kind, const char *id);

/** Begin to use object storage, if the options or the catalog name one. */
LAC_MUST_USE enum lac_status lac_remote_open(struct lac_store *store,
                                             const struct lac_store_options *options,
                                             struct lac_error *reterr);
void lac_remote_close(struct lac_store *store);

/** The storage. @return NULL with the reason that it cannot be used */
struct lac_objects *lac_remote_storage(const struct lac_store *store, struct lac_error *reterr);

/** Have the file in the folder: a copy is fetched where there is none. Without the store's lock.
 *  @return LAC_OK (also where nothing is known of it), LAC_ERR_CORRUPT, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_remote_fetch(struct lac_store *store, enum lac_object_kind kind,
                                              const char *id, struct lac_error *reterr);

/** Put a file that will be that object; the caller commits the row. Nothing without storage
 *  (ret_row->bytes is 0 then). Without the store's lock. */
LAC_MUST_USE enum lac_status lac_remote_put(struct lac_store *store, enum lac_object_kind kind,
                                            const char *id, const char *path,
                                            struct lac_object_row *ret_row,
                                            struct lac_error *reterr);

/** Put a file of a known hash and size under the row's name. The store has object storage. */
LAC_MUST_USE enum lac_status lac_remote_put_hashed(struct lac_store *store,
                                                   const struct lac_object_row *row,
                                                   const char *path, struct lac_error *reterr);

/** A file of the folder is about to be rewritten: it is no copy any more. With the store's lock. */
LAC_MUST_USE enum lac_status lac_remote_forget(struct lac_store *store, enum lac_object_kind kind,
                                               const char *id, struct lac_error *reterr);

/** Remove a copy; who has it open reads on until it is released. Without the store's lock. */
void lac_remote_drop_copy(struct lac_store *store, const char *id);

/* -- of a server that stands by (standby.c): its copies begin with it, and it knows of what each is */

/** Keep in mind of which object a copy is about to be made. Nothing of one that does not stand by.
 *  @return LAC_OK, LAC_ERR_NOMEM: else it would never be known for old */
LAC_MUST_USE enum lac_status lac_standby_know_copy(struct lac_store *store,
                                                   const struct lac_object_row *row,
                                                   struct lac_error *reterr);
/** Drop the copy of a trace (NULL: of each) that is not what the catalog says any more. Without the
 *  store's lock. */
void lac_standby_recheck(struct lac_store *store, const char *id);
/** The store closes. */
void lac_standby_forget_all(struct lac_store *store);
/** A file whose pieces come as they are read. Its pages carry checksums, or it is fetched whole.
 *  @return LAC_OK, LAC_ERR_MISUSE (this one is to be fetched whole), LAC_ERR_IO, ... */
LAC_MUST_USE enum lac_status lac_standby_fetch_pieces(struct lac_store *store,
                                                      const struct lac_object_row *row,
                                                      const char *path, struct lac_error *reterr);

/** Remove an object that no row names any more, as well as that can be done now. */
void lac_remote_remove(struct lac_store *store, const struct lac_object_row *row);

#endif
