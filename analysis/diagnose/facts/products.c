/*
 * One walk over the threads that launch, with a stack of the operators that multiply. A kernel
 * belongs to the innermost one around its launch; an operator's operations are shared by its
 * kernels in proportion to their time. Only operators whose kernels were recorded count.
 */

#include "analysis/diagnose/facts/products.h"

#include "analysis/diagnose/facts/program.h"
#include "analysis/diagnose/facts/step_operations.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, KERNELS_MAX = 24, RECIPES_MAX = 1 << 18, GROUPS_MAX = 1 << 14 };

/* what a name is to the walk */
enum { NOT_LOOKED_UP = 0, NOTHING, BACKWARD, FORWARD, FIRST_OP };

struct recipe {
    struct lac_flop_recipe recipe;
    uint32_t next; /**< of the same template for another operator; index + 1 */
    bool is_read;  /**< it says something */
};

/** An operator whose window was not recorded gives its output away in its backward pass. */
struct window {
    uint64_t key;
    int64_t output; /**< elements; 0: it has had different ones */
};

struct row_sum {
    double ns, ideal_ns;
};

struct frame {
    struct lac_flop_call call;
    const struct lac_flop_recipe *recipe; /**< NULL: only context */
    int64_t end_ns;
    uint32_t slice;
    uint32_t kernels[KERNELS_MAX];
    uint32_t kernel_count, other_count; /**< products first; others from the end */
    uint32_t parts;
    double ns; /**< of its products, those that found no room included */
    bool is_in_backward, is_again, has_inner;
};

/** What is summed over kept steps. */
struct sums {
    int64_t flops[LAC_PRECISION_COUNT_], model_flops[LAC_PRECISION_COUNT_];
    double ns;
};

struct walk {
    struct lac_facts *facts;
    struct lac_products *products;
    uint8_t *name_class; /**< by string id */
    uint32_t *recipe_of; /**< by string id of a template: index + 1 */
    struct recipe *recipes;
    uint32_t recipe_count, recipe_capacity;
    struct window *windows; /**< open addressing */
    uint32_t window_count, window_capacity;
    uint32_t *slots; /**< of groups, open addressing: index + 1 */
    struct row_sum *rows;
    struct sums sums;
    struct frame *stack;
    int depth;
    bool is_causal_unknown;
};

static uint8_t class_of(struct walk *walk, uint32_t name)
{
    uint8_t *entry = &walk->name_class[name];
    if (*entry == NOT_LOOKED_UP) {
        const struct lac_strings *strings = &walk->facts->model->strings;
        const char *text = lac_strings_get(strings, name);
        int op = lac_flop_op_of(text, lac_strings_length(strings, name));
        *entry = NOTHING;
        if (op >= 0) {
            *entry = (uint8_t)(FIRST_OP + op);
        } else if (lac_host_class_of(walk->facts, name) == LAC_HOST_BACKWARD) {
            *entry = BACKWARD;
        } else if (lac_is_forward_operator(text)) {
            *entry = FORWARD;
        }
    }
    return *entry;
}

/** The recipe of an operator's arguments. @return LAC_ERR_NOMEM; *ret_at is LAC_NONE for none */
static enum lac_status find_recipe(struct walk *walk, int op, uint64_t slice, uint32_t *ret_at)
{
    const struct lac_model *model = walk->facts->model;
    uint32_t args = model->slices.args[slice];
    *ret_at = LAC_NONE;
    if (args == 0) {
        return LAC_OK;
    }
    for (uint32_t at = walk->recipe_of[args]; at != 0; at = walk->recipes[at - 1].next) {
        if (walk->recipes[at - 1].recipe.op == op) {
            *ret_at = walk->recipes[at - 1].is_read ? at - 1 : LAC_NONE;
            return LAC_OK;
        }
    }
    if (walk->recipe_count == RECIPES_MAX) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(walk->recipes, walk->recipe_capacity, walk->recipe_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    struct recipe *recipe = &walk->recipes[walk->recipe_count++];
    *recipe = (struct recipe){.next = walk->recipe_of[args]};
    recipe->is_read =
        lac_flop_recipe_read(op, lac_strings_get(&model->strings, args),
                             lac_strings_length(&model->strings, args), &recipe->recipe);
    walk->recipe_of[args] = walk->recipe_count;
    *ret_at = recipe->is_read ? walk->recipe_count - 1 : LAC_NONE;
    return LAC_OK;
}

/* -- outputs of convolutions -- */

static struct window *window_of(const struct walk *walk, uint64_t key)
{
    uint32_t mask = walk->window_capacity - 1;
    uint32_t at = (uint32_t)key & mask;
    while (walk->windows[at].key != 0 && walk->windows[at].key != key) {
        at = (at + 1) & mask;
    }
    return &walk->windows[at];
}

static void note_window(struct walk *walk, const struct lac_flop_recipe *recipe, uint64_t slice)
{
    struct lac_flop_call call;
    if (walk->window_count >= walk->window_capacity / 2) {
        return;
    }
    lac_flop_call_of(recipe, walk->facts->model, slice, 0, &call);
    int64_t output = 1;
    for (int d = 0; d < recipe->count[0]; d++) {
        output = lac_flop_multiply(output, call.shape[0][d]);
    }
    struct window *window = window_of(walk, lac_flop_window_key(recipe, &call));
    if (window->key == 0) {
        *window = (struct window){lac_flop_window_key(recipe, &call), output};
        walk->window_count++;
    } else if (window->output != output) {
        window->output = 0;
    }
}

/** Before the walk: backward passes show what forward ones put out. */
static enum lac_status collect_windows(struct walk *walk)
{
    const struct lac_model *model = walk->facts->model;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (!(walk->facts->track_flags[t] & LAC_TRACK_LAUNCHES)) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            uint8_t name_class = model->slices.kind[i] == LAC_SLICE_OP
                                     ? class_of(walk, model->slices.name[i])
                                     : NOTHING;
            uint32_t at = LAC_NONE;
            if (name_class < FIRST_OP ||
                lac_flop_kind_of(name_class - FIRST_OP) != LAC_FLOP_CONV_BACK) {
                continue;
            }
            enum lac_status status = find_recipe(walk, name_class - FIRST_OP, i, &at);
            if (status) {
                return status;
            }
            if (at != LAC_NONE) {
                note_window(walk, &walk->recipes[at].recipe, i);
            }
        }
    }
    return LAC_OK;
}

/* -- one operator -- */

static enum lac_status push(struct walk *walk, uint64_t slice, uint8_t name_class)
{
    assert(walk->stack != NULL);
    const struct lac_slices *slices = &walk->facts->model->slices;
    const struct frame *outer = walk->depth > 0 ? &walk->stack[walk->depth - 1] : NULL;
    int op = name_class >= FIRST_OP ? name_class - FIRST_OP : -1;
    enum lac_flop_kind kind = lac_flop_kind_of(op);
    if (kind == LAC_FLOP_CONV_PART) {
        for (int d = walk->depth - 1; d >= 0; d--) {
            if (walk->stack[d].recipe != NULL) {
                walk->stack[d].parts++;
                break;
            }
        }
        return LAC_OK;
    }
    if (walk->depth == DEPTH_MAX) {
        return LAC_OK;
    }
    uint32_t at = LAC_NONE;
    if (op >= 0) {
        enum lac_status status = find_recipe(walk, op, slice, &at);
        if (status) {
            return status;
        }
    }
    struct frame *frame = &walk->stack[walk->depth];
    const char *name = lac_model_str(walk->facts->model, slices->name[slice]);
    bool is_in_backward = outer != NULL && outer->is_in_backward;
    bool is_again =
        outer != NULL && (outer->is_again || (is_in_backward && lac_is_forward_operator(name)));
    *frame = (struct frame){.end_ns = slices->start_ns[slice] + slices->dur_ns[slice],
                            .slice = (uint32_t)slice,
                            .is_in_backward = is_in_backward || name_class == BACKWARD,
                            .is_again = is_again};
    if (at != LAC_NONE) {
        const struct lac_flop_recipe *recipe = &walk->recipes[at].recipe;
        int64_t output = 0;
        if (kind == LAC_FLOP_CONV && !recipe->has_window && walk->window_count > 0) {
            lac_flop_call_of(recipe, walk->facts->model, slice, 0, &frame->call);
            const struct window *window =
                window_of(walk, lac_flop_window_key(recipe, &frame->call));
            output = window->key != 0 ? window->output : 0;
        }
        lac_flop_call_of(recipe, walk->facts->model, slice, output, &frame->call);
        frame->recipe = frame->call.flops > 0 ? recipe : NULL;
    }
    walk->depth++;
    return LAC_OK;
}

static bool is_product_kernel(const struct lac_kernel_facts *kernel)
{
    enum lac_family family = kernel->names.family;
    return family == LAC_FAMILY_GEMM || family == LAC_FAMILY_CONV || family == LAC_FAMILY_ATTENTION;
}

/** Kernels whose name does not say that they do something else. */
static bool may_be_product(const struct lac_kernel_facts *kernel)
{
    enum lac_family family = kernel->names.family;
    return family == LAC_FAMILY_OTHER || family == LAC_FAMILY_TRITON || family == LAC_FAMILY_MOE;
}

/** A launch inside what is open. */
static void add_launch(struct walk *walk, uint64_t call)
{
    const struct lac_slices *slices = &walk->facts->model->slices;
    uint32_t slice = slices->link[call];
    if (slice == LAC_NONE || slices->kind[slice] != LAC_SLICE_KERNEL) {
        return;
    }
    const struct lac_kernel_facts *kernel =
        &walk->facts->analysis->kernels[walk->facts->kernel_row[slices->name[slice]]];
    bool is_product = is_product_kernel(kernel);
    if (!is_product && !may_be_product(kernel)) {
        return;
    }
    for (int d = walk->depth - 1; d >= 0; d--) {
        struct frame *frame = &walk->stack[d];
        if (frame->recipe == NULL) {
            continue;
        }
        bool has_room = frame->kernel_count + frame->other_count < KERNELS_MAX;
        if (is_product) {
            frame->ns += (double)slices->dur_ns[slice];
            if (has_room) {
                frame->kernels[frame->kernel_count++] = slice;
            }
        } else if (has_room) {
            frame->kernels[KERNELS_MAX - ++frame->other_count] = slice;
        }
        return;
    }
}

/** An operator that launched nothing that multiplies by name: what nothing is known of did it.
 *  Called with less than half of the room taken. */
static void use_others(const struct walk *walk, struct frame *frame)
{
    for (uint32_t i = 0; i < frame->other_count; i++) {
        uint32_t slice = frame->kernels[KERNELS_MAX - 1 - i];
        frame->kernels[frame->kernel_count++] = slice;
        frame->ns += (double)walk->facts->model->slices.dur_ns[slice];
    }
}

/** Whether the call is of a kept step: the host's, as it calls each of its operators in it, even
 *  where it runs ahead of the device; or else what the device did in it. */
static bool is_summed(const struct walk *walk, const struct frame *frame)
{
    const struct lac_facts *facts = walk->facts;
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    int64_t device = analysis->devices[analysis->main_device].id;
    if (model->tracks[lac_model_track_of(model, frame->kernels[0])].device != device) {
        return false;
    }
    if (analysis->step_kept_count == 0) {
        return true;
    }
    return lac_is_of_kept_step(facts, frame->slice, frame->kernels[0]);
}

static enum lac_precision precision_of(const struct walk *walk, const struct frame *frame)
{
    const struct lac_facts *facts = walk->facts;
    enum lac_precision precision = (enum lac_precision)frame->recipe->precision;
    for (uint32_t i = 0; i < frame->kernel_count && precision == LAC_PRECISION_FP32; i++) {
        const struct lac_name_class *names = lac_kernel_class_of(facts, frame->kernels[i]);
        if (names->tensor_core == LAC_TENSOR_CORE_YES) {
            precision = LAC_PRECISION_TF32;
        }
    }
    return precision;
}

/** The group of the call, or NULL where there are too many. */
static enum lac_status find_group(struct walk *walk, const struct frame *frame,
                                  enum lac_precision precision, int64_t flops,
                                  struct lac_product_group **ret_group)
{
    struct lac_products *products = walk->products;
    uint32_t name = walk->facts->model->slices.name[frame->slice];
    uint64_t key = lac_flop_window_key(frame->recipe, &frame->call) ^
                   (uint64_t)name * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)flops ^
                   (uint64_t)precision << 56;
    uint32_t at = (uint32_t)(key ^ key >> 32) & (2 * GROUPS_MAX - 1);
    *ret_group = NULL;
    for (; walk->slots[at] != 0; at = (at + 1) & (2 * GROUPS_MAX - 1)) {
        struct lac_product_group *group = &products->groups[walk->slots[at] - 1];
        if (group->key == key) {
            *ret_group = group;
            return LAC_OK;
        }
    }
    if (products->group_count == GROUPS_MAX) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(products->groups, products->group_capacity, products->group_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    struct lac_product_group *group = &products->groups[products->group_count++];
    *group = (struct lac_product_group){.key = key,
                                        .name = name,
                                        .longest = LAC_NONE,
                                        .longest_ns = -1,
                                        .kind = lac_flop_kind_of(frame->recipe->op),
                                        .precision = precision};
    for (int i = 0; i < 4; i++) {
        group->size[i] = frame->call.size[i];
    }
    walk->slots[at] = products->group_count;
    *ret_group = group;
    return LAC_OK;
}

static enum lac_status sum_call(struct walk *walk, const struct frame *frame, int64_t flops,
                                double ideal_ns, enum lac_precision precision)
{
    const struct lac_slices *slices = &walk->facts->model->slices;
    bool is_back = lac_flop_kind_of(frame->recipe->op) == LAC_FLOP_CONV_BACK;
    int64_t model_flops = is_back ? flops : frame->call.model_flops;
    struct sums *sums = &walk->sums;
    sums->flops[precision] = lac_flop_add(sums->flops[precision], flops);
    sums->model_flops[precision] =
        lac_flop_add(sums->model_flops[precision], frame->is_again ? 0 : model_flops);
    sums->ns += frame->ns;
    walk->is_causal_unknown = walk->is_causal_unknown || frame->call.is_causal_unknown;
    struct lac_product_group *group = NULL;
    enum lac_status status = find_group(walk, frame, precision, flops, &group);
    if (status || group == NULL) {
        return status;
    }
    const struct lac_device_peak *peak = walk->products->peak;
    double bytes =
        (double)frame->call.bytes * (is_back ? (double)flops / (double)frame->call.flops : 1.0);
    double memory_ns = peak != NULL && peak->memory_gb_s > 0.0 ? bytes / peak->memory_gb_s : 0.0;
    group->count++;
    group->flops = lac_flop_add(group->flops, flops);
    group->ns += frame->ns;
    group->ideal_ns += ideal_ns;
    group->bound_ns += ideal_ns > 0.0 ? fmax(ideal_ns, memory_ns) : 0.0;
    for (uint32_t i = 0; i < frame->kernel_count; i++) {
        int64_t dur_ns = slices->dur_ns[frame->kernels[i]];
        if (dur_ns > group->longest_ns) {
            group->longest_ns = dur_ns;
            group->longest = frame->kernels[i];
        }
    }
    return LAC_OK;
}

/** An operator ends: share its operations among its kernels. */
static enum lac_status pop(struct walk *walk)
{
    assert(walk->stack != NULL && walk->depth > 0);
    struct frame *frame = &walk->stack[--walk->depth];
    struct frame *outer = walk->depth > 0 ? frame - 1 : NULL;
    if (outer != NULL) {
        outer->has_inner = outer->has_inner || frame->has_inner || frame->kernel_count > 0;
    }
    if (frame->recipe == NULL) {
        return LAC_OK;
    }
    if (frame->kernel_count == 0 && !frame->has_inner && frame->other_count < KERNELS_MAX / 2) {
        use_others(walk, frame);
    }
    if (frame->kernel_count == 0 || !(frame->ns > 0.0)) {
        return LAC_OK;
    }
    if (outer != NULL) {
        outer->has_inner = true;
    }
    int64_t flops = frame->call.flops;
    if (lac_flop_kind_of(frame->recipe->op) == LAC_FLOP_CONV_BACK) {
        int directions = frame->recipe->directions;
        if (directions < 0) {
            directions = frame->parts > 0 ? (int)frame->parts : (int)frame->kernel_count;
        }
        flops = lac_flop_multiply(flops, directions < 2 ? directions : 2);
    }
    const struct lac_slices *slices = &walk->facts->model->slices;
    const struct lac_device_peak *peak = walk->products->peak;
    enum lac_precision precision = precision_of(walk, frame);
    double tflops = peak != NULL ? peak->tflops[precision] : 0.0;
    double ideal_ns = tflops > 0.0 ? (double)flops / tflops / 1e3 : 0.0;
    for (uint32_t i = 0; i < frame->kernel_count; i++) {
        uint32_t row = walk->facts->kernel_row[slices->name[frame->kernels[i]]];
        double ns = (double)slices->dur_ns[frame->kernels[i]];
        double share = ns / frame->ns;
        struct lac_kernel_facts *kernel = &walk->facts->analysis->kernels[row];
        double own = fmin((double)flops * share, (double)LAC_NUMBER_MAX);
        kernel->flops = lac_sum_ns(kernel->flops, lac_round(own));
        walk->rows[row].ns += ns;
        walk->rows[row].ideal_ns += ideal_ns > 0.0 ? ideal_ns * share : (double)NAN;
    }
    return is_summed(walk, frame) ? sum_call(walk, frame, flops, ideal_ns, precision) : LAC_OK;
}

static enum lac_status walk_thread(struct walk *walk, const struct lac_track *track)
{
    const struct lac_slices *slices = &walk->facts->model->slices;
    enum lac_status status = LAC_OK;
    walk->depth = 0;
    for (uint64_t i = track->first; i < track->first + track->count && !status; i++) {
        uint8_t kind = slices->kind[i];
        bool is_call = kind == LAC_SLICE_API && slices->link[i] != LAC_NONE;
        bool is_named = kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER;
        uint8_t name_class = is_named ? class_of(walk, slices->name[i]) : NOTHING;
        if (!is_call && name_class == NOTHING) {
            continue;
        }
        while (walk->depth > 0 && walk->stack[walk->depth - 1].end_ns <= slices->start_ns[i] &&
               !status) {
            status = pop(walk);
        }
        if (status) {
            break;
        }
        if (is_call) {
            add_launch(walk, i);
        } else {
            status = push(walk, i, name_class);
        }
    }
    while (walk->depth > 0 && !status) {
        status = pop(walk);
    }
    return status;
}

/* -- what it means -- */

/** Time of kernels that multiply whose launch was not recorded: it came before the recording, and
 *  so did the operator. None where no launch was recorded. */
static double unlaunched_ns(const struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    double ns = 0.0;
    for (uint32_t t = 0; t < model->recorded_track_count && facts->has_api; t++) {
        if (!(facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        uint64_t end = model->tracks[t].first + model->tracks[t].count;
        for (uint64_t i = model->tracks[t].first; i < end; i++) {
            if (slices->kind[i] == LAC_SLICE_KERNEL && slices->link[i] == LAC_NONE &&
                is_product_kernel(&facts->analysis->kernels[facts->kernel_row[slices->name[i]]])) {
                ns += (double)slices->dur_ns[i];
            }
        }
    }
    return ns;
}

/** Shares of the peak by kernel, and how much of the time was counted. */
static void finish_rows(struct walk *walk)
{
    struct lac_analysis *analysis = walk->facts->analysis;
    double all = -unlaunched_ns(walk->facts);
    double counted = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        struct lac_kernel_facts *kernel = &analysis->kernels[row];
        const struct row_sum *sum = &walk->rows[row];
        bool may_multiply = is_product_kernel(kernel) || kernel->names.family == LAC_FAMILY_MOE;
        counted += sum->ns;
        all += may_multiply ? fmax((double)kernel->total_ns, sum->ns) : sum->ns;
        if (sum->ns > 0.0 && sum->ideal_ns > 0.0) {
            kernel->pct_of_peak = 100.0 * sum->ideal_ns / sum->ns;
        }
    }
    analysis->efficiency.counted_pct = all > 0.0 ? 100.0 * fmin(1.0, counted / all) : (double)NAN;
}

static const char *unknown_device(struct lac_facts *facts, const struct lac_device *device)
{
    const char *name = device != NULL ? lac_model_str(facts->model, device->name) : "";
    if (name[0] == '\0') {
        return "the recording does not name the GPU";
    }
    return lac_texts_add(&facts->analysis->texts, "the peak of this GPU is not in the table: %.80s",
                         name);
}

/** Rates over `ns`, which holds `per` repetitions. */
static void finish_rates(struct walk *walk, double ns, double per)
{
    struct lac_efficiency *efficiency = &walk->facts->analysis->efficiency;
    const struct sums *sums = &walk->sums;
    const struct lac_device_peak *peak = walk->products->peak;
    double flops = 0.0;
    double model = 0.0;
    double ideal_ns = 0.0;
    double model_ideal_ns = 0.0;
    double unpriced = 0.0;
    int64_t most = -1;
    for (int p = 0; p < LAC_PRECISION_COUNT_; p++) {
        double tflops = peak != NULL ? peak->tflops[p] : 0.0;
        flops += (double)sums->flops[p];
        model += (double)sums->model_flops[p];
        unpriced += tflops > 0.0 ? 0.0 : (double)sums->flops[p];
        ideal_ns += tflops > 0.0 ? (double)sums->flops[p] / tflops / 1e3 : 0.0;
        model_ideal_ns += tflops > 0.0 ? (double)sums->model_flops[p] / tflops / 1e3 : 0.0;
        if (sums->flops[p] > most) {
            most = sums->flops[p];
            efficiency->precision = (enum lac_precision)p;
        }
    }
    efficiency->products_ns = lac_round(sums->ns / per);
    if (!(flops > 0.0)) {
        efficiency->precision = LAC_PRECISION_UNKNOWN;
        efficiency->why_not = "no product with a recorded shape ran on the GPU";
        return;
    }
    if (walk->facts->analysis->step_kept_count > 0) {
        efficiency->flops_per_step = flops / per;
        efficiency->model_flops_per_step = model / per;
    }
    if (efficiency->counted_pct < COUNTED_MIN_PCT) {
        efficiency->why_not = lac_texts_add(&walk->facts->analysis->texts,
                                            "shapes are known for %s of the time of products "
                                            "(compiled code and CUDA graphs have none)",
                                            lac_format_pct(efficiency->counted_pct).text);
        return;
    }
    efficiency->achieved_flops_per_s = model / ns * 1e9;
    if (peak == NULL) {
        return; /* said already */
    }
    if (unpriced > flops * UNPRICED_MAX_PCT / 100.0) {
        efficiency->why_not =
            lac_texts_add(&walk->facts->analysis->texts, "no peak of this GPU is known for %s",
                          lac_precision_name(efficiency->precision));
        return;
    }
    for (int p = 0; p < LAC_PRECISION_COUNT_; p++) {
        double tflops = peak->tflops[p];
        double at_peak_ns = tflops > 0.0 ? (double)sums->flops[p] / tflops / 1e3 : 0.0;
        walk->products->precisions |= at_peak_ns >= BLENDED_MIN * ideal_ns ? 1U << p : 0;
    }
    efficiency->peak_flops_per_s = (flops - unpriced) / ideal_ns * 1e9;
    efficiency->mfu_pct = 100.0 * model_ideal_ns / ns;
    efficiency->hfu_pct = 100.0 * ideal_ns / ns;
    efficiency->products_pct = 100.0 * ideal_ns / sums->ns;
    if (efficiency->hfu_pct > 100.0 || efficiency->products_pct > 100.0) {
        efficiency->mfu_pct = efficiency->hfu_pct = efficiency->products_pct = (double)NAN;
        efficiency->why_not =
            "the recorded times are shorter than the GPU could do these shapes in";
    }
}

static void finish(struct walk *walk)
{
    struct lac_facts *facts = walk->facts;
    struct lac_analysis *analysis = facts->analysis;
    struct lac_efficiency *efficiency = &analysis->efficiency;
    double steps = (double)analysis->step_kept_count;
    finish_rows(walk);
    efficiency->is_causal_unknown = walk->is_causal_unknown;
    if (steps > 0.0) {
        efficiency->basis = "step";
        walk->products->steps = steps;
        finish_rates(walk, (double)analysis->step_mean_ns * steps, steps);
    } else {
        efficiency->basis = "recording";
        finish_rates(walk, (double)analysis->devices[analysis->main_device].span_ns, 1.0);
    }
}

/** "119", "1 310": three digits. */
static void print_tflops(char *out, size_t capacity_bytes, double flops_per_s)
{
    enum { GROUPED_FROM = 1000 };
    double tflops = flops_per_s / 1e12;
    if (nearbyint(tflops) >= GROUPED_FROM) {
        (void)snprintf(out, capacity_bytes, "%s", lac_format_rate(tflops).text);
    } else {
        (void)snprintf(out, capacity_bytes, "%.3g", tflops);
    }
}

/** Whether the peak is one of the table, no blend of several. */
static bool is_one_precision(const struct lac_facts *facts)
{
    uint32_t precisions = facts->products->precisions;
    return facts->products->peak != NULL && (precisions & (precisions - 1)) == 0;
}

/** "bf16 peak", or of which precisions the peak is a blend. */
static const char *peak_text(struct lac_facts *facts)
{
    struct lac_text **texts = &facts->analysis->texts;
    const char *mix = "";
    uint32_t left = facts->products->precisions;
    for (int p = 0; p < LAC_PRECISION_COUNT_; p++) {
        if ((left >> p & 1U) != 0) {
            left &= ~(1U << p);
            mix = lac_texts_add(texts, "%s%s%s", mix,
                                mix[0] == '\0' ? ""
                                : left == 0    ? " and "
                                               : ", ",
                                lac_precision_name((enum lac_precision)p));
        }
    }
    return is_one_precision(facts)
               ? lac_texts_add(texts, "%s peak",
                               lac_precision_name(facts->analysis->efficiency.precision))
               : lac_texts_add(texts, "peak for its mix of %s", mix);
}

/** The sentence that terminal, report and page share. */
static const char *say(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_efficiency *efficiency = &analysis->efficiency;
    if (isnan(efficiency->mfu_pct)) {
        return lac_texts_add(&analysis->texts, "share of the peak not known: %s",
                             efficiency->why_not);
    }
    char again[64] = "";
    char rates[64];
    char causal[96] = "";
    print_tflops(rates, sizeof(rates), efficiency->achieved_flops_per_s);
    (void)snprintf(rates + strlen(rates), sizeof(rates) - strlen(rates), " of ");
    print_tflops(rates + strlen(rates), sizeof(rates) - strlen(rates),
                 is_one_precision(facts)
                     ? facts->products->peak->tflops[efficiency->precision] * 1e12
                     : efficiency->peak_flops_per_s);
    if (efficiency->hfu_pct >= COMPUTED_TWICE_MIN * efficiency->mfu_pct) {
        (void)snprintf(again, sizeof(again), ", %s with what is computed twice",
                       lac_format_pct(efficiency->hfu_pct).text);
    }
    if (efficiency->is_causal_unknown) {
        (void)snprintf(causal, sizeof(causal),
                       "; attention counted in full, a causal mask would halve it");
    }
    return lac_texts_add(&analysis->texts,
                         "%s of the GPU's %s (%s TFLOP/s%s); %s while GEMMs run%s",
                         lac_format_pct(efficiency->mfu_pct).text, peak_text(facts), rates, again,
                         lac_format_pct(efficiency->products_pct).text, causal);
}

static enum lac_status walk_all(struct walk *walk)
{
    const struct lac_model *model = walk->facts->model;
    enum lac_status status = collect_windows(walk);
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        if (walk->facts->track_flags[t] & LAC_TRACK_LAUNCHES) {
            status = walk_thread(walk, &model->tracks[t]);
        }
    }
    return status;
}

static enum lac_status count(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    size_t names = model->strings.count ? model->strings.count : 1;
    size_t rows = facts->kernel_row_count ? facts->kernel_row_count : 1;
    struct walk walk = {.facts = facts, .products = facts->products, .window_capacity = 1 << 12};
    walk.name_class = calloc(names, sizeof(*walk.name_class));
    walk.recipe_of = calloc(names, sizeof(*walk.recipe_of));
    walk.windows = calloc(walk.window_capacity, sizeof(*walk.windows));
    walk.slots = calloc((size_t)2 * GROUPS_MAX, sizeof(*walk.slots));
    walk.rows = calloc(rows, sizeof(*walk.rows));
    walk.stack = malloc(DEPTH_MAX * sizeof(*walk.stack));
    bool has_room = walk.name_class != NULL && walk.recipe_of != NULL && walk.windows != NULL &&
                    walk.slots != NULL && walk.rows != NULL && walk.stack != NULL;
    enum lac_status status = has_room ? walk_all(&walk) : LAC_ERR_NOMEM;
    if (!status) {
        finish(&walk);
    }
    free(walk.name_class);
    free(walk.recipe_of);
    free(walk.recipes);
    free(walk.windows);
    free(walk.slots);
    free(walk.rows);
    free(walk.stack);
    return status;
}

static enum lac_status measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_efficiency *efficiency = &analysis->efficiency;
    if (!analysis->has_kernels || analysis->main_device == LAC_NONE) {
        efficiency->why_not = "no kernel was recorded";
        return LAC_OK;
    }
    const struct lac_device *device = lac_main_device(facts);
    if (device != NULL) {
        facts->products->peak = lac_device_peak_of(
            lac_model_str(facts->model, device->name),
            lac_strings_length(&facts->model->strings, device->name), device->sm_count);
    }
    if (facts->products->peak == NULL) {
        efficiency->why_not = unknown_device(facts, device);
    } else {
        efficiency->device = facts->products->peak->name;
        efficiency->source = facts->products->peak->source;
    }
    if (!facts->model->info.has_shapes) {
        efficiency->why_not = lac_framework_of(facts->model) == LAC_FRAMEWORK_PYTORCH
                                  ? "shapes were not recorded (profile with record_shapes=True)"
                                  : "shapes were not recorded";
        return LAC_OK;
    }
    return count(facts);
}

enum lac_status lac_products_measure(struct lac_facts *facts)
{
    facts->products = calloc(1, sizeof(*facts->products));
    if (facts->products == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = measure(facts);
    if (!status && facts->analysis->has_kernels) {
        facts->analysis->efficiency.text = say(facts);
    }
    return status;
}

void lac_products_destroy(struct lac_products *products)
{
    if (products != NULL) {
        free(products->groups);
        free(products);
    }
}
