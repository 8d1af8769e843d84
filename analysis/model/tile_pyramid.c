/*
 * The stored tiles of a track, from its columns in one go.
 *
 * A tile is made of its eight children of the level below, in order of time: their cells, eight to
 * one, and their natives, which are short at this level. Children with few slices are not built:
 * their slices go in directly. So a slice is touched about once per level on which it is neither
 * merged nor in a small tile.
 */

#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "analysis/model/tile_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

enum { CHILDREN = 8 };

struct pyramid {
    const struct lac_tile_source *source;
    uint32_t track;
    uint32_t min_slices;
    lac_tile_sink sink;
    void *context;
    struct lac_tile_scratch scratch;
    struct lac_tile_indices natives; /* of the tile that is being emitted */
};

/* A tile being built from its children. */
struct node {
    uint8_t level;
    uint32_t index;
    int64_t start_ns;
    struct lac_tile_items items;      /* slices of finer native levels that start here, by cell */
    struct lac_tile_indices unmerged; /* slices of this native level and coarser that start here */
};

static void node_done(struct node *node)
{
    free(node->items.at);
    free(node->unmerged.at);
}

static enum lac_status add_slice(const struct pyramid *pyramid, struct node *node, uint32_t index)
{
    if (lac_tile_native_level(pyramid->source->dur_ns[index]) < node->level) {
        struct lac_tile_item item =
            lac_tile_item_of(pyramid->source, index, node->level, node->start_ns);

        return lac_tile_add_item(&node->items, &item);
    }
    return lac_tile_add_index(&node->unmerged, index);
}

/* Take over the contents of a child; eight of its cells make one of ours. */
static enum lac_status add_child(const struct pyramid *pyramid, struct node *node,
                                 const struct node *child)
{
    uint32_t first_cell = child->index % CHILDREN * (LAC_TILE_CELLS / CHILDREN);
    enum lac_status status = LAC_OK;

    for (uint64_t i = 0; i < child->items.count && status == LAC_OK; i++) {
        struct lac_tile_item item = child->items.at[i];
        uint32_t cell = first_cell + (item.key & (LAC_TILE_CELLS - 1)) / CHILDREN;

        item.key = (item.key & ~(uint32_t)(LAC_TILE_CELLS - 1)) | cell;
        status = lac_tile_add_item(&node->items, &item);
    }
    for (uint64_t i = 0; i < child->unmerged.count && status == LAC_OK; i++) {
        status = add_slice(pyramid, node, child->unmerged.at[i]);
    }
    return status;
}

static enum lac_status emit(struct pyramid *pyramid, const struct node *node, uint64_t reach,
                            uint64_t first)
{
    const struct lac_tile_source *source = pyramid->source;
    struct lac_tile tile = {.track = pyramid->track, .level = node->level, .index = node->index};
    enum lac_status status = LAC_OK;

    pyramid->natives.count = 0;
    for (uint64_t i = reach; i < first && status == LAC_OK; i++) { /* that reach in from before */
        if (lac_tile_native_level(source->dur_ns[i]) == node->level &&
            source->start_ns[i] + source->dur_ns[i] > node->start_ns) {
            status = lac_tile_add_index(&pyramid->natives, (uint32_t)i);
        }
    }
    for (uint64_t i = 0; i < node->unmerged.count && status == LAC_OK; i++) {
        uint32_t index = node->unmerged.at[i];

        if (lac_tile_native_level(source->dur_ns[index]) == node->level) {
            status = lac_tile_add_index(&pyramid->natives, index);
        }
    }
    if (status == LAC_OK) {
        status = lac_tile_fill(source, &pyramid->scratch, &node->items, &pyramid->natives, &tile);
    }
    return status == LAC_OK ? pyramid->sink(pyramid->context, &tile) : status;
}

/* Late in long traces the tiles of fine levels have no index: see lac_tile_level_min(). */
static bool has_children(const struct node *node)
{
    return node->level > 0 && node->index <= UINT32_MAX / CHILDREN;
}

/*
 * Build the tile over the slices [first, end), which start in it, and emit it and all below.
 * `*ret_built` is false when it has too few slices; then nothing below has enough either, because
 * what a tile needs lies within what its parent needs.
 *
 * Recursion: at most LAC_TILE_LEVEL_COUNT deep.
 */
static enum lac_status build_node(struct pyramid *pyramid, uint64_t first, uint64_t end,
                                  struct node *node, bool *ret_built)
{
    int64_t cell_ns = lac_tile_cell_ns(node->level);
    uint64_t reach =
        lac_tile_lower_bound(pyramid->source, 0, first, node->start_ns - CHILDREN * cell_ns);
    enum lac_status status = LAC_OK;
    uint64_t next = first;

    *ret_built = end - reach > pyramid->min_slices;
    if (!*ret_built) {
        return LAC_OK;
    }
    for (uint32_t c = 0; c < CHILDREN && status == LAC_OK && has_children(node); c++) {
        struct node child = {.level = (uint8_t)(node->level - 1),
                             .index = node->index * CHILDREN + c,
                             .start_ns = node->start_ns + LAC_TILE_CELLS / CHILDREN * cell_ns * c};
        uint64_t child_end = lac_tile_lower_bound(
            pyramid->source, next, end, child.start_ns + LAC_TILE_CELLS / CHILDREN * cell_ns);
        bool built = false;

        status = build_node(pyramid, next, child_end, &child, &built);
        if (status == LAC_OK && built) {
            status = add_child(pyramid, node, &child);
            next = child_end;
        }
        node_done(&child);
        for (; next < child_end && status == LAC_OK; next++) {
            status = add_slice(pyramid, node, (uint32_t)next);
        }
    }
    for (; next < end && status == LAC_OK; next++) { /* all, when there are no children */
        status = add_slice(pyramid, node, (uint32_t)next);
    }
    if (status == LAC_OK) {
        status = lac_tile_merge_items(pyramid->source, &pyramid->scratch, &node->items);
    }
    return status == LAC_OK ? emit(pyramid, node, reach, first) : status;
}

enum lac_status lac_tile_pyramid(const struct lac_tile_source *source, uint32_t track,
                                 uint32_t min_slices, lac_tile_sink sink, void *context)
{
    assert(source != NULL);
    assert(sink != NULL);
    struct pyramid pyramid = {.source = source,
                              .track = track,
                              .min_slices = min_slices,
                              .sink = sink,
                              .context = context};
    struct node root = {.level = LAC_TILE_LEVEL_COUNT - 1};
    bool built = false;
    const enum lac_status status = build_node(&pyramid, 0, source->count, &root, &built);

    node_done(&root);
    free(pyramid.natives.at);
    lac_tile_scratch_done(&pyramid.scratch);
    return status;
}
