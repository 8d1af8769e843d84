#ifndef LAC_SERVER_SQL_RESULT_TEXT_H
#define LAC_SERVER_SQL_RESULT_TEXT_H

/*
 * The result of a query as text: a table for people, CSV (RFC 4180), or JSON:
 *
 *   {"columns":["name","dur_ns"],"rows":[["gemm",1234],...],"row_count":2,"cut":null}
 *
 * Integers beyond 2^53 are strings of digits in JSON, blobs are lower-case hexadecimal, numbers
 * that are none are null. "cut" says which limit ended the rows: "rows" or "bytes".
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/sql/sql_query.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum lac_sql_form { LAC_SQL_FORM_TABLE = 0, LAC_SQL_FORM_CSV, LAC_SQL_FORM_JSON };

/** Set form, file and limits, zero the rest. */
struct lac_sql_result {
    enum lac_sql_form form;
    FILE *file;         /**< CSV and JSON flow into it; NULL: all stays in `out` */
    uint64_t row_max;   /**< 0: no limit */
    uint64_t bytes_max; /**< of the text; 0: no limit */
    unsigned width;     /**< of the terminal, for tables; 0: no limit */

    struct lac_buffer out;
    uint64_t row_count;
    const char *cut; /**< "rows", "bytes" or NULL */
    bool has_failed; /**< `file` refused */
    unsigned column_count;
    char **names;            /**< of a table */
    struct lac_buffer cells; /**< of a table: texts, each with a NUL, in order */
    uint8_t *is_number;      /**< of a table, by column: all of its values are numbers or NULL */
};

/** What the query gives its rows to. */
struct lac_sql_sink lac_sql_result_sink(struct lac_sql_result *result);

/** Write the end, and what is left. @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_sql_result_finish(struct lac_sql_result *result);

void lac_sql_result_done(struct lac_sql_result *result);

#endif
