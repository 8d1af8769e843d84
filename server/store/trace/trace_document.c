/* Documents kept with a trace. */

#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

const char *const lac_trace_document_names[LAC_DOCUMENT_COUNT_] = {
    [LAC_DOCUMENT_ANALYSIS] = "analysis",
    [LAC_DOCUMENT_FLAME] = "flame-gpu-op",
    [LAC_DOCUMENT_FLAME_WAITING] = "flame-waiting-op",
    [LAC_DOCUMENT_FLAME_CPU] = "flame-cpu-op",
    [LAC_DOCUMENT_RANK_TABLE] = "rank-table",
    [LAC_DOCUMENT_FACTS] = "facts",
    [LAC_DOCUMENT_COMPARE] = "compare",
    [LAC_DOCUMENT_FLAME_ROWS] = "flame-rows",
    [LAC_DOCUMENT_FLAME_PYTHON] = "flame-gpu-python",
    [LAC_DOCUMENT_FLAME_WAITING_PYTHON] = "flame-waiting-python",
    [LAC_DOCUMENT_FLAME_CPU_PYTHON] = "flame-cpu-python",
};

enum lac_status lac_trace_file_document(struct lac_trace_file *file,
                                        enum lac_trace_document document, char **ret_text,
                                        size_t *ret_length, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    uint8_t *text = NULL;
    int64_t raw_bytes = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_sql_prepare(file->db, "SELECT raw_bytes, data FROM document WHERE name = ?", &get,
                             reterr);
    if (status == LAC_OK) {
        lac_sql_bind_text(get, 1, lac_trace_document_names[document]);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        raw_bytes = sqlite3_column_int64(get, 0);
        status =
            raw_bytes >= 0 && raw_bytes <= (int64_t)LAC_DOCUMENT_BYTES_MAX
                ? lac_zstd_unpack(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1),
                                  (uint64_t)raw_bytes, &text)
                : LAC_ERR_CORRUPT;
        if (status == LAC_ERR_CORRUPT) {
            status = lac_trace_corrupt(file, reterr, "a document");
        }
    } else if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, status, 0, "the trace was stored without %s",
                       lac_trace_document_names[document]);
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        return status;
    }
    *ret_text = (char *)text;
    *ret_length = (size_t)raw_bytes;
    return LAC_OK;
}
