/* A page of runs over time, in one statement. See journal_rows.h. */

#include "analysis/model/status.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/sql.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** ?1: ids as a JSON array, ?2: the version of what is kept. */
static const char details_sql[] =
    "SELECT e.key, coalesce(l.name, t.name), l.notes, l.tags, t.host, t.device_names, t.cause,"
    " t.is_simulated, b.trace IS NOT NULL, s.trace IS NOT NULL, f.document, n.document"
    " FROM json_each(?1) e JOIN traces t ON t.id = e.value"
    " LEFT JOIN labels l ON l.trace = t.id LEFT JOIN projects p ON p.id = t.project"
    " LEFT JOIN figures f ON f.trace = t.id AND f.version = ?2"
    " LEFT JOIN neighbors n ON n.b = t.id AND n.version = ?2"
    " LEFT JOIN baselines b ON b.project = coalesce(l.project, p.name, '') AND b.trace = t.id"
    " LEFT JOIN pins s ON s.trace = t.id";

void lac_run_details_done(struct lac_run_details *details, uint32_t count)
{
    for (uint32_t i = 0; i < count && details != NULL; i++) {
        struct lac_run_details *it = &details[i];

        free(it->name);
        free(it->notes);
        free(it->tags);
        free(it->host);
        free(it->device_names);
        free(it->cause);
        free(it->figures);
        free(it->neighbors);
    }
    free(details);
}

static enum lac_status read_details(sqlite3_stmt *get, struct lac_run_details *out)
{
    enum lac_status status = LAC_OK;

    out->is_there = true;
    out->name = lac_sql_take_text(get, 1, &status);
    out->notes = lac_sql_take_text(get, 2, &status);
    out->tags = lac_sql_take_text(get, 3, &status);
    out->host = lac_sql_take_text(get, 4, &status);
    out->device_names = lac_sql_take_text(get, 5, &status);
    out->cause = lac_sql_take_text(get, 6, &status);
    out->is_simulated = sqlite3_column_int(get, 7) != 0;
    out->is_baseline = sqlite3_column_int(get, 8) != 0;
    out->is_pinned = sqlite3_column_int(get, 9) != 0;
    out->figures = lac_sql_take_text(get, 10, &status);
    out->neighbors = lac_sql_take_text(get, 11, &status);
    return status;
}

/** ["id","id",...]: ids are base32. */
static char *array_of(const char *const *traces, uint32_t count)
{
    const size_t capacity_bytes = (size_t)count * (LAC_ID_SIZE + 3) + 3;
    char *text = malloc(capacity_bytes);
    size_t used = 0;

    if (text != NULL) {
        text[used++] = '[';
        for (uint32_t i = 0; i < count; i++) {
            used += (size_t)snprintf(text + used, capacity_bytes - used, "%s\"%.26s\"",
                                     i > 0 ? "," : "", traces[i]);
        }
        (void)snprintf(text + used, capacity_bytes - used, "]");
    }
    return text;
}

enum lac_status lac_store_run_details(struct lac_store *store, const char *const *traces,
                                      uint32_t count, struct lac_run_details **ret_details,
                                      struct lac_error *reterr)
{
    assert(store != NULL && (traces != NULL || count == 0) && ret_details != NULL);
    struct lac_run_details *details = calloc((size_t)count + 1, sizeof(*details));
    char *ids = array_of(traces, count);
    sqlite3_stmt *get = NULL;
    enum lac_status status = details != NULL && ids != NULL
                                 ? LAC_OK
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    (void)pthread_mutex_lock(&store->lock);
    if (status == LAC_OK) {
        status = lac_sql_prepare(store->catalog, details_sql, &get, reterr);
    }
    if (status == LAC_OK) {
        lac_sql_bind_text(get, 1, ids);
        lac_sql_bind_i64(get, 2, LAC_FIGURES_VERSION);
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            const int64_t at = sqlite3_column_int64(get, 0);

            status = at >= 0 && at < count && !details[at].is_there
                         ? read_details(get, &details[at])
                         : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "catalog.db: two rows of a trace");
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    free(ids);
    if (status != LAC_ERR_NOT_FOUND) {
        lac_run_details_done(details, count);
        return status;
    }
    *ret_details = details;
    return LAC_OK;
}
