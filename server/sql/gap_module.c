/*
 * The table of gaps, read from the trace file one block after another: device, cause, times and
 * length are pushed down, and only the columns are decoded that the query reads. Rows come by device
 * and then time, or, for who groups or orders by cause, cause by cause: no sort of millions of rows.
 * SQLite checks every condition but the arguments again.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum gap_column {
    GAP_DEVICE,
    GAP_START,
    GAP_DUR,
    GAP_END,
    GAP_CAUSE,
    GAP_ROOT_CAUSE,
    GAP_ENDED_BY,
    GAP_ROOT,
    GAP_SIGNATURE,
    GAP_PER_STEP,
    GAP_CAUSE_NS, /**< one for each cause */
    GAP_ARGUMENT = GAP_CAUSE_NS + LAC_GAP_CAUSES,
};

#define CAUSE_COLUMN(cause, column)                                                                \
    [GAP_CAUSE_NS + (cause)] = {column, "INTEGER", "of dur_ns, by that cause", LAC_SQL_WORDS_PLAIN}

static const struct lac_sql_column gap_columns[] = {
    [GAP_DEVICE] = {"device", "INTEGER", "devices.id", LAC_SQL_WORDS_PLAIN},
    [GAP_START] = {"start_ns", "INTEGER", "since the start of the trace", LAC_SQL_WORDS_PLAIN},
    [GAP_DUR] = {"dur_ns", "INTEGER", "no kernel, copy or memset ran so long", LAC_SQL_WORDS_PLAIN},
    [GAP_END] = {"end_ns", "INTEGER", "start_ns + dur_ns", LAC_SQL_WORDS_PLAIN},
    [GAP_CAUSE] = {"cause", "TEXT",
                   "the one with the largest share: data_wait, sync, launch, copy_wait, allocator, "
                   "module_load, comm, dependency, host, profiler or unattributed",
                   LAC_SQL_WORDS_PLAIN},
    [GAP_ROOT_CAUSE] = {"root_cause", "TEXT", "what opened it, in a sentence",
                        LAC_SQL_WORDS_SENTENCE},
    [GAP_ENDED_BY] = {"ended_by", "INTEGER", "slices.id of the operation that ended it",
                      LAC_SQL_WORDS_PLAIN},
    [GAP_ROOT] = {"root", "INTEGER", "slices.id of what opened it: a blocking call, a late batch",
                  LAC_SQL_WORDS_PLAIN},
    [GAP_SIGNATURE] = {"signature", "INTEGER", "the same for gaps of one kind",
                       LAC_SQL_WORDS_PLAIN},
    [GAP_PER_STEP] = {"per_step", "REAL", "gaps of that kind in a step", LAC_SQL_WORDS_PLAIN},
    CAUSE_COLUMN(LAC_CAUSE_DATA_WAIT, "data_wait_ns"),
    CAUSE_COLUMN(LAC_CAUSE_SYNC, "sync_ns"),
    CAUSE_COLUMN(LAC_CAUSE_LAUNCH, "launch_ns"),
    CAUSE_COLUMN(LAC_CAUSE_COPY_WAIT, "copy_wait_ns"),
    CAUSE_COLUMN(LAC_CAUSE_ALLOCATOR, "allocator_ns"),
    CAUSE_COLUMN(LAC_CAUSE_MODULE_LOAD, "module_load_ns"),
    CAUSE_COLUMN(LAC_CAUSE_COMM, "comm_ns"),
    CAUSE_COLUMN(LAC_CAUSE_DEPENDENCY, "dependency_ns"),
    CAUSE_COLUMN(LAC_CAUSE_HOST, "host_ns"),
    CAUSE_COLUMN(LAC_CAUSE_PROFILER, "profiler_ns"),
    CAUSE_COLUMN(LAC_CAUSE_UNATTRIBUTED, "unattributed_ns"),
    [GAP_ARGUMENT] = {"of_device", "INTEGER", "devices.id; default all", LAC_SQL_WORDS_PLAIN},
    [GAP_ARGUMENT + 1] = {"min_ns", "INTEGER", "leave out shorter ones; default 0",
                          LAC_SQL_WORDS_PLAIN},
};
_Static_assert(LAC_COUNT_OF(gap_columns) == GAP_ARGUMENT + 2, "a column for each cause");

/* Of idxNum; below are the bits of enum lac_gap_part. */
enum { BY_CAUSE = 1 << 16, DESCENDING = 1 << 17, CONDITIONS_MAX = 64 };

struct cursor {
    sqlite3_vtab_cursor base;
    struct lac_sql_trace *trace;
    struct lac_gap_reader *reader;
    struct lac_gap_row row;
    uint64_t index; /**< of the row among all gaps */
    int cause;      /**< that is read, when they come cause by cause; else -1 */
    bool is_descending;
    bool is_at_end;
    sqlite3_value *arguments[2]; /**< copies */
};

/** What may be pushed down: in idxStr two letters each, the column and the comparison. */
static char letter_of(int column)
{
    switch (column) {
    case GAP_DEVICE:
        return 'd';
    case GAP_START:
        return 's';
    case GAP_END:
        return 'e';
    case GAP_DUR:
        return 'l';
    case GAP_CAUSE:
        return 'c';
    case GAP_ARGUMENT:
        return 'D';
    case GAP_ARGUMENT + 1:
        return 'M';
    default:
        return '\0';
    }
}

static char comparison_of(char letter, unsigned op)
{
    const bool is_ordered = strchr("sel", letter) != NULL;
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        return is_ordered ? '>' : '\0';
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return is_ordered ? '<' : '\0';
    default:
        return '\0';
    }
}

static unsigned parts_of(uint64_t used)
{
    static const unsigned parts[GAP_CAUSE_NS] = {
        [GAP_DEVICE] = LAC_GAP_PART_DEVICE,
        [GAP_START] = LAC_GAP_PART_START,
        [GAP_DUR] = LAC_GAP_PART_DUR,
        [GAP_END] = LAC_GAP_PART_START | LAC_GAP_PART_DUR,
        [GAP_CAUSE] = LAC_GAP_PART_CAUSE,
        [GAP_ROOT_CAUSE] = LAC_GAP_PART_TEXT,
        [GAP_ENDED_BY] = LAC_GAP_PART_ENDED_BY,
        [GAP_ROOT] = LAC_GAP_PART_ROOT,
        [GAP_SIGNATURE] = LAC_GAP_PART_SIGNATURE,
        [GAP_PER_STEP] = LAC_GAP_PART_PER_STEP,
    };
    unsigned all = 0;
    for (unsigned c = 0; c < GAP_ARGUMENT; c++) {
        if ((used >> c & 1) != 0) {
            all |= c < GAP_CAUSE_NS ? parts[c] : (unsigned)LAC_GAP_PART_SHARES;
        }
    }
    return all;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    char text[2 * CONDITIONS_MAX + 1];
    int count = 0;
    double rows = 1e5;
    (void)vtab;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *it = &info->aConstraint[i];
        const char letter = letter_of(it->iColumn);
        const char comparison = letter != '\0' ? comparison_of(letter, it->op) : '\0';
        const bool is_argument = letter == 'D' || letter == 'M';
        if (comparison == '\0' || (!is_argument && !it->usable) ||
            (letter == 'c' && strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)) {
            continue;
        }
        if (!it->usable) {
            return SQLITE_CONSTRAINT; /* it comes from a table that is not read yet */
        }
        if (count == CONDITIONS_MAX ||
            (is_argument && memchr(text, letter, 2 * (size_t)count) != NULL)) {
            continue; /* SQLite checks it: the first is the argument */
        }
        text[2 * (size_t)count] = letter;
        text[2 * (size_t)count + 1] = comparison;
        info->aConstraintUsage[i].argvIndex = ++count;
        info->aConstraintUsage[i].omit = is_argument ? 1 : 0;
        rows *= comparison == '=' ? 0.1 : 0.25;
    }
    text[2 * (size_t)count] = '\0';
    info->idxStr = sqlite3_mprintf("%s", text);
    info->needToFreeIdxStr = 1;
    info->idxNum = (int)parts_of(info->colUsed);
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == GAP_CAUSE) {
        info->orderByConsumed = 1;
        info->idxNum |= BY_CAUSE | (info->aOrderBy[0].desc != 0 ? DESCENDING : 0);
    }
    info->estimatedCost = 5 + rows;
    info->estimatedRows = 1 + (sqlite3_int64)(rows / 100);
    return info->idxStr != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    (void)vtab;
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct cursor){.is_at_end = true};
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct cursor *cursor)
{
    lac_gap_reader_close(cursor->reader);
    cursor->reader = NULL;
    cursor->is_at_end = true;
    for (unsigned a = 0; a < LAC_COUNT_OF(cursor->arguments); a++) {
        sqlite3_value_free(cursor->arguments[a]);
        cursor->arguments[a] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    forget((struct cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

/* -- what is asked for ------------------------------------------------------------------------- */

static bool is_before(const char *left, const char *right, bool is_descending)
{
    return is_descending ? strcmp(left, right) > 0 : strcmp(left, right) < 0;
}

/** The cause whose name comes next, after that of `cause` (-1: the first). @return -1: none */
static int cause_after(int cause, bool is_descending)
{
    const char *before = cause >= 0 ? lac_cause_name((enum lac_cause)cause) : NULL;
    int next = -1;
    for (int c = 0; c < LAC_GAP_CAUSES; c++) {
        const char *name = lac_cause_name((enum lac_cause)c);
        if ((before == NULL || is_before(before, name, is_descending)) &&
            (next < 0 || is_before(name, lac_cause_name((enum lac_cause)next), is_descending))) {
            next = c;
        }
    }
    return next;
}

/** @return false: nothing can fit */
static bool wish_cause(struct lac_gap_wish *wish, sqlite3_value *value)
{
    const char *text =
        sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : NULL;
    for (int c = 0; c < LAC_GAP_CAUSES && text != NULL; c++) {
        if (strcmp(lac_cause_name((enum lac_cause)c), text) == 0) {
            const bool is_other = wish->cause >= 0 && wish->cause != c;
            wish->cause = c;
            return !is_other;
        }
    }
    return false;
}

/** One condition. @return false: nothing can fit */
static bool wish_one(struct lac_gap_wish *wish, char letter, char comparison, sqlite3_value *value)
{
    int64_t low = INT64_MIN;
    int64_t high = INT64_MAX;
    switch (letter) {
    case 'd':
        lac_sql_narrow(&low, &high, comparison, value);
        if (low == high && low >= 0) {
            wish->device = low;
        }
        return true;
    case 's':
        lac_sql_narrow(&wish->start_min_ns, &wish->start_max_ns, comparison, value);
        return true;
    case 'e':
        lac_sql_narrow(&wish->end_min_ns, &wish->end_max_ns, comparison, value);
        return true;
    case 'l':
        lac_sql_narrow(&wish->min_ns, &high, comparison, value);
        return true;
    case 'c':
        return wish_cause(wish, value);
    default:
        return true;
    }
}

/** The arguments, which SQLite does not check again. @return false: nothing can fit */
static bool wish_arguments(struct lac_gap_wish *wish, const struct cursor *cursor)
{
    const struct lac_sql_arguments arguments = {
        .value = {cursor->arguments[0], cursor->arguments[1]}};
    const int64_t device = lac_sql_argument(&arguments, 0, -1);
    const int64_t min_ns = lac_sql_argument(&arguments, 1, 0);
    if (device < -1 || (device >= 0 && wish->device >= 0 && wish->device != device)) {
        return false;
    }
    wish->device = device >= 0 ? device : wish->device;
    wish->min_ns = min_ns > wish->min_ns ? min_ns : wish->min_ns;
    return true;
}

/** Go to the next row. @return a code of SQLite */
static int settle(struct cursor *cursor)
{
    while (!lac_gap_reader_row(cursor->reader, &cursor->row, &cursor->index)) {
        struct lac_error error = {0};
        enum lac_status status;
        if (lac_sql_trace_is_late(cursor->trace)) {
            return SQLITE_INTERRUPT;
        }
        status = lac_gap_reader_block(cursor->reader, &error);
        if (status == LAC_ERR_NOT_FOUND) {
            cursor->cause =
                cursor->cause >= 0 ? cause_after(cursor->cause, cursor->is_descending) : -1;
            if (cursor->cause < 0) {
                cursor->is_at_end = true;
                return SQLITE_OK;
            }
            lac_gap_reader_rewind(cursor->reader, cursor->cause);
        } else if (status) {
            return lac_sql_vtab_fail(cursor->base.pVtab, status, &error);
        }
    }
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc,
                  sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct lac_sql_module *module = ((const struct lac_sql_vtab *)base->pVtab)->module;
    struct lac_gap_wish wish = {.device = -1,
                                .start_max_ns = INT64_MAX,
                                .end_max_ns = INT64_MAX,
                                .cause = -1,
                                .parts = (unsigned)index & (BY_CAUSE - 1)};
    struct lac_error error = {0};
    bool can_fit = true;
    forget(cursor);
    cursor->trace = module->finder(module->context);
    for (int i = 0; i < argc; i++) {
        const char letter = text[2 * (size_t)i];
        if (letter == 'D' || letter == 'M') {
            sqlite3_value **argument = &cursor->arguments[letter == 'D' ? 0 : 1];
            *argument = sqlite3_value_dup(argv[i]);
            if (*argument == NULL) {
                return SQLITE_NOMEM;
            }
        } else {
            can_fit = wish_one(&wish, letter, text[2 * (size_t)i + 1], argv[i]) && can_fit;
        }
    }
    can_fit = wish_arguments(&wish, cursor) && can_fit;
    if (cursor->trace == NULL || !can_fit) {
        return SQLITE_OK;
    }
    cursor->is_descending = (index & DESCENDING) != 0;
    cursor->cause =
        (index & BY_CAUSE) != 0 && wish.cause < 0 ? cause_after(-1, cursor->is_descending) : -1;
    wish.cause = cursor->cause >= 0 ? cursor->cause : wish.cause;
    enum lac_status status =
        lac_gap_reader_open_for(cursor->trace->file, &wish, &cursor->reader, &error);
    if (status) {
        return lac_sql_vtab_fail(base->pVtab, status, &error);
    }
    cursor->is_at_end = false;
    return settle(cursor);
}

/* -- rows -------------------------------------------------------------------------------------- */

static int next_row(sqlite3_vtab_cursor *base)
{
    return settle((struct cursor *)base);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return ((const struct cursor *)base)->is_at_end;
}

static int put_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    const struct cursor *cursor = (const struct cursor *)base;
    const struct lac_gap_row *gap = &cursor->row;
    switch (column) {
    case GAP_DEVICE:
        sqlite3_result_int64(out, gap->device);
        break;
    case GAP_START:
        sqlite3_result_int64(out, gap->start_ns);
        break;
    case GAP_DUR:
        sqlite3_result_int64(out, gap->dur_ns);
        break;
    case GAP_END:
        sqlite3_result_int64(out, gap->start_ns + gap->dur_ns);
        break;
    case GAP_CAUSE:
        lac_sql_put_text(out, lac_cause_name((enum lac_cause)gap->cause));
        break;
    case GAP_ROOT_CAUSE:
        lac_sql_put_copy(out, gap->root_cause);
        break;
    case GAP_ENDED_BY:
        lac_sql_put_id(out, gap->ended_by);
        break;
    case GAP_ROOT:
        lac_sql_put_id(out, gap->root_slice);
        break;
    case GAP_SIGNATURE:
        sqlite3_result_int64(out, gap->signature);
        break;
    case GAP_PER_STEP:
        lac_sql_put_real(out, gap->per_step);
        break;
    default:
        if (column < GAP_ARGUMENT) {
            sqlite3_result_int64(out, gap->cause_ns[column - GAP_CAUSE_NS]);
        } else if (cursor->arguments[column - GAP_ARGUMENT] != NULL) {
            sqlite3_result_value(out, cursor->arguments[column - GAP_ARGUMENT]);
        }
    }
    return SQLITE_OK;
}

static int put_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = (sqlite3_int64)((const struct cursor *)base)->index;
    return SQLITE_OK;
}

static const sqlite3_module gap_module = LAC_SQL_MODULE(lac_sql_connect, lac_sql_disconnect);

const struct lac_sql_table lac_sql_gap_table = {
    .name = "gaps",
    .doc =
        "intervals in which a device executes nothing, with causes; also gaps(of_device, min_ns)",
    .columns = gap_columns,
    .column_count = LAC_COUNT_OF(gap_columns),
    .argument_count = 2,
    .module = &gap_module};
