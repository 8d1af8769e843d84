#ifndef LAC_SERVER_STORE_DATABASE_HOLDER_H
#define LAC_SERVER_STORE_DATABASE_HOLDER_H

/*
 * Which of several servers holds a catalog in PostgreSQL. Its data folder is the catalog's owner,
 * and each transaction that writes makes sure of that first (lac_db_fence()), so that one which was
 * overtaken changes nothing any more, however long it was asleep. Every 2 s the holder writes the
 * time; when it has not for 10 s, on PostgreSQL's clock, another server may become the owner.
 */

#include "server/store/database/database.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_HOLD_MS = 10000, LAC_HOLD_RENEW_MS = 2000, LAC_NODE_ADDRESS_BYTES = 320 };

/** What servers that stand by read of the one that holds the catalog. */
struct lac_holder_seen {
    char node[256]; /**< as messages call it */
    char address
        [LAC_NODE_ADDRESS_BYTES]; /**< HOST:PORT where it answers, with TLS "tls:FINGERPRINT@HOST:PORT"; "" unknown */
    char secret[32];   /**< by which it knows their requests; "" none */
    int64_t silent_ms; /**< INT64_MAX: it has stopped */
};

/** What is known of a folder that opens a catalog. */
struct lac_holder {
    const char *owner; /**< the folder's id */
    const char
        *node; /**< how a server is called; NULL: not a server, which takes no catalog over */
    bool
        is_arriving; /**< the catalog was another folder's, and this one is not set up for it yet */
};

/**
 * Become the holder, or make sure that the folder is the owner. Within a transaction.
 * @param owner of the catalog now, "" none
 * @return LAC_OK, LAC_ERR_BUSY (another server holds it), LAC_ERR_MISUSE (it is another folder's, and
 *         cannot be taken over), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_holder_take(struct lac_db *db, const char *owner,
                                             struct lac_holder *holder, struct lac_error *reterr);

/** Whether the folder that owns the catalog is not set up for it yet. */
LAC_MUST_USE enum lac_status lac_holder_is_arriving(struct lac_db *db, bool *ret_is,
                                                    struct lac_error *reterr);
/** Now it is. */
LAC_MUST_USE enum lac_status lac_holder_has_arrived(struct lac_db *db, struct lac_error *reterr);

/** Say where this server answers, and by which secret it knows requests that others pass on. */
LAC_MUST_USE enum lac_status lac_holder_announce(struct lac_db *db, const char *address,
                                                 const char *secret, struct lac_error *reterr);

/** @return LAC_OK, LAC_ERR_NOT_FOUND (no server has held it yet), LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_holder_look(struct lac_db *db, struct lac_holder_seen *ret_seen,
                                             struct lac_error *reterr);

/** The thread that says every LAC_HOLD_RENEW_MS that this server is there. */
struct lac_hold;

/** @param address,owner copied. @param is_lost called once, from the thread, when another server
 *  has taken the catalog. @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_hold_start(const char *address, const char *owner,
                                            void (*is_lost)(void *context), void *context,
                                            struct lac_hold **ret_hold, struct lac_error *reterr);

enum { LAC_HOLD_TEXT_BYTES = 160 };

/** Tell the servers that stand by, soon: the text goes to LAC_DB_TRACE_CHANNEL. One of the same
 *  first `key_length` bytes that still waits is replaced; with too many the text is dropped. Does
 *  not wait. */
void lac_hold_tell(struct lac_hold *hold, const char *text, size_t key_length);

/** Nothing is written any more: another server may take over at once. NULL is allowed. */
void lac_hold_stop(struct lac_hold *hold);

#endif
