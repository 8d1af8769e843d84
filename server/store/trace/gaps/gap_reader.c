/* Gaps one after another, a block in memory at a time. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/gaps/gap_blocks.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A block by its row, and what is known of it before it is read. */
struct gap_place {
    int64_t first, count;
    int64_t start_ns, end_ns; /**< of its first and last gap */
    uint32_t causes;          /**< a bit for each that is in it; 0: not looked at yet */
};

struct lac_gap_reader {
    struct lac_trace_file *file;
    struct lac_gap_wish wish;
    struct gap_place *places;
    size_t place_count;
    size_t next; /**< place to read */
    struct lac_gap_table block;
    uint64_t first; /**< of the block */
    uint64_t at;    /**< in the block */
    sqlite3_stmt *get;
    char text[LAC_GAP_TEXT_BYTES]; /**< of the present gap */
};

/** Columns that parts are read from, and conditions. */
static uint32_t columns_of(const struct lac_gap_wish *wish)
{
    const unsigned parts = wish->parts;
    const bool has_start = wish->start_min_ns > 0 || wish->start_max_ns < INT64_MAX;
    const bool has_end = wish->end_min_ns > 0 || wish->end_max_ns < INT64_MAX;
    const bool has_shares = (parts & LAC_GAP_PART_SHARES) != 0;
    const bool has_root = (parts & LAC_GAP_PART_ROOT) != 0;
    const bool wants[LAC_GAP_COLUMNS] = {
        [LAC_GAP_START] = (parts & LAC_GAP_PART_START) != 0 || has_start || has_end,
        [LAC_GAP_DUR] =
            (parts & LAC_GAP_PART_DUR) != 0 || has_shares || has_end || wish->min_ns > 0,
        [LAC_GAP_DEVICE] = (parts & LAC_GAP_PART_DEVICE) != 0 || wish->device >= 0,
        [LAC_GAP_CAUSE] = (parts & LAC_GAP_PART_CAUSE) != 0 || has_shares || wish->cause >= 0,
        [LAC_GAP_SIGNATURE] = (parts & (LAC_GAP_PART_SIGNATURE | LAC_GAP_PART_PER_STEP)) != 0,
        [LAC_GAP_ENDED_BY] = (parts & LAC_GAP_PART_ENDED_BY) != 0,
        [LAC_GAP_SHARES] = has_shares,
        [LAC_GAP_TEXT] = (parts & LAC_GAP_PART_TEXT) != 0,
        [LAC_GAP_ROOT_KIND] = has_root,
        [LAC_GAP_ROOT] = has_root,
        [LAC_GAP_WAIT] = has_root,
        [LAC_GAP_BATCH] = has_root,
    };
    uint32_t columns = 0;

    for (unsigned c = 0; c < LAC_GAP_COLUMNS; c++) {
        columns |= wants[c] ? 1U << c : 0;
    }
    return columns;
}

/** With db_lock held. */
static enum lac_status read_places(struct lac_gap_reader *reader, struct lac_error *reterr)
{
    struct lac_trace_file *file = reader->file;
    enum lac_status status = file->format_version >= LAC_TRACE_FORMAT_TOTALS
                                 ? lac_trace_has_table(file, "gap_total", reterr)
                                 : LAC_ERR_NOT_FOUND;
    const char *query = status == LAC_OK
                            ? "SELECT gap.first, gap.count, start_ns, end_ns FROM gap LEFT JOIN "
                              "gap_total USING(first) ORDER BY gap.first"
                            : "SELECT first, count, NULL, NULL FROM gap ORDER BY first";
    sqlite3_stmt *get = NULL;
    int64_t end = 0;

    if (status == LAC_OK || status == LAC_ERR_NOT_FOUND) {
        status = lac_sql_prepare(file->db, query, &get, reterr);
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status != LAC_OK) {
            break;
        }
        const bool is_timed = sqlite3_column_type(get, 2) == SQLITE_INTEGER &&
                              sqlite3_column_type(get, 3) == SQLITE_INTEGER;
        const struct gap_place place = {
            .first = sqlite3_column_int64(get, 0),
            .count = sqlite3_column_int64(get, 1),
            .start_ns = is_timed ? sqlite3_column_int64(get, 2) : 0,
            .end_ns = is_timed ? sqlite3_column_int64(get, 3) : INT64_MAX,
        };
        struct gap_place *places =
            realloc(reader->places, (reader->place_count + 1) * sizeof(*places));
        if (places == NULL) {
            status = LAC_ERR_NOMEM;
            break;
        }
        reader->places = places;
        places[reader->place_count++] = place;
        if (place.first != end || place.count < 1 || place.count > LAC_COLUMN_BLOCK_ROWS) {
            status = LAC_ERR_CORRUPT;
        }
        end += place.count;
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_gap_reader_open_for(struct lac_trace_file *file,
                                        const struct lac_gap_wish *wish,
                                        struct lac_gap_reader **ret_reader,
                                        struct lac_error *reterr)
{
    assert(file != NULL && wish != NULL && ret_reader != NULL);
    struct lac_gap_reader *reader = calloc(1, sizeof(*reader));
    enum lac_status status;

    if (reader == NULL) {
        return LAC_ERR_NOMEM;
    }
    reader->file = file;
    reader->wish = *wish;
    (void)pthread_mutex_lock(&file->db_lock);
    status = read_places(reader, reterr);
    if (status == LAC_OK) {
        status =
            lac_sql_prepare(file->db, "SELECT * FROM gap WHERE first = ?", &reader->get, reterr);
    }
    if (status == LAC_OK && (wish->parts & LAC_GAP_PART_PER_STEP) != 0) {
        status = lac_gap_signatures_read(file, &reader->block, reterr);
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        lac_gap_reader_close(reader);
        return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "gaps") : status;
    }
    *ret_reader = reader;
    return LAC_OK;
}

void lac_gap_reader_close(struct lac_gap_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&reader->file->db_lock);
    (void)sqlite3_finalize(reader->get);
    (void)pthread_mutex_unlock(&reader->file->db_lock);
    lac_gap_table_done(&reader->block);
    free(reader->places);
    free(reader);
}

void lac_gap_reader_rewind(struct lac_gap_reader *reader, int cause)
{
    assert(reader != NULL);
    reader->wish.cause = cause;
    reader->next = 0;
    reader->block.count = 0;
    reader->at = 0;
}

/** Whether a block may hold a wanted gap, by what is known of it. */
static bool may_hold(const struct gap_place *place, const struct lac_gap_wish *wish)
{
    return place->end_ns >= wish->start_min_ns && place->end_ns >= wish->end_min_ns &&
           place->start_ns <= wish->start_max_ns && place->start_ns <= wish->end_max_ns &&
           (wish->cause < 0 || place->causes == 0 || (place->causes >> wish->cause & 1) != 0);
}

/** Decode the columns of `columns`, with the statement on the block. */
static enum lac_status decode_block(struct lac_gap_reader *reader, uint32_t columns)
{
    reader->block.left_out = ((1U << LAC_GAP_COLUMNS) - 1) & ~columns;
    return lac_gap_block_decode(reader->file, &reader->block, reader->get, reader->first);
}

/** With db_lock held and the statement on the block: first only what tells whether it is of use. */
static enum lac_status read_wanted(struct lac_gap_reader *reader, struct gap_place *place)
{
    const struct lac_gap_wish *wish = &reader->wish;
    enum lac_status status = LAC_OK;

    if (wish->cause >= 0 && place->causes == 0) {
        status = decode_block(reader, 1U << LAC_GAP_CAUSE);
        for (uint64_t i = 0; status == LAC_OK && i < reader->block.count; i++) {
            place->causes |= 1U << reader->block.columns[LAC_GAP_CAUSE][i];
        }
    }
    if (status == LAC_OK && wish->device >= 0 && may_hold(place, wish)) {
        bool has_device = false;

        status = decode_block(reader, 1U << LAC_GAP_DEVICE);
        for (uint64_t i = 0; status == LAC_OK && i < reader->block.count; i++) {
            has_device = has_device || reader->block.columns[LAC_GAP_DEVICE][i] == wish->device;
        }
        if (!has_device) {
            reader->block.count = 0;
            return status;
        }
    }
    if (status == LAC_OK && !may_hold(place, wish)) {
        reader->block.count = 0;
        return LAC_OK;
    }
    return status == LAC_OK ? decode_block(reader, columns_of(wish)) : status;
}

enum lac_status lac_gap_reader_block(struct lac_gap_reader *reader, struct lac_error *reterr)
{
    assert(reader != NULL);
    struct lac_trace_file *file = reader->file;
    struct gap_place *place;
    enum lac_status status;

    while (reader->next < reader->place_count &&
           !may_hold(&reader->places[reader->next], &reader->wish)) {
        reader->next++;
    }
    reader->block.count = 0;
    reader->at = 0;
    if (reader->next == reader->place_count) {
        return LAC_ERR_NOT_FOUND;
    }
    place = &reader->places[reader->next++];
    reader->first = (uint64_t)place->first;
    (void)pthread_mutex_lock(&file->db_lock);
    lac_sql_bind_i64(reader->get, 1, place->first);
    status = lac_sql_step_row(reader->get, "trace file", reterr);
    status = status == LAC_OK ? read_wanted(reader, place) : status;
    lac_sql_reset(reader->get);
    (void)pthread_mutex_unlock(&file->db_lock);
    return status == LAC_ERR_CORRUPT || status == LAC_ERR_NOT_FOUND
               ? lac_trace_corrupt(file, reterr, "gaps")
               : status;
}

static bool is_wanted(const struct lac_gap_reader *reader, uint64_t i)
{
    const struct lac_gap_wish *wish = &reader->wish;
    int64_t *const *columns = reader->block.columns;
    const uint32_t left_out = reader->block.left_out;

    if ((wish->cause >= 0 && columns[LAC_GAP_CAUSE][i] != wish->cause) ||
        (wish->device >= 0 && columns[LAC_GAP_DEVICE][i] != wish->device) ||
        (wish->min_ns > 0 && columns[LAC_GAP_DUR][i] < wish->min_ns)) {
        return false;
    }
    if ((left_out >> LAC_GAP_START & 1) == 0 && (columns[LAC_GAP_START][i] < wish->start_min_ns ||
                                                 columns[LAC_GAP_START][i] > wish->start_max_ns)) {
        return false;
    }
    if (((left_out >> LAC_GAP_START | left_out >> LAC_GAP_DUR) & 1) == 0) {
        const int64_t end_ns = columns[LAC_GAP_START][i] + columns[LAC_GAP_DUR][i];

        return end_ns >= wish->end_min_ns && end_ns <= wish->end_max_ns;
    }
    return true;
}

/** The parts that are asked for. */
static void fill_parts(const struct lac_gap_reader *reader, uint64_t i, struct lac_gap_row *row)
{
    const struct lac_gap_table *block = &reader->block;
    const uint32_t left_out = block->left_out;
    const unsigned parts = reader->wish.parts;

    row->start_ns = (left_out >> LAC_GAP_START & 1) == 0 ? block->columns[LAC_GAP_START][i] : 0;
    row->dur_ns = (left_out >> LAC_GAP_DUR & 1) == 0 ? block->columns[LAC_GAP_DUR][i] : 0;
    row->device = (left_out >> LAC_GAP_DEVICE & 1) == 0 ? block->columns[LAC_GAP_DEVICE][i] : 0;
    row->cause =
        (left_out >> LAC_GAP_CAUSE & 1) == 0 ? (uint8_t)block->columns[LAC_GAP_CAUSE][i] : 0;
    if ((parts & LAC_GAP_PART_ENDED_BY) != 0) {
        row->ended_by = lac_gap_slice(block->columns[LAC_GAP_ENDED_BY][i]);
    }
    if ((left_out >> LAC_GAP_SIGNATURE & 1) == 0) {
        row->signature = (uint32_t)block->columns[LAC_GAP_SIGNATURE][i];
        row->per_step =
            row->signature < block->signature_count ? block->per_step[row->signature] : (double)NAN;
    }
    if ((parts & LAC_GAP_PART_ROOT) != 0) {
        row->root_kind = (int8_t)block->columns[LAC_GAP_ROOT_KIND][i];
        row->root_slice = lac_gap_slice(block->columns[LAC_GAP_ROOT][i]);
        row->wait_slice = lac_gap_slice(block->columns[LAC_GAP_WAIT][i]);
        row->batch_slice = lac_gap_slice(block->columns[LAC_GAP_BATCH][i]);
    }
    if ((parts & LAC_GAP_PART_SHARES) != 0) {
        lac_gap_fill_shares(block, i, row);
    }
}

static void fill_text(struct lac_gap_reader *reader, uint64_t i, struct lac_gap_row *row)
{
    const struct lac_gap_table *block = &reader->block;
    const size_t length = (size_t)block->columns[LAC_GAP_TEXT][i]; /* at most 255 */

    memcpy(reader->text, block->texts + block->text_first[i], length);
    reader->text[length] = '\0';
    row->root_cause = reader->text;
}

bool lac_gap_reader_row(struct lac_gap_reader *reader, struct lac_gap_row *row, uint64_t *ret_index)
{
    assert(reader != NULL && row != NULL && ret_index != NULL);
    while (reader->at < reader->block.count && !is_wanted(reader, reader->at)) {
        reader->at++;
    }
    if (reader->at == reader->block.count) {
        return false;
    }
    *ret_index = reader->first + reader->at;
    fill_parts(reader, reader->at, row);
    if ((reader->wish.parts & LAC_GAP_PART_TEXT) != 0) {
        fill_text(reader, reader->at, row);
    }
    reader->at++;
    return true;
}

enum lac_status lac_gap_reader_open(struct lac_trace_file *file, int64_t device, int64_t min_ns,
                                    struct lac_gap_reader **ret_reader, struct lac_error *reterr)
{
    const struct lac_gap_wish wish = {.device = device,
                                      .min_ns = min_ns,
                                      .start_max_ns = INT64_MAX,
                                      .end_max_ns = INT64_MAX,
                                      .cause = -1,
                                      .parts = (LAC_GAP_PART_TEXT << 1) - 1};

    return lac_gap_reader_open_for(file, &wish, ret_reader, reterr);
}

enum lac_status lac_gap_reader_next(struct lac_gap_reader *reader, struct lac_gap_row *ret_row,
                                    struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    uint64_t index;

    while (status == LAC_OK && !lac_gap_reader_row(reader, ret_row, &index)) {
        status = lac_gap_reader_block(reader, reterr);
    }
    return status;
}
