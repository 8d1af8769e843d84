#include "server/store/database/postgres_database.h"

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "collector/base/utf8.h"
#include "server/store/database/database_private.h"
#include "server/store/database/dialect.h"
#include "server/store/database/libpq.h"
#include "server/store/database/postgres_connection.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

enum { NUMBER_BYTES = 32 };

#define BEGIN_LOCKED                                                                               \
    "BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE catalog_version IN EXCLUSIVE MODE;"

struct parameter {
    unsigned type;
    const char *value; /**< NULL: null */
    int size_bytes;    /**< of a blob */
    char *owned;       /**< a text that had to be repaired */
    char number[NUMBER_BYTES];
};

struct postgres_statement {
    struct lac_statement base;
    struct postgres_db *db;
    char *sql;
    bool is_query;
    bool is_short_of_memory; /**< a binding was */
    int parameter_count;
    struct parameter *parameters;
    struct pg_result *result; /**< all rows; NULL before the first step */
    int row;
    int row_count;
    uint8_t **blobs; /**< of the row, made when asked for */
    size_t *blob_sizes;
    int blob_count;
};

static struct postgres_statement *inner(struct lac_statement *statement)
{
    return (struct postgres_statement *)statement;
}

static void close_database(struct lac_db *base)
{
    struct postgres_db *const db = lac_postgres_of(base);

    if (db->conn != NULL) {
        db->pq.finish(db->conn);
    }
    free(db);
}

static enum lac_status run(struct lac_db *base, const char *sql, struct lac_error *reterr)
{
    char *const translated = lac_dialect_postgres(sql, NULL);
    enum lac_status status;

    if (translated == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    status = lac_db_run_postgres(base, translated, reterr);
    free(translated);
    return status;
}

/* -- transactions ------------------------------------------------------------------------------ */

static enum lac_status begin(struct lac_db *base, bool durable, struct lac_error *reterr)
{
    struct postgres_db *const db = lac_postgres_of(base);
    struct pg_result *result = NULL;
    enum lac_status status;

    assert(!db->is_in_transaction);
    if (db->only_reads) {
        return lac_fail(reterr, LAC_ERR_BUSY, 0,
                        "this server stands by and only reads: another one holds the catalog");
    }
    /* all are durable: it may crash while this process goes on and counts on what it has written */
    (void)durable;
    status = lac_postgres_run_patiently(db, BEGIN_LOCKED "SELECT owner FROM catalog_version",
                                        &result, reterr);
    if (status == LAC_OK && db->owner[0] != '\0' &&
        (db->pq.row_count(result) != 1 || strcmp(db->pq.value(result, 0, 0), db->owner) != 0)) {
        db->pq.clear(result);
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "another server has taken the catalog over: nothing is changed here");
    }
    if (status != LAC_OK) {
        db->pq.clear(db->pq.exec(db->conn, "ROLLBACK"));
        return status;
    }
    db->pq.clear(result);
    db->is_in_transaction = true;
    return LAC_OK;
}

void lac_db_fence(struct lac_db *db, const char *owner)
{
    struct postgres_db *const own = lac_postgres_of(db);

    assert(strlen(owner) < sizeof(own->owner));
    (void)snprintf(own->owner, sizeof(own->owner), "%s", owner);
}

void lac_db_only_read(struct lac_db *db)
{
    lac_postgres_of(db)->only_reads = true;
}

static enum lac_status look_for_commit(struct postgres_db *db, const char *before, bool *ret_is,
                                       struct lac_error *reterr)
{
    char sql[sizeof(BEGIN_LOCKED) + 160];
    struct pg_result *result = NULL;
    enum lac_status status;

    (void)snprintf(sql, sizeof(sql),
                   "%sSELECT 1 FROM catalog_commits WHERE connection = '%s' AND number = %" PRId64,
                   before, db->identity, db->commit_count);
    status = lac_postgres_run_patiently(db, sql, &result, reterr);
    *ret_is = status == LAC_OK && db->pq.row_count(result) == 1;
    db->pq.clear(result);
    db->pq.clear(db->pq.exec(db->conn, "ROLLBACK"));
    return status;
}

/**
 * What became of a commit whose answer was lost. Its number in the catalog tells, and not the id of
 * its transaction: where PostgreSQL crashed before the log of that was on its disk, the next
 * transaction has the same id, and txid_status() tells of that one. Whose connection was lost may
 * still be at it: it holds the lock until it has ended.
 */
static enum lac_status ask_for_commit(struct postgres_db *db, struct lac_error *reterr)
{
    struct lac_error ignored;
    bool is_made = false;
    enum lac_status status = look_for_commit(db, BEGIN_LOCKED, &is_made, reterr);

    if (status != LAC_OK && lac_postgres_is_connected(db) &&
        look_for_commit(db, "", &is_made, &ignored) == LAC_OK && is_made) {
        return LAC_OK; /* it has ended, and another one holds the lock for long */
    }
    if (status != LAC_OK && reterr != NULL) {
        reterr->sys_errno = ECONNRESET; /* it may have been made */
    } else if (status == LAC_OK && !is_made) {
        errno = ECONNRESET; /* as of a change that was lost before its end */
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "the connection to the catalog was lost, and the change was not made: "
                          "try again");
    }
    return status;
}

/** Write down within the transaction that it was made, and end it. */
static struct pg_result *send_commit(struct postgres_db *db)
{
    char sql[480];

    db->commit_count++;
    (void)snprintf(sql, sizeof(sql),
                   "%sINSERT INTO catalog_commits VALUES('%s', %" PRId64 ", clock_timestamp())"
                   " ON CONFLICT(connection) DO UPDATE SET number = excluded.number,"
                   " made = excluded.made; NOTIFY lacuna_catalog; COMMIT",
                   db->commit_count > 1 ? ""
                                        : "DELETE FROM catalog_commits WHERE made <"
                                          " clock_timestamp() - INTERVAL '30 days';",
                   db->identity, db->commit_count);
    return db->pq.exec(db->conn, sql);
}

static enum lac_status commit(struct lac_db *base, struct lac_error *reterr)
{
    struct postgres_db *const db = lac_postgres_of(base);
    struct pg_result *const result = send_commit(db);
    enum lac_status status = LAC_OK;

    if (!lac_postgres_is_done(db, result)) {
        status = lac_postgres_is_lost(db, result) ? LAC_ERR_NOT_FOUND
                                                  : lac_postgres_fail(db, result, reterr);
    } else if (strcmp(db->pq.command_tag(result), "COMMIT") != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "catalog: PostgreSQL has taken a change back");
    }
    db->pq.clear(result);
    if (status == LAC_ERR_NOT_FOUND) {
        db->is_in_transaction = false;
        status = ask_for_commit(db, reterr);
    }
    if (status == LAC_OK) {
        db->is_in_transaction = false;
    }
    return status;
}

static void roll_back(struct lac_db *base)
{
    struct postgres_db *const db = lac_postgres_of(base);

    if (db->is_in_transaction) {
        db->is_in_transaction = false;
        db->pq.clear(db->pq.exec(db->conn, "ROLLBACK"));
    }
}

static int changes(struct lac_db *base)
{
    return lac_postgres_of(base)->changed_rows;
}

static int64_t data_version(struct lac_db *base)
{
    struct postgres_db *const db = lac_postgres_of(base);
    struct lac_pq_notice *notice;

    if (lac_postgres_is_connected(db) && db->pq.consume_input(db->conn) == 0) {
        db->version++;
    }
    while ((notice = db->pq.notifies(db->conn)) != NULL) {
        if (notice->backend_pid != db->pq.backend_pid(db->conn)) {
            db->version++;
        }
        db->pq.freemem(notice);
    }
    return db->version;
}

static bool is_current(struct lac_db *base)
{
    (void)base;
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

static enum lac_status prepare(struct lac_db *base, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr);

static void drop_blobs(struct postgres_statement *statement)
{
    for (int i = 0; i < statement->blob_count; i++) {
        free(statement->blobs[i]);
    }
    free((void *)statement->blobs);
    free(statement->blob_sizes);
    statement->blobs = NULL;
    statement->blob_sizes = NULL;
    statement->blob_count = 0;
}

static void reset(struct lac_statement *base)
{
    struct postgres_statement *const statement = inner(base);

    drop_blobs(statement);
    statement->db->pq.clear(statement->result);
    statement->result = NULL;
    statement->is_short_of_memory = false;
    for (int i = 0; i < statement->parameter_count; i++) {
        free(statement->parameters[i].owned);
        statement->parameters[i] = (struct parameter){0};
    }
}

static void finalize(struct lac_statement *base)
{
    struct postgres_statement *const statement = inner(base);

    reset(base);
    free(statement->parameters);
    free(statement->sql);
    free(statement);
}

static int parameter_count(struct lac_statement *base)
{
    return inner(base)->parameter_count;
}

static struct pg_result *send(const struct postgres_statement *statement)
{
    enum { MOST = 80 };
    unsigned types[MOST];
    const char *values[MOST];
    int sizes[MOST];
    int formats[MOST];

    assert(statement->parameter_count <= MOST);
    for (int i = 0; i < statement->parameter_count; i++) {
        types[i] = statement->parameters[i].type;
        values[i] = statement->parameters[i].value;
        sizes[i] = statement->parameters[i].size_bytes;
        formats[i] = types[i] == LAC_PQ_BYTEA ? 1 : 0;
    }
    return statement->db->pq.exec_params(statement->db->conn, statement->sql,
                                         statement->parameter_count, types, values, sizes, formats,
                                         0);
}

static enum lac_status execute(struct postgres_statement *statement, struct lac_error *reterr)
{
    struct postgres_db *const db = statement->db;
    const int64_t until_ms = lac_postgres_patience_ms();
    enum lac_status status = LAC_OK;

    if (statement->is_short_of_memory) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    for (;;) {
        if (!db->is_in_transaction && !lac_postgres_is_connected(db)) {
            status = lac_postgres_reconnect(db, until_ms, reterr);
        }
        if (status != LAC_OK) {
            return status;
        }
        statement->result = send(statement);
        if (lac_postgres_is_done(db, statement->result)) {
            statement->row = -1;
            statement->row_count = db->pq.row_count(statement->result);
            if (db->pq.result_status(statement->result) == LAC_PQ_COMMAND_OK) {
                db->changed_rows = (int)strtol(db->pq.changed_rows(statement->result), NULL, 10);
            }
            return LAC_OK;
        }
        if (db->is_in_transaction || !statement->is_query ||
            !lac_postgres_is_lost(db, statement->result)) {
            status = lac_postgres_fail(db, statement->result, reterr);
        } else {
            status = lac_postgres_reconnect(db, until_ms, reterr);
        }
        db->pq.clear(statement->result);
        statement->result = NULL;
    }
}

static enum lac_status step_row(struct lac_statement *base, const char *what,
                                struct lac_error *reterr)
{
    struct postgres_statement *const statement = inner(base);

    (void)what;
    drop_blobs(statement);
    if (statement->result == NULL) {
        const enum lac_status status = execute(statement, reterr);

        if (status != LAC_OK) {
            return status;
        }
    }
    if (statement->row + 1 >= statement->row_count) {
        statement->row = statement->row_count;
        return LAC_ERR_NOT_FOUND;
    }
    statement->row++;
    return LAC_OK;
}

static enum lac_status step_done(struct lac_statement *base, const char *what,
                                 struct lac_error *reterr)
{
    enum lac_status status = step_row(base, what, reterr);

    status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    reset(base);
    return status;
}

/* -- parameters -------------------------------------------------------------------------------- */

static struct parameter *parameter_at(struct lac_statement *base, int index)
{
    struct postgres_statement *const statement = inner(base);

    assert(index >= 1 && index <= statement->parameter_count);
    free(statement->parameters[index - 1].owned);
    statement->parameters[index - 1] = (struct parameter){0};
    return &statement->parameters[index - 1];
}

static void bind_i64(struct lac_statement *base, int index, int64_t value)
{
    struct parameter *const parameter = parameter_at(base, index);

    (void)snprintf(parameter->number, sizeof(parameter->number), "%" PRId64, value);
    parameter->type = LAC_PQ_INT8;
    parameter->value = parameter->number;
}

static void bind_f64(struct lac_statement *base, int index, double value)
{
    struct parameter *const parameter = parameter_at(base, index);

    (void)snprintf(parameter->number, sizeof(parameter->number), "%.17g", value);
    parameter->type = LAC_PQ_FLOAT8;
    parameter->value = isnan(value) ? NULL : parameter->number;
}

/** A text has the type of what it is compared with or put into: a number, too. */
static void bind_text(struct lac_statement *base, int index, const char *text)
{
    struct parameter *const parameter = parameter_at(base, index);
    const size_t length = text != NULL ? strlen(text) : 0;

    parameter->value = text;
    if (text == NULL || lac_utf8_is_clean(text, length)) {
        return;
    }
    /* SQLite keeps any bytes, PostgreSQL refuses what is no UTF-8 */
    parameter->owned = malloc(3 * length + 1);
    parameter->value = parameter->owned;
    if (parameter->owned == NULL) {
        inner(base)->is_short_of_memory = true;
        return;
    }
    parameter->owned[lac_utf8_repair(text, length, parameter->owned, 3 * length, NULL)] = '\0';
}

static void bind_blob(struct lac_statement *base, int index, const void *data, size_t size_bytes)
{
    struct parameter *const parameter = parameter_at(base, index);

    assert(size_bytes <= INT32_MAX);
    parameter->type = LAC_PQ_BYTEA;
    parameter->value = data;
    parameter->size_bytes = (int)size_bytes;
}

/* -- columns ----------------------------------------------------------------------------------- */

static const char *value_of(struct lac_statement *base, int column)
{
    const struct postgres_statement *const statement = inner(base);
    const struct lac_libpq *const pq = &statement->db->pq;

    assert(statement->result != NULL && statement->row >= 0 &&
           statement->row < statement->row_count);
    return pq->is_null(statement->result, statement->row, column) != 0
               ? NULL
               : pq->value(statement->result, statement->row, column);
}

static bool is_null(struct lac_statement *base, int column)
{
    return value_of(base, column) == NULL;
}

static int64_t column_i64(struct lac_statement *base, int column)
{
    const char *const value = value_of(base, column);

    return value == NULL ? 0 : *value == 't' ? 1 : strtoll(value, NULL, 10);
}

static double column_f64(struct lac_statement *base, int column)
{
    const char *const value = value_of(base, column);

    return value != NULL ? strtod(value, NULL) : 0;
}

static const char *column_text(struct lac_statement *base, int column)
{
    return value_of(base, column);
}

/** The bytes of "\x0aff...", which PostgreSQL writes in pairs of lower-case digits. */
static const void *column_blob(struct lac_statement *base, int column)
{
    struct postgres_statement *const statement = inner(base);
    const char *const value = value_of(base, column);
    uint8_t *bytes = NULL;
    size_t size_bytes;

    if (value == NULL || statement->db->pq.type(statement->result, column) != LAC_PQ_BYTEA) {
        return value;
    }
    if (column >= statement->blob_count) {
        const int count = column + 1;
        uint8_t **const blobs = realloc((void *)statement->blobs, (size_t)count * sizeof(*blobs));
        size_t *sizes = NULL;

        if (blobs != NULL) {
            statement->blobs = blobs;
            sizes = realloc(statement->blob_sizes, (size_t)count * sizeof(*sizes));
        }
        if (sizes == NULL) {
            return NULL;
        }
        statement->blob_sizes = sizes;
        for (int i = statement->blob_count; i < count; i++) {
            statement->blobs[i] = NULL;
            statement->blob_sizes[i] = 0;
        }
        statement->blob_count = count;
    }
    if (statement->blobs[column] != NULL) {
        return statement->blobs[column];
    }
    size_bytes = (strlen(value) - 2) / 2;
    bytes = malloc(size_bytes + 1);
    for (size_t i = 0; i < size_bytes && bytes != NULL; i++) {
        bytes[i] = (uint8_t)((unsigned)lac_hex_digit(value[2 + 2 * i]) << 4 |
                             (unsigned)lac_hex_digit(value[3 + 2 * i]));
    }
    statement->blobs[column] = bytes;
    statement->blob_sizes[column] = bytes != NULL ? size_bytes : 0;
    return size_bytes > 0 ? bytes : NULL;
}

static size_t column_bytes(struct lac_statement *base, int column)
{
    const struct postgres_statement *const statement = inner(base);
    const char *const value = value_of(base, column);

    if (value != NULL && statement->db->pq.type(statement->result, column) == LAC_PQ_BYTEA) {
        return (strlen(value) - 2) / 2;
    }
    return value != NULL ? strlen(value) : 0;
}

static const struct lac_db_driver driver = LAC_DB_DRIVER;

static enum lac_status prepare(struct lac_db *base, const char *sql,
                               struct lac_statement **ret_statement, struct lac_error *reterr)
{
    struct postgres_statement *const made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    made->base.driver = &driver;
    made->db = lac_postgres_of(base);
    made->is_query = strncmp(sql, "SELECT", 6) == 0 || strncmp(sql, "WITH", 4) == 0;
    made->sql = lac_dialect_postgres(sql, &made->parameter_count);
    made->parameters = calloc((size_t)made->parameter_count + 1, sizeof(*made->parameters));
    if (made->sql == NULL || made->parameters == NULL) {
        free(made->sql);
        free(made->parameters);
        free(made);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    *ret_statement = &made->base;
    return LAC_OK;
}

/* -- open -------------------------------------------------------------------------------------- */

bool lac_db_is_postgres(const char *address)
{
    return strncmp(address, "postgresql://", 13) == 0 || strncmp(address, "postgres://", 11) == 0 ||
           (strchr(address, '=') != NULL && strcspn(address, "=") < strcspn(address, ":/"));
}

static void be_quiet(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static enum lac_status name_connection(struct postgres_db *db, struct lac_error *reterr)
{
    uint8_t random[LAC_POSTGRES_IDENTITY_BYTES];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no random numbers: %s", strerror(errno));
    }
    lac_base32_encode(random, sizeof(random), db->identity);
    return LAC_OK;
}

enum lac_status lac_db_connect(const char *address, struct lac_db **ret_db,
                               struct lac_error *reterr)
{
    /* what stands before the address is what it may say otherwise */
    static const char *const keywords[] = {"connect_timeout", "tcp_user_timeout",          "dbname",
                                           "client_encoding", "fallback_application_name", NULL};
    const char *const values[] = {"5", "15000", address, "UTF8", "lacuna", NULL};
    struct postgres_db *const db = calloc(1, sizeof(*db));
    enum lac_status status;

    if (db == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    db->base.driver = &driver;
    db->version = 1;
    status = lac_libpq_load(&db->pq, reterr);
    if (status == LAC_OK) {
        status = name_connection(db, reterr);
    }
    if (status == LAC_OK && !lac_libpq_reads(&db->pq, address)) {
        status = lac_fail(reterr, LAC_ERR_IO, 0,
                          "the catalog's address cannot be read: it is "
                          "postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE, with characters "
                          "such as @ and / in a password as %%40 and %%2F");
    }
    if (status == LAC_OK) {
        db->conn = db->pq.connect(keywords, values, 1);
        if (!lac_postgres_is_connected(db)) {
            status = lac_postgres_fail_connection(db, "cannot open the catalog", reterr);
        }
    }
    if (status == LAC_OK) {
        (void)db->pq.set_notice_processor(db->conn, be_quiet, NULL);
        status = lac_postgres_set_up(db, reterr);
    }
    if (status == LAC_OK) {
        status = lac_postgres_make_place(db, reterr);
    }
    if (status != LAC_OK) {
        close_database(&db->base);
        return status;
    }
    *ret_db = &db->base;
    return LAC_OK;
}
