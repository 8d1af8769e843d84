#ifndef LAC_SERVER_TABLES_ROWS_H
#define LAC_SERVER_TABLES_ROWS_H

/* Cells and rows of a table while it is made. */

#include "analysis/model/status.h"
#include "server/sql/sql_trace.h"
#include "server/tables/trace_tables.h"

#include <stdint.h>

/** A text that the table owns. @return NULL when out of memory, or when `text` is NULL */
const char *lac_table_text(struct lac_table *table, const char *text);

/** A row more, empty. NULL when out of memory. */
struct lac_table_row *lac_table_add_row(struct lac_table *table);

static inline void lac_cell_int(struct lac_table_row *row, enum lac_table_column column,
                                int64_t value)
{
    row->cells[column] = (struct lac_cell){.type = LAC_CELL_INT, .integer = value};
}

static inline void lac_cell_real(struct lac_table_row *row, enum lac_table_column column,
                                 double value)
{
    row->cells[column] = (struct lac_cell){.type = LAC_CELL_REAL, .real = value};
}

/** Nothing for NULL and "". */
static inline void lac_cell_text(struct lac_table_row *row, enum lac_table_column column,
                                 const char *text)
{
    row->cells[column] = (struct lac_cell){
        .type = text != NULL && text[0] != '\0' ? LAC_CELL_TEXT : LAC_CELL_NONE, .text = text};
}

/** Whether a text of the row holds the query's. */
bool lac_row_matches(const struct lac_table_query *query, const struct lac_table_row *row);

/* lists: steps, gaps, batches */
LAC_MUST_USE enum lac_status lac_list_steps(struct lac_sql_trace *trace,
                                            const struct lac_table_query *query,
                                            struct lac_table *table, struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_list_gaps(struct lac_sql_trace *trace,
                                           const struct lac_table_query *query,
                                           struct lac_table *table, struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_list_batches(struct lac_sql_trace *trace,
                                              const struct lac_table_query *query,
                                              struct lac_table *table, struct lac_error *reterr);

#endif
