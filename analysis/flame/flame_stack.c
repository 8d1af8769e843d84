#include "analysis/flame/flame_stack.h"

#include "analysis/flame/flame_tree.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>

void lac_flame_stack_init(struct lac_flame_stack *stack, struct lac_flame_tree *tree)
{
    *stack = (struct lac_flame_stack){.tree = tree};
}

void lac_flame_stack_done(struct lac_flame_stack *stack)
{
    free(stack->entries);
    free(stack->path);
    *stack = (struct lac_flame_stack){0};
}

uint32_t lac_flame_stack_enclosing(const struct lac_flame_stack *stack, int64_t end_ns)
{
    uint32_t at = stack->count == 0 ? LAC_NONE : stack->count - 1;
    /* only entries that end earlier lie between an entry and its parent: nothing is missed */
    while (at != LAC_NONE && stack->entries[at].end_ns < end_ns) {
        at = stack->entries[at].parent;
    }
    return at;
}

/* Entries that ended under an open one stay on the stack; a staircase of crossing slices would pile
 * them up. A parent never ends before its children, so a removed entry is nobody's parent. */
static void remove_ended(struct lac_flame_stack *stack, int64_t t_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stack->count; i++) {
        struct lac_flame_entry entry = stack->entries[i];
        stack->path[i] = kept; /* where i went */
        if (entry.end_ns > t_ns) {
            entry.parent = entry.parent == LAC_NONE ? LAC_NONE : stack->path[entry.parent];
            stack->entries[kept++] = entry;
        }
    }
    stack->count = kept;
}

static enum lac_status grow(struct lac_flame_stack *stack)
{
    uint32_t entries = stack->capacity;
    uint32_t path = stack->capacity;
    if (!LAC_RESERVE(stack->entries, entries, stack->capacity, 1) ||
        !LAC_RESERVE(stack->path, path, stack->capacity, 1)) {
        return LAC_ERR_NOMEM;
    }
    stack->capacity = path;
    return LAC_OK;
}

enum lac_status lac_flame_stack_push(struct lac_flame_stack *stack, int64_t start_ns,
                                     int64_t end_ns, uint32_t name, uint8_t kind)
{
    if (stack->count == stack->capacity) {
        remove_ended(stack, start_ns);
        if (stack->count * 2 >= stack->capacity) {
            enum lac_status status = grow(stack);
            if (status != LAC_OK) {
                return status;
            }
        }
    }
    uint32_t parent = lac_flame_stack_enclosing(stack, end_ns);
    stack->entries[stack->count++] = (struct lac_flame_entry){
        .end_ns = end_ns,
        .name = name,
        .parent = parent,
        .frame = LAC_NONE,
        .kind = kind,
    };
    return LAC_OK;
}

enum lac_status lac_flame_stack_frame(struct lac_flame_stack *stack, uint32_t entry, uint32_t base,
                                      uint32_t *ret_frame)
{
    uint32_t depth = 0;
    uint32_t frame = base;
    for (uint32_t at = entry; at != LAC_NONE; at = stack->entries[at].parent) {
        const struct lac_flame_entry *e = &stack->entries[at];
        if (e->frame != LAC_NONE && e->base == base) {
            frame = e->frame;
            break;
        }
        stack->path[depth++] = at;
        if (stack->is_flat) {
            break;
        }
    }
    while (depth > 0) {
        struct lac_flame_entry *e = &stack->entries[stack->path[--depth]];
        enum lac_status status =
            lac_flame_tree_child(stack->tree, frame, e->name, e->kind, &e->frame);
        if (status != LAC_OK) {
            e->frame = LAC_NONE;
            return status;
        }
        e->base = base;
        frame = e->frame;
    }
    *ret_frame = frame;
    return LAC_OK;
}
