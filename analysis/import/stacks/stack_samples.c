#include "analysis/import/stacks/stack_samples.h"

#include "analysis/import/source/import_options.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "collector/base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where nothing tells how long a sample stands for. */
enum { PERIOD_DEFAULT_NS = 1000000 };

/* A stack: a frame on top of another stack. The bottom of a thread has no frame. */
struct node {
    uint32_t below; /* LAC_NONE: a bottom */
    uint32_t name;
    uint32_t track;
    uint32_t depth;
    int64_t weight;
};

struct sample {
    int64_t time_ns;
    uint64_t order;
    uint32_t node;
    uint32_t track;
};

struct lac_stacks {
    struct lac_builder *builder;
    const struct lac_import_options *options;
    struct node *nodes;
    uint32_t node_count, node_capacity;
    uint32_t *slots; /* node + 1; 0 is free */
    uint32_t slot_count;
    uint64_t seed;
    struct sample *samples;
    uint64_t sample_count, sample_capacity;
    int64_t total_weight;
    unsigned digits;
    bool is_beside; /* a profile beside a trace */
    bool has_calls; /* slices were given already */
    char *room;
    size_t room_bytes;
};

enum lac_status lac_stacks_open(struct lac_builder *builder,
                                const struct lac_import_options *options,
                                struct lac_stacks **ret_stacks)
{
    struct lac_stacks *const stacks = calloc(1, sizeof(*stacks));
    if (stacks == NULL) {
        return LAC_ERR_NOMEM;
    }
    stacks->builder = builder;
    stacks->options = options;
    stacks->seed = lac_hash_seed();
    *ret_stacks = stacks;
    return LAC_OK;
}

void lac_stacks_close(struct lac_stacks *stacks)
{
    if (stacks != NULL) {
        free(stacks->nodes);
        free(stacks->slots);
        free(stacks->samples);
        free(stacks->room);
        free(stacks);
    }
}

enum lac_status lac_stacks_fail(enum lac_status status, uint64_t offset_bytes,
                                struct lac_error *reterr)
{
    return status == LAC_ERR_NOMEM ? lac_fail(reterr, status, offset_bytes, "out of memory")
           : status == LAC_ERR_LIMIT
               ? lac_fail(reterr, status, offset_bytes,
                          "more than a profile may have: %d frames a stack, %d different stacks, "
                          "weights of 2^53 together, or the limits of tracks, slices and names",
                          LAC_STACK_FRAMES_MAX, LAC_STACK_NODES_MAX)
               : status;
}

enum lac_status lac_stacks_name(struct lac_stacks *stacks, const char *text, size_t length,
                                uint32_t *ret_name)
{
    struct lac_strings *const strings = &lac_builder_model(stacks->builder)->strings;
    const size_t most = stacks->options->limits.name_bytes_max;
    if (length > most) {
        length = lac_utf8_cut(text, length, most);
        lac_model_report(lac_builder_model(stacks->builder), LAC_REPORT_REPAIRED, "name_too_long",
                         1, 0, "names longer than name_bytes_max were cut");
    }
    if (lac_utf8_is_clean(text, length)) {
        return lac_strings_intern(strings, text, length, ret_name);
    }
    if (!LAC_RESERVE(stacks->room, stacks->room_bytes, 0, 3 * length + 1)) {
        return LAC_ERR_NOMEM;
    }
    size_t repaired = 0;
    const size_t size = lac_utf8_repair(text, length, stacks->room, stacks->room_bytes, &repaired);
    if (repaired > 0) {
        lac_model_report(lac_builder_model(stacks->builder), LAC_REPORT_REPAIRED, "bad_utf8",
                         repaired, 0, "bytes of names that are no UTF-8 were replaced");
    }
    return lac_strings_intern(strings, stacks->room, size, ret_name);
}

/* --- the tree of stacks ----------------------------------------------------------------------- */

static uint32_t slot_of(const struct lac_stacks *stacks, uint32_t below, uint32_t name)
{
    const uint64_t key = ((uint64_t)below << 32) | name;
    return (uint32_t)lac_hash_bytes(&key, sizeof(key), stacks->seed) & (stacks->slot_count - 1);
}

static void place(struct lac_stacks *stacks, uint32_t node)
{
    uint32_t slot = slot_of(stacks, stacks->nodes[node].below, stacks->nodes[node].name);
    while (stacks->slots[slot] != 0) {
        slot = (slot + 1) & (stacks->slot_count - 1);
    }
    stacks->slots[slot] = node + 1;
}

static enum lac_status grow_slots(struct lac_stacks *stacks)
{
    const uint32_t count = stacks->slot_count == 0 ? 1024 : stacks->slot_count * 2;
    uint32_t *const slots = calloc(count, sizeof(*slots));
    if (slots == NULL) {
        return LAC_ERR_NOMEM;
    }
    free(stacks->slots);
    stacks->slots = slots;
    stacks->slot_count = count;
    for (uint32_t i = 0; i < stacks->node_count; i++) {
        if (stacks->nodes[i].below != LAC_NONE) {
            place(stacks, i);
        }
    }
    return LAC_OK;
}

static enum lac_status add_node(struct lac_stacks *stacks, const struct node *node,
                                uint32_t *ret_node)
{
    if (stacks->node_count >= LAC_STACK_NODES_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(stacks->nodes, stacks->node_capacity, stacks->node_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    stacks->nodes[stacks->node_count] = *node;
    *ret_node = stacks->node_count++;
    return LAC_OK;
}

enum lac_status lac_stacks_thread(struct lac_stacks *stacks, int64_t pid, int64_t tid, uint32_t id,
                                  uint32_t name, uint32_t *ret_bottom)
{
    char text[24];
    uint32_t pid_text, process, track;
    (void)snprintf(text, sizeof(text), "%lld", (long long)pid);
    enum lac_status status = lac_stacks_name(stacks, text, strlen(text), &pid_text);
    if (status == LAC_OK) {
        status = lac_builder_process(stacks->builder, pid_text, pid, &process);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(stacks->builder, LAC_TRACK_THREAD, process, id, tid, &track);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_builder_track_at(stacks->builder, track)->name = name;
    return add_node(stacks, &(struct node){.below = LAC_NONE, .track = track}, ret_bottom);
}

enum lac_status lac_stacks_numbered_thread(struct lac_stacks *stacks, int64_t pid, int64_t tid,
                                           uint32_t number, uint32_t name, uint32_t *ret_bottom)
{
    char text[24];
    uint32_t id = 0;
    const int length = snprintf(text, sizeof(text), "%u", number);
    const enum lac_status status = lac_stacks_name(stacks, text, (size_t)length, &id);
    return status == LAC_OK ? lac_stacks_thread(stacks, pid, tid, id, name, ret_bottom) : status;
}

enum lac_status lac_stacks_row(struct lac_stacks *stacks, uint32_t track, uint32_t *ret_bottom)
{
    stacks->is_beside = true;
    return add_node(stacks, &(struct node){.below = LAC_NONE, .track = track}, ret_bottom);
}

enum lac_status lac_stacks_push(struct lac_stacks *stacks, uint32_t below, uint32_t name,
                                uint32_t *ret_stack)
{
    if ((uint64_t)stacks->node_count * 2 >= stacks->slot_count) {
        const enum lac_status status = grow_slots(stacks);
        if (status != LAC_OK) {
            return status;
        }
    }
    uint32_t slot = slot_of(stacks, below, name);
    for (; stacks->slots[slot] != 0; slot = (slot + 1) & (stacks->slot_count - 1)) {
        const struct node *const node = &stacks->nodes[stacks->slots[slot] - 1];
        if (node->below == below && node->name == name) {
            *ret_stack = stacks->slots[slot] - 1;
            return LAC_OK;
        }
    }
    const struct node node = {.below = below,
                              .name = name,
                              .track = stacks->nodes[below].track,
                              .depth = stacks->nodes[below].depth + 1};
    if (node.depth > LAC_STACK_FRAMES_MAX) {
        return LAC_ERR_LIMIT;
    }
    const enum lac_status status = add_node(stacks, &node, ret_stack);
    if (status == LAC_OK) {
        stacks->slots[slot] = *ret_stack + 1;
    }
    return status;
}

/* --- weights and samples ---------------------------------------------------------------------- */

static enum lac_status add_digit(struct lac_stacks *stacks)
{
    if (stacks->total_weight > LAC_TIME_MAX_NS / 10) {
        return LAC_ERR_LIMIT;
    }
    for (uint32_t i = 0; i < stacks->node_count; i++) {
        stacks->nodes[i].weight *= 10;
    }
    stacks->total_weight *= 10;
    stacks->digits++;
    return LAC_OK;
}

enum lac_status lac_stacks_weigh(struct lac_stacks *stacks, uint32_t stack, int64_t weight,
                                 unsigned digits)
{
    while (stacks->digits < digits) {
        const enum lac_status status = add_digit(stacks);
        if (status != LAC_OK) {
            return status;
        }
    }
    for (; digits < stacks->digits; digits++) {
        if (weight > LAC_TIME_MAX_NS / 10) {
            return LAC_ERR_LIMIT;
        }
        weight *= 10;
    }
    if (weight > LAC_TIME_MAX_NS - stacks->total_weight) {
        return LAC_ERR_LIMIT;
    }
    stacks->nodes[stack].weight += weight;
    stacks->total_weight += weight;
    return LAC_OK;
}

enum lac_status lac_stacks_sample(struct lac_stacks *stacks, uint32_t stack, int64_t time_ns)
{
    if (!LAC_RESERVE(stacks->samples, stacks->sample_capacity, stacks->sample_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    stacks->samples[stacks->sample_count] = (struct sample){.time_ns = time_ns,
                                                            .order = stacks->sample_count,
                                                            .node = stack,
                                                            .track = stacks->nodes[stack].track};
    stacks->sample_count++;
    return LAC_OK;
}

bool lac_stacks_is_empty(const struct lac_stacks *stacks)
{
    return stacks->sample_count == 0 && stacks->total_weight == 0 && !stacks->has_calls;
}

/* --- slices ----------------------------------------------------------------------------------- */

static enum lac_status put(struct lac_stacks *stacks, uint32_t node, int64_t start_ns,
                           int64_t dur_ns)
{
    struct lac_model *const model = lac_builder_model(stacks->builder);
    if (model->info.slice_count >= stacks->options->limits.slice_count_max) {
        return LAC_ERR_LIMIT;
    }
    model->info.slice_count++;
    return lac_builder_slice(stacks->builder, &(struct lac_slice_in){
                                                  .start_ns = start_ns,
                                                  .dur_ns = dur_ns,
                                                  .track = stacks->nodes[node].track,
                                                  .name = stacks->nodes[node].name,
                                                  .detail = LAC_NONE,
                                                  .kind = LAC_SLICE_OTHER,
                                              });
}

enum lac_status lac_stacks_call(struct lac_stacks *stacks, uint32_t stack, int64_t start_ns,
                                int64_t dur_ns)
{
    stacks->has_calls = true;
    return put(stacks, stack, start_ns, dur_ns);
}

/* A node comes after the one below it, so that two passes do: sums downwards, places upwards. */
static enum lac_status lay_side_by_side(struct lac_stacks *stacks)
{
    const uint32_t count = stacks->node_count;
    int64_t *const total = malloc(((size_t)count + 1) * sizeof(*total));
    int64_t *const next = malloc(((size_t)count + 1) * sizeof(*next)); /* place of the next child */
    enum lac_status status = total != NULL && next != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        total[i] = stacks->nodes[i].weight;
    }
    for (uint32_t i = count; i > 0 && status == LAC_OK; i--) {
        if (stacks->nodes[i - 1].below != LAC_NONE) {
            total[stacks->nodes[i - 1].below] += total[i - 1];
        }
    }
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const uint32_t below = stacks->nodes[i].below;
        next[i] = 0;
        if (below != LAC_NONE) {
            next[i] = next[below];
            next[below] += total[i];
            status = total[i] > 0 ? put(stacks, i, next[i], total[i]) : LAC_OK;
        }
    }
    free(total);
    free(next);
    return status;
}

static int by_time(const void *left, const void *right)
{
    const struct sample *const a = left, *const b = right;
    const int by_track = LAC_ORDER(a->track, b->track);
    const int by_start = LAC_ORDER(a->time_ns, b->time_ns);
    return by_track != 0 ? by_track : by_start != 0 ? by_start : LAC_ORDER(a->order, b->order);
}

static int by_length(const void *left, const void *right)
{
    return LAC_ORDER(*(const int64_t *)left, *(const int64_t *)right);
}

/* How often a busy thread was looked at: a quarter of the distances between a thread's samples is
 * shorter. Threads that sleep make long ones; two events at a time make some of nothing. */
static enum lac_status find_period(const struct lac_stacks *stacks, int64_t *ret_period_ns)
{
    enum { LOOKED_AT_MAX = 1 << 16 };
    const uint64_t most =
        stacks->sample_count < LOOKED_AT_MAX ? stacks->sample_count : LOOKED_AT_MAX;
    int64_t *const lengths = malloc((size_t)(most + 1) * sizeof(*lengths));
    size_t count = 0;
    if (lengths == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 1; i < stacks->sample_count && count < most; i++) {
        const int64_t length = stacks->samples[i].time_ns - stacks->samples[i - 1].time_ns;
        if (stacks->samples[i].track == stacks->samples[i - 1].track && length > 0) {
            lengths[count++] = length;
        }
    }
    *ret_period_ns = PERIOD_DEFAULT_NS;
    if (count > 0) {
        qsort(lengths, count, sizeof(*lengths), by_length);
        *ret_period_ns = lengths[count / 4];
    }
    free(lengths);
    return LAC_OK;
}

/* The frames of a thread that are open, from the bottom. */
struct open_frames {
    uint32_t node[LAC_STACK_FRAMES_MAX];
    int64_t start_ns[LAC_STACK_FRAMES_MAX];
    uint32_t depth;
};

/* End frames above `depth`, the outer ones first: of slices alike the first contains the others. */
static enum lac_status end_frames(struct lac_stacks *stacks, struct open_frames *open,
                                  uint32_t depth, int64_t end_ns)
{
    enum lac_status status = LAC_OK;
    for (uint32_t i = depth; i < open->depth && status == LAC_OK; i++) {
        status = put(stacks, open->node[i], open->start_ns[i], end_ns - open->start_ns[i]);
    }
    open->depth = depth < open->depth ? depth : open->depth;
    return status;
}

static enum lac_status begin_frames(struct lac_stacks *stacks, struct open_frames *open,
                                    uint32_t node, int64_t start_ns, int64_t end_ns)
{
    uint32_t at = node;
    const uint32_t depth = stacks->nodes[node].depth;
    uint32_t common = depth;
    /* from the top down to what is open already */
    while (common > 0 && (common > open->depth || open->node[common - 1] != at)) {
        at = stacks->nodes[at].below;
        common--;
    }
    const enum lac_status status = end_frames(stacks, open, common, end_ns);
    at = node;
    for (uint32_t i = depth; i > common; i--) {
        open->node[i - 1] = at;
        open->start_ns[i - 1] = start_ns;
        at = stacks->nodes[at].below;
    }
    open->depth = depth;
    return status;
}

static enum lac_status lay_over_time(struct lac_stacks *stacks, int64_t period_ns)
{
    struct open_frames *const open = calloc(1, sizeof(*open));
    enum lac_status status = open != NULL ? LAC_OK : LAC_ERR_NOMEM;
    int64_t end_ns = 0;
    for (uint64_t i = 0; i < stacks->sample_count && status == LAC_OK; i++) {
        const struct sample *const sample = &stacks->samples[i];
        const bool is_first = i == 0 || sample[-1].track != sample->track;
        int64_t start_ns = sample->time_ns;
        if (is_first || start_ns - end_ns >= period_ns) {
            status = i > 0 ? end_frames(stacks, open, 0, end_ns) : LAC_OK;
        } else {
            start_ns = end_ns; /* a little early or late: it goes on */
        }
        if (status == LAC_OK) {
            status = begin_frames(stacks, open, sample->node, start_ns, end_ns);
        }
        end_ns = start_ns + period_ns;
    }
    if (status == LAC_OK) {
        status = end_frames(stacks, open, 0, end_ns);
    }
    free(open);
    return status;
}

enum lac_status lac_stacks_finish(struct lac_stacks *stacks, const char *unit, int64_t period_ns)
{
    struct lac_trace_info *const info = &lac_builder_model(stacks->builder)->info;
    const bool has_times = stacks->sample_count > 0;
    enum lac_status status = LAC_OK;
    if (stacks->has_calls) {
        return LAC_OK; /* as any trace: lengths are ns */
    }
    info->weight_scale = 1;
    if (has_times) {
        qsort(stacks->samples, stacks->sample_count, sizeof(*stacks->samples), by_time);
        status = period_ns > 0 ? LAC_OK : find_period(stacks, &period_ns);
        info->weight_scale = period_ns;
        unit = "samples";
        if (period_ns > LAC_TIME_MAX_NS / ((int64_t)stacks->sample_count + 1)) {
            return LAC_ERR_LIMIT;
        }
    } else {
        info->has_no_time = true;
        for (unsigned i = 0; i < stacks->digits; i++) {
            info->weight_scale *= 10;
        }
    }
    if (unit != NULL && status == LAC_OK) {
        status = lac_stacks_name(stacks, unit, strlen(unit), &info->weight_unit);
    }
    if (stacks->is_beside) {
        info->profile_count++;
        info->profile_unit = info->weight_unit;
        info->profile_scale = info->weight_scale;
        info->weight_unit = 0;
        info->weight_scale = 0;
    }
    if (status == LAC_OK) {
        status = has_times ? lay_over_time(stacks, period_ns) : lay_side_by_side(stacks);
    }
    return status;
}
