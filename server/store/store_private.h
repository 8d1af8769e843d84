#ifndef LAC_SERVER_STORE_STORE_PRIVATE_H
#define LAC_SERVER_STORE_STORE_PRIVATE_H

#include "server/store/catalog.h"
#include "server/store/store.h"
#include "server/store/trace_private.h"

#include <pthread.h>
#include <stdbool.h>

enum { LAC_STORE_PATH_SIZE = 4096, LAC_STORE_FILES_KEPT = 16 };

struct lac_store {
    char data_dir[LAC_STORE_PATH_SIZE - 256];

    pthread_mutex_t lock; /**< guards all below */
    sqlite3 *catalog;
    struct lac_cache *cache;
    struct lac_cache *model_cache;
    struct lac_trace_file **files; /**< open ones */
    uint32_t file_count, file_capacity;
    uint64_t use_clock;
};

/** Paths below the data folder. @return false when too long */
bool lac_store_path(const struct lac_store *store, char *out, const char *folder, const char *name,
                    const char *ending);

/** Hold DIR/folder.lock, shared or exclusive, until unlocked: a lock of its own each time, so that
 *  threads of one process exclude each other too. @return a descriptor or -1 */
int lac_folder_lock(const struct lac_store *store, bool exclusive);
void lac_folder_unlock(int fd);

#endif
