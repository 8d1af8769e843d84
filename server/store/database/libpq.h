#ifndef LAC_SERVER_STORE_DATABASE_LIBPQ_H
#define LAC_SERVER_STORE_DATABASE_LIBPQ_H

/* PostgreSQL's client library, loaded when it is needed: building does not need it, and who keeps the
 * catalog in a file does not, either. Names and numbers are those of its public interface. */

#include "analysis/model/status.h"

#include <stdbool.h>

struct pg_conn;
struct pg_result;

/** The head of PGnotify; more follows. */
struct lac_pq_notice {
    char *channel;
    int backend_pid;
    char *text;
};

/** PQconninfoOption; the last has no keyword. */
struct lac_pq_option {
    char *keyword, *variable, *compiled, *value, *label, *kind;
    int size;
};

enum lac_pq_number {
    LAC_PQ_CONNECTION_OK = 0,
    LAC_PQ_EMPTY = 0, /**< what came back: a statement was empty */
    LAC_PQ_COMMAND_OK = 1,
    LAC_PQ_TUPLES_OK = 2,
    LAC_PQ_SQLSTATE = 'C',
    LAC_PQ_MESSAGE = 'M',
    LAC_PQ_INFERRED = 0, /**< types, by their numbers in pg_type */
    LAC_PQ_BYTEA = 17,
    LAC_PQ_INT8 = 20,
    LAC_PQ_FLOAT8 = 701,
};

struct lac_libpq {
    struct pg_conn *(*connect)(const char *const *keywords, const char *const *values,
                               int expand_dbname);
    void (*finish)(struct pg_conn *conn);
    void (*reset)(struct pg_conn *conn);
    struct lac_pq_option *(*parse)(const char *address, char **ret_message);
    void (*parse_free)(struct lac_pq_option *options);
    int (*status)(const struct pg_conn *conn);
    int (*backend_pid)(const struct pg_conn *conn);
    char *(*error_message)(const struct pg_conn *conn);
    void *(*set_notice_processor)(struct pg_conn *conn, void (*take)(void *, const char *),
                                  void *context);
    int (*socket)(const struct pg_conn *conn);
    int (*consume_input)(struct pg_conn *conn);
    struct lac_pq_notice *(*notifies)(struct pg_conn *conn);
    void (*freemem)(void *memory);
    struct pg_result *(*exec)(struct pg_conn *conn, const char *sql);
    struct pg_result *(*exec_params)(struct pg_conn *conn, const char *sql, int count,
                                     const unsigned *types, const char *const *values,
                                     const int *lengths, const int *formats, int result_format);
    int (*result_status)(const struct pg_result *result);
    char *(*error_field)(const struct pg_result *result, int field);
    int (*row_count)(const struct pg_result *result);
    unsigned (*type)(const struct pg_result *result, int column);
    char *(*value)(const struct pg_result *result, int row, int column);
    int (*is_null)(const struct pg_result *result, int row, int column);
    char *(*command_tag)(struct pg_result *result);
    char *(*changed_rows)(struct pg_result *result);
    void (*clear)(struct pg_result *result);
};

/** Load it; LACUNA_LIBPQ names another file than libpq.so.5. It stays loaded.
 *  @return LAC_OK, LAC_ERR_IO with a sentence that says what to install */
LAC_MUST_USE enum lac_status lac_libpq_load(struct lac_libpq *ret_libpq, struct lac_error *reterr);

/** Whether it can read an address. What it would say of one that it cannot may quote a password. */
bool lac_libpq_reads(const struct lac_libpq *pq, const char *address);

#endif
