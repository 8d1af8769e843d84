#include "server/sql/tables.h"

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_trace.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TABLES_MAX = 64 };

static const struct lac_sql_table *all[TABLES_MAX + 1];

static void list_all(void)
{
    const struct {
        const struct lac_sql_table *tables;
        unsigned count;
    } groups[] = {{lac_sql_slice_tables, lac_sql_slice_table_count},
                  {lac_sql_thing_tables, lac_sql_thing_table_count},
                  {lac_sql_found_tables, lac_sql_found_table_count},
                  {&lac_sql_gap_table, 1}};
    unsigned count = 0;
    for (unsigned g = 0; g < LAC_COUNT_OF(groups); g++) {
        for (unsigned t = 0; t < groups[g].count; t++) {
            assert(count < TABLES_MAX);
            all[count++] = &groups[g].tables[t];
        }
    }
    for (unsigned f = 0; f < lac_sql_function_count; f++) {
        assert(count < TABLES_MAX);
        all[count++] = lac_sql_functions[f];
    }
}

const struct lac_sql_table *const *lac_sql_tables(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, list_all);
    return all;
}

void lac_sql_put_ns(sqlite3_context *out, int64_t ns)
{
    if (ns == LAC_UNKNOWN_NS) {
        sqlite3_result_null(out);
    } else {
        sqlite3_result_int64(out, ns);
    }
}

void lac_sql_put_optional(sqlite3_context *out, int64_t value)
{
    lac_sql_put_ns(out, value < 0 ? LAC_UNKNOWN_NS : value);
}

void lac_sql_put_id(sqlite3_context *out, uint32_t id)
{
    lac_sql_put_optional(out, id == LAC_NONE ? -1 : (int64_t)id);
}

void lac_sql_put_real(sqlite3_context *out, double value)
{
    if (isfinite(value)) {
        sqlite3_result_double(out, value);
    } else {
        sqlite3_result_null(out);
    }
}

void lac_sql_put_text(sqlite3_context *out, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        sqlite3_result_null(out);
    } else {
        sqlite3_result_text(out, text, -1, SQLITE_STATIC);
    }
}

void lac_sql_put_copy(sqlite3_context *out, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        sqlite3_result_null(out);
    } else {
        sqlite3_result_text(out, text, -1, SQLITE_TRANSIENT);
    }
}

void lac_sql_put_string(sqlite3_context *out, const struct lac_sql_trace *trace, uint32_t id)
{
    const struct lac_strings *strings = &trace->head->strings;
    if (id == 0 || id >= strings->count) {
        sqlite3_result_null(out);
    } else {
        sqlite3_result_text(out, lac_strings_get(strings, id), (int)lac_strings_length(strings, id),
                            SQLITE_STATIC);
    }
}

int64_t lac_sql_argument(const struct lac_sql_arguments *arguments, unsigned index,
                         int64_t fallback)
{
    assert(index < LAC_SQL_ARGUMENTS_MAX);
    sqlite3_value *value = arguments->value[index];
    return value != NULL && sqlite3_value_type(value) != SQLITE_NULL ? sqlite3_value_int64(value)
                                                                     : fallback;
}

const struct lac_sql_table *lac_sql_table_named(const char *name)
{
    const struct lac_sql_table *const *table = lac_sql_tables();
    while (*table != NULL && strcmp((*table)->name, name) != 0) {
        table++;
    }
    return *table;
}
