#ifndef LAC_SERVER_INGEST_TENDER_H
#define LAC_SERVER_INGEST_TENDER_H

/* A thread that looks after object storage (store.h, lac_store_tend_objects) while a server runs. */

#include "analysis/model/status.h"

struct lac_store;
struct lac_tender;

/** @param ret_tender NULL where no object storage is used.
 *  @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status
lac_tender_start(struct lac_store *store, struct lac_tender **ret_tender, struct lac_error *reterr);

/** NULL is allowed. Call lac_store_stop_waiting() first. */
void lac_tender_stop(struct lac_tender *tender);

#endif
