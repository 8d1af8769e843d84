#ifndef LAC_SERVER_INGEST_QUOTA_H
#define LAC_SERVER_INGEST_QUOTA_H

/*
 * How many bytes a project may hold, and how many a token may bring, as they were uploaded. What
 * counts is what is stored (of traces that are there: deleting makes room) and what is on its way:
 *
 *   claim (checked) --> bytes arrive --> the trace has its row --> release
 *
 * An upload is checked when it begins, at its full length where that is known; one that was begun
 * is never cut off for what others bring.
 */

#include "analysis/model/status.h"
#include "server/store/people_rows.h" // IWYU pragma: export

#include <stdbool.h>
#include <stdint.h>

struct lac_ingest;
struct lac_claim;

struct lac_claim_request {
    const char *project; /**< "" none */
    const char *token;   /**< id of the token, "" none */
    uint64_t bytes;      /**< in all, those that have come included */
    bool was_begun;      /**< count it, whatever it makes */
};

/**
 * Count the bytes of an upload, or as many as it has by now, against the quotas of its project and
 * token.
 *
 * @param claim NULL inside: a new one, the caller's until lac_quota_release()
 * @return LAC_OK; LAC_ERR_NO_SPACE with a sentence for who uploads, *claim as it was; LAC_ERR_IO,
 *         LAC_ERR_NOMEM
 * Cost: 20 us; where there is a quota 1 us a trace of the catalog. Reads the disk.
 */
LAC_MUST_USE enum lac_status lac_quota_claim(struct lac_ingest *ingest,
                                             const struct lac_claim_request *request,
                                             struct lac_claim **claim, struct lac_error *reterr);

/** What holds for a project or a token now. */
struct lac_quota_look {
    uint64_t used_bytes;  /**< stored and on its way */
    uint64_t limit_bytes; /**< 0: no limit */
    bool is_default;      /**< the server's own, as nobody set one */
};

/** @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_quota_look(struct lac_ingest *ingest, enum lac_quota_kind kind,
                                            const char *name, struct lac_quota_look *ret_look,
                                            struct lac_error *reterr);

/** Of all that nobody set one for; 0: no limit. */
uint64_t lac_quota_default(const struct lac_ingest *ingest, enum lac_quota_kind kind);

/** NULL is allowed. */
void lac_quota_release(struct lac_ingest *ingest, struct lac_claim *claim);

#endif
