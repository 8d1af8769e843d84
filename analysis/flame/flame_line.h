#ifndef LAC_ANALYSIS_FLAME_FLAME_LINE_H
#define LAC_ANALYSIS_FLAME_FLAME_LINE_H

/*
 * A flame graph in the order of time: what a walk gave to the frames of a merged tree, kept as
 * pieces, and laid out again without merging frames that something lies between.
 */

#include "analysis/flame/flame_tree.h"

#include <stdint.h>

/** What was given to one frame at one time. */
struct lac_flame_given {
    int64_t start_ns;
    int64_t length_ns;
    uint32_t frame;
    uint32_t number; /**< in the order in which pieces came */
};

/** All zero is an empty one; the caller frees `pieces`. */
struct lac_flame_line {
    struct lac_flame_given *pieces;
    uint32_t count, capacity;
    uint32_t group_first; /**< those before it are in order */
};

/** @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT: LAC_FLAME_PIECES_MAX */
LAC_MUST_USE enum lac_status lac_flame_line_add(struct lac_flame_line *line, uint32_t frame,
                                                int64_t start_ns, int64_t length_ns);

/** What comes from here on lies behind all that came before. NULL is allowed. */
void lac_flame_line_next_group(struct lac_flame_line *line);

/**
 * The graph. Frames below options->prune_fraction of all are summed where they lie; more are, if
 * there would be more than options->node_count_max.
 *
 * @param tree whose frames were given to
 * @return LAC_OK, LAC_ERR_NOMEM. Cost: n log n in the pieces, where they are not in order
 */
LAC_MUST_USE enum lac_status lac_flame_line_finish(struct lac_flame_line *line,
                                                   const struct lac_flame_tree *tree,
                                                   const struct lac_flame_options *options,
                                                   struct lac_flame **ret_flame);

#endif
