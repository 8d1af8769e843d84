/* Tables gap, long_gap, gap_signature and finding, and the summary in meta: what the diagnosis found. */

#include "analysis/diagnose/result/analysis.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_write_private.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Root causes are kept only of gaps that are worth reading about. */
enum { ROOT_MIN_NS = 10000, GAP_BLOCK_ROWS = 16384, GAP_COLUMNS = 12 };
/** Gaps that last so long are kept once more where they are at most one of so many. */
enum { LONG_GAP_NS = 10000, FEW_PART = 8 };

_Static_assert((int)LAC_GAP_CAUSES == (int)LAC_CAUSE_COUNT_,
               "a gap row has a number for each cause");

/** As a column holds it. */
static int64_t slice_or_minus_1(uint32_t slice)
{
    return slice == LAC_NONE ? -1 : (int64_t)slice;
}

struct gap_block {
    int64_t *columns[GAP_COLUMNS];
    int64_t *storage;
    int64_t *share_cause;
    int64_t *share_ns;
    uint32_t share_count, share_capacity;
    struct lac_bytes texts;
    struct lac_bytes packed, shares, packed_texts;
};

static void block_done(struct gap_block *block)
{
    free(block->storage);
    free(block->share_cause);
    free(block->share_ns);
    lac_bytes_done(&block->texts);
    lac_bytes_done(&block->packed);
    lac_bytes_done(&block->shares);
    lac_bytes_done(&block->packed_texts);
}

static enum lac_status add_share(struct gap_block *block, unsigned cause, int64_t ns)
{
    uint32_t causes = block->share_capacity;
    uint32_t lengths = block->share_capacity;

    if (!LAC_RESERVE(block->share_cause, causes, block->share_count, 1) ||
        !LAC_RESERVE(block->share_ns, lengths, block->share_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    block->share_capacity = lengths;
    block->share_cause[block->share_count] = cause;
    block->share_ns[block->share_count++] = ns;
    return LAC_OK;
}

/** How a gap divides among causes. @return the number of shares in *ret_count; 0 when all is one */
static enum lac_status add_shares(struct gap_block *block, const struct lac_analysis *analysis,
                                  const struct lac_gap *gap, uint32_t *ret_count)
{
    int64_t by_cause[LAC_CAUSE_COUNT_] = {0};
    uint32_t count = 0;
    enum lac_status status = LAC_OK;

    for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
        by_cause[analysis->pieces[p].cause] += lac_gap_piece_dur_ns(analysis, p);
    }
    *ret_count = 0;
    if (by_cause[gap->cause] == gap->dur_ns) {
        return LAC_OK;
    }
    for (unsigned cause = 0; cause < LAC_CAUSE_COUNT_ && status == LAC_OK; cause++) {
        if (by_cause[cause] != 0) {
            status = add_share(block, cause, by_cause[cause]);
            count++;
        }
    }
    *ret_count = count;
    return status;
}

static enum lac_status add_gap(struct gap_block *block, const struct lac_trace_writer *writer,
                               const struct lac_gap *gap, uint32_t row)
{
    const struct lac_analysis *analysis = writer->analysis;
    const bool has_root = gap->dur_ns >= ROOT_MIN_NS;
    char text[200] = "";
    size_t length = 0;
    uint32_t shares = 0;
    enum lac_status status = add_shares(block, analysis, gap, &shares);

    if (has_root) {
        length = lac_gap_root_text(analysis, writer->model, gap, text, sizeof(text));
        length = length < sizeof(text) ? length : sizeof(text) - 1;
    }
    if (status == LAC_OK) {
        status = lac_bytes_append(&block->texts, text, length);
    }
    block->columns[0][row] = gap->start_ns;
    block->columns[1][row] = gap->dur_ns;
    block->columns[2][row] = analysis->devices[gap->device].id;
    block->columns[3][row] = gap->cause;
    block->columns[4][row] = gap->signature;
    block->columns[5][row] = slice_or_minus_1(gap->ended_by);
    block->columns[6][row] = shares;
    block->columns[7][row] = (int64_t)length;
    block->columns[8][row] = has_root ? gap->root_kind : -1;
    block->columns[9][row] = has_root ? slice_or_minus_1(gap->root) : -1;
    block->columns[10][row] = has_root ? slice_or_minus_1(gap->wait) : -1;
    block->columns[11][row] = has_root ? slice_or_minus_1(gap->batch) : -1;
    return status;
}

static enum lac_status insert_block(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                    struct gap_block *block, uint64_t first, uint32_t count)
{
    const int64_t *shares[2] = {block->share_cause, block->share_ns};
    enum lac_status status;

    block->packed.size_bytes = 0;
    block->shares.size_bytes = 0;
    status = lac_columns_encode((const int64_t *const *)block->columns, GAP_COLUMNS, count,
                                &block->packed);
    if (status == LAC_OK && block->share_count > 0) {
        status = lac_columns_encode(shares, 2, block->share_count, &block->shares);
    }
    if (status == LAC_OK) {
        status = lac_zstd_pack(block->texts.data, block->texts.size_bytes, 1, &block->packed_texts);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(insert, 1, (int64_t)first);
    lac_sql_bind_i64(insert, 2, count);
    lac_sql_bind_blob(insert, 3, block->packed.data, block->packed.size_bytes);
    lac_sql_bind_i64(insert, 4, block->share_count);
    if (block->share_count > 0) {
        lac_sql_bind_blob(insert, 5, block->shares.data, block->shares.size_bytes);
    }
    lac_sql_bind_i64(insert, 6, (int64_t)block->texts.size_bytes);
    if (block->texts.size_bytes > 0) {
        lac_sql_bind_blob(insert, 7, block->packed_texts.data, block->packed_texts.size_bytes);
    }
    return lac_sql_step_done(insert, "trace file", writer->reterr);
}

/** Which gaps go into which table. */
struct gap_part {
    const char *insert;
    int64_t floor_ns; /**< of this length and longer */
    bool has_totals;  /**< each block has a row in gap_total */
};

static enum lac_status write_block(struct lac_trace_writer *writer, const struct gap_part *part,
                                   sqlite3_stmt *insert, struct gap_block *block, uint64_t first,
                                   uint32_t count)
{
    enum lac_status status = insert_block(writer, insert, block, first, count);

    if (status == LAC_OK && part->has_totals) {
        const struct lac_gap_rows rows = {.start_ns = block->columns[0],
                                          .dur_ns = block->columns[1],
                                          .device = block->columns[2],
                                          .cause = block->columns[3],
                                          .shares = block->columns[6],
                                          .share_cause = block->share_cause,
                                          .share_ns = block->share_ns};

        status = lac_trace_write_gap_totals(writer, first, &rows, count);
    }
    block->share_count = 0;
    block->texts.size_bytes = 0;
    return status;
}

static enum lac_status write_part(struct lac_trace_writer *writer, const struct gap_part *part)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct gap_block block = {.storage = malloc(sizeof(int64_t) * GAP_COLUMNS * GAP_BLOCK_ROWS)};
    sqlite3_stmt *insert = NULL;
    uint64_t first = 0;
    uint32_t count = 0;
    enum lac_status status = LAC_ERR_NOMEM;

    if (block.storage != NULL) {
        for (size_t c = 0; c < GAP_COLUMNS; c++) {
            block.columns[c] = block.storage + c * GAP_BLOCK_ROWS;
        }
        status = lac_sql_prepare(writer->db, part->insert, &insert, writer->reterr);
    }
    for (uint64_t i = 0; i < analysis->gap_count && status == LAC_OK; i++) {
        if (analysis->gaps[i].dur_ns < part->floor_ns) {
            continue;
        }
        status = add_gap(&block, writer, &analysis->gaps[i], count++);
        if (status == LAC_OK && count == GAP_BLOCK_ROWS) {
            status = write_block(writer, part, insert, &block, first, count);
            first += count;
            count = 0;
        }
    }
    if (status == LAC_OK && count > 0) {
        status = write_block(writer, part, insert, &block, first, count);
    }
    (void)sqlite3_finalize(insert);
    block_done(&block);
    return status;
}

/** Whether few of many gaps are long: then a question for those reads them alone. */
static bool are_few_long(const struct lac_analysis *analysis)
{
    uint64_t long_count = 0;

    for (uint64_t i = 0; i < analysis->gap_count; i++) {
        long_count += analysis->gaps[i].dur_ns >= LONG_GAP_NS;
    }
    return analysis->gap_count > GAP_BLOCK_ROWS && long_count <= analysis->gap_count / FEW_PART;
}

static enum lac_status write_gaps(struct lac_trace_writer *writer)
{
    const struct gap_part all = {.insert = "INSERT INTO gap VALUES(?,?,?,?,?,?,?)",
                                 .floor_ns = INT64_MIN,
                                 .has_totals = writer->analysis->gap_count > GAP_BLOCK_ROWS};
    const struct gap_part few = {.insert = "INSERT INTO long_gap VALUES(?,?,?,?,?,?,?)",
                                 .floor_ns = LONG_GAP_NS};
    enum lac_status status = write_part(writer, &all);

    if (status == LAC_OK && are_few_long(writer->analysis)) {
        status = lac_sql_run(writer->db,
                             "CREATE TABLE long_gap(first INTEGER PRIMARY KEY, count, data,"
                             " share_count, shares, text_bytes, texts)",
                             writer->reterr);
        status = status == LAC_OK ? write_part(writer, &few) : status;
    }
    return status;
}

static enum lac_status write_signatures(struct lac_trace_writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    int64_t *bits = malloc(sizeof(*bits) * LAC_COLUMN_BLOCK_ROWS);
    const int64_t *columns[1] = {bits};
    sqlite3_stmt *insert = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (bits != NULL) {
        status = lac_sql_prepare(writer->db, "INSERT INTO gap_signature VALUES(?,?,?)", &insert,
                                 writer->reterr);
    }
    for (uint32_t first = 0; first < analysis->signature_count && status == LAC_OK;) {
        uint32_t left = analysis->signature_count - first;
        uint32_t count = left < LAC_COLUMN_BLOCK_ROWS ? left : LAC_COLUMN_BLOCK_ROWS;

        for (uint32_t i = 0; i < count; i++) {
            double per_step = analysis->signatures[first + i].per_step;

            memcpy(&bits[i], &per_step, sizeof(per_step));
        }
        writer->scratch2.size_bytes = 0;
        status = lac_columns_encode(columns, 1, count, &writer->scratch2);
        if (status == LAC_OK) {
            lac_sql_bind_i64(insert, 1, first);
            lac_sql_bind_i64(insert, 2, count);
            lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
            status = lac_sql_step_done(insert, "trace file", writer->reterr);
        }
        first += count;
    }
    (void)sqlite3_finalize(insert);
    free(bits);
    return status;
}

static void bind_known_ns(sqlite3_stmt *insert, int index, int64_t value_ns)
{
    if (value_ns != LAC_UNKNOWN_NS) {
        lac_sql_bind_i64(insert, index, value_ns);
    }
}

static enum lac_status write_findings(struct lac_trace_writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(
        writer->db, "INSERT INTO finding VALUES(?,?,?,?,?,?,?,?,?,?)", &insert, writer->reterr);

    for (uint32_t i = 0; i < analysis->finding_count && status == LAC_OK; i++) {
        const struct lac_finding *finding = &analysis->findings[i];

        lac_sql_bind_i64(insert, 1, i);
        lac_sql_bind_text(insert, 2, finding->id);
        lac_sql_bind_text(insert, 3, lac_severity_name(finding->severity));
        bind_known_ns(insert, 4, finding->cost_ns_per_step);
        lac_sql_bind_f64(insert, 5, finding->cost_pct);
        lac_sql_bind_f64(insert, 6, finding->gain_low_pct);
        lac_sql_bind_f64(insert, 7, finding->gain_mid_pct);
        lac_sql_bind_f64(insert, 8, finding->gain_high_pct);
        lac_sql_bind_f64(insert, 9, finding->confidence);
        lac_sql_bind_text(insert, 10, finding->title);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

/** meta rows summary_...: what a list row says; absent or null when not known. */
static enum lac_status write_summary(struct lac_trace_writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    const struct lac_finding *first = lac_analysis_first_to_do(analysis);
    const bool has_change = first != NULL && first->brief[0] != '\0';
    const char letter[2] = {analysis->verdict.letter, '\0'};
    const struct {
        const char *key;
        const char *text;
    } texts[] = {
        {"summary_cause", analysis->verdict.cause},
        {"summary_letter", letter},
        {"summary_text", analysis->verdict.text},
        {"summary_throughput_unit", lac_rate_unit(analysis)},
        {"summary_next_change", has_change ? first->brief : NULL},
        {"summary_finding_id", first != NULL ? first->id : NULL},
        {"summary_model", analysis->trained_model[0] != '\0' ? analysis->trained_model : NULL},
    };
    const struct {
        const char *key;
        double value;
    } reals[] = {
        {"summary_throughput_per_s", analysis->throughput_per_s},
        {"summary_not_computing_pct", lac_not_computing_pct(analysis)},
        {"summary_gain_low_pct", has_change ? first->gain_low_pct : (double)NAN},
        {"summary_gain_mid_pct", has_change ? first->gain_mid_pct : (double)NAN},
        {"summary_gain_high_pct", has_change ? first->gain_high_pct : (double)NAN},
    };
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < LAC_COUNT_OF(texts) && status == LAC_OK; i++) {
        status = lac_trace_write_meta_text(writer, texts[i].key, texts[i].text);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(reals) && status == LAC_OK; i++) {
        status = lac_trace_write_meta_f64(writer, reals[i].key, reals[i].value);
    }
    if (status == LAC_OK && analysis->step_mean_ns != LAC_UNKNOWN_NS) {
        status = lac_trace_write_meta_i64(writer, "summary_step_mean_ns", analysis->step_mean_ns);
    }
    return status;
}

enum lac_status lac_trace_write_analysis(struct lac_trace_writer *writer)
{
    enum lac_status status = LAC_OK;

    if (writer->analysis == NULL) {
        return LAC_OK;
    }
    status = write_gaps(writer);
    if (status == LAC_OK) {
        status = lac_trace_write_exposed(writer);
    }
    if (status == LAC_OK) {
        status = lac_trace_write_steps(writer);
    }
    if (status == LAC_OK) {
        status = write_signatures(writer);
    }
    if (status == LAC_OK) {
        status = write_findings(writer);
    }
    if (status == LAC_OK) {
        status = write_summary(writer);
    }
    return status;
}
