#ifndef LAC_ANALYSIS_MODEL_TILE_H
#define LAC_ANALYSIS_MODEL_TILE_H

/*
 * Tiles: what a timeline draws of one track at one zoom, bounded by pixels and never by events.
 *
 * Level k has cells of 8^k ns; a tile is 512 cells wide, so tile i of level k covers
 * [i * 512 * 8^k, (i + 1) * 512 * 8^k) ns. The native level of a slice is the k with
 * 8^k <= dur < 8^(k+1) (0 for shorter ones). A tile of level k holds
 *   natives: every slice of native level k that overlaps the tile, exact (a slice on the border is
 *            in both tiles); at most 513 per lane, and on level 0 as many marks of length 0 again.
 *            Of the marks of one lane at the same ns only the first is given. In LAC_LANE_MAX a
 *            slice that overlaps the one before it is left out: it would be drawn over it.
 *   cells:   all slices of native level < k that start in the tile, merged by (lane, cell).
 * A view with p ns a pixel draws cells and natives of level k = floor(log8(p)) (at least 0) and the
 * natives of every coarser level up to lac_tile_level_max(). Everything of a pixel or more is then
 * an exact rectangle, everything below is an aggregate, and nothing is stored twice but borders.
 *
 * Tiles with few slices are not stored: they are built from the columns when asked for.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAC_TILE_CELLS = 512, LAC_TILE_LEVEL_COUNT = 18 /* 8^17 ns = 26 days a cell */ };

struct lac_tile_native {
    uint32_t slice;
    uint32_t name;
    int64_t start_ns;
    int64_t dur_ns;
    uint16_t lane;
    uint8_t kind;
};

struct lac_tile_cell {
    uint16_t cell; /**< 0..511 */
    uint16_t lane;
    uint32_t count;  /**< slices merged here */
    int64_t busy_ns; /**< their durations, summed; at most 8^k; 24 bits exact on the wire */
    uint32_t name;   /**< of the longest one */
    uint32_t slice;  /**< the longest one (the first of equals) */
    uint8_t kind;    /**< of the longest one */
};

/** A tile in memory. Natives ascend by (lane, start), cells by (lane, cell). */
struct lac_tile {
    uint32_t track;
    uint8_t level;
    uint32_t index;
    struct lac_tile_native *natives;
    uint32_t native_count;
    struct lac_tile_cell *cells;
    uint32_t cell_count;
};

/** Free the contents; a zeroed struct is allowed. */
void lac_tile_done(struct lac_tile *tile);

/** 8^level, the cell width in ns. */
int64_t lac_tile_cell_ns(uint8_t level);

/** The native level of a duration. */
uint8_t lac_tile_native_level(int64_t dur_ns);

/** The coarsest level worth asking for: one tile of it covers the trace. */
uint8_t lac_tile_level_max(int64_t duration_ns);

/** The finest level whose tiles all have an index of 32 bits: 0 up to 36 minutes, 1 up to 4.9
 * hours, 2 up to 39 hours, 3 up to 13 days, then 4. Views of longer traces stay at or above it. For
 * tests. */
uint8_t lac_tile_level_min(int64_t duration_ns);

/** The columns of one track's slices, in order; slice ids are first_slice + i. */
struct lac_tile_source {
    uint64_t first_slice;
    uint64_t count;
    const int64_t *start_ns;
    const int64_t *dur_ns;
    const uint32_t *name;
    const uint16_t *lane;
    const uint8_t *kind;
};

/**
 * Build one tile from columns that hold at least every slice which starts in
 * [tile start - 8^(level+1), tile end).
 *
 * @return LAC_OK or LAC_ERR_NOMEM. Cost: O(slices in that interval).
 */
LAC_MUST_USE enum lac_status lac_tile_build(const struct lac_tile_source *source, uint32_t track,
                                            uint8_t level, uint32_t index,
                                            struct lac_tile *ret_tile);

/**
 * Encode as one section of the wire format (server/store/FORMAT.md, "tile section"): appended to
 * `*buffer`, which grows by realloc.
 */
LAC_MUST_USE enum lac_status lac_tile_encode(const struct lac_tile *tile, uint8_t **buffer,
                                             size_t *size_bytes, size_t *capacity_bytes);

/** The inverse, for tests. Untrusted bytes are safe.
 *  @return LAC_OK, LAC_ERR_CORRUPT or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_tile_decode(const uint8_t *bytes, size_t size_bytes,
                                             struct lac_tile *ret_tile, struct lac_error *reterr);

/** Called for each tile of the stored pyramid; `tile` is borrowed for the call. */
typedef enum lac_status (*lac_tile_sink)(void *context, const struct lac_tile *tile);

/**
 * Build every tile of one track that takes more than `min_slices` slices to build, which is those
 * that start in [tile start - 8^(level+1), tile end); also when it turns out empty. All levels up
 * to the last, each tile from the eight below it, in no particular order. A tile that is not among
 * them is therefore cheap for lac_tile_build().
 *
 * @return LAC_OK, LAC_ERR_NOMEM, or what the sink returned first
 * Cost: O(slices of the track) in all.
 */
LAC_MUST_USE enum lac_status lac_tile_pyramid(const struct lac_tile_source *source, uint32_t track,
                                              uint32_t min_slices, lac_tile_sink sink,
                                              void *context);

#endif
