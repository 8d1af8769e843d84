#include "analysis/flame/flame_line.h"

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Nodes grow in preorder, so a frame that ends is the end of the array: where it is too narrow it
 * and all in it are cut off, and there are never more nodes than are kept and open. */

struct node {
    uint32_t parent;
    uint32_t frame;      /* of the merged tree; LAC_NONE: "... n more" */
    uint32_t last_child; /* that has ended, 0: none */
    uint64_t count;
    int64_t self_ns;
    int64_t value_ns;
};

struct laying {
    const struct lac_flame_tree *tree;
    struct node *nodes;
    uint32_t count, capacity;
    uint32_t count_max;
    uint32_t *path; /* frames from below the root to that of a piece */
    uint32_t *open; /* nodes, from the root */
    uint32_t open_count;
    double least_ns; /* what is below is summed */
};

enum lac_status lac_flame_line_add(struct lac_flame_line *line, uint32_t frame, int64_t start_ns,
                                   int64_t length_ns)
{
    if (length_ns == 0) {
        return LAC_OK;
    }
    if (line->count == LAC_FLAME_PIECES_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(line->pieces, line->capacity, line->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    line->pieces[line->count] = (struct lac_flame_given){
        .start_ns = start_ns, .length_ns = length_ns, .frame = frame, .number = line->count};
    line->count++;
    return LAC_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct lac_flame_given *left = a;
    const struct lac_flame_given *right = b;
    const int order = LAC_ORDER(left->start_ns, right->start_ns);
    return order != 0 ? order : LAC_ORDER(left->number, right->number);
}

void lac_flame_line_next_group(struct lac_flame_line *line)
{
    if (line == NULL) {
        return;
    }
    bool is_sorted = true;
    for (uint32_t i = line->group_first + 1; i < line->count && is_sorted; i++) {
        is_sorted = line->pieces[i - 1].start_ns <= line->pieces[i].start_ns;
    }
    if (!is_sorted) {
        qsort(&line->pieces[line->group_first], line->count - line->group_first,
              sizeof(*line->pieces), by_time);
    }
    line->group_first = line->count;
}

static uint32_t depth_max(const struct lac_flame_tree *tree, uint32_t *depth)
{
    uint32_t max = 0;
    depth[0] = 0;
    for (uint32_t i = 1; i < tree->count; i++) { /* parents come before their children */
        depth[i] = depth[tree->frames[i].parent] + 1;
        max = depth[i] > max ? depth[i] : max;
    }
    return max;
}

/* LAC_ERR_LIMIT: more nodes than there may be, beside those that are open and one sum in each. */
static enum lac_status append(struct laying *laying, uint32_t parent, uint32_t frame)
{
    if (laying->count > (uint64_t)laying->count_max + 2 * (uint64_t)laying->open_count) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(laying->nodes, laying->capacity, laying->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    laying->nodes[laying->count++] = (struct node){.parent = parent, .frame = frame};
    return LAC_OK;
}

/* The innermost open frame ends. */
static enum lac_status close_one(struct laying *laying)
{
    const uint32_t at = laying->open[--laying->open_count];
    const struct node ended = laying->nodes[at];
    struct node *parent = &laying->nodes[ended.parent];
    uint32_t last = at;
    parent->value_ns = lac_flame_plus(parent->value_ns, ended.value_ns);
    parent->count += ended.count;
    if ((double)ended.value_ns < laying->least_ns) {
        laying->count = at;
        last = parent->last_child;
        if (last == 0 || laying->nodes[last].frame != LAC_NONE) {
            last = laying->count;
            enum lac_status status = append(laying, ended.parent, LAC_NONE);
            if (status != LAC_OK) {
                return status;
            }
        }
        struct node *rest = &laying->nodes[last];
        rest->count++;
        rest->value_ns = lac_flame_plus(rest->value_ns, ended.value_ns);
        rest->self_ns = rest->value_ns;
    }
    laying->nodes[ended.parent].last_child = last;
    return LAC_OK;
}

static enum lac_status close_to(struct laying *laying, uint32_t open_count)
{
    enum lac_status status = LAC_OK;
    while (laying->open_count > open_count && status == LAC_OK) {
        status = close_one(laying);
    }
    return status;
}

static enum lac_status lay_piece(struct laying *laying, const struct lac_flame_given *piece)
{
    const struct lac_flame_frame *frames = laying->tree->frames;
    uint32_t depth = 0;
    for (uint32_t f = piece->frame; f != 0; f = frames[f].parent) {
        depth++;
    }
    uint32_t place = depth;
    for (uint32_t f = piece->frame; f != 0; f = frames[f].parent) {
        laying->path[--place] = f;
    }
    uint32_t common = 0;
    while (common < depth && common + 1 < laying->open_count &&
           laying->nodes[laying->open[common + 1]].frame == laying->path[common]) {
        common++;
    }
    enum lac_status status = close_to(laying, common + 1);
    for (; common < depth && status == LAC_OK; common++) {
        status = append(laying, laying->open[laying->open_count - 1], laying->path[common]);
        if (status == LAC_OK) {
            laying->open[laying->open_count++] = laying->count - 1;
        }
    }
    if (status == LAC_OK) {
        struct node *node = &laying->nodes[laying->open[laying->open_count - 1]];
        node->self_ns = lac_flame_plus(node->self_ns, piece->length_ns);
        node->value_ns = lac_flame_plus(node->value_ns, piece->length_ns);
        node->count++;
    }
    return status;
}

static enum lac_status lay_all(struct laying *laying, const struct lac_flame_line *line)
{
    laying->count = 0;
    laying->open_count = 0;
    enum lac_status status = append(laying, LAC_NONE, 0);
    laying->open[laying->open_count++] = 0;
    for (uint32_t i = 0; i < line->count && status == LAC_OK; i++) {
        status = lay_piece(laying, &line->pieces[i]);
    }
    if (status == LAC_OK) {
        status = close_to(laying, 1);
    }
    return status == LAC_OK && laying->count > laying->count_max ? LAC_ERR_LIMIT : status;
}

/* Breadth first, so that children are contiguous. `order` says which node comes at each place. */
static void hand_over(const struct laying *laying, uint32_t *first, uint32_t *next, uint32_t *order,
                      struct lac_flame *flame)
{
    for (uint32_t i = laying->count - 1; i > 0; i--) { /* backward, so that lists are forward */
        next[i] = first[laying->nodes[i].parent];
        first[laying->nodes[i].parent] = i;
    }
    uint32_t count = 1;
    order[0] = 0;
    flame->nodes[0].parent = LAC_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct node *node = &laying->nodes[order[i]];
        const struct lac_flame_frame *frame =
            node->frame != LAC_NONE ? &laying->tree->frames[node->frame] : NULL;
        struct lac_flame_node *out = &flame->nodes[i];
        out->name = frame != NULL ? frame->name : LAC_NONE;
        out->kind = frame != NULL ? frame->kind : 0;
        out->count = node->count;
        out->value_ns = node->value_ns;
        out->self_ns = node->self_ns;
        out->first_child = count;
        for (uint32_t child = first[order[i]]; child != 0; child = next[child]) {
            flame->nodes[count].parent = i;
            order[count++] = child;
        }
        out->child_count = count - out->first_child;
    }
    flame->node_count = count;
}

static enum lac_status make(const struct laying *laying, struct lac_flame **ret_flame)
{
    /* the root */
    assert(laying->count > 0);
    struct lac_flame *flame = calloc(1, sizeof(*flame));
    uint32_t *lists = calloc(3 * (size_t)laying->count, sizeof(*lists));
    if (flame != NULL) {
        flame->nodes = calloc(laying->count, sizeof(*flame->nodes));
    }
    if (flame == NULL || lists == NULL || flame->nodes == NULL) {
        lac_flame_destroy(flame);
        free(lists);
        return LAC_ERR_NOMEM;
    }
    hand_over(laying, lists, lists + laying->count, lists + 2 * (size_t)laying->count, flame);
    free(lists);
    *ret_flame = flame;
    return LAC_OK;
}

enum lac_status lac_flame_line_finish(struct lac_flame_line *line,
                                      const struct lac_flame_tree *tree,
                                      const struct lac_flame_options *options,
                                      struct lac_flame **ret_flame)
{
    double total_ns = 0; /* times of slices that overlap may exceed what an integer holds */
    uint32_t *depth = malloc(tree->count * sizeof(*depth));
    if (depth == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct laying laying = {.tree = tree,
                            .count_max = options->node_count_max == 0 ? LAC_FLAME_NODE_COUNT_DEFAULT
                                                                      : options->node_count_max};
    const size_t deepest = (size_t)depth_max(tree, depth) + 2;
    free(depth);
    laying.path = malloc(deepest * sizeof(*laying.path));
    laying.open = malloc(deepest * sizeof(*laying.open));
    enum lac_status status =
        laying.path != NULL && laying.open != NULL ? LAC_ERR_LIMIT : LAC_ERR_NOMEM;
    lac_flame_line_next_group(line);
    for (uint32_t i = 0; i < line->count; i++) {
        total_ns += (double)line->pieces[i].length_ns;
    }
    laying.least_ns = options->prune_fraction * total_ns;
    while (status == LAC_ERR_LIMIT) {
        status = lay_all(&laying, line);
        if (status == LAC_ERR_LIMIT) { /* in the end all of it is one node under the root */
            const double narrow = total_ns / laying.count_max / 8;
            laying.least_ns = laying.least_ns < narrow ? narrow : laying.least_ns * 2;
        }
    }
    if (status == LAC_OK) {
        status = make(&laying, ret_flame);
    }
    free(laying.path);
    free(laying.open);
    free(laying.nodes);
    return status;
}
