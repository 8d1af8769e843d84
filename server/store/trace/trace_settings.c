/* Table setting: what was recorded of the job's settings and its host, a row each. */

#include "analysis/import/text/settings_text.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <stddef.h>
#include <stdint.h>

enum lac_status lac_trace_write_settings(struct lac_trace_writer *writer)
{
    const struct lac_setting_rows *rows = &writer->model->settings;
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(writer->db, "INSERT INTO setting VALUES(?,?,?,?,?)",
                                             &insert, writer->reterr);

    for (uint64_t i = 0; i < rows->count && status == LAC_OK; i++) {
        lac_sql_bind_i64(insert, 1, (int64_t)i);
        if (rows->at[i].parent != UINT32_MAX) {
            lac_sql_bind_i64(insert, 2, rows->at[i].parent);
        }
        lac_sql_bind_i64(insert, 3, rows->at[i].type);
        lac_sql_bind_text(insert, 4, lac_settings_name(rows, i));
        lac_sql_bind_text(insert, 5, lac_settings_value(rows, i));
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

/** Add the row on which the statement stands. @return LAC_ERR_CORRUPT when it is none */
static enum lac_status add_row(struct lac_setting_rows *rows, sqlite3_stmt *get)
{
    const bool is_root = sqlite3_column_type(get, 1) == SQLITE_NULL;
    const int64_t parent = sqlite3_column_int64(get, 1);
    const int64_t type = sqlite3_column_int64(get, 2);
    const char *name = (const char *)sqlite3_column_text(get, 3);
    const char *value = (const char *)sqlite3_column_text(get, 4);
    enum lac_status status;

    if (sqlite3_column_int64(get, 0) != (int64_t)rows->count || type < 0 ||
        type >= LAC_SETTING_TYPE_COUNT_ || parent < 0 || parent >= LAC_SETTINGS_MAX) {
        return LAC_ERR_CORRUPT;
    }
    status = lac_settings_add(rows, is_root ? UINT32_MAX : (uint32_t)parent,
                              (enum lac_setting_type)type, name, value);
    return status == LAC_OK || status == LAC_ERR_NOMEM ? status : LAC_ERR_CORRUPT;
}

enum lac_status lac_trace_read_settings(struct lac_trace_file *file, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    if (file->format_version < LAC_TRACE_FORMAT_ROWS) {
        return lac_settings_read_text(&file->head);
    }
    status = lac_sql_prepare(
        file->db, "SELECT idx, parent, type, name, value FROM setting ORDER BY idx", &get, reterr);
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = add_row(&file->head.settings, get);
        }
    }
    (void)sqlite3_finalize(get);
    if (status == LAC_ERR_CORRUPT) {
        return lac_trace_corrupt(file, reterr, "setting");
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}
