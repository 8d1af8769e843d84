#ifndef LAC_SERVER_JSON_ROWS_CSV_H
#define LAC_SERVER_JSON_ROWS_CSV_H

/*
 * A reply that holds rows, as CSV. openapi.json says which these are: the 200 of a GET has
 * `text/csv` with `x-rows`, the member that holds the rows, or a list of members that are columns
 * side by side. The columns are those of its schema, and behind them what rows have besides.
 *
 * Objects in a row are columns `outer.inner`; lists of texts and numbers are one cell with "; "
 * between; other lists are JSON. Numbers keep their digits, null is an empty cell, and text is as
 * in server/base/csv.h.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

struct json_object;

/** How rows of one address leave. All borrowed from the description. */
struct lac_rows_form {
    const char *list;           /**< the member with the rows; of columns: the first one */
    struct json_object *rows;   /**< `x-rows` */
    struct json_object *names;  /**< `x-columns` of rows that are lists; NULL none */
    struct json_object *schema; /**< of the reply */
    struct json_object *components;
};

/** Read openapi.json. @param ret_description for lac_json_read_done(). Cost: 10 ms */
LAC_MUST_USE enum lac_status lac_description_read(const char *text, size_t size_bytes,
                                                  struct json_object **ret_description,
                                                  struct lac_error *reterr);

/** @param pattern of a route. @return false: what it answers are no rows */
bool lac_rows_form_of(struct json_object *description, const char *pattern,
                      struct lac_rows_form *ret_form);

/**
 * Write the rows of a reply as CSV, the names of the columns first.
 *
 * @param reply     the JSON of a 200
 * @param ret_next  the reply's `next`, "" none
 * Cost: about 2 us a row of 15 columns.
 */
LAC_MUST_USE enum lac_status lac_rows_csv(const struct lac_rows_form *form, const char *reply,
                                          size_t size_bytes, struct lac_buffer *out, char *ret_next,
                                          size_t next_capacity_bytes, struct lac_error *reterr);

#endif
