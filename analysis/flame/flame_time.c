#include "analysis/flame/flame_time.h"

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_stack.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

struct hand {
    struct lac_flame_walk *walk;
    struct lac_flame_stack stack;
    const struct lac_flame_pieces *pieces;
    uint64_t piece; /* the first that ends after now */
    int64_t now_ns; /* all before it has been assigned */
    bool count_slices;
};

/* A piece counts once on a frame and on those around it up to its base. Frames around a marked one
 * are marked already. */
static void count_piece(struct hand *hand, uint32_t frame)
{
    struct lac_flame_frame *frames = hand->walk->tree->frames;
    uint32_t mark = hand->pieces->at[hand->piece].id + 1;
    while (frame != 0 && frames[frame].mark != mark) {
        frames[frame].mark = mark;
        frames[frame].count++;
        frame = frames[frame].parent;
    }
}

/* Assign [now, t) to the slice on top of the stack. */
static enum lac_status give(struct hand *hand, int64_t t_ns)
{
    const struct lac_flame_pieces *pieces = hand->pieces;
    uint32_t top = hand->stack.count == 0 ? LAC_NONE : hand->stack.count - 1;
    while (hand->now_ns < t_ns && hand->piece < pieces->count) {
        const struct lac_flame_piece *piece = &pieces->at[hand->piece];
        int64_t from = piece->start_ns > hand->now_ns ? piece->start_ns : hand->now_ns;
        int64_t to = piece->end_ns < t_ns ? piece->end_ns : t_ns;
        if (to > from && (top != LAC_NONE || pieces->keep_outside)) {
            uint32_t frame;
            enum lac_status status = lac_flame_stack_frame(&hand->stack, top, piece->base, &frame);
            if (status != LAC_OK) {
                return status;
            }
            status = lac_flame_give(hand->walk, frame, from, to - from);
            if (status != LAC_OK) {
                return status;
            }
            if (!hand->count_slices) {
                count_piece(hand, frame);
            }
        }
        if (piece->end_ns > t_ns) {
            break;
        }
        hand->now_ns = to > hand->now_ns ? to : hand->now_ns;
        hand->piece++;
    }
    hand->now_ns = t_ns > hand->now_ns ? t_ns : hand->now_ns;
    return LAC_OK;
}

/* Advance to t: when a slice ends on the way, the one under it takes over. */
static enum lac_status pass(struct hand *hand, int64_t t_ns)
{
    struct lac_flame_stack *stack = &hand->stack;
    while (stack->count > 0 && stack->entries[stack->count - 1].end_ns <= t_ns) {
        enum lac_status status = give(hand, stack->entries[stack->count - 1].end_ns);
        if (status != LAC_OK) {
            return status;
        }
        stack->count--;
    }
    return give(hand, t_ns);
}

static enum lac_status count_slice(struct hand *hand, int64_t start_ns, int64_t dur_ns)
{
    bool inside;
    (void)lac_flame_clip(hand->walk, start_ns, dur_ns, &inside);
    if (!inside || start_ns < hand->walk->options->counted_from_ns) {
        return LAC_OK;
    }
    uint32_t frame;
    enum lac_status status = lac_flame_stack_frame(&hand->stack, hand->stack.count - 1, 0, &frame);
    if (status == LAC_OK) {
        hand->walk->tree->frames[frame].count++;
    }
    return status;
}

enum lac_status lac_flame_time(struct lac_flame_walk *walk, uint32_t track,
                               const struct lac_flame_pieces *pieces, bool count_slices)
{
    const struct lac_slices *s = &walk->model->slices;
    struct lac_flame_slices slices = lac_flame_slices_of(walk, track);
    struct hand hand = {.walk = walk, .pieces = pieces, .count_slices = count_slices};
    enum lac_status status = LAC_OK;
    int64_t last_ns = pieces->count > 0 ? pieces->at[pieces->count - 1].end_ns : 0;
    lac_flame_stack_init(&hand.stack, walk->tree);
    hand.now_ns = pieces->count > 0 ? pieces->at[0].start_ns : 0;
    hand.stack.is_flat = walk->by == LAC_FLAME_BY_KERNEL;
    while (lac_flame_has_slice(&slices) && status == LAC_OK) {
        bool is_backward;
        uint64_t i = lac_flame_next_slice(walk, &slices, &is_backward);
        int64_t start_ns = s->start_ns[i];
        if (start_ns >= last_ns) {
            break;
        }
        if (!is_backward && !lac_flame_is_frame(walk, i)) {
            continue;
        }
        int64_t end_ns = start_ns + s->dur_ns[i];
        if (start_ns > hand.now_ns) {
            status = pass(&hand, start_ns);
        } else {
            /* before the first piece: nothing to assign yet, but ended slices must go */
            lac_flame_stack_pop(&hand.stack, start_ns);
        }
        if (status == LAC_OK) {
            status = lac_flame_stack_push(&hand.stack, start_ns, end_ns, s->name[i],
                                          lac_flame_kind(walk, i, is_backward));
        }
        if (status == LAC_OK && count_slices) {
            status = count_slice(&hand, start_ns, s->dur_ns[i]);
        }
    }
    if (status == LAC_OK) {
        status = pass(&hand, last_ns);
    }
    lac_flame_stack_done(&hand.stack);
    return status;
}
