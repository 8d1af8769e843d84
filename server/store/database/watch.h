#ifndef LAC_SERVER_STORE_DATABASE_WATCH_H
#define LAC_SERVER_STORE_DATABASE_WATCH_H

/*
 * What a server that stands by hears of the one that holds the catalog: a thread with a connection of
 * its own, which waits for PostgreSQL's notifications and looks at the holder once a second.
 */

#include "analysis/model/status.h"
#include "server/store/database/holder.h"

/** Called from the thread, one at a time; must not stop the watch. */
struct lac_watch_ears {
    void (*changed)(void *context);                 /**< a transaction changed the catalog */
    void (*trace)(void *context, const char *text); /**< as the holder gave it to lac_hold_tell() */
    void (*missed)(void *context); /**< notifications may have been missed: look at everything */
    /** Once a second. @param seen NULL: PostgreSQL is away, or nobody has held it yet */
    void (*holder)(void *context, const struct lac_holder_seen *seen);
    void *context;
};

struct lac_watch;

/** @param address,ears copied. @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_watch_start(const char *address, const struct lac_watch_ears *ears,
                                             struct lac_watch **ret_watch,
                                             struct lac_error *reterr);

/** NULL is allowed. */
void lac_watch_stop(struct lac_watch *watch);

#endif
