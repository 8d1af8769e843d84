#ifndef LAC_ANALYSIS_MODEL_TILE_PRIVATE_H
#define LAC_ANALYSIS_MODEL_TILE_PRIVATE_H

/* What building one tile and building the pyramid share. Private to analysis/model. */

#include "analysis/model/grow.h"
#include "analysis/model/tile.h"

/** A slice or several of them, on the way into a cell. */
struct lac_tile_item {
    uint32_t key; /**< lane << 9 | cell */
    uint32_t count;
    uint32_t longest; /**< index into the source, of the first of equals */
    int64_t busy_ns;  /**< not yet cut off at the cell's width; saturates */
};

struct lac_tile_items {
    struct lac_tile_item *at;
    uint64_t count;
    uint64_t capacity;
};

/** Indices into the source, ascending. */
struct lac_tile_indices {
    uint32_t *at;
    uint64_t count;
    uint64_t capacity;
};

/** Memory that is used from tile to tile. Zeroed is empty. */
struct lac_tile_scratch {
    uint32_t *bucket; /**< for counting sorts */
    uint64_t bucket_capacity;
    struct lac_tile_items sorted;
    struct lac_tile_indices order;
    struct lac_tile_native *natives;
    uint64_t native_capacity;
    struct lac_tile_cell *cells;
    uint64_t cell_capacity;
};

void lac_tile_scratch_done(struct lac_tile_scratch *scratch);

LAC_MUST_USE enum lac_status lac_tile_add_item(struct lac_tile_items *items,
                                               const struct lac_tile_item *item);
LAC_MUST_USE enum lac_status lac_tile_add_index(struct lac_tile_indices *indices, uint32_t index);

/** The item of one slice in the tile whose cells are 8^level ns and begin at `start_ns`. */
struct lac_tile_item lac_tile_item_of(const struct lac_tile_source *source, uint32_t index,
                                      uint8_t level, int64_t tile_start_ns);

/** Sort by key and merge what has the same one. */
LAC_MUST_USE enum lac_status lac_tile_merge_items(const struct lac_tile_source *source,
                                                  struct lac_tile_scratch *scratch,
                                                  struct lac_tile_items *items);

/** Fill a tile whose arrays belong to the scratch from merged items and the indices
 *  of its natives. */
LAC_MUST_USE enum lac_status lac_tile_fill(const struct lac_tile_source *source,
                                           struct lac_tile_scratch *scratch,
                                           const struct lac_tile_items *items,
                                           const struct lac_tile_indices *natives,
                                           struct lac_tile *tile);

/** First index at or after `from` whose slice starts at or after `t_ns`. */
uint64_t lac_tile_lower_bound(const struct lac_tile_source *source, uint64_t from, uint64_t to,
                              int64_t t_ns);

static inline int64_t lac_tile_start_ns(uint8_t level, uint32_t index)
{
    uint64_t start = (uint64_t)index << (3 * level + 9); /* 512 = 2^9 */

    /* beyond every slice: where exactly does not matter */
    return start >> (3 * level + 9) != index || start > INT64_MAX / 2 ? INT64_MAX / 2
                                                                      : (int64_t)start;
}

#endif
