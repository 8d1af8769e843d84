#ifndef LAC_ANALYSIS_FLAME_FLAME_TREE_H
#define LAC_ANALYSIS_FLAME_FLAME_TREE_H

/*
 * The tree while it grows: frames found by (parent, name) through one hash table.
 *
 * A frame is made once and identified by its index; parents come before their children, so one pass
 * backwards over the array sums values upwards. Nothing is allocated per slice.
 */

#include "analysis/flame/flame.h"

#include <stdint.h>

/** Frames a growing tree may have. Further frames are not made: their time stays
 *  with the parent. */
enum { LAC_FLAME_GROW_MAX = 1 << 22 };

/** Nodes of a finished graph, where nobody says how many. */
enum { LAC_FLAME_NODE_COUNT_DEFAULT = 20000 };

/** A sum of weights: slices that overlap, as in a damaged trace, and bytes can exceed what fits. */
static inline int64_t lac_flame_plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct lac_flame_frame {
    uint32_t parent;
    uint32_t name;
    uint32_t mark; /**< piece that was counted last here, plus 1 */
    uint8_t kind;
    uint64_t count;
    int64_t self_ns;
    int64_t value_ns; /**< set by lac_flame_tree_finish() */
};

struct lac_flame_tree {
    struct lac_flame_frame *frames; /**< frame 0 is the root */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /**< index + 1, 0 is free; slot_count is a power of two */
    uint32_t slot_count;
    uint64_t seed; /* of the table's hash */
};

/** @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_tree_init(struct lac_flame_tree *tree);
void lac_flame_tree_done(struct lac_flame_tree *tree);

/**
 * The frame `name` under `parent`, made if new; `parent` itself when the tree is full.
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_flame_tree_child(struct lac_flame_tree *tree, uint32_t parent,
                                                  uint32_t name, uint8_t kind, uint32_t *ret_frame);

/** Add the frames of another tree whose names are of the same model. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_tree_merge(struct lac_flame_tree *tree,
                                                  const struct lac_flame_tree *more);

/**
 * Sum upwards, prune, order, and give the finished graph.
 *
 * @param sum_counts whether a frame's count includes those of the frames under it
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_flame_tree_finish(struct lac_flame_tree *tree,
                                                   const struct lac_model *model,
                                                   const struct lac_flame_options *options,
                                                   bool sum_counts, struct lac_flame **ret_flame);

#endif
