#ifndef LAC_SERVER_API_API_JOIN_H
#define LAC_SERVER_API_API_JOIN_H

/* An upload that is joined to a trace: POST /api/v1/traces?join=ID. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/ingest/ingest.h"

struct lac_api_join;

/**
 * What the request asks for.
 *
 * @param ret_join NULL: no join; else the caller's, for lac_api_join_done()
 * @return LAC_OK; LAC_ERR_MISUSE (a bad parameter, no Content-Length, a trace that is not ready),
 *         LAC_ERR_NOT_FOUND (no such trace, or no original of it is kept), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_api_join_open(struct lac_app *app,
                                               const struct lac_request *request,
                                               struct lac_api_join **ret_join,
                                               struct lac_error *reterr);

/** Before the first byte of the body, and behind the last. */
LAC_MUST_USE enum lac_status lac_api_join_start(const struct lac_api_join *join,
                                                struct lac_upload *upload,
                                                struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_api_join_end(const struct lac_api_join *join,
                                              struct lac_upload *upload, struct lac_error *reterr);

/** NULL is allowed. */
void lac_api_join_done(struct lac_api_join *join);

#endif
