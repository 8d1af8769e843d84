/* What people call their traces: names, projects, notes and tags that somebody gave. They lie beside
 * the rows of the traces, which follow their files and can be made again from these. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Replace a text of the row by the column, where it has one. */
static void overlay(struct lac_statement *get, int column, char **text, enum lac_status *status)
{
    char *given = lac_db_take_text(get, column, status);

    if (*status == LAC_OK && given != NULL) {
        free(*text);
        *text = given;
    } else {
        free(given);
    }
}

static enum lac_status read_one(struct lac_statement *get, struct lac_trace_row *row,
                                struct lac_error *reterr)
{
    enum lac_status status;

    lac_db_bind_text(get, 1, row->id);
    status = lac_db_step_row(get, "catalog", reterr);
    if (status == LAC_OK) {
        const bool is_renamed = !lac_db_is_null(get, 0);

        if (is_renamed) {
            free(row->file_name);
            row->file_name = row->name;
            row->name = NULL;
        }
        overlay(get, 0, &row->name, &status);
        overlay(get, 1, &row->project, &status);
        overlay(get, 2, &row->notes, &status);
        overlay(get, 3, &row->tags, &status);
    }
    lac_db_reset(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_catalog_read_labels(struct lac_db *db, struct lac_trace_row *rows,
                                        uint32_t count, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db, "SELECT name, project, notes, tags FROM labels WHERE trace = ?", &get, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = read_one(get, &rows[i], reterr);
    }
    lac_db_finalize(get);
    return status;
}

/** One column: NULL leaves it, "" takes the label away. */
static enum lac_status put_label(struct lac_db *db, const char *sql, const char *id,
                                 const char *text, struct lac_error *reterr)
{
    const char *texts[2] = {id, text};

    return text == NULL ? LAC_OK : lac_catalog_change(db, sql, texts, 2, NULL, reterr);
}

enum lac_status lac_catalog_put_labels(struct lac_db *db, const char *id,
                                       const struct lac_trace_labels *labels,
                                       struct lac_error *reterr)
{
    const char *texts[1] = {id};
    int64_t seq = 0;
    enum lac_status status;

    if (!lac_db_is_current(db)) { /* an old catalog that there is no room to convert */
        return lac_fail(reterr, LAC_ERR_IO, 0,
                        "the disk has no room for labels: make room, then start the server again");
    }
    status = lac_db_begin(db, true, reterr);
    if (status != LAC_OK) {
        return status;
    }
    status = lac_catalog_number(db, "seq", id, &seq, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    if (status == LAC_OK) {
        status =
            lac_catalog_change(db, "INSERT INTO labels(trace) VALUES(?1) ON CONFLICT DO NOTHING",
                               texts, 1, NULL, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET name = nullif(?2, '') WHERE trace = ?1", id,
                           labels->name, reterr);
    }
    if (status == LAC_OK) { /* no project is a choice, too: "" stays */
        status = put_label(db, "UPDATE labels SET project = ?2 WHERE trace = ?1", id,
                           labels->project, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET notes = nullif(?2, '') WHERE trace = ?1", id,
                           labels->notes, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET tags = nullif(?2, '') WHERE trace = ?1", id,
                           labels->tags, reterr);
    }
    return lac_db_end(db, status, reterr);
}
