#include "server/store/database/watch.h"

#include "analysis/model/status.h"
#include "server/store/database/database.h"
#include "server/store/database/holder.h"
#include "server/store/database/postgres_database.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    HEAR_MS = 200, /* how long stopping may have to wait */
    LOOK_MS = 1000,
    AWAY_MS = 250,
};

struct lac_watch {
    struct lac_db *db;
    struct lac_watch_ears ears;
    pthread_t thread;
    atomic_bool is_stopping;
    bool has_changed; /**< since the last time that it was told */
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void hear(void *context, const char *channel, const char *text)
{
    struct lac_watch *const watch = context;

    if (channel[0] == '\0') {
        watch->ears.missed(watch->ears.context);
    } else if (strcmp(channel, LAC_DB_TRACE_CHANNEL) == 0) {
        watch->ears.trace(watch->ears.context, text);
    }
    watch->has_changed = true;
}

static void look(struct lac_watch *watch)
{
    struct lac_holder_seen seen;
    struct lac_error ignored = {0};
    const bool is_seen = lac_holder_look(watch->db, &seen, &ignored) == LAC_OK;

    watch->ears.holder(watch->ears.context, is_seen ? &seen : NULL);
}

static void *keep_watching(void *context)
{
    struct lac_watch *const watch = context;
    const struct timespec away = {.tv_nsec = AWAY_MS * 1000000L};
    int64_t look_ms = 0;

    while (!atomic_load(&watch->is_stopping)) {
        struct lac_error ignored = {0};

        if (lac_db_hear(watch->db, HEAR_MS, hear, watch, &ignored) != LAC_OK) {
            watch->ears.holder(watch->ears.context, NULL);
            (void)nanosleep(&away, NULL);
            continue;
        }
        if (watch->has_changed) { /* once for all that came together */
            watch->has_changed = false;
            watch->ears.changed(watch->ears.context);
        }
        if (now_ms() >= look_ms) {
            look(watch);
            look_ms = now_ms() + LOOK_MS;
        }
    }
    return NULL;
}

enum lac_status lac_watch_start(const char *address, const struct lac_watch_ears *ears,
                                struct lac_watch **ret_watch, struct lac_error *reterr)
{
    assert(address != NULL && ears != NULL && ret_watch != NULL);
    struct lac_watch *const watch = calloc(1, sizeof(*watch));
    enum lac_status status;

    if (watch == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    watch->ears = *ears;
    status = lac_db_connect(address, &watch->db, reterr);
    if (status == LAC_OK) { /* whoever starts it wants to know from the first moment */
        look(watch);
    }
    if (status == LAC_OK && pthread_create(&watch->thread, NULL, keep_watching, watch) != 0) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot start the thread that watches the catalog");
    }
    if (status != LAC_OK) {
        lac_db_close(watch->db);
        free(watch);
        return status;
    }
    *ret_watch = watch;
    return LAC_OK;
}

void lac_watch_stop(struct lac_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    atomic_store(&watch->is_stopping, true);
    (void)pthread_join(watch->thread, NULL);
    lac_db_close(watch->db);
    free(watch);
}
