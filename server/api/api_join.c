#include "server/api/api_join.h"

#include "analysis/import/import_join.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/ingest/ingest.h"
#include "server/ingest/join_tar.h"
#include "server/people/access.h"
#include "server/store/store.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lac_api_join {
    struct lac_join_entry entries[2]; /**< the upload, then the trace's original */
    uint64_t size_bytes;              /**< of the upload */
    char original[4096];
};

static enum lac_status take_trace(struct lac_app *app, const char *id, struct lac_api_join *join,
                                  struct lac_error *reterr)
{
    struct lac_trace_row row = {0};
    enum lac_status status = lac_store_id_is_valid(id)
                                 ? lac_store_get_trace(app->store, id, &row, reterr)
                                 : lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no such trace: join");
    if (status != LAC_OK) {
        return status;
    }
    if (row.state != LAC_TRACE_READY) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0, "the trace to join to is not ready");
    }
    (void)snprintf(join->entries[1].name, sizeof(join->entries[1].name), "%s",
                   row.name != NULL && row.name[0] != '\0' ? row.name : "trace");
    lac_trace_row_done(&row);
    return status == LAC_OK ? lac_store_original_path(app->store, id, join->original,
                                                      sizeof(join->original), reterr)
                            : status;
}

enum lac_status lac_api_join_open(struct lac_app *app, const struct lac_request *request,
                                  struct lac_api_join **ret_join, struct lac_error *reterr)
{
    const char *id = lac_target_get(request->target, "join");
    const char *offset = lac_target_get(request->target, "offset_s");
    const char *name = lac_target_get(request->target, "name");
    *ret_join = NULL;
    if (id == NULL) {
        return offset == NULL ? LAC_OK
                              : lac_fail(reterr, LAC_ERR_MISUSE, 0, "offset_s goes with join");
    }
    if (request->content_length == LAC_SIZE_UNKNOWN) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "an upload that is joined needs a Content-Length");
    }
    struct lac_api_join *join = calloc(1, sizeof(*join));
    if (join == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the upload");
    }
    join->size_bytes = request->content_length;
    join->entries[0].has_offset = offset != NULL;
    (void)snprintf(join->entries[0].name, sizeof(join->entries[0].name), "%s",
                   name != NULL && name[0] != '\0' ? name : "upload");
    enum lac_status status =
        offset == NULL || lac_join_seconds(offset, &join->entries[0].offset_ns)
            ? LAC_OK
            : lac_fail(reterr, LAC_ERR_MISUSE, 0, "offset_s must be seconds, as 2.5 or -3600");
    if (status == LAC_OK && !lac_access_reads_trace(app->people, app->store, &request->who, id)) {
        status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "join: no such trace");
    }
    if (status == LAC_OK) {
        status = take_trace(app, id, join, reterr);
    }
    if (status != LAC_OK) {
        free(join);
        return status;
    }
    *ret_join = join;
    return LAC_OK;
}

enum lac_status lac_api_join_start(const struct lac_api_join *join, struct lac_upload *upload,
                                   struct lac_error *reterr)
{
    return lac_join_upload_begin(upload, join->entries, join->size_bytes, reterr);
}

enum lac_status lac_api_join_end(const struct lac_api_join *join, struct lac_upload *upload,
                                 struct lac_error *reterr)
{
    return lac_join_upload_finish(upload, join->size_bytes, join->original, reterr);
}

void lac_api_join_done(struct lac_api_join *join)
{
    free(join);
}
