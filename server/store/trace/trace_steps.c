/* Table step: every step with whether it was kept; and the analysis that it is a part of. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/analysis_pack.h"
#include "analysis/diagnose/result/saturate.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum step_column {
    STEP_START = 0,
    STEP_DUR,
    STEP_HOST_START,
    STEP_HOST_DUR,
    STEP_WAIT,
    STEP_STARVED,
    STEP_OPS,
    STEP_NAME,
    STEP_SLICE,
    STEP_LEFT_OUT,
    STEP_KIND,
    STEP_IS_OUTLIER,
    STEP_COLUMNS
};

enum lac_status lac_trace_write_steps(struct lac_trace_writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    int64_t *storage = malloc(sizeof(int64_t) * STEP_COLUMNS * LAC_COLUMN_BLOCK_ROWS);
    int64_t *columns[STEP_COLUMNS];
    sqlite3_stmt *insert = NULL;
    enum lac_status status = storage != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (size_t c = 0; c < STEP_COLUMNS && status == LAC_OK; c++) {
        columns[c] = storage + c * LAC_COLUMN_BLOCK_ROWS;
    }
    if (status == LAC_OK) {
        status = lac_trace_write_meta_i64(writer, "step_count", analysis->step_count);
    }
    if (status == LAC_OK) {
        status =
            lac_sql_prepare(writer->db, "INSERT INTO step VALUES(?,?,?)", &insert, writer->reterr);
    }
    for (uint32_t first = 0; first < analysis->step_count && status == LAC_OK;) {
        uint32_t left = analysis->step_count - first;
        uint32_t count = left < LAC_COLUMN_BLOCK_ROWS ? left : LAC_COLUMN_BLOCK_ROWS;

        for (uint32_t i = 0; i < count; i++) {
            const struct lac_step *step = &analysis->steps[first + i];

            columns[STEP_START][i] = step->start_ns;
            columns[STEP_DUR][i] = step->dur_ns;
            columns[STEP_HOST_START][i] = step->host_start_ns;
            columns[STEP_HOST_DUR][i] = step->host_dur_ns;
            columns[STEP_WAIT][i] = step->wait_ns;
            columns[STEP_STARVED][i] = step->starved_ns;
            columns[STEP_OPS][i] = (int64_t)step->op_count;
            columns[STEP_NAME][i] = step->name;
            columns[STEP_SLICE][i] = step->slice == LAC_NONE ? -1 : (int64_t)step->slice;
            columns[STEP_LEFT_OUT][i] = step->left_out;
            columns[STEP_KIND][i] = step->kind;
            columns[STEP_IS_OUTLIER][i] = step->is_outlier;
        }
        writer->scratch2.size_bytes = 0;
        status = lac_columns_encode((const int64_t *const *)columns, STEP_COLUMNS, count,
                                    &writer->scratch2);
        if (status == LAC_OK) {
            lac_sql_bind_i64(insert, 1, first);
            lac_sql_bind_i64(insert, 2, count);
            lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
            status = lac_sql_step_done(insert, "trace file", writer->reterr);
        }
        first += count;
    }
    (void)sqlite3_finalize(insert);
    free(storage);
    return status;
}

/** Where steps go, and what they may name. */
struct steps {
    const struct lac_model *head;
    struct lac_step *at;
    uint32_t kept_count;
    int64_t total_ns; /**< means are made of their sum */
};

static bool is_between(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static enum lac_status read_steps(void *target, const struct lac_block *block,
                                  int64_t *const *columns)
{
    struct steps *steps = target;
    const struct lac_model *head = steps->head;

    for (uint32_t i = 0; i < block->count; i++) {
        const int64_t start_ns = columns[STEP_START][i];
        const int64_t slice = columns[STEP_SLICE][i];
        struct lac_step *step = &steps->at[block->first + i];

        if (!is_between(start_ns, 0, LAC_TIME_MAX_NS) ||
            !is_between(columns[STEP_DUR][i], 0, LAC_TIME_MAX_NS) ||
            !is_between(steps->total_ns, 0, INT64_MAX - LAC_TIME_MAX_NS) ||
            !is_between(columns[STEP_HOST_START][i], 0, LAC_TIME_MAX_NS) ||
            !is_between(columns[STEP_HOST_DUR][i], 0, LAC_TIME_MAX_NS) ||
            !is_between(columns[STEP_WAIT][i], 0, LAC_NUMBER_MAX) ||
            !is_between(columns[STEP_STARVED][i], 0, LAC_NUMBER_MAX) ||
            !is_between(columns[STEP_OPS][i], 0, LAC_NUMBER_MAX) ||
            !is_between(columns[STEP_NAME][i], 0, (int64_t)head->strings.count - 1) ||
            !is_between(slice, -1, (int64_t)head->slices.count - 1) ||
            !is_between(columns[STEP_LEFT_OUT][i], 0, LAC_STEP_LEFT_OUT_COUNT_ - 1) ||
            !is_between(columns[STEP_KIND][i], 0, LAC_KIND_COUNT_ - 1) ||
            !is_between(columns[STEP_IS_OUTLIER][i], 0, 1)) {
            return LAC_ERR_CORRUPT;
        }
        *step = (struct lac_step){
            .start_ns = start_ns,
            .dur_ns = columns[STEP_DUR][i],
            .host_start_ns = columns[STEP_HOST_START][i],
            .host_dur_ns = columns[STEP_HOST_DUR][i],
            .wait_ns = columns[STEP_WAIT][i],
            .starved_ns = columns[STEP_STARVED][i],
            .op_count = (uint64_t)columns[STEP_OPS][i],
            .name = (uint32_t)columns[STEP_NAME][i],
            .slice = slice < 0 ? LAC_NONE : (uint32_t)slice,
            .left_out = (uint8_t)columns[STEP_LEFT_OUT][i],
            .kind = (uint8_t)columns[STEP_KIND][i],
            .is_outlier = columns[STEP_IS_OUTLIER][i] != 0,
        };
        steps->total_ns += step->dur_ns;
        steps->kept_count += step->left_out == LAC_STEP_KEPT;
    }
    return LAC_OK;
}

/** Rows of the table, as meta says. */
static enum lac_status count_steps(struct lac_trace_file *file, uint32_t *ret_count,
                                   struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    int64_t count = -1;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status =
        lac_sql_prepare(file->db, "SELECT value FROM meta WHERE key = 'step_count'", &get, reterr);
    if (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        count = sqlite3_column_int64(get, 0);
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status == LAC_OK || status == LAC_ERR_NOT_FOUND) {
        /* a step has a slice in its track */
        status = is_between(count, 0, (int64_t)file->head.slices.count)
                     ? LAC_OK
                     : lac_trace_corrupt(file, reterr, "meta step_count");
    }
    *ret_count = (uint32_t)count;
    return status;
}

static enum lac_status add_steps(struct lac_trace_file *file, struct lac_analysis *analysis,
                                 struct lac_error *reterr)
{
    struct steps steps = {.head = &file->head};
    uint32_t count = 0;
    enum lac_status status = count_steps(file, &count, reterr);

    if (status != LAC_OK) {
        return status;
    }
    steps.at = calloc((size_t)count + 1, sizeof(*steps.at));
    if (steps.at == NULL) {
        return LAC_ERR_NOMEM;
    }
    const struct lac_block_table table = {"SELECT first, count, data FROM step ORDER BY first", 0,
                                          count, STEP_COLUMNS, read_steps};

    analysis->steps = steps.at;
    analysis->step_count = count;
    status = lac_trace_read_blocks(file, &table, &steps, reterr);
    return status == LAC_OK && steps.kept_count != analysis->step_kept_count
               ? lac_trace_corrupt(file, reterr, "step")
               : status;
}

void lac_trace_read_marks(struct lac_trace_file *file)
{
    struct lac_trace_lazy *lazy = &file->lazy;
    struct steps steps = {.head = &file->head};
    uint32_t count = 0;

    memcpy(lazy->step_host_start_ns, lazy->step_start_ns, lazy->step_count * sizeof(int64_t));
    memcpy(lazy->step_host_dur_ns, lazy->step_dur_ns, lazy->step_count * sizeof(int64_t));
    if (count_steps(file, &count, NULL) != LAC_OK || count != lazy->step_count) {
        return;
    }
    steps.at = calloc((size_t)count + 1, sizeof(*steps.at));
    const struct lac_block_table table = {"SELECT first, count, data FROM step ORDER BY first", 0,
                                          count, STEP_COLUMNS, read_steps};
    bool is_read = steps.at != NULL && lac_trace_read_blocks(file, &table, &steps, NULL) == LAC_OK;
    for (uint32_t i = 0; i < count && is_read; i++) { /* as they are in the track: by start */
        lazy->step_host_start_ns[i] = steps.at[i].host_start_ns;
        lazy->step_host_dur_ns[i] = steps.at[i].host_dur_ns;
    }
    free(steps.at);
}

enum lac_status lac_trace_file_analysis(struct lac_trace_file *file,
                                        struct lac_analysis **ret_analysis,
                                        struct lac_error *reterr)
{
    assert(file != NULL && ret_analysis != NULL);
    struct lac_analysis *analysis = NULL;
    char *bytes = NULL;
    size_t size_bytes = 0;
    enum lac_status status =
        lac_trace_file_document(file, LAC_DOCUMENT_FACTS, &bytes, &size_bytes, reterr);

    if (status == LAC_OK) {
        status = lac_analysis_unpack((uint8_t *)bytes, size_bytes, &file->head, &analysis);
        if (status == LAC_ERR_CORRUPT) {
            status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0,
                              "the trace was stored with facts of another version");
        }
    }
    if (status == LAC_OK) {
        status = add_steps(file, analysis, reterr);
    }
    if (status != LAC_OK) {
        lac_analysis_destroy(analysis);
        return status;
    }
    *ret_analysis = analysis;
    return LAC_OK;
}
