/* Tiles: those of the table, and the others built from chunks. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "collector/base/order.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/column.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_HEADER_BYTES = 16,
    SECTION_HEADER_BYTES = 32,
    /* A tile that is not stored has few slices; a file where it has more lacks a tile. */
    BUILD_SLICES_MAX = 1 << 20
};

/** Where a batch is being put together. */
struct batch {
    struct lac_trace_file *file;
    struct lac_error *reterr;
    struct lac_bytes out;
    uint32_t tile_count;
    uint8_t level;
    /* columns of a tile that spans several chunks */
    int64_t *start_ns, *dur_ns;
    uint32_t *name;
    uint16_t *lane;
    uint8_t *kind;
    uint32_t capacity;
};

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void write_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8U * i));
    }
}

/** Row of the tile index, or tile_count. */
static uint32_t find_stored(const struct lac_trace_file *file, uint64_t key)
{
    uint32_t low = 0;

    LAC_BISECT(low, file->tile_count, row, file->tile_keys[row] < key);
    return low < file->tile_count && file->tile_keys[low] == key ? low : file->tile_count;
}

static enum lac_status add_stored(struct batch *batch, uint32_t row, uint32_t track, uint32_t index)
{
    struct lac_trace_file *file = batch->file;
    uint8_t *packed = NULL;
    uint8_t *raw = NULL;
    size_t packed_bytes = 0;
    uint64_t raw_bytes = 0;
    enum lac_status status =
        lac_trace_read_blob(file, file->tile_blobs[row], &packed, &packed_bytes, batch->reterr);

    if (status != LAC_OK) {
        return status;
    }
    status = lac_zstd_size(packed, packed_bytes, &raw_bytes);
    if (status == LAC_OK && raw_bytes > LAC_TILE_BATCH_BYTES_MAX) {
        status = LAC_ERR_CORRUPT;
    }
    if (status == LAC_OK) {
        status = lac_zstd_unpack(packed, packed_bytes, raw_bytes, &raw);
    }
    if (status == LAC_OK &&
        (raw_bytes < SECTION_HEADER_BYTES || read_u32(raw) != raw_bytes ||
         read_u32(raw + 4) != track || read_u32(raw + 8) != index || raw[20] != batch->level)) {
        status = LAC_ERR_CORRUPT;
    }
    if (status == LAC_OK) {
        status = lac_bytes_append(&batch->out, raw, (size_t)raw_bytes);
        batch->tile_count++;
    }
    free(packed);
    free(raw);
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(batch->file, batch->reterr, "a tile")
                                     : status;
}

/** Build from columns and append; nothing when the tile is empty. */
static enum lac_status add_built(struct batch *batch, const struct lac_tile_source *source,
                                 uint32_t track, uint32_t index)
{
    struct lac_tile tile = {0};
    enum lac_status status = lac_tile_build(source, track, batch->level, index, &tile);

    if (status == LAC_OK && tile.native_count + tile.cell_count > 0) {
        status = lac_tile_encode(&tile, &batch->out.data, &batch->out.size_bytes,
                                 &batch->out.capacity_bytes);
        batch->tile_count++;
    }
    lac_tile_done(&tile);
    return status;
}

static enum lac_status need_rows(struct batch *batch, uint32_t rows)
{
    uint32_t capacity = batch->capacity > 0 ? batch->capacity : 4096;

    if (rows <= batch->capacity) {
        return LAC_OK;
    }
    while (capacity < rows) {
        capacity *= 2;
    }
    free(batch->start_ns);
    batch->capacity = 0;
    batch->start_ns = malloc((size_t)capacity * (8 + 8 + 4 + 2 + 1));
    if (batch->start_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    batch->dur_ns = batch->start_ns + capacity;
    batch->name = (uint32_t *)(batch->dur_ns + capacity);
    batch->lane = (uint16_t *)(batch->name + capacity);
    batch->kind = (uint8_t *)(batch->lane + capacity);
    batch->capacity = capacity;
    return LAC_OK;
}

/** Slices of a chunk that start in [low_ns, high_ns): first and count within the chunk. */
static void rows_between(const struct lac_chunk_columns *columns, int64_t low_ns, int64_t high_ns,
                         uint32_t *ret_first, uint32_t *ret_count)
{
    uint32_t count = (uint32_t)columns->at.count;
    uint32_t first = lac_lower_bound_ns(columns->at.start_ns, count, low_ns);

    *ret_first = first;
    *ret_count = lac_lower_bound_ns(columns->at.start_ns, count, high_ns) - first;
}

static enum lac_status build_from_one(struct batch *batch, uint32_t chunk, uint32_t track,
                                      uint32_t index, int64_t low_ns, int64_t high_ns)
{
    struct lac_trace_file *file = batch->file;
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    uint32_t first = 0;
    uint32_t count = 0;
    enum lac_status status =
        lac_trace_chunk(file, chunk, LAC_COLUMNS_TILE, &columns, &pin, batch->reterr);

    if (status != LAC_OK) {
        return status;
    }
    rows_between(columns, low_ns, high_ns, &first, &count);
    if (count > 0) {
        const struct lac_slices *at = &columns->at;
        const struct lac_tile_source source = {.first_slice = file->chunks[chunk].first + first,
                                               .count = count,
                                               .start_ns = at->start_ns + first,
                                               .dur_ns = at->dur_ns + first,
                                               .name = at->name + first,
                                               .lane = at->lane + first,
                                               .kind = at->kind + first};

        status = add_built(batch, &source, track, index);
    }
    lac_cache_unpin(file->cache, pin);
    return status;
}

static enum lac_status build_from_many(struct batch *batch, uint32_t first_chunk,
                                       uint32_t last_chunk, uint32_t track, uint32_t index,
                                       int64_t low_ns, int64_t high_ns)
{
    struct lac_trace_file *file = batch->file;
    struct lac_tile_source source = {0};
    uint32_t used = 0;
    enum lac_status status = need_rows(
        batch, (uint32_t)(file->chunks[last_chunk].first - file->chunks[first_chunk].first) +
                   file->chunks[last_chunk].count);

    for (uint32_t c = first_chunk; c <= last_chunk && status == LAC_OK; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        uint32_t first = 0;
        uint32_t count = 0;

        status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &pin, batch->reterr);
        if (status != LAC_OK) {
            break;
        }
        rows_between(columns, low_ns, high_ns, &first, &count);
        if (used == 0) {
            source.first_slice = file->chunks[c].first + first;
        }
        memcpy(batch->start_ns + used, columns->at.start_ns + first, count * sizeof(int64_t));
        memcpy(batch->dur_ns + used, columns->at.dur_ns + first, count * sizeof(int64_t));
        memcpy(batch->name + used, columns->at.name + first, count * sizeof(uint32_t));
        memcpy(batch->lane + used, columns->at.lane + first, count * sizeof(uint16_t));
        memcpy(batch->kind + used, columns->at.kind + first, count);
        used += count;
        lac_cache_unpin(file->cache, pin);
    }
    if (status != LAC_OK || used == 0) {
        return status;
    }
    source.count = used;
    source.start_ns = batch->start_ns;
    source.dur_ns = batch->dur_ns;
    source.name = batch->name;
    source.lane = batch->lane;
    source.kind = batch->kind;
    return add_built(batch, &source, track, index);
}

/** First chunk of a track with start_last >= t_ns. */
static uint32_t chunk_from(const struct lac_trace_file *file, uint32_t track, int64_t t_ns)
{
    uint32_t low = file->track_chunk[track];

    LAC_BISECT(low, file->track_chunk[track + 1], chunk, file->chunks[chunk].start_last < t_ns);
    return low;
}

static enum lac_status add_tile(struct batch *batch, uint32_t track, uint32_t index)
{
    struct lac_trace_file *file = batch->file;
    uint32_t row = find_stored(file, (uint64_t)track << 37 | (uint64_t)batch->level << 32 | index);
    int64_t cell_ns = lac_tile_cell_ns(batch->level);
    int64_t low_ns;
    int64_t high_ns;
    uint32_t first;
    uint32_t last;

    if (row < file->tile_count) {
        return add_stored(batch, row, track, index);
    }
    if (index > LAC_TIME_MAX_NS / LAC_TILE_CELLS / cell_ns) {
        return LAC_OK; /* after the end of time */
    }
    low_ns = (int64_t)index * LAC_TILE_CELLS * cell_ns;
    high_ns = low_ns + LAC_TILE_CELLS * cell_ns;
    low_ns -= 8 * cell_ns; /* natives that start before the tile and reach into it */
    first = chunk_from(file, track, low_ns);
    last = first;
    while (last + 1 < file->track_chunk[track + 1] &&
           file->chunks[last + 1].start_first < high_ns) {
        last++;
    }
    if (first == file->track_chunk[track + 1] || file->chunks[first].start_first >= high_ns) {
        return LAC_OK;
    }
    if (first == last) {
        return build_from_one(batch, first, track, index, low_ns, high_ns);
    }
    if (file->chunks[last].first - file->chunks[first].first > BUILD_SLICES_MAX) {
        return lac_trace_corrupt(batch->file, batch->reterr, "a tile is missing");
    }
    return build_from_many(batch, first, last, track, index, low_ns, high_ns);
}

static enum lac_status check_request(const struct lac_trace_file *file, uint8_t level,
                                     uint32_t first, uint32_t last, uint32_t track_count,
                                     struct lac_error *reterr)
{
    if (last < first || level >= LAC_TILE_LEVEL_COUNT || level > file->level_max) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "no such tiles: levels go from 0 to %d",
                        file->level_max);
    }
    if (last - first >= LAC_TILES_MAX || track_count > LAC_TILE_TRACKS_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "at most %d tiles of %d tracks in a request",
                        LAC_TILES_MAX, LAC_TILE_TRACKS_MAX);
    }
    return LAC_OK;
}

/* NOLINTNEXTLINE(readability-function-size): a batch is a level, two indexes and some tracks */
enum lac_status lac_trace_file_tiles(struct lac_trace_file *file, uint8_t level, uint32_t first,
                                     uint32_t last, const uint32_t *tracks, uint32_t track_count,
                                     uint8_t **ret_bytes, size_t *ret_size_bytes,
                                     struct lac_error *reterr)
{
    assert(file != NULL && ret_bytes != NULL && ret_size_bytes != NULL);
    assert(tracks != NULL || track_count == 0);
    static const uint8_t header[BATCH_HEADER_BYTES] = {'L', 'T', 'B', '1', 1};
    struct batch batch = {.file = file, .reterr = reterr, .level = level};
    enum lac_status status = check_request(file, level, first, last, track_count, reterr);

    if (status == LAC_OK) {
        status = lac_bytes_append(&batch.out, header, sizeof(header));
    }
    for (uint32_t t = 0; t < track_count && status == LAC_OK; t++) {
        uint32_t track = tracks[t];

        if (track >= file->head.track_count || file->head.tracks[track].kind == LAC_TRACK_COUNTER) {
            continue;
        }
        for (uint32_t i = 0; i <= last - first && status == LAC_OK; i++) {
            status = add_tile(&batch, track, first + i);
            if (status == LAC_OK && batch.out.size_bytes > LAC_TILE_BATCH_BYTES_MAX) {
                status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                                  "more than %d MiB of tiles: ask for fewer tiles or tracks",
                                  (int)(LAC_TILE_BATCH_BYTES_MAX >> 20));
            }
        }
    }
    free(batch.start_ns);
    if (status != LAC_OK) {
        lac_bytes_done(&batch.out);
        return status;
    }
    batch.out.data[6] = level;
    write_u32(batch.out.data + 8, batch.tile_count);
    *ret_bytes = batch.out.data;
    *ret_size_bytes = batch.out.size_bytes;
    return LAC_OK;
}

/* Of the time of a row, in percent: what a frame that is always open has, and what of a lane
 * between such frames does not matter. */
enum { OUTER_LANES_MIN = 4, OUTER_PCT = 90, BETWEEN_PCT = 2 };

/** What a lane holds. */
struct lane_sum {
    int64_t busy_ns;
    int64_t longest_ns;
};

static uint32_t count_outer(const struct lac_tile *tile, struct lane_sum *lanes,
                            uint32_t lane_count)
{
    const int64_t cell_ns = lac_tile_cell_ns(tile->level);
    int64_t begin_ns = INT64_MAX;
    int64_t end_ns = 0;
    uint32_t outer = 0;

    for (uint32_t i = 0; i < tile->native_count; i++) {
        const struct lac_tile_native *native = &tile->natives[i];
        const int64_t native_end_ns = native->start_ns + native->dur_ns;

        begin_ns = native->start_ns < begin_ns ? native->start_ns : begin_ns;
        end_ns = native_end_ns > end_ns ? native_end_ns : end_ns;
        if (native->lane < lane_count) {
            struct lane_sum *lane = &lanes[native->lane];

            lane->busy_ns += native->dur_ns;
            lane->longest_ns =
                native->dur_ns > lane->longest_ns ? native->dur_ns : lane->longest_ns;
        }
    }
    for (uint32_t i = 0; i < tile->cell_count; i++) {
        const int64_t at_ns =
            ((int64_t)tile->index * LAC_TILE_CELLS + tile->cells[i].cell) * cell_ns;

        begin_ns = at_ns < begin_ns ? at_ns : begin_ns;
        end_ns = at_ns + 1 > end_ns ? at_ns + 1 : end_ns;
        if (tile->cells[i].lane < lane_count) {
            lanes[tile->cells[i].lane].busy_ns += tile->cells[i].busy_ns;
        }
    }
    for (uint32_t l = 0; l + 1 < lane_count && end_ns > begin_ns; l++) {
        /* without one to be seen nothing is known to be open: cells say only when they begin */
        if (lanes[l].longest_ns > 0 &&
            lanes[l].longest_ns >= (end_ns - begin_ns) / 100 * OUTER_PCT) {
            outer = l + 1;
        } else if (lanes[l].busy_ns > (end_ns - begin_ns) / 100 * BETWEEN_PCT) {
            break;
        }
    }
    return outer >= OUTER_LANES_MIN ? outer : 0;
}

uint32_t lac_trace_file_outer_lanes(struct lac_trace_file *file, uint32_t track)
{
    const struct lac_track *of = &file->head.tracks[track];
    struct lac_error error = {0};
    struct lac_tile tile = {0};
    struct lane_sum *lanes = NULL;
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    uint32_t outer = 0;

    if ((of->kind != LAC_TRACK_THREAD && of->kind != LAC_TRACK_STACKS) ||
        of->lane_count <= OUTER_LANES_MIN ||
        lac_trace_file_tiles(file, file->level_max, 0, 0, &track, 1, &bytes, &size_bytes, &error) !=
            LAC_OK) {
        return 0;
    }
    lanes = calloc(of->lane_count, sizeof(*lanes));
    if (lanes != NULL && size_bytes > BATCH_HEADER_BYTES &&
        lac_tile_decode(bytes + BATCH_HEADER_BYTES, size_bytes - BATCH_HEADER_BYTES, &tile,
                        &error) == LAC_OK) {
        outer = count_outer(&tile, lanes, of->lane_count);
    }
    lac_tile_done(&tile);
    free(lanes);
    free(bytes);
    return outer;
}
