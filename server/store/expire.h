#ifndef LAC_SERVER_STORE_EXPIRE_H
#define LAC_SERVER_STORE_EXPIRE_H

/*
 * Retention: what is old goes, the upload first, the trace later. Pinned traces and the baselines of
 * projects stay whole, and so does an upload that one of them needs.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_expiry {
    int64_t originals_before_ms; /**< uploads of traces that arrived before; 0: none go */
    int64_t traces_before_ms;    /**< traces that arrived before; 0: none go */
    bool is_dry_run;             /**< only told */
    /** Told of each before it goes. @param what "original" or "trace" */
    void (*told)(void *context, const char *what, const char *id, const char *name, uint64_t bytes);
    void *context;
};

struct lac_expired {
    uint32_t originals, traces;
    uint64_t bytes; /**< that they took */
};

/**
 * Remove what has expired. A server may be running on the folder. A failure ends it; what has gone
 * by then is counted.
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_CORRUPT
 */
LAC_MUST_USE enum lac_status lac_store_expire(struct lac_store *store,
                                              const struct lac_expiry *expiry,
                                              struct lac_expired *ret_expired,
                                              struct lac_error *reterr);

#endif
