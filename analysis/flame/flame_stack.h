#ifndef LAC_ANALYSIS_FLAME_FLAME_STACK_H
#define LAC_ANALYSIS_FLAME_FLAME_STACK_H

/*
 * The open slices of a host thread while its slices are visited in order of start.
 *
 * The parent of a slice is the innermost open slice that ends no earlier (slices of a damaged or
 * foreign trace may cross). Frames of the tree are made only when requested, and kept in the entry,
 * so a slice under which nothing happened costs a push and a pop.
 */

#include "analysis/flame/flame_tree.h"

#include <stdbool.h>

struct lac_flame_entry {
    int64_t end_ns;
    uint32_t name;
    uint32_t parent; /**< entry below it, LAC_NONE: none */
    uint32_t base;   /**< frame that `frame` was made under */
    uint32_t frame;  /**< LAC_NONE: not requested yet */
    uint8_t kind;
};

struct lac_flame_stack {
    struct lac_flame_tree *tree; /**< borrowed */
    struct lac_flame_entry *entries;
    uint32_t *path; /**< scratch, as many as entries */
    uint32_t count;
    uint32_t capacity;
    bool is_flat; /**< frames have no parents but the base */
};

/** Prepare an empty stack; nothing is allocated yet. */
void lac_flame_stack_init(struct lac_flame_stack *stack, struct lac_flame_tree *tree);
void lac_flame_stack_done(struct lac_flame_stack *stack);

/** Innermost entry that encloses a slice with that end, LAC_NONE: none. Entries that ended by
 *  start_ns at the top must have been popped. */
uint32_t lac_flame_stack_enclosing(const struct lac_flame_stack *stack, int64_t end_ns);

/** Drop the entries at the top that have ended by t_ns. */
static inline void lac_flame_stack_pop(struct lac_flame_stack *stack, int64_t t_ns)
{
    while (stack->count > 0 && stack->entries[stack->count - 1].end_ns <= t_ns) {
        stack->count--;
    }
}

/** Put a slice on top. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_stack_push(struct lac_flame_stack *stack, int64_t start_ns,
                                                  int64_t end_ns, uint32_t name, uint8_t kind);

/** The frame of `entry` (LAC_NONE: `base` itself) and those around it under the frame `base`.
 *  @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_flame_stack_frame(struct lac_flame_stack *stack, uint32_t entry,
                                                   uint32_t base, uint32_t *ret_frame);

#endif
