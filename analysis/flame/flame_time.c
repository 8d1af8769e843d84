#include "analysis/flame/flame_time.h"

struct clock {
    struct lac_flame_walk *walk;
    struct lac_flame_stack stack;
    const struct lac_flame_pieces *pieces;
    uint64_t piece; /* the first that ends after now */
    int64_t now_ns; /* all before it has been given away */
    bool count_slices;
};

/* A piece counts once on a frame and on those around it up to its base. Frames around a marked one
 * are marked already. */
static void count_piece(struct clock *clock, uint32_t frame)
{
    struct lac_flame_frame *frames = clock->walk->tree.frames;
    uint32_t mark = clock->pieces->at[clock->piece].id + 1;
    while (frame != 0 && frames[frame].mark != mark) {
        frames[frame].mark = mark;
        frames[frame].count++;
        frame = frames[frame].parent;
    }
}

/* Give [now, t) to what is on top of the stack. */
static enum lac_status give(struct clock *clock, int64_t t_ns)
{
    const struct lac_flame_pieces *pieces = clock->pieces;
    uint32_t top = clock->stack.count == 0 ? LAC_NONE : clock->stack.count - 1;
    while (clock->now_ns < t_ns && clock->piece < pieces->count) {
        const struct lac_flame_piece *piece = &pieces->at[clock->piece];
        int64_t from = piece->start_ns > clock->now_ns ? piece->start_ns : clock->now_ns;
        int64_t to = piece->end_ns < t_ns ? piece->end_ns : t_ns;
        if (to > from && (top != LAC_NONE || pieces->keep_outside)) {
            uint32_t frame;
            enum lac_status status = lac_flame_stack_frame(&clock->stack, top, piece->base, &frame);
            if (status != LAC_OK) {
                return status;
            }
            clock->walk->tree.frames[frame].self_ns += to - from;
            if (!clock->count_slices) {
                count_piece(clock, frame);
            }
        }
        if (piece->end_ns > t_ns) {
            break;
        }
        clock->now_ns = to > clock->now_ns ? to : clock->now_ns;
        clock->piece++;
    }
    clock->now_ns = t_ns > clock->now_ns ? t_ns : clock->now_ns;
    return LAC_OK;
}

/* Let time pass until t: what ends on the way gives way to what is under it. */
static enum lac_status pass(struct clock *clock, int64_t t_ns)
{
    struct lac_flame_stack *stack = &clock->stack;
    while (stack->count > 0 && stack->entries[stack->count - 1].end_ns <= t_ns) {
        enum lac_status status = give(clock, stack->entries[stack->count - 1].end_ns);
        if (status != LAC_OK) {
            return status;
        }
        stack->count--;
    }
    return give(clock, t_ns);
}

static enum lac_status count_slice(struct clock *clock, int64_t start_ns, int64_t dur_ns)
{
    bool inside;
    (void)lac_flame_clip(clock->walk, start_ns, dur_ns, &inside);
    if (!inside) {
        return LAC_OK;
    }
    uint32_t frame;
    enum lac_status status =
        lac_flame_stack_frame(&clock->stack, clock->stack.count - 1, 0, &frame);
    if (status == LAC_OK) {
        clock->walk->tree.frames[frame].count++;
    }
    return status;
}

enum lac_status lac_flame_time(struct lac_flame_walk *walk, uint32_t track,
                               const struct lac_flame_pieces *pieces, bool count_slices)
{
    const struct lac_slices *s = &walk->model->slices;
    uint64_t first = track == LAC_NONE ? 0 : walk->model->tracks[track].first;
    uint64_t end = track == LAC_NONE ? 0 : first + walk->model->tracks[track].count;
    struct clock clock = {.walk = walk, .pieces = pieces, .count_slices = count_slices};
    enum lac_status status = LAC_OK;
    int64_t last_ns = pieces->count > 0 ? pieces->at[pieces->count - 1].end_ns : 0;
    lac_flame_stack_init(&clock.stack, &walk->tree);
    clock.now_ns = pieces->count > 0 ? pieces->at[0].start_ns : 0;
    clock.stack.is_flat = walk->by == LAC_FLAME_BY_KERNEL;
    for (uint64_t i = first; i < end && status == LAC_OK; i++) {
        int64_t start_ns = s->start_ns[i];
        if (start_ns >= last_ns) {
            break;
        }
        if (!lac_flame_is_frame(walk, i)) {
            continue;
        }
        int64_t end_ns = start_ns + s->dur_ns[i];
        if (start_ns > clock.now_ns) {
            status = pass(&clock, start_ns);
        } else {
            /* before the first piece: nothing to give yet, but ended slices must go */
            lac_flame_stack_pop(&clock.stack, start_ns);
        }
        if (status == LAC_OK) {
            status = lac_flame_stack_push(&clock.stack, start_ns, end_ns, s->name[i], s->kind[i]);
        }
        if (status == LAC_OK && count_slices) {
            status = count_slice(&clock, start_ns, s->dur_ns[i]);
        }
    }
    if (status == LAC_OK) {
        status = pass(&clock, last_ns);
    }
    lac_flame_stack_done(&clock.stack);
    return status;
}
