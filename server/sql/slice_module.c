/*
 * Tables of slices, read from the chunks of the trace file. What a query asks of id, track, device,
 * kind, name, start and end is pushed down: whole chunks are skipped, and of the others only the
 * columns are decoded that the query reads. SQLite checks conditions again, so that a filter here
 * may let through too much and never too little; but for those whose constant is known when the
 * query is planned, and which are met here to the letter: that check would be most of the work.
 */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "server/sql/slice_columns.h"
#include "server/sql/sql_register.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_columns.h"

#include <assert.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** What a query asks of the slices. */
struct wish {
    uint64_t id_min, id_max;
    int64_t start_min_ns, start_max_ns, end_min_ns;
    int64_t device;   /**< -1: any */
    uint32_t track;   /**< LAC_NONE: any */
    uint32_t kinds;   /**< bits */
    uint32_t name;    /**< LAC_NONE: any, or those of `names` */
    uint8_t *names;   /**< owned; by string id, 1: wanted; NULL: any */
    uint64_t *chunks; /**< owned; a bit a chunk; NULL: all */
    bool is_impossible;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct lac_sql_trace *trace;
    const struct lac_sql_table *table;
    struct wish wish;
    unsigned columns; /**< of chunks, to decode */
    struct lac_sql_chunk at, launch;
    uint32_t chunk;        /**< the next to look at */
    uint32_t row, row_end; /**< in `at`: between them all that fit by time and id */
    bool is_each;          /**< each of those is wanted */
    bool is_at_end;
};

/** Comparisons beside '=', '<' and '>' (which let equal ones through), '~' and '*'. */
enum { SMALLER = '{', LARGER = '}' };

/** What may be pushed down: in idxStr two letters each, the column and the comparison. */
static char letter_of(enum lac_slice_column column)
{
    switch ((int)column) {
    case LAC_SLICE_ID_:
        return 'i';
    case LAC_SLICE_TRACK_:
        return 't';
    case LAC_SLICE_DEVICE_:
        return 'd';
    case LAC_SLICE_KIND_:
        return 'k';
    case LAC_SLICE_NAME_:
        return 'n';
    case LAC_SLICE_START_NS_:
        return 's';
    case LAC_SLICE_END_NS_:
        return 'e';
    default:
        return '\0';
    }
}

static char comparison_of(char column, unsigned op)
{
    bool is_ordered = column == 'i' || column == 's' || column == 'e';
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        return is_ordered ? '>' : '\0';
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return is_ordered ? '<' : '\0';
    case SQLITE_INDEX_CONSTRAINT_LIKE:
        return column == 'n' ? '~' : '\0';
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return column == 'n' ? '*' : '\0';
    default:
        return '\0';
    }
}

/** Whether rows that are let through meet a condition for sure: its constant is there to be looked
 *  at, and of the kind that the column has. */
static bool is_met_here(sqlite3_index_info *info, int i, char column, char comparison)
{
#if SQLITE_VERSION_NUMBER >= 3038000
    sqlite3_value *value = NULL;
    if (comparison == '~' || comparison == '*' ||
        sqlite3_vtab_rhs_value(info, i, &value) != SQLITE_OK || value == NULL) {
        return false;
    }
    const int type = sqlite3_value_type(value);
    switch ((int)column) {
    case 'i':
    case 's':
    case 't':
        return type == SQLITE_INTEGER;
    case 'd':
        return type == SQLITE_INTEGER && sqlite3_value_int64(value) >= 0;
    case 'n':
    case 'k':
        return type == SQLITE_TEXT;
    default:
        return false;
    }
#else
    (void)info;
    (void)i;
    (void)column;
    (void)comparison;
    return false;
#endif
}

/** The comparison of a condition that is met here: what is larger or smaller alone is not equal. */
static char strict(char comparison, unsigned op)
{
    return op == SQLITE_INDEX_CONSTRAINT_GT   ? LARGER
           : op == SQLITE_INDEX_CONSTRAINT_LT ? SMALLER
                                              : comparison;
}

/** How many rows are left, by one condition. */
static double share_of(char column, char comparison)
{
    if (column == 'i' && comparison == '=') {
        return 1e-9;
    }
    return comparison != '=' ? 0.25 : column == 'n' || column == 't' ? 0.02 : 0.1;
}

static enum lac_slice_column key_of(const struct lac_sql_table *table, int column)
{
    return column < 0 ? LAC_SLICE_ID_ : (enum lac_slice_column)table->slice_columns[column];
}

/** Whether rows come in the order that is asked for: by id, or of one track by start. */
static bool is_ordered(const struct lac_sql_table *table, const sqlite3_index_info *info,
                       bool has_track)
{
    if (info->nOrderBy != 1 || info->aOrderBy[0].desc ||
        info->aOrderBy[0].iColumn >= (int)table->column_count) {
        return false;
    }
    enum lac_slice_column key = key_of(table, info->aOrderBy[0].iColumn);
    return key == LAC_SLICE_ID_ || (key == LAC_SLICE_START_NS_ && has_track);
}

static unsigned needs_of(const struct lac_sql_table *table, uint64_t used)
{
    unsigned needs = 0;
    for (unsigned c = 0; c < table->column_count; c++) {
        if ((used >> (c < 63 ? c : 63) & 1) != 0) {
            needs |= lac_slice_column_needs((enum lac_slice_column)table->slice_columns[c]);
        }
    }
    return needs;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct lac_sql_module *module = ((const struct lac_sql_vtab *)vtab)->module;
    const struct lac_sql_table *table = module->table;
    const struct lac_sql_trace *trace = module->finder(module->context);
    char text[2 * 64 + 1];
    int count = 0;
    double rows = trace != NULL ? (double)trace->head->slices.count + 1 : 1;
    bool has_track = false;
    bool has_id = false;
    for (int i = 0; i < info->nConstraint && count < 64; i++) {
        const struct sqlite3_index_constraint *it = &info->aConstraint[i];
        if (it->iColumn >= (int)table->column_count ||
            (it->iColumn < 0 && module->is_one_of_many)) {
            continue; /* the column `trace` */
        }
        char column = letter_of(key_of(table, it->iColumn));
        char comparison = column != '\0' ? comparison_of(column, it->op) : '\0';
        bool is_exact = comparison != '=' || (column != 'n' && column != 'k') ||
                        strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
        if (!it->usable || comparison == '\0' || !is_exact) {
            continue;
        }
        const bool is_met = is_met_here(info, i, column, comparison);
        text[2 * (size_t)count] = column;
        text[2 * (size_t)count + 1] = is_met ? strict(comparison, it->op) : comparison;
        info->aConstraintUsage[i].argvIndex = ++count;
        info->aConstraintUsage[i].omit = is_met;
        rows *= share_of(column, comparison);
        has_track = has_track || (column == 't' && comparison == '=');
        has_id = has_id || (column == 'i' && comparison == '=');
    }
    text[2 * (size_t)count] = '\0';
    info->idxStr = sqlite3_mprintf("%s", text);
    info->needToFreeIdxStr = 1;
    info->idxNum = (int)needs_of(table, info->colUsed);
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    info->estimatedCost = rows < 1 ? 5 : 5 + rows;
    info->idxFlags = has_id ? SQLITE_INDEX_SCAN_UNIQUE : 0;
    info->orderByConsumed = is_ordered(table, info, has_track);
    return info->idxStr != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *cursor = (struct cursor){.table = ((const struct lac_sql_vtab *)vtab)->module->table};
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct cursor *cursor)
{
    if (cursor->trace != NULL) {
        lac_sql_chunk_done(cursor->trace, &cursor->at);
        lac_sql_chunk_done(cursor->trace, &cursor->launch);
    }
    free(cursor->wish.names);
    free(cursor->wish.chunks);
    cursor->wish = (struct wish){0};
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    forget((struct cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

/* -- what is asked for ------------------------------------------------------------------------- */

void lac_sql_narrow(int64_t *min, int64_t *max, char comparison, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    int64_t low;
    int64_t high;
    if (type == SQLITE_INTEGER) {
        low = sqlite3_value_int64(value);
        high = low;
    } else if (type == SQLITE_FLOAT) {
        double real = sqlite3_value_double(value);
        low = real < -9e18 ? INT64_MIN : real > 9e18 ? INT64_MAX : (int64_t)floor(real);
        high = real < -9e18 ? INT64_MIN : real > 9e18 ? INT64_MAX : (int64_t)ceil(real);
    } else {
        return;
    }
    /* a whole number, though "1e2" is a real one here */
    low += comparison == LARGER && low < INT64_MAX;
    high -= comparison == SMALLER && high > INT64_MIN;
    comparison = comparison == LARGER ? '>' : comparison == SMALLER ? '<' : comparison;
    if (comparison != '<' && low > *min) {
        *min = low;
    }
    if (comparison != '>' && high < *max) {
        *max = high;
    }
}

static bool wants_text(char comparison, const char *pattern, const char *text)
{
    return comparison == '~' ? sqlite3_strlike(pattern, text, 0) == 0
                             : sqlite3_strglob(pattern, text) == 0;
}

/** Names that fit a pattern, of those that the wanted kinds have. */
static enum lac_status wish_pattern(struct cursor *cursor, char comparison, const char *pattern,
                                    struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    const struct lac_strings *strings = &cursor->trace->head->strings;
    const struct lac_name_stat *stats = NULL;
    uint32_t count = 0;
    uint8_t *names = calloc(strings->count, 1);
    if (names == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = lac_trace_stats(cursor->trace->file, &stats, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        uint32_t name = stats[i].name;
        if ((wish->kinds >> stats[i].kind & 1) != 0 && names[name] == 0 &&
            (wish->names == NULL || wish->names[name] == 1)) {
            names[name] = wants_text(comparison, pattern, lac_strings_get(strings, name)) ? 1 : 2;
        }
    }
    free(wish->names);
    wish->names = names;
    return status;
}

static enum lac_status wish_name(struct cursor *cursor, char comparison, sqlite3_value *value,
                                 struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    const struct lac_strings *strings = &cursor->trace->head->strings;
    if (sqlite3_value_type(value) != SQLITE_TEXT) {
        return LAC_OK;
    }
    const char *text = (const char *)sqlite3_value_text(value);
    if (text == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (comparison != '=') {
        return wish_pattern(cursor, comparison, text, reterr);
    }
    size_t length = (size_t)sqlite3_value_bytes(value);
    uint32_t name = lac_strings_find(strings, text, length);
    if ((name == 0 && length > 0) || (wish->name != LAC_NONE && wish->name != name)) {
        wish->is_impossible = true;
    }
    wish->name = name;
    return LAC_OK;
}

static void wish_kind(struct wish *wish, sqlite3_value *value)
{
    const char *text =
        sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : NULL;
    uint32_t kinds = 0;
    for (unsigned kind = 0; text != NULL && kind < LAC_SLICE_KIND_COUNT_; kind++) {
        if (strcmp(text, lac_slice_kind_name((enum lac_slice_kind)kind)) == 0) {
            kinds = 1U << kind;
        }
    }
    wish->kinds = text != NULL ? wish->kinds & kinds : wish->kinds;
}

static enum lac_status wish_for(struct cursor *cursor, char column, char comparison,
                                sqlite3_value *value, struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    int64_t min = 0;
    int64_t max = INT64_MAX;
    switch ((int)column) {
    case 'i':
        lac_sql_narrow(&min, &max, comparison, value);
        wish->id_min = (uint64_t)min > wish->id_min ? (uint64_t)min : wish->id_min;
        wish->id_max = max < 0 ? 0 : (uint64_t)max < wish->id_max ? (uint64_t)max : wish->id_max;
        wish->is_impossible = wish->is_impossible || max < 0;
        return LAC_OK;
    case 't':
    case 'd':
        min = -1;
        lac_sql_narrow(&min, &max, comparison, value);
        if (min != max) { /* no whole number: SQLite decides */
            return LAC_OK;
        }
        if (column == 'd') {
            wish->is_impossible = wish->is_impossible || (wish->device >= 0 && wish->device != min);
            wish->device = min;
        } else if (min < 0 || min >= cursor->trace->head->track_count ||
                   (wish->track != LAC_NONE && wish->track != (uint32_t)min)) {
            wish->is_impossible = true;
        } else {
            wish->track = (uint32_t)min;
        }
        return LAC_OK;
    case 's':
        lac_sql_narrow(&wish->start_min_ns, &wish->start_max_ns, comparison, value);
        return LAC_OK;
    case 'e':
        lac_sql_narrow(&wish->end_min_ns, &max, comparison, value);
        wish->start_max_ns = max < wish->start_max_ns ? max : wish->start_max_ns;
        return LAC_OK;
    case 'k':
        wish_kind(wish, value);
        return LAC_OK;
    default:
        return wish_name(cursor, comparison, value, reterr);
    }
}

/* -- which chunks ------------------------------------------------------------------------------ */

/** The chunks that hold the names that are asked for. */
static enum lac_status choose_chunks(struct cursor *cursor, struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    const struct lac_name_stat *stats = NULL;
    uint32_t count = 0;
    wish->chunks = lac_sql_trace_bits(cursor->trace);
    if (wish->chunks == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = lac_trace_stats(cursor->trace->file, &stats, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        bool is_wanted = (wish->kinds >> stats[i].kind & 1) != 0 &&
                         (wish->name == LAC_NONE || stats[i].name == wish->name) &&
                         (wish->names == NULL || wish->names[stats[i].name] == 1);
        if (is_wanted) {
            status = lac_sql_trace_add_chunks(cursor->trace, &stats[i], wish->chunks, reterr);
        }
    }
    return status;
}

/** The chunks of the kinds that are asked for. */
static enum lac_status choose_kinds(struct cursor *cursor, struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    enum lac_status status = LAC_OK;
    wish->chunks = lac_sql_trace_bits(cursor->trace);
    if (wish->chunks == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_ && status == LAC_OK; kind++) {
        const uint64_t *bits = NULL;
        if ((wish->kinds >> kind & 1) == 0) {
            continue;
        }
        status = lac_sql_trace_kind_chunks(cursor->trace, kind, &bits, reterr);
        for (uint32_t w = 0; w <= cursor->trace->chunk_count / 64 && status == LAC_OK; w++) {
            wish->chunks[w] |= bits[w];
        }
    }
    return status;
}

static bool may_match(const struct cursor *cursor, uint32_t number)
{
    const struct lac_chunk_entry *chunk = &cursor->trace->chunks[number];
    const struct wish *wish = &cursor->wish;
    const struct lac_track *track = &cursor->trace->head->tracks[chunk->track];
    return (wish->chunks == NULL || (wish->chunks[number / 64] >> number % 64 & 1) != 0) &&
           (wish->track == LAC_NONE || chunk->track == wish->track) &&
           (wish->device < 0 || track->device == wish->device) &&
           chunk->start_first <= wish->start_max_ns && chunk->start_last >= wish->start_min_ns &&
           chunk->end_last >= wish->end_min_ns && chunk->first <= wish->id_max &&
           chunk->first + chunk->count > wish->id_min;
}

/** The first row from `low` on, before `end`, that does not start before `start_ns`; starts ascend. */
static uint32_t row_from(const int64_t *starts_ns, uint32_t low, uint32_t end, int64_t start_ns)
{
    LAC_BISECT(low, end, row, starts_ns[row] < start_ns);
    return low;
}

/** Rows of the chunk that match by time and id. */
static void bound_rows(struct cursor *cursor)
{
    const struct lac_chunk_entry *chunk = &cursor->trace->chunks[cursor->at.chunk];
    const struct wish *wish = &cursor->wish;
    const int64_t *start_ns = cursor->at.columns->at.start_ns;
    uint32_t low = wish->id_min > chunk->first ? (uint32_t)(wish->id_min - chunk->first) : 0;
    uint64_t last = wish->id_max - chunk->first;
    cursor->row_end = last < chunk->count ? (uint32_t)last + 1 : chunk->count;
    cursor->row = low;
    if (start_ns != NULL) {
        cursor->row = row_from(start_ns, low, cursor->row_end, wish->start_min_ns);
        cursor->row_end =
            wish->start_max_ns < INT64_MAX
                ? row_from(start_ns, cursor->row, cursor->row_end, wish->start_max_ns + 1)
                : cursor->row_end;
    }
}

static bool row_matches(const struct cursor *cursor, uint32_t row)
{
    const struct lac_slices *at = &cursor->at.columns->at;
    const struct wish *wish = &cursor->wish;
    return (at->kind == NULL || (wish->kinds >> at->kind[row] & 1) != 0) &&
           (wish->name == LAC_NONE || at->name[row] == wish->name) &&
           (wish->names == NULL || wish->names[at->name[row]] == 1) &&
           (wish->end_min_ns <= 0 || at->start_ns == NULL ||
            at->start_ns[row] + at->dur_ns[row] >= wish->end_min_ns);
}

/** Go to the next slice that matches, from the current row on. */
static int settle(struct cursor *cursor)
{
    for (;;) {
        const struct lac_slices *at = cursor->at.columns != NULL ? &cursor->at.columns->at : NULL;
        while (at != NULL && cursor->row < cursor->row_end) {
            if (cursor->is_each || row_matches(cursor, cursor->row)) {
                return SQLITE_OK;
            }
            cursor->row++;
        }
        lac_sql_chunk_done(cursor->trace, &cursor->at);
        while (cursor->chunk < cursor->trace->chunk_count && !may_match(cursor, cursor->chunk)) {
            cursor->chunk++;
        }
        if (cursor->chunk >= cursor->trace->chunk_count ||
            cursor->trace->chunks[cursor->chunk].first > cursor->wish.id_max) {
            cursor->is_at_end = true;
            return SQLITE_OK;
        }
        if (lac_sql_trace_is_late(cursor->trace)) {
            return SQLITE_INTERRUPT;
        }
        struct lac_error error = {0};
        enum lac_status status =
            lac_sql_chunk_get(cursor->trace, cursor->chunk, cursor->columns, &cursor->at, &error);
        if (status) {
            return lac_sql_vtab_fail(cursor->base.pVtab, status, &error);
        }
        cursor->chunk++;
        bound_rows(cursor);
    }
}

/** The first chunk to look at: of an id, or of a track. */
static uint32_t first_chunk(const struct cursor *cursor)
{
    const struct lac_sql_trace *trace = cursor->trace;
    uint64_t id = cursor->wish.id_min;
    if (cursor->wish.track != LAC_NONE && trace->head->tracks[cursor->wish.track].first > id) {
        id = trace->head->tracks[cursor->wish.track].first;
    }
    return id > 0 && trace->chunk_count > 0 ? lac_trace_chunk_of(trace->file, id) : 0;
}

static unsigned needs_of_wish(const struct wish *wish, uint32_t table_kinds)
{
    unsigned needs = 0;
    if (wish->name != LAC_NONE || wish->names != NULL) {
        needs |= 1U << LAC_COLUMN_NAME;
    }
    if (wish->start_min_ns > 0 || wish->start_max_ns < INT64_MAX) {
        needs |= 1U << LAC_COLUMN_START;
    }
    if (wish->end_min_ns > 0) {
        needs |= (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR);
    }
    if (wish->kinds != (1U << LAC_SLICE_KIND_COUNT_) - 1U || wish->kinds != table_kinds) {
        needs |= 1U << LAC_COLUMN_KIND;
    }
    return needs;
}

static enum lac_status prepare(struct cursor *cursor, const char *text, sqlite3_value **argv,
                               struct lac_error *reterr)
{
    struct wish *wish = &cursor->wish;
    enum lac_status status = LAC_OK;
    *wish = (struct wish){.id_max = UINT64_MAX / 2,
                          .start_max_ns = INT64_MAX,
                          .device = -1,
                          .track = LAC_NONE,
                          .kinds = cursor->table->kinds,
                          .name = LAC_NONE};
    bool has_id = false;
    for (size_t i = 0; text[2 * i] != '\0' && status == LAC_OK; i++) {
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL) {
            wish->is_impossible = true; /* nothing is equal to NULL, larger or smaller */
            continue;
        }
        has_id = has_id || text[2 * i] == 'i';
        status = wish_for(cursor, text[2 * i], text[2 * i + 1], argv[i], reterr);
    }
    if (status || wish->is_impossible || has_id) {
        return status;
    }
    if (wish->name != LAC_NONE || wish->names != NULL) {
        return choose_chunks(cursor, reterr);
    }
    bool is_narrow = wish->track != LAC_NONE && wish->start_max_ns < INT64_MAX;
    return wish->kinds != (1U << LAC_SLICE_KIND_COUNT_) - 1U && !is_narrow
               ? choose_kinds(cursor, reterr)
               : LAC_OK;
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc,
                  sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct lac_sql_module *module = ((const struct lac_sql_vtab *)base->pVtab)->module;
    struct lac_error error = {0};
    forget(cursor);
    cursor->trace = module->finder(module->context);
    cursor->is_at_end = true;
    assert(text != NULL && (int)strlen(text) == 2 * argc);
    if (cursor->trace == NULL) {
        return SQLITE_OK;
    }
    enum lac_status status = prepare(cursor, text, argv, &error);
    (void)argc;
    if (status) {
        return lac_sql_vtab_fail(base->pVtab, status, &error);
    }
    if (cursor->wish.is_impossible || cursor->wish.kinds == 0) {
        return SQLITE_OK;
    }
    cursor->columns = (unsigned)index | needs_of_wish(&cursor->wish, cursor->table->kinds);
    if (cursor->columns == 0) {
        cursor->columns = 1U << LAC_COLUMN_KIND; /* the cheapest: rows are only counted */
    }
    if ((cursor->columns & (1U << LAC_COLUMN_DETAIL)) != 0) {
        cursor->columns |= 1U << LAC_COLUMN_KIND;
    }
    cursor->is_each = cursor->wish.name == LAC_NONE && cursor->wish.names == NULL &&
                      cursor->wish.end_min_ns <= 0 &&
                      cursor->wish.kinds == (1U << LAC_SLICE_KIND_COUNT_) - 1U;
    cursor->is_at_end = false;
    cursor->chunk = first_chunk(cursor);
    return settle(cursor);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor->row++;
    return cursor->is_each && cursor->row < cursor->row_end ? SQLITE_OK : settle(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return ((const struct cursor *)base)->is_at_end;
}

static int put_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct lac_sql_slice slice = {cursor->trace, &cursor->at, cursor->row, &cursor->launch};
    lac_slice_column_put(&slice, key_of(cursor->table, column), out);
    return SQLITE_OK;
}

static int put_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
    const struct cursor *cursor = (const struct cursor *)base;
    uint64_t id = cursor->trace->chunks[cursor->at.chunk].first + cursor->row;
    *ret_rowid = (sqlite3_int64)id;
    return SQLITE_OK;
}

const sqlite3_module lac_sql_slice_module = LAC_SQL_MODULE(lac_sql_connect, lac_sql_disconnect);
