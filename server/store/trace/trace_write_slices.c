/* Tables chunk, total, tile and name_stat: one pass over the slices, track by track. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "collector/base/reserve.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_write_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Statistics of one (name, kind). */
struct stat_entry {
    uint32_t name;
    uint32_t next; /**< another kind of the same name, or LAC_NONE */
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    uint32_t longest;
    uint32_t last_chunk;  /**< the last chunk counted in `pairs`, LAC_NONE none */
    uint32_t chunk_count; /**< pairs of this entry */
    uint8_t kind;
};

/** An entry occurs in a chunk. */
struct stat_pair {
    uint32_t entry;
    uint32_t chunk;
};

struct lac_slice_writer {
    struct lac_trace_writer *writer;
    struct lac_chunk_codec *codec;
    struct lac_totals_writer *totals;
    sqlite3_stmt *insert_chunk;
    sqlite3_stmt *insert_tile;
    uint32_t chunk_count;

    uint32_t *entry_of_name; /**< first entry of a string id, or LAC_NONE */
    uint32_t name_count;     /**< strings that it knows */
    struct stat_entry *entries;
    uint32_t entry_count, entry_capacity;
    struct stat_pair *pairs;
    uint64_t pair_count, pair_capacity;
};

static enum lac_status add_entry(struct lac_slice_writer *slices, uint32_t name, uint8_t kind,
                                 uint32_t *ret_entry)
{
    if (slices->entry_count == slices->entry_capacity) {
        uint32_t capacity = slices->entry_capacity > 0 ? slices->entry_capacity * 2 : 1024;
        struct stat_entry *entries = NULL;

        if (capacity > slices->entry_capacity) {
            entries = realloc(slices->entries, (size_t)capacity * sizeof(*entries));
        }
        if (entries == NULL) {
            return LAC_ERR_NOMEM;
        }
        slices->entries = entries;
        slices->entry_capacity = capacity;
    }
    slices->entries[slices->entry_count] = (struct stat_entry){.name = name,
                                                               .next = slices->entry_of_name[name],
                                                               .kind = kind,
                                                               .min_ns = INT64_MAX,
                                                               .max_ns = -1,
                                                               .last_chunk = LAC_NONE};
    slices->entry_of_name[name] = slices->entry_count;
    *ret_entry = slices->entry_count++;
    return LAC_OK;
}

static enum lac_status add_pair(struct lac_slice_writer *slices, uint32_t entry)
{
    if (!LAC_RESERVE(slices->pairs, slices->pair_capacity, slices->pair_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    slices->pairs[slices->pair_count++] =
        (struct stat_pair){.entry = entry, .chunk = slices->chunk_count};
    slices->entries[entry].last_chunk = slices->chunk_count;
    slices->entries[entry].chunk_count++;
    return LAC_OK;
}

/** Count the slices of one chunk. @return the largest end in *ret_end */
static enum lac_status count_names(struct lac_slice_writer *slices, uint64_t first, uint32_t count,
                                   int64_t *ret_end)
{
    const struct lac_slices *columns = &slices->writer->model->slices;
    int64_t end = 0;

    for (uint64_t i = first; i < first + count; i++) {
        uint32_t name = columns->name[i];
        uint8_t kind = columns->kind[i];
        int64_t dur_ns = columns->dur_ns[i];
        uint32_t at = slices->entry_of_name[name];
        struct stat_entry *entry;

        while (at != LAC_NONE && slices->entries[at].kind != kind) {
            at = slices->entries[at].next;
        }
        if (at == LAC_NONE && add_entry(slices, name, kind, &at) != LAC_OK) {
            return LAC_ERR_NOMEM;
        }
        if (slices->entries[at].last_chunk != slices->chunk_count &&
            add_pair(slices, at) != LAC_OK) {
            return LAC_ERR_NOMEM;
        }
        entry = &slices->entries[at];
        entry->count++;
        if (__builtin_add_overflow(entry->total_ns, dur_ns, &entry->total_ns)) {
            entry->total_ns = INT64_MAX; /* 2^31 slices of 100 days: a hostile file */
        }
        entry->min_ns = dur_ns < entry->min_ns ? dur_ns : entry->min_ns;
        if (dur_ns > entry->max_ns) {
            entry->max_ns = dur_ns;
            entry->longest = (uint32_t)i;
        }
        end = columns->start_ns[i] + dur_ns > end ? columns->start_ns[i] + dur_ns : end;
    }
    *ret_end = end;
    return LAC_OK;
}

/** Write slices from `first` on as one chunk: *count of them, or fewer when their arguments are too
 *  many for one; says how many. */
static enum lac_status write_chunk(struct lac_slice_writer *slices, uint32_t track, uint64_t first,
                                   uint32_t *ret_count)
{
    struct lac_trace_writer *writer = slices->writer;
    const int64_t *start_ns = writer->model->slices.start_ns;
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    int64_t blob = 0;
    int64_t end_ns = 0;
    uint32_t count = *ret_count;
    enum lac_status status =
        lac_chunk_encode(slices->codec, writer->model, first, count, &bytes, &size_bytes);

    while (status == LAC_ERR_LIMIT && count > 1) {
        count /= 2;
        status = lac_chunk_encode(slices->codec, writer->model, first, count, &bytes, &size_bytes);
    }
    if (status == LAC_ERR_LIMIT) {
        return lac_fail(writer->reterr, LAC_ERR_LIMIT, 0, "slice %llu has too many arguments",
                        (unsigned long long)first);
    }
    *ret_count = count;
    if (status == LAC_OK) {
        status = lac_trace_write_blob(writer, bytes, size_bytes, &blob);
    }
    if (status == LAC_OK) {
        status = count_names(slices, first, count, &end_ns);
    }
    if (status == LAC_OK) {
        status = lac_totals_writer_add(slices->totals, first, count);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(slices->insert_chunk, 1, (int64_t)first);
    lac_sql_bind_i64(slices->insert_chunk, 2, track);
    lac_sql_bind_i64(slices->insert_chunk, 3, count);
    lac_sql_bind_i64(slices->insert_chunk, 4, start_ns[first]);
    lac_sql_bind_i64(slices->insert_chunk, 5, start_ns[first + count - 1]);
    lac_sql_bind_i64(slices->insert_chunk, 6, end_ns);
    lac_sql_bind_i64(slices->insert_chunk, 7, blob);
    slices->chunk_count++;
    return lac_sql_step_done(slices->insert_chunk, "trace file", writer->reterr);
}

static enum lac_status write_tile(void *context, const struct lac_tile *tile)
{
    struct lac_slice_writer *slices = context;
    struct lac_trace_writer *writer = slices->writer;
    struct lac_bytes *section = &writer->scratch2;
    int64_t blob = 0;
    enum lac_status status;

    section->size_bytes = 0;
    status = lac_tile_encode(tile, &section->data, &section->size_bytes, &section->capacity_bytes);
    if (status == LAC_OK) {
        status = lac_zstd_pack(section->data, section->size_bytes, 1, &writer->scratch);
    }
    if (status == LAC_OK) {
        status =
            lac_trace_write_blob(writer, writer->scratch.data, writer->scratch.size_bytes, &blob);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(slices->insert_tile, 1,
                     (int64_t)tile->track << 37 | (int64_t)tile->level << 32 | tile->index);
    lac_sql_bind_i64(slices->insert_tile, 2, blob);
    return lac_sql_step_done(slices->insert_tile, "trace file", writer->reterr);
}

static enum lac_status write_track(struct lac_slice_writer *slices, uint32_t index)
{
    const struct lac_model *model = slices->writer->model;
    const struct lac_track *track = &model->tracks[index];
    struct lac_tile_source source;
    enum lac_status status = LAC_OK;

    if (track->kind == LAC_TRACK_COUNTER || track->count == 0) {
        return LAC_OK;
    }
    status = lac_totals_writer_track(slices->totals, track);
    for (uint64_t i = 0; i < track->count && status == LAC_OK;) {
        uint64_t left = track->count - i;
        uint32_t count = left < LAC_CHUNK_SLICES ? (uint32_t)left : LAC_CHUNK_SLICES;

        status = write_chunk(slices, index, track->first + i, &count);
        i += count;
    }
    if (status != LAC_OK || track->count <= LAC_CHUNK_SLICES) { /* any tile: one chunk */
        return status;
    }
    source = (struct lac_tile_source){.first_slice = track->first,
                                      .count = track->count,
                                      .start_ns = model->slices.start_ns + track->first,
                                      .dur_ns = model->slices.dur_ns + track->first,
                                      .name = model->slices.name + track->first,
                                      .lane = model->slices.lane + track->first,
                                      .kind = model->slices.kind + track->first};
    return lac_tile_pyramid(&source, index, LAC_TILE_MIN_SLICES, write_tile, slices);
}

/** Sort the pairs by entry (they are by chunk already). @return where each entry's pairs begin */
static enum lac_status sort_pairs(struct lac_slice_writer *slices, uint64_t **ret_begin,
                                  uint32_t **ret_chunks)
{
    uint64_t *begin = calloc((size_t)slices->entry_count + 1, sizeof(*begin));
    uint32_t *chunks = malloc((size_t)slices->pair_count * sizeof(*chunks) + 1);

    if (begin == NULL || chunks == NULL) {
        free(begin);
        free(chunks);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t e = 0; e < slices->entry_count; e++) {
        begin[e + 1] = begin[e] + slices->entries[e].chunk_count;
        slices->entries[e].chunk_count = 0; /* counts again below */
    }
    for (uint64_t p = 0; p < slices->pair_count; p++) {
        uint32_t e = slices->pairs[p].entry;

        chunks[begin[e] + slices->entries[e].chunk_count++] = slices->pairs[p].chunk;
    }
    *ret_begin = begin;
    *ret_chunks = chunks;
    return LAC_OK;
}

/** Order of the table's key, so that its B-tree is filled from left to right. */
static int by_key(const void *left, const void *right)
{
    const struct stat_entry *a = left;
    const struct stat_entry *b = right;

    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->name < b->name ? -1 : (a->name > b->name ? 1 : 0);
}

enum { STAT_COLUMNS = 8 };

/** Postings of one entry: where its chunks lie, as differences. @return bytes appended in
 * *ret_bytes */
static enum lac_status append_postings(struct lac_bytes *postings, const uint32_t *chunks,
                                       uint32_t count, int64_t *ret_bytes)
{
    size_t before_bytes = postings->size_bytes;
    uint32_t before = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (lac_bytes_append_leb(postings, chunks[i] - before) != LAC_OK) {
            return LAC_ERR_NOMEM;
        }
        before = chunks[i];
    }
    *ret_bytes = (int64_t)(postings->size_bytes - before_bytes);
    return LAC_OK;
}

/** Entries [first, first + count), sorted, as one row. */
static enum lac_status insert_stats(struct lac_slice_writer *slices, sqlite3_stmt *insert,
                                    uint32_t first, uint32_t count, const uint64_t *begin,
                                    const uint32_t *chunks)
{
    struct lac_trace_writer *writer = slices->writer;
    int64_t *storage = malloc(sizeof(*storage) * STAT_COLUMNS * count);
    const int64_t *columns[STAT_COLUMNS];
    struct lac_bytes postings = {0};
    enum lac_status status = storage != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const struct stat_entry *entry = &slices->entries[first + i];
        int64_t *row = storage + i;

        row[0] = entry->kind;
        row[(size_t)count] = entry->name;
        row[(size_t)count * 2] = (int64_t)entry->count;
        row[(size_t)count * 3] = entry->total_ns;
        row[(size_t)count * 4] = entry->min_ns;
        row[(size_t)count * 5] = entry->max_ns;
        row[(size_t)count * 6] = entry->longest;
        status = append_postings(&postings, chunks + begin[entry->next], entry->chunk_count,
                                 &row[(size_t)count * 7]);
    }
    for (size_t c = 0; c < STAT_COLUMNS && status == LAC_OK; c++) {
        columns[c] = storage + c * count;
    }
    writer->scratch2.size_bytes = 0;
    if (status == LAC_OK) {
        status = lac_columns_encode(columns, STAT_COLUMNS, count, &writer->scratch2);
    }
    if (status == LAC_OK) {
        status = lac_zstd_pack(postings.data, postings.size_bytes, 1, &writer->scratch);
    }
    if (status == LAC_OK) {
        lac_sql_bind_i64(insert, 1, first);
        lac_sql_bind_i64(insert, 2, count);
        lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
        lac_sql_bind_i64(insert, 4, (int64_t)postings.size_bytes);
        lac_sql_bind_blob(insert, 5, writer->scratch.data, writer->scratch.size_bytes);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    lac_bytes_done(&postings);
    free(storage);
    return status;
}

static enum lac_status write_name_stats(struct lac_slice_writer *slices)
{
    uint64_t *begin = NULL;
    uint32_t *chunks = NULL;
    sqlite3_stmt *insert = NULL;
    enum lac_status status = sort_pairs(slices, &begin, &chunks);

    if (status == LAC_OK) {
        status = lac_sql_prepare(slices->writer->db, "INSERT INTO name_stat VALUES(?,?,?,?,?)",
                                 &insert, slices->writer->reterr);
    }
    if (status == LAC_OK && slices->entry_count > 0) {
        /* `next` and `last_chunk` are done with: keep where the pairs are before sorting */
        for (uint32_t e = 0; e < slices->entry_count; e++) {
            slices->entries[e].next = e;
        }
        qsort(slices->entries, slices->entry_count, sizeof(*slices->entries), by_key);
    }
    for (uint32_t e = 0; e < slices->entry_count && status == LAC_OK;) {
        uint32_t left = slices->entry_count - e;
        uint32_t count = left < LAC_COLUMN_BLOCK_ROWS ? left : LAC_COLUMN_BLOCK_ROWS;

        status = insert_stats(slices, insert, e, count, begin, chunks);
        e += count;
    }
    (void)sqlite3_finalize(insert);
    free(begin);
    free(chunks);
    return status;
}

/** Make room for names that the model got since. */
static enum lac_status know_names(struct lac_slice_writer *slices)
{
    const uint32_t count = slices->writer->model->strings.count;
    uint32_t *grown = realloc(slices->entry_of_name, (size_t)count * sizeof(*grown) + 1);

    if (grown == NULL) {
        return LAC_ERR_NOMEM;
    }
    slices->entry_of_name = grown;
    for (uint32_t i = slices->name_count; i < count; i++) {
        grown[i] = LAC_NONE;
    }
    slices->name_count = count;
    return LAC_OK;
}

enum lac_status lac_slice_writer_create(struct lac_trace_writer *writer,
                                        struct lac_slice_writer **ret_slices)
{
    struct lac_slice_writer *slices = calloc(1, sizeof(*slices));
    enum lac_status status = LAC_ERR_NOMEM;

    if (slices != NULL) {
        slices->writer = writer;
        status = lac_chunk_codec_create(&slices->codec);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(writer->db, "INSERT INTO chunk VALUES(?,?,?,?,?,?,?)",
                                 &slices->insert_chunk, writer->reterr);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(writer->db, "INSERT INTO tile VALUES(?,?)", &slices->insert_tile,
                                 writer->reterr);
    }
    if (status == LAC_OK) {
        status = lac_totals_writer_create(writer, &slices->totals);
    }
    if (status != LAC_OK) {
        lac_slice_writer_destroy(slices);
        return status;
    }
    *ret_slices = slices;
    return LAC_OK;
}

enum lac_status lac_slice_writer_tracks(struct lac_slice_writer *slices, uint32_t first,
                                        uint32_t end)
{
    enum lac_status status = know_names(slices);

    for (uint32_t t = first; t < end && status == LAC_OK; t++) {
        status = write_track(slices, t);
    }
    return status;
}

enum lac_status lac_slice_writer_names(struct lac_slice_writer *slices)
{
    return write_name_stats(slices);
}

void lac_slice_writer_destroy(struct lac_slice_writer *slices)
{
    if (slices == NULL) {
        return;
    }
    (void)sqlite3_finalize(slices->insert_chunk);
    (void)sqlite3_finalize(slices->insert_tile);
    lac_totals_writer_destroy(slices->totals);
    lac_chunk_codec_destroy(slices->codec);
    free(slices->entry_of_name);
    free(slices->entries);
    free(slices->pairs);
    free(slices);
}
