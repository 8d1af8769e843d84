/* Tiles as bytes: the tile section of server/store/FORMAT.md. */

#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 32, ALIGNMENT = 8 };

/* The wire is little endian and so are the machines this runs on; a big-endian port swaps here. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are copied as they are");

static uint64_t padded(uint64_t size_bytes)
{
    return (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t section_bytes(uint64_t natives, uint64_t cells)
{
    return HEADER_BYTES + 2 * padded(natives * 8) + 2 * padded(natives * 4) + padded(natives * 2) +
           padded(natives) + 4 * padded(cells * 4) + 2 * padded(cells * 2) + padded(cells);
}

/* Put one column: `expression` in terms of i, as `type`. The buffer was zeroed. */
#define PUT_COLUMN(type, count, expression)                                                        \
    do {                                                                                           \
        for (uint32_t i = 0; i < (count); i++) {                                                   \
            type put_value = (type)(expression);                                                   \
            memcpy(at + i * sizeof(type), &put_value, sizeof(type));                               \
        }                                                                                          \
        at += padded((uint64_t)(count) * sizeof(type));                                            \
    } while (0)

static void put_header(uint8_t *at, const struct lac_tile *tile, uint32_t size_bytes)
{
    uint32_t words[5] = {size_bytes, tile->track, tile->index, tile->native_count,
                         tile->cell_count};

    memcpy(at, words, sizeof(words));
    at[20] = tile->level;
}

enum lac_status lac_tile_encode(const struct lac_tile *tile, uint8_t **buffer, size_t *size_bytes,
                                size_t *capacity_bytes)
{
    assert(tile != NULL && buffer != NULL && size_bytes != NULL);
    assert(capacity_bytes != NULL);
    uint64_t needed = section_bytes(tile->native_count, tile->cell_count);
    uint64_t capacity = *capacity_bytes;
    const struct lac_tile_native *natives = tile->natives;
    const struct lac_tile_cell *cells = tile->cells;
    uint8_t *at;

    if (needed > UINT32_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (LAC_GROW(*buffer, &capacity, *size_bytes + needed) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    *capacity_bytes = capacity;
    at = *buffer + *size_bytes;
    *size_bytes += needed;
    memset(at, 0, needed);
    put_header(at, tile, (uint32_t)needed);
    at += HEADER_BYTES;
    PUT_COLUMN(double, tile->native_count, natives[i].start_ns);
    PUT_COLUMN(double, tile->native_count, natives[i].dur_ns);
    PUT_COLUMN(uint32_t, tile->native_count, natives[i].slice);
    PUT_COLUMN(uint32_t, tile->native_count, natives[i].name);
    PUT_COLUMN(uint16_t, tile->native_count, natives[i].lane);
    PUT_COLUMN(uint8_t, tile->native_count, natives[i].kind);
    PUT_COLUMN(float, tile->cell_count, cells[i].busy_ns);
    PUT_COLUMN(uint32_t, tile->cell_count, cells[i].count);
    PUT_COLUMN(uint32_t, tile->cell_count, cells[i].slice);
    PUT_COLUMN(uint32_t, tile->cell_count, cells[i].name);
    PUT_COLUMN(uint16_t, tile->cell_count, cells[i].cell);
    PUT_COLUMN(uint16_t, tile->cell_count, cells[i].lane);
    PUT_COLUMN(uint8_t, tile->cell_count, cells[i].kind);
    return LAC_OK;
}

/* The inverse of PUT_COLUMN: `target` in terms of i receives value. */
#define GET_COLUMN(type, count, statement)                                                         \
    do {                                                                                           \
        for (uint32_t i = 0; i < (count); i++) {                                                   \
            type value;                                                                            \
            memcpy(&value, at + i * sizeof(type), sizeof(type));                                   \
            statement;                                                                             \
        }                                                                                          \
        at += padded((uint64_t)(count) * sizeof(type));                                            \
    } while (0)

/* A time as double: whole, not negative, below 2^53. -1 when it is none. */
static int64_t whole_ns(double value)
{
    if (!(value >= 0.0) || value > (double)LAC_TIME_MAX_NS) {
        return -1;
    }
    return (double)(int64_t)value == value ? (int64_t)value : -1;
}

static const uint8_t *get_natives(const uint8_t *at, struct lac_tile *tile)
{
    struct lac_tile_native *natives = tile->natives;

    GET_COLUMN(double, tile->native_count, natives[i].start_ns = whole_ns(value));
    GET_COLUMN(double, tile->native_count, natives[i].dur_ns = whole_ns(value));
    GET_COLUMN(uint32_t, tile->native_count, natives[i].slice = value);
    GET_COLUMN(uint32_t, tile->native_count, natives[i].name = value);
    GET_COLUMN(uint16_t, tile->native_count, natives[i].lane = value);
    GET_COLUMN(uint8_t, tile->native_count, natives[i].kind = value);
    return at;
}

static const uint8_t *get_cells(const uint8_t *at, struct lac_tile *tile)
{
    struct lac_tile_cell *cells = tile->cells;

    GET_COLUMN(float, tile->cell_count, cells[i].busy_ns = whole_ns((double)value));
    GET_COLUMN(uint32_t, tile->cell_count, cells[i].count = value);
    GET_COLUMN(uint32_t, tile->cell_count, cells[i].slice = value);
    GET_COLUMN(uint32_t, tile->cell_count, cells[i].name = value);
    GET_COLUMN(uint16_t, tile->cell_count, cells[i].cell = value);
    GET_COLUMN(uint16_t, tile->cell_count, cells[i].lane = value);
    GET_COLUMN(uint8_t, tile->cell_count, cells[i].kind = value);
    return at;
}

static bool natives_are_valid(const struct lac_tile *tile)
{
    for (uint32_t i = 0; i < tile->native_count; i++) {
        const struct lac_tile_native *native = &tile->natives[i];

        if (native->start_ns < 0 || native->dur_ns < 0 ||
            native->dur_ns > LAC_TIME_MAX_NS - native->start_ns ||
            native->kind >= LAC_SLICE_KIND_COUNT_) {
            return false;
        }
        if (i != 0 &&
            (native->lane < native[-1].lane ||
             (native->lane == native[-1].lane && native->start_ns < native[-1].start_ns))) {
            return false;
        }
    }
    return true;
}

static bool cells_are_valid(const struct lac_tile *tile)
{
    for (uint32_t i = 0; i < tile->cell_count; i++) {
        const struct lac_tile_cell *cell = &tile->cells[i];

        if (cell->busy_ns < 0 || cell->busy_ns > lac_tile_cell_ns(tile->level) ||
            cell->count == 0 || cell->cell >= LAC_TILE_CELLS ||
            cell->kind >= LAC_SLICE_KIND_COUNT_) {
            return false;
        }
        if (i != 0 && (cell->lane < cell[-1].lane ||
                       (cell->lane == cell[-1].lane && cell->cell <= cell[-1].cell))) {
            return false;
        }
    }
    return true;
}

enum lac_status lac_tile_decode(const uint8_t *bytes, size_t size_bytes, struct lac_tile *ret_tile,
                                struct lac_error *reterr)
{
    struct lac_tile tile = {0};
    uint32_t words[5];

    if (size_bytes < HEADER_BYTES) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "The tile is shorter than its header.");
    }
    memcpy(words, bytes, sizeof(words));
    tile.track = words[1];
    tile.index = words[2];
    tile.native_count = words[3];
    tile.cell_count = words[4];
    tile.level = bytes[20];
    if (section_bytes(tile.native_count, tile.cell_count) != words[0] || words[0] > size_bytes) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        "The size of the tile does not fit its counts.");
    }
    if (tile.level >= LAC_TILE_LEVEL_COUNT) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 20, "The tile is of the impossible level %d.",
                        tile.level);
    }
    tile.natives = malloc(((size_t)tile.native_count + 1) * sizeof(*tile.natives));
    tile.cells = malloc(((size_t)tile.cell_count + 1) * sizeof(*tile.cells));
    if (tile.natives == NULL || tile.cells == NULL) {
        lac_tile_done(&tile);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "Out of memory while reading a tile.");
    }
    (void)get_cells(get_natives(bytes + HEADER_BYTES, &tile), &tile);
    if (!natives_are_valid(&tile) || !cells_are_valid(&tile)) {
        lac_tile_done(&tile);
        return lac_fail(reterr, LAC_ERR_CORRUPT, HEADER_BYTES,
                        "The columns of the tile are damaged.");
    }
    *ret_tile = tile;
    return LAC_OK;
}
