#include "analysis/model/tile.h"

#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile_private.h"
#include "collector/base/order.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_tile_done(struct lac_tile *tile)
{
    free(tile->natives);
    free(tile->cells);
    *tile = (struct lac_tile){0};
}

int64_t lac_tile_cell_ns(uint8_t level)
{
    assert(level < LAC_TILE_LEVEL_COUNT);
    return (int64_t)1 << (3 * level);
}

uint8_t lac_tile_native_level(int64_t dur_ns)
{
    return (uint8_t)(dur_ns < 8 ? 0 : (63 - __builtin_clzll((unsigned long long)dur_ns)) / 3);
}

uint8_t lac_tile_level_max(int64_t duration_ns)
{
    /* No slice is longer than the trace, so none is native to a coarser level; and 512 cells of
     * this one are more than 8, which is where the trace ends. */
    return lac_tile_native_level(duration_ns);
}

uint8_t lac_tile_level_min(int64_t duration_ns)
{
    uint8_t level = 0;

    while (duration_ns / LAC_TILE_CELLS / lac_tile_cell_ns(level) > (int64_t)UINT32_MAX) {
        level++;
    }
    return level;
}

void lac_tile_scratch_done(struct lac_tile_scratch *scratch)
{
    free(scratch->bucket);
    free(scratch->sorted.at);
    free(scratch->order.at);
    free(scratch->natives);
    free(scratch->cells);
    *scratch = (struct lac_tile_scratch){0};
}

enum lac_status lac_tile_add_item(struct lac_tile_items *items, const struct lac_tile_item *item)
{
    if (LAC_GROW(items->at, &items->capacity, items->count + 1) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    items->at[items->count++] = *item;
    return LAC_OK;
}

enum lac_status lac_tile_add_index(struct lac_tile_indices *indices, uint32_t index)
{
    if (LAC_GROW(indices->at, &indices->capacity, indices->count + 1) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    indices->at[indices->count++] = index;
    return LAC_OK;
}

struct lac_tile_item lac_tile_item_of(const struct lac_tile_source *source, uint32_t index,
                                      uint8_t level, int64_t tile_start_ns)
{
    uint32_t cell = (uint32_t)((source->start_ns[index] - tile_start_ns) >> (3 * level));

    return (struct lac_tile_item){
        .key = (uint32_t)source->lane[index] << 9 | cell,
        .count = 1,
        .longest = index,
        .busy_ns = source->dur_ns[index],
    };
}

uint64_t lac_tile_lower_bound(const struct lac_tile_source *source, uint64_t from, uint64_t to,
                              int64_t t_ns)
{
    LAC_BISECT(from, to, middle, source->start_ns[middle] < t_ns);
    return from;
}

static uint32_t digit(uint32_t key, bool lanes)
{
    return lanes ? key >> 9 : key & (LAC_TILE_CELLS - 1);
}

/* Empty buckets for 0 to `largest`. */
static enum lac_status clear_buckets(struct lac_tile_scratch *scratch, uint32_t largest)
{
    const uint64_t count = (uint64_t)largest + 1;

    if (LAC_GROW(scratch->bucket, &scratch->bucket_capacity, count) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    memset(scratch->bucket, 0, count * sizeof(*scratch->bucket));
    return LAC_OK;
}

/* One stable pass of a counting sort, by cell or by lane. */
static enum lac_status sort_pass(struct lac_tile_scratch *scratch, const struct lac_tile_item *from,
                                 struct lac_tile_item *to, uint64_t count, bool lanes)
{
    uint32_t *bucket;
    uint32_t largest = 0;
    uint32_t sum = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t d = digit(from[i].key, lanes);

        largest = d > largest ? d : largest;
    }
    if (clear_buckets(scratch, largest) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    bucket = scratch->bucket;
    for (uint64_t i = 0; i < count; i++) {
        bucket[digit(from[i].key, lanes)]++;
    }
    for (uint32_t d = 0; d <= largest; d++) {
        uint32_t here = bucket[d];

        bucket[d] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < count; i++) {
        to[bucket[digit(from[i].key, lanes)]++] = from[i];
    }
    return LAC_OK;
}

/* Neither order nor grouping matters to the result: the pyramid merges in another order. */
static void merge_into(const struct lac_tile_source *source, struct lac_tile_item *into,
                       const struct lac_tile_item *item)
{
    int64_t longest_ns = source->dur_ns[into->longest];
    int64_t other_ns = source->dur_ns[item->longest];

    into->count += item->count;
    if (__builtin_add_overflow(into->busy_ns, item->busy_ns, &into->busy_ns)) {
        into->busy_ns = INT64_MAX;
    }
    if (other_ns > longest_ns || (other_ns == longest_ns && item->longest < into->longest)) {
        into->longest = item->longest;
    }
}

enum lac_status lac_tile_merge_items(const struct lac_tile_source *source,
                                     struct lac_tile_scratch *scratch, struct lac_tile_items *items)
{
    uint64_t out = 0;

    if (LAC_GROW(scratch->sorted.at, &scratch->sorted.capacity, items->count) != LAC_OK ||
        sort_pass(scratch, items->at, scratch->sorted.at, items->count, false) != LAC_OK ||
        sort_pass(scratch, scratch->sorted.at, items->at, items->count, true) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < items->count; i++) {
        if (out != 0 && items->at[out - 1].key == items->at[i].key) {
            merge_into(source, &items->at[out - 1], &items->at[i]);
        } else {
            items->at[out++] = items->at[i];
        }
    }
    items->count = out;
    return LAC_OK;
}

/* Natives by lane, each lane's in order. */
static enum lac_status sort_natives(const struct lac_tile_source *source,
                                    struct lac_tile_scratch *scratch,
                                    const struct lac_tile_indices *natives)
{
    uint32_t *bucket;
    uint32_t largest = 0;
    uint32_t sum = 0;

    if (LAC_GROW(scratch->order.at, &scratch->order.capacity, natives->count) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < natives->count; i++) {
        uint32_t lane = source->lane[natives->at[i]];

        largest = lane > largest ? lane : largest;
    }
    if (clear_buckets(scratch, largest) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    bucket = scratch->bucket;
    for (uint64_t i = 0; i < natives->count; i++) {
        bucket[source->lane[natives->at[i]]]++;
    }
    for (uint32_t lane = 0; lane <= largest; lane++) {
        uint32_t here = bucket[lane];

        bucket[lane] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < natives->count; i++) {
        scratch->order.at[bucket[source->lane[natives->at[i]]]++] = natives->at[i];
    }
    return LAC_OK;
}

/* Slices that would be drawn over the one before are left out: marks of one lane at the same ns,
 * and overlapping slices in LAC_LANE_MAX. */
static bool is_hidden(const struct lac_tile_native *before, const struct lac_tile_native *native)
{
    if (before->lane != native->lane) {
        return false;
    }
    return (native->dur_ns == 0 && before->dur_ns == 0 && native->start_ns == before->start_ns) ||
           (native->lane == LAC_LANE_MAX && native->start_ns < before->start_ns + before->dur_ns);
}

enum lac_status lac_tile_fill(const struct lac_tile_source *source,
                              struct lac_tile_scratch *scratch, const struct lac_tile_items *items,
                              const struct lac_tile_indices *natives, struct lac_tile *tile)
{
    int64_t cell_ns = lac_tile_cell_ns(tile->level);

    if (LAC_GROW(scratch->natives, &scratch->native_capacity, natives->count) != LAC_OK ||
        LAC_GROW(scratch->cells, &scratch->cell_capacity, items->count) != LAC_OK ||
        sort_natives(source, scratch, natives) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    tile->natives = scratch->natives;
    tile->cells = scratch->cells;
    tile->native_count = 0;
    tile->cell_count = (uint32_t)items->count;
    for (uint64_t i = 0; i < natives->count; i++) {
        uint32_t index = scratch->order.at[i];
        struct lac_tile_native *native = &tile->natives[tile->native_count];

        *native = (struct lac_tile_native){
            .slice = (uint32_t)(source->first_slice + index),
            .name = source->name[index],
            .start_ns = source->start_ns[index],
            .dur_ns = source->dur_ns[index],
            .lane = source->lane[index],
            .kind = source->kind[index],
        };
        tile->native_count += tile->native_count == 0 || !is_hidden(native - 1, native);
    }
    for (uint64_t i = 0; i < items->count; i++) {
        const struct lac_tile_item *item = &items->at[i];

        tile->cells[i] = (struct lac_tile_cell){
            .cell = (uint16_t)(item->key & (LAC_TILE_CELLS - 1)),
            .lane = (uint16_t)(item->key >> 9),
            .count = item->count,
            .busy_ns = item->busy_ns < cell_ns ? item->busy_ns : cell_ns,
            .name = source->name[item->longest],
            .slice = (uint32_t)(source->first_slice + item->longest),
            .kind = source->kind[item->longest],
        };
    }
    return LAC_OK;
}

/* Sort the slices that start in [from - 8 cells, end) into natives and items. */
static enum lac_status deal(const struct lac_tile_source *source, uint8_t level, uint32_t index,
                            struct lac_tile_indices *natives, struct lac_tile_items *items)
{
    int64_t cell_ns = lac_tile_cell_ns(level);
    int64_t start_ns = lac_tile_start_ns(level, index);
    uint64_t first = lac_tile_lower_bound(source, 0, source->count, start_ns - 8 * cell_ns);
    uint64_t end =
        lac_tile_lower_bound(source, first, source->count, start_ns + LAC_TILE_CELLS * cell_ns);
    enum lac_status status = LAC_OK;

    for (uint64_t i = first; i < end && status == LAC_OK; i++) {
        uint8_t native_level = lac_tile_native_level(source->dur_ns[i]);
        bool starts_here = source->start_ns[i] >= start_ns;

        if (native_level == level &&
            (starts_here || source->start_ns[i] + source->dur_ns[i] > start_ns)) {
            status = lac_tile_add_index(natives, (uint32_t)i);
        } else if (native_level < level && starts_here) {
            struct lac_tile_item item = lac_tile_item_of(source, (uint32_t)i, level, start_ns);

            status = lac_tile_add_item(items, &item);
        }
    }
    return status;
}

enum lac_status lac_tile_build(const struct lac_tile_source *source, uint32_t track, uint8_t level,
                               uint32_t index, struct lac_tile *ret_tile)
{
    assert(source != NULL && ret_tile != NULL);
    struct lac_tile tile = {.track = track, .level = level, .index = index};
    struct lac_tile_scratch scratch = {0};
    struct lac_tile_indices natives = {0};
    struct lac_tile_items items = {0};
    enum lac_status status;

    assert(level < LAC_TILE_LEVEL_COUNT);
    status = deal(source, level, index, &natives, &items);
    if (status == LAC_OK) {
        status = lac_tile_merge_items(source, &scratch, &items);
    }
    if (status == LAC_OK) {
        status = lac_tile_fill(source, &scratch, &items, &natives, &tile);
    }
    if (status == LAC_OK) {
        scratch.natives = NULL; /* now the caller's */
        scratch.cells = NULL;
        *ret_tile = tile;
    }
    free(natives.at);
    free(items.at);
    lac_tile_scratch_done(&scratch);
    return status;
}
