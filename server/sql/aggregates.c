/* Aggregate functions that SQLite lacks: median(x), percentile(x, p), stddev(x). */

#include "server/sql/sql_register.h"

#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

/** Numbers of a group. Memory is SQLite's, so that its limit counts it. */
struct numbers {
    double *at;
    uint64_t count, capacity;
    double percentile;
    double mean, squares; /**< of stddev: Welford's sums */
};

static void add_number(sqlite3_context *out, int argc, sqlite3_value **argv)
{
    struct numbers *numbers = sqlite3_aggregate_context(out, sizeof(*numbers));
    if (numbers == NULL) {
        sqlite3_result_error_nomem(out);
        return;
    }
    int type = sqlite3_value_numeric_type(argv[0]);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        return;
    }
    if (numbers->count == numbers->capacity) {
        uint64_t capacity = numbers->capacity > 0 ? numbers->capacity * 2 : 64;
        double *at = sqlite3_realloc64(numbers->at, capacity * sizeof(*at));
        if (at == NULL) {
            sqlite3_result_error_nomem(out);
            return;
        }
        numbers->at = at;
        numbers->capacity = capacity;
    }
    numbers->percentile = argc > 1 ? sqlite3_value_double(argv[1]) : 50.0;
    numbers->at[numbers->count++] = sqlite3_value_double(argv[0]);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/** Between the two nearest, in proportion. */
static void put_percentile(sqlite3_context *out)
{
    struct numbers *numbers = sqlite3_aggregate_context(out, 0);
    if (numbers == NULL || numbers->count == 0) {
        return;
    }
    if (!(numbers->percentile >= 0.0 && numbers->percentile <= 100.0)) {
        sqlite3_result_error(out, "percentile(x, p): p is between 0 and 100", -1);
    } else {
        qsort(numbers->at, numbers->count, sizeof(*numbers->at), by_value);
        double place = numbers->percentile / 100.0 * (double)(numbers->count - 1);
        uint64_t low = (uint64_t)floor(place);
        uint64_t high = low + 1 < numbers->count ? low + 1 : low;
        double share = place - (double)low;
        sqlite3_result_double(out,
                              numbers->at[low] + share * (numbers->at[high] - numbers->at[low]));
    }
    sqlite3_free(numbers->at);
    numbers->at = NULL;
    numbers->count = 0;
}

static void add_deviation(sqlite3_context *out, int argc, sqlite3_value **argv)
{
    struct numbers *numbers = sqlite3_aggregate_context(out, sizeof(*numbers));
    (void)argc;
    if (numbers == NULL) {
        sqlite3_result_error_nomem(out);
        return;
    }
    int type = sqlite3_value_numeric_type(argv[0]);
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
        double value = sqlite3_value_double(argv[0]);
        double away = value - numbers->mean;
        numbers->count++;
        numbers->mean += away / (double)numbers->count;
        numbers->squares += away * (value - numbers->mean);
    }
}

/** Of a sample: over n - 1; 0 of one number. */
static void put_deviation(sqlite3_context *out)
{
    const struct numbers *numbers = sqlite3_aggregate_context(out, 0);
    if (numbers != NULL && numbers->count > 0) {
        sqlite3_result_double(
            out, numbers->count > 1 ? sqrt(numbers->squares / (double)(numbers->count - 1)) : 0.0);
    }
}

int lac_sql_register_aggregates(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int code = sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, add_number,
                                          put_percentile, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, add_number,
                                          put_percentile, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_create_function_v2(db, "stddev", 1, flags, NULL, NULL, add_deviation,
                                          put_deviation, NULL);
    }
    return code;
}
