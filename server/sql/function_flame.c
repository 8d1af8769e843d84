/* flame(t0_ns, t1_ns, metric, frames): the flame graph as rows. */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/json/flame_json.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/flame/trace_flame.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct lac_sql_column columns[] = {
    {"id", "INTEGER", "frame, 0 the root", LAC_SQL_WORDS_PLAIN},
    {"parent", "INTEGER", "frame that it is in, NULL of the root", LAC_SQL_WORDS_PLAIN},
    {"kind", "TEXT", "as in slices", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "NULL of the root and of many small frames summed", LAC_SQL_WORDS_GIVEN},
    {"value_ns", "INTEGER", "with all frames inside it; bytes of memory", LAC_SQL_WORDS_PLAIN},
    {"self_ns", "INTEGER", "without them", LAC_SQL_WORDS_PLAIN},
    {"count", "INTEGER", "operations, allocations, pieces of idle time, or slices",
     LAC_SQL_WORDS_PLAIN},
    {"t0_ns", "INTEGER", "default: the start of the trace", LAC_SQL_WORDS_PLAIN},
    {"t1_ns", "INTEGER", "default: its end", LAC_SQL_WORDS_PLAIN},
    {"metric", "TEXT", "gpu (default), waiting, cpu, copies, memory or profile",
     LAC_SQL_WORDS_PLAIN},
    {"frames", "TEXT", "op (default), range, kernel, python or module", LAC_SQL_WORDS_PLAIN},
};

static void close_flame(void *state)
{
    lac_flame_destroy(state);
}

/* The place of an argument among its words. NULL keeps what is there. */
static enum lac_status read_word(const struct lac_sql_arguments *arguments, unsigned number,
                                 const char *const *words, unsigned *word, const char *problem,
                                 struct lac_error *reterr)
{
    sqlite3_value *value = arguments->value[number];
    if (value == NULL || sqlite3_value_type(value) == SQLITE_NULL) {
        return LAC_OK;
    }
    const char *text = (const char *)sqlite3_value_text(value);
    for (unsigned i = 0; text != NULL && words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *word = i;
            return LAC_OK;
        }
    }
    return lac_fail(reterr, LAC_ERR_MISUSE, 0, "%s", problem);
}

static enum lac_status open_flame(struct lac_sql_trace *trace,
                                  const struct lac_sql_arguments *arguments, void **ret_state,
                                  uint64_t *ret_count, struct lac_error *reterr)
{
    unsigned metric = LAC_FLAME_GPU;
    unsigned by = LAC_FLAME_BY_OP;
    struct lac_flame_options options = {.t0_ns = lac_sql_argument(arguments, 0, 0),
                                        .t1_ns = lac_sql_argument(arguments, 1, LAC_TIME_MAX_NS)};
    struct lac_flame *flame = NULL;
    enum lac_status status =
        read_word(arguments, 2, lac_flame_metrics, &metric,
                  "flame(): metric is gpu, waiting, cpu, copies, memory or profile", reterr);
    status = status ? status
                    : read_word(arguments, 3, lac_flame_bys, &by,
                                "flame(): frames is op, range, kernel, python or module", reterr);
    options.metric = (enum lac_flame_metric)metric;
    options.by = (enum lac_flame_by)by;
    if (status || options.t1_ns <= options.t0_ns) {
        return status; /* nothing is in an empty interval */
    }
    status = lac_trace_flame(trace->file, &options, &flame, reterr);
    *ret_state = flame;
    *ret_count = status == LAC_OK ? flame->node_count : 0;
    return status;
}

static void flame_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                       sqlite3_context *out)
{
    const struct lac_flame *flame = state;
    const struct lac_flame_node *node = &flame->nodes[row];
    switch (column) {
    case 0:
        sqlite3_result_int64(out, (int64_t)row);
        break;
    case 1:
        lac_sql_put_id(out, row == 0 ? LAC_NONE : node->parent);
        break;
    case 2:
        lac_sql_put_text(out, row == 0 || node->name == LAC_NONE
                                  ? NULL
                                  : lac_slice_kind_name((enum lac_slice_kind)node->kind));
        break;
    case 3:
        lac_sql_put_string(out, trace, row == 0 ? 0 : node->name);
        break;
    case 4:
        sqlite3_result_int64(out, node->value_ns);
        break;
    case 5:
        sqlite3_result_int64(out, node->self_ns);
        break;
    default:
        sqlite3_result_int64(out, (int64_t)node->count);
    }
}

static const struct lac_sql_rows rows = {
    .open = open_flame, .cell = flame_cell, .close = close_flame};

const struct lac_sql_table lac_sql_flame_table = {
    .name = "flame",
    .doc = "the flame graph of all or of an interval: flame(t0_ns, t1_ns, metric, frames)",
    .columns = columns,
    .column_count = LAC_COUNT_OF(columns),
    .argument_count = 4,
    .rows = &rows,
};
