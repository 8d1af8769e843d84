#ifndef LAC_SERVER_STORE_STORE_PRIVATE_H
#define LAC_SERVER_STORE_STORE_PRIVATE_H

#include "analysis/crew/crew.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/trace/trace_private.h"

#include <pthread.h>
#include <stdbool.h>

enum { LAC_STORE_PATH_SIZE = 4096, LAC_STORE_FILES_KEPT = 16 };

struct lac_object_row;

/** A copy of a trace, and which object it was made of. */
struct lac_known_copy {
    char id[LAC_ID_SIZE];
    uint8_t sha256[LAC_SHA256_SIZE];
};

struct lac_store {
    char data_dir[LAC_STORE_PATH_SIZE - 256];

    pthread_mutex_t lock; /**< guards all below */
    struct lac_db *catalog;
    struct lac_cache *cache;
    struct lac_cache *model_cache;
    struct lac_crew *crew;         /**< of all open files; NULL: none was asked for */
    struct lac_trace_file **files; /**< open ones */
    uint32_t file_count, file_capacity;
    uint64_t use_clock;
    bool is_live;            /**< of the options */
    bool has_shared_catalog; /**< in PostgreSQL: another server may take it over */
    bool is_arriving;        /**< and this one has: the folder is not set up for it yet */
    bool sweep_is_due;       /**< the disk was too full to finish the sweep */
    int64_t swept_ms;        /**< when it was last tried again */
    struct lac_hold *hold;   /**< of a server; NULL: no other can take the catalog over */
    struct lac_watch *watch; /**< of one that stands by; NULL: not yet */
    struct lac_store_ears ears;
    struct lac_known_copy *known; /**< of one that stands by, in no order */
    uint32_t known_count, known_capacity;
    bool only_reads;           /**< of the options */
    struct lac_remote *remote; /**< NULL: all is in the folder */
    int catalog_lock;          /**< shared while the catalog is open: nobody replaces it then */
    void (*notice)(void *context, const char *line);
    void *notice_context;
    const struct lac_names *names; /**< of the options */
    void (*changed)(void *context, const char *id, bool deleted);
    void *changed_context;
};

/** Paths below the data folder. @return false when too long */
bool lac_store_path(const struct lac_store *store, char *out, const char *folder, const char *name,
                    const char *ending);

/** One durable statement about one row. With none to change it is LAC_ERR_NOT_FOUND.
 *  @param what as lac_catalog_begin() @param not_found the sentence then */
LAC_MUST_USE enum lac_status lac_store_change_one(struct lac_store *store, const char *what,
                                                  const char *sql, const char *const *texts,
                                                  unsigned text_count, const char *not_found,
                                                  struct lac_error *reterr);

/** The id in the name of a file, "<id><ending>". @param ret_id LAC_ID_SIZE bytes @return whether the
 *  name is one */
bool lac_store_id_of(const char *name, const char *ending, char *ret_id);

/** Hold DIR/folder.lock, shared or exclusive, until unlocked: a lock of its own each time, so that
 *  threads of one process exclude each other too. @return a descriptor or -1 */
int lac_folder_lock(const struct lac_store *store, bool exclusive);
void lac_folder_unlock(int fd);

struct lac_trace_facts;

/** Open a trace file as any reader would and say what its row would: all but ids, times and where
 * it belongs. `is_new`: it must carry checksums. */
LAC_MUST_USE enum lac_status lac_publish_examine(struct lac_store *store, const char *path,
                                                 bool is_new, struct lac_trace_facts *facts,
                                                 struct lac_error *reterr);

/** Finish what was interrupted, and make rows and files agree (recover.c). With the folder's lock.
 *  Sets `sweep_is_due` where the disk was too full for a part of it. */
LAC_MUST_USE enum lac_status lac_store_recover(struct lac_store *store, struct lac_error *reterr);

/** The catalog was another server's until now: keep of the folder what still holds, fetch what waits
 *  to be imported (arrive.c). Before the sweep. */
LAC_MUST_USE enum lac_status lac_store_arrive(struct lac_store *store, struct lac_error *reterr);

/** Sweep again, with a connection of its own, if the last sweep was cut short by a full disk and
 * there is room now. Without any lock of the store. */
void lac_store_sweep_if_due(struct lac_store *store);

/** Of a server: DIR/standby is empty and there (`make`), or not there. Not the folder of another
 *  server, which runs. */
LAC_MUST_USE enum lac_status lac_store_clear_standby(const char *data_dir, bool make,
                                                     struct lac_error *reterr);

/** One line about what a start found and did. */
__attribute__((format(printf, 2, 3))) void lac_store_tell(const struct lac_store *store,
                                                          const char *fmt, ...);

/** Move DIR/folder/name to DIR/lost/ and tell it: "folder/name WHY: moved to lost/name". Never over
 *  what is there. @return false when it could not be moved */
bool lac_store_set_aside(struct lac_store *store, const char *folder, const char *name,
                         const char *why);

/** ready -> failed with code "lost". */
LAC_MUST_USE enum lac_status lac_store_lose(struct lac_store *store, const char *id,
                                            const char *message, struct lac_error *reterr);

/** What the row of an acknowledged upload says, kept in its staging folder for a lost catalog. */
LAC_MUST_USE enum lac_status lac_staged_facts_write(const struct lac_staging *staging,
                                                    const struct lac_trace_facts *facts,
                                                    struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_staged_facts_read(const struct lac_staging *staging,
                                                   struct lac_trace_facts *ret_facts,
                                                   struct lac_error *reterr);

/** Whether another server could take the catalog over: it has to have the bytes, too. */
bool lac_store_is_shared(const struct lac_store *store);

/** Put the bytes of an upload where another server would find them; the caller commits the row with
 *  the trace's. Nothing where the store is not shared (ret_row->bytes is 0 then). */
LAC_MUST_USE enum lac_status lac_store_put_upload(struct lac_store *store, const char *id,
                                                  const uint8_t *sha256, uint64_t size_bytes,
                                                  struct lac_object_row *ret_row,
                                                  struct lac_error *reterr);

/** A commit failed because the disk is full: give up the reserve, once. @return whether to try
 * again
 */
bool lac_store_make_room(struct lac_store *store, const struct lac_error *error, bool *tried);

/** Have the reserve (again), if there is room for it. */
void lac_store_keep_reserve(struct lac_store *store);

/** fsync a folder of the data folder. */
LAC_MUST_USE enum lac_status lac_store_sync_folder(const struct lac_store *store, const char *name,
                                                   struct lac_error *reterr);

#endif
