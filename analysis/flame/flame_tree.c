#include "analysis/flame/flame_tree.h"

#include "analysis/flame/flame.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_FRAMES = 1024 };

enum lac_status lac_flame_tree_init(struct lac_flame_tree *tree)
{
    *tree = (struct lac_flame_tree){
        .capacity = FIRST_FRAMES, .slot_count = 2 * FIRST_FRAMES, .seed = lac_hash_seed()};
    tree->frames = malloc(tree->capacity * sizeof(*tree->frames));
    tree->slots = calloc(tree->slot_count, sizeof(*tree->slots));
    if (tree->frames == NULL || tree->slots == NULL) {
        lac_flame_tree_done(tree);
        return LAC_ERR_NOMEM;
    }
    tree->frames[0] = (struct lac_flame_frame){.parent = LAC_NONE};
    tree->count = 1;
    return LAC_OK;
}

void lac_flame_tree_done(struct lac_flame_tree *tree)
{
    free(tree->frames);
    free(tree->slots);
    *tree = (struct lac_flame_tree){0};
}

/* Asked for each operation; the seed keeps the places from being foreseen. */
static uint32_t slot_of(const struct lac_flame_tree *tree, uint32_t parent, uint32_t name)
{
    uint64_t key = (((uint64_t)parent << 32) | name) ^ tree->seed;
    key = (key ^ key >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    key = (key ^ key >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return (uint32_t)(key >> 32) & (tree->slot_count - 1);
}

static void place(struct lac_flame_tree *tree, uint32_t frame)
{
    const struct lac_flame_frame *f = &tree->frames[frame];
    uint32_t slot = slot_of(tree, f->parent, f->name);
    while (tree->slots[slot] != 0) {
        slot = (slot + 1) & (tree->slot_count - 1);
    }
    tree->slots[slot] = frame + 1;
}

/* Twice as many frames, and a table of twice that. */
static enum lac_status grow(struct lac_flame_tree *tree)
{
    uint32_t capacity = tree->capacity * 2;
    struct lac_flame_frame *frames = realloc(tree->frames, capacity * sizeof(*frames));
    if (frames == NULL) {
        return LAC_ERR_NOMEM;
    }
    tree->frames = frames;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof(*slots));
    if (slots == NULL) {
        return LAC_ERR_NOMEM;
    }
    free(tree->slots);
    tree->slots = slots;
    tree->slot_count = capacity * 2;
    tree->capacity = capacity;
    for (uint32_t i = 1; i < tree->count; i++) {
        place(tree, i);
    }
    return LAC_OK;
}

enum lac_status lac_flame_tree_child(struct lac_flame_tree *tree, uint32_t parent, uint32_t name,
                                     uint8_t kind, uint32_t *ret_frame)
{
    uint32_t slot = slot_of(tree, parent, name);
    for (; tree->slots[slot] != 0; slot = (slot + 1) & (tree->slot_count - 1)) {
        struct lac_flame_frame *f = &tree->frames[tree->slots[slot] - 1];
        if (f->parent == parent && f->name == name) {
            f->kind = kind < f->kind ? kind : f->kind; /* whichever of them comes first */
            *ret_frame = tree->slots[slot] - 1;
            return LAC_OK;
        }
    }
    if (tree->count >= LAC_FLAME_GROW_MAX) {
        *ret_frame = parent;
        return LAC_OK;
    }
    if (tree->count == tree->capacity) {
        enum lac_status status = grow(tree);
        if (status != LAC_OK) {
            return status;
        }
    }
    uint32_t frame = tree->count++;
    tree->frames[frame] = (struct lac_flame_frame){.parent = parent, .name = name, .kind = kind};
    place(tree, frame);
    *ret_frame = frame;
    return LAC_OK;
}

enum lac_status lac_flame_tree_merge(struct lac_flame_tree *tree, const struct lac_flame_tree *more)
{
    uint32_t *place_of = malloc(more->count * sizeof(*place_of));
    enum lac_status status = place_of != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t i = 0; i < more->count && status == LAC_OK; i++) {
        const struct lac_flame_frame *from = &more->frames[i];
        place_of[i] = 0;
        if (i > 0) {
            status = lac_flame_tree_child(tree, place_of[from->parent], from->name, from->kind,
                                          &place_of[i]);
        }
        if (status == LAC_OK) {
            int64_t *self_ns = &tree->frames[place_of[i]].self_ns;
            *self_ns = lac_flame_plus(*self_ns, from->self_ns);
            tree->frames[place_of[i]].count += from->count;
        }
    }
    free(place_of);
    return status;
}

/* ---- finishing ---- */

/* What the sort functions compare; qsort_r passes it to them. */
struct finish {
    const struct lac_model *model;
    struct lac_flame_tree *tree;
    uint32_t *depth;
    uint32_t *order;      /* frames by falling value; parents before children */
    uint32_t order_count; /* those that are not pruned */
    uint32_t kept_count;  /* a prefix of order */
    uint8_t *is_kept;
    uint32_t *first;      /* by frame: place in `order` (sorted again) of its first kept child */
    uint32_t *children;   /* by frame: kept children */
    uint64_t *rest_count; /* by frame: children that are not kept */
    int64_t *rest_ns;
};

static void sum_upwards(struct lac_flame_tree *tree, bool sum_counts)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        tree->frames[i].value_ns = tree->frames[i].self_ns;
    }
    for (uint32_t i = tree->count - 1; i > 0; i--) {
        struct lac_flame_frame *parent = &tree->frames[tree->frames[i].parent];
        parent->value_ns = lac_flame_plus(parent->value_ns, tree->frames[i].value_ns);
        parent->count += sum_counts ? tree->frames[i].count : 0;
    }
}

/* Where two frames of one depth are, whatever came first: by name where their paths part. */
static int by_path(const struct lac_flame_frame *frames, uint32_t left, uint32_t right)
{
    while (left != right && frames[left].parent != frames[right].parent) {
        left = frames[left].parent;
        right = frames[right].parent;
    }
    return LAC_ORDER(frames[left].name, frames[right].name);
}

static int by_value(const void *a, const void *b, void *context)
{
    const struct finish *finish = context;
    const struct lac_flame_frame *frames = finish->tree->frames;
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    int order = LAC_ORDER(frames[right].value_ns, frames[left].value_ns);
    order = order != 0 ? order : LAC_ORDER(finish->depth[left], finish->depth[right]);
    return order != 0 ? order : by_path(frames, left, right);
}

static int by_parent(const void *a, const void *b, void *context)
{
    const struct finish *finish = context;
    const struct lac_flame_frame *left = &finish->tree->frames[*(const uint32_t *)a];
    const struct lac_flame_frame *right = &finish->tree->frames[*(const uint32_t *)b];
    if (left->parent != right->parent) {
        return left->parent < right->parent ? -1 : 1;
    }
    if (left->value_ns != right->value_ns) {
        return left->value_ns > right->value_ns ? -1 : 1;
    }
    return strcmp(lac_model_str(finish->model, left->name),
                  lac_model_str(finish->model, right->name));
}

/* Number of nodes of the graph when the first `count` frames of the order are kept: those, and one
 * "... n more" for each of them that loses a child with time in it. Never falls as count rises. */
static uint64_t nodes_with(struct finish *finish, uint32_t count)
{
    const struct lac_flame_frame *frames = finish->tree->frames;
    memset(finish->is_kept, 0, finish->tree->count);
    memset(finish->rest_ns, 0, finish->tree->count * sizeof(*finish->rest_ns));
    memset(finish->rest_count, 0, finish->tree->count * sizeof(*finish->rest_count));
    finish->is_kept[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        finish->is_kept[finish->order[i]] = 1;
    }
    uint64_t nodes = 1 + (uint64_t)count;
    for (uint32_t i = 1; i < finish->tree->count; i++) {
        uint32_t parent = frames[i].parent;
        if (finish->is_kept[i] == 0 && finish->is_kept[parent] != 0 && frames[i].value_ns > 0) {
            nodes += finish->rest_count[parent] == 0;
            finish->rest_count[parent]++;
            finish->rest_ns[parent] = lac_flame_plus(finish->rest_ns[parent], frames[i].value_ns);
        }
    }
    return nodes;
}

static uint64_t choose(struct finish *finish, const struct lac_flame_options *options)
{
    const struct lac_flame_frame *frames = finish->tree->frames;
    double least = options->prune_fraction * (double)frames[0].value_ns;
    uint64_t limit =
        options->node_count_max == 0 ? LAC_FLAME_NODE_COUNT_DEFAULT : options->node_count_max;
    finish->depth[0] = 0;
    for (uint32_t i = 1; i < finish->tree->count; i++) {
        finish->depth[i] = finish->depth[frames[i].parent] + 1;
        if (frames[i].value_ns > 0 && (double)frames[i].value_ns >= least) {
            finish->order[finish->order_count++] = i;
        }
    }
    qsort_r(finish->order, finish->order_count, sizeof(*finish->order), by_value, finish);
    uint32_t low = 0;
    uint32_t high = finish->order_count;
    if (nodes_with(finish, high) > limit) {
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (nodes_with(finish, middle) > limit) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high = low;
    }
    finish->kept_count = high;
    return nodes_with(finish, high);
}

/* Kept children side by side: sort by parent, remember where each parent's begin. */
static void index_children(struct finish *finish)
{
    qsort_r(finish->order, finish->kept_count, sizeof(*finish->order), by_parent, finish);
    for (uint32_t i = finish->kept_count; i > 0; i--) {
        uint32_t parent = finish->tree->frames[finish->order[i - 1]].parent;
        finish->first[parent] = i - 1;
        finish->children[parent]++;
    }
}

/* Breadth first, so that children are contiguous. `frame_of` remembers what each node was. */
static void lay_out(const struct finish *finish, struct lac_flame_node *nodes, uint32_t *frame_of,
                    uint32_t *ret_count)
{
    const struct lac_flame_frame *frames = finish->tree->frames;
    uint32_t count = 1;
    frame_of[0] = 0;
    nodes[0] = (struct lac_flame_node){.parent = LAC_NONE};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t frame = frame_of[i];
        if (frame == LAC_NONE) {
            continue; /* "... n more": complete, no children */
        }
        struct lac_flame_node *node = &nodes[i];
        node->name = frames[frame].name;
        node->kind = frames[frame].kind;
        node->count = frames[frame].count;
        node->value_ns = frames[frame].value_ns;
        node->self_ns = frames[frame].self_ns;
        node->first_child = count;
        for (uint32_t c = 0; c < finish->children[frame]; c++) {
            frame_of[count] = finish->order[finish->first[frame] + c];
            nodes[count] = (struct lac_flame_node){.parent = i};
            count++;
        }
        if (finish->rest_count[frame] > 0) {
            frame_of[count] = LAC_NONE;
            nodes[count] = (struct lac_flame_node){
                .name = LAC_NONE,
                .parent = i,
                .count = finish->rest_count[frame],
                .value_ns = finish->rest_ns[frame],
                .self_ns = finish->rest_ns[frame],
            };
            count++;
        }
        node->child_count = count - node->first_child;
    }
    *ret_count = count;
}

enum lac_status lac_flame_tree_finish(struct lac_flame_tree *tree, const struct lac_model *model,
                                      const struct lac_flame_options *options, bool sum_counts,
                                      struct lac_flame **ret_flame)
{
    struct finish finish = {.model = model, .tree = tree};
    struct lac_flame *flame = calloc(1, sizeof(*flame));
    uint32_t *frame_of = NULL;
    enum lac_status status = LAC_ERR_NOMEM;
    finish.depth = malloc(tree->count * sizeof(*finish.depth));
    finish.order = malloc(tree->count * sizeof(*finish.order));
    finish.is_kept = malloc(tree->count);
    finish.first = malloc(tree->count * sizeof(*finish.first));
    finish.children = calloc(tree->count, sizeof(*finish.children));
    finish.rest_count = malloc(tree->count * sizeof(*finish.rest_count));
    finish.rest_ns = malloc(tree->count * sizeof(*finish.rest_ns));
    if (flame == NULL || finish.depth == NULL || finish.order == NULL || finish.is_kept == NULL ||
        finish.first == NULL || finish.children == NULL || finish.rest_count == NULL ||
        finish.rest_ns == NULL) {
        goto done;
    }
    sum_upwards(tree, sum_counts);
    uint64_t node_count = choose(&finish, options);
    index_children(&finish);
    flame->nodes = malloc(node_count * sizeof(*flame->nodes));
    frame_of = malloc(node_count * sizeof(*frame_of));
    if (flame->nodes == NULL || frame_of == NULL) {
        goto done;
    }
    lay_out(&finish, flame->nodes, frame_of, &flame->node_count);
    *ret_flame = flame;
    flame = NULL;
    status = LAC_OK;
done:
    lac_flame_destroy(flame);
    free(frame_of);
    free(finish.depth);
    free(finish.order);
    free(finish.is_kept);
    free(finish.first);
    free(finish.children);
    free(finish.rest_count);
    free(finish.rest_ns);
    return status;
}
