/* An arrow leads from an operator of the forward pass to the function that autograd runs for it. The
 * modules around the operator are laid over the function; what follows in the same modules stretches
 * them. */

#include "analysis/diagnose/facts/recorded/backward_modules.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Modules around an operator, and functions that run inside each other, at most. */
enum { DEPTH_MAX = 64, NESTED_MAX = 16 };

static const char ARROW[] = "fwdbwd";
static const char CHECKPOINT[] = "CheckpointFunction";
static const char CHECKPOINT_BACKWARD[] = "CheckpointFunctionBackward";

/** What a name says. */
enum { IS_MODULE = 1, IS_COMMUNICATION = 2, IS_CHECKPOINT = 3 };

/** A module's forward pass on a host thread, or a range inside one. */
struct module {
    uint32_t slice;
    uint32_t around; /**< the module that it lies in, which comes before it, or LAC_NONE */
    uint32_t depth;  /**< 1: the outermost */
    uint32_t shown;  /**< itself, or the innermost around it that is not deeper than DEPTH_MAX */
};

struct arrow {
    uint32_t forward, backward; /**< slices */
};

/** Slices of modules, the outermost first. */
struct chain {
    uint32_t at[DEPTH_MAX];
    uint32_t count;
};

/** A function of autograd that is under way, and the open slices. */
struct function {
    struct chain chain;
    int64_t end_ns;
    uint32_t open_count; /**< with its own */
};

/** Slices, ascending. */
struct slice_list {
    uint32_t *at;
    uint32_t count, capacity;
};

struct walk {
    struct lac_model *model;
    struct module *modules; /**< ascending slice */
    uint32_t module_count, module_capacity;
    struct slice_list collectives; /**< slices of threads that start communication */
    struct slice_list checkpoints; /**< forward passes that are recomputed */
    struct arrow *arrows;          /**< ascending backward */
    uint64_t arrow_count;
    uint32_t backward_name, recomputed_name;
    struct lac_derived_slice *slices; /**< of the track that is being made */
    uint64_t slice_count, slice_capacity;
    uint64_t open[DEPTH_MAX * NESTED_MAX + NESTED_MAX]; /**< of them, that may still be stretched */
    uint32_t open_count;
    struct function functions[NESTED_MAX];
    uint32_t function_count;
    uint32_t latest; /**< function that was entered last, or LAC_NONE */
};

static int64_t end_of(const struct lac_model *model, uint32_t slice)
{
    return model->slices.start_ns[slice] + model->slices.dur_ns[slice];
}

/** By string id. NULL: none is the name of a module, or out of memory. */
static uint8_t *look_at_names(const struct lac_model *model, enum lac_status *status)
{
    uint8_t *names = calloc((size_t)model->strings.count + 1, 1);
    bool has_modules = false;

    *status = names != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t id = 1; names != NULL && id < model->strings.count; id++) {
        names[id] = lac_is_module_name(lac_model_str(model, id)) ? IS_MODULE : 0;
        has_modules = has_modules || names[id] == IS_MODULE;
    }
    if (!has_modules) {
        free(names);
        return NULL;
    }
    for (uint32_t id = 1; id < model->strings.count; id++) {
        const char *name = lac_model_str(model, id);
        const size_t length = lac_strings_length(&model->strings, id);

        names[id] = names[id] == IS_MODULE                                ? IS_MODULE
                    : strcmp(name, CHECKPOINT) == 0                       ? IS_CHECKPOINT
                    : lac_names_host_class(name, length) == LAC_HOST_COMM ? IS_COMMUNICATION
                                                                          : 0;
    }
    return names;
}

/** Note a module, or a range in one: the same frames are around its backward pass. */
static enum lac_status note_module(struct walk *walk, uint32_t slice, uint32_t *open)
{
    const struct lac_model *model = walk->model;
    const bool is_module = model->slices.kind[slice] == LAC_SLICE_PYTHON;

    while (*open != LAC_NONE && end_of(model, walk->modules[*open].slice) < end_of(model, slice)) {
        *open = walk->modules[*open].around;
    }
    if (*open == LAC_NONE && !is_module) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(walk->modules, walk->module_capacity, walk->module_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    const uint32_t depth = *open != LAC_NONE ? walk->modules[*open].depth + 1 : 1;

    walk->modules[walk->module_count] = (struct module){
        slice, *open, depth, depth <= DEPTH_MAX ? walk->module_count : walk->modules[*open].shown};
    *open = walk->module_count++;
    return LAC_OK;
}

static enum lac_status note(struct slice_list *list, uint32_t slice)
{
    if (!LAC_RESERVE(list->at, list->capacity, list->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    list->at[list->count++] = slice;
    return LAC_OK;
}

static enum lac_status find_modules(struct walk *walk, const uint8_t *names)
{
    const struct lac_model *model = walk->model;
    enum lac_status status = LAC_OK;

    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        uint32_t open = LAC_NONE;

        if (track->kind != LAC_TRACK_THREAD) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count && !status; s++) {
            const uint8_t name = names[model->slices.name[s]];
            const uint8_t kind = model->slices.kind[s];

            if (name == IS_COMMUNICATION || name == IS_CHECKPOINT) {
                status = note(name == IS_CHECKPOINT ? &walk->checkpoints : &walk->collectives,
                              (uint32_t)s);
            } else if ((kind == LAC_SLICE_PYTHON && name == IS_MODULE) || kind == LAC_SLICE_RANGE) {
                status = note_module(walk, (uint32_t)s, &open);
            }
        }
    }
    return status;
}

static int by_backward(const void *a, const void *b)
{
    const struct arrow *x = a;
    const struct arrow *y = b;

    return x->backward != y->backward ? LAC_ORDER(x->backward, y->backward)
                                      : LAC_ORDER(x->forward, y->forward);
}

static enum lac_status find_arrows(struct walk *walk)
{
    const struct lac_model *model = walk->model;
    const uint32_t name = lac_strings_find(&model->strings, ARROW, sizeof(ARROW) - 1);

    walk->arrows = malloc((model->flow_count + 1) * sizeof(*walk->arrows));
    if (walk->arrows == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t f = 0; f < model->flow_count && name != 0; f++) {
        const struct lac_flow *flow = &model->flows[f];

        if (flow->name == name) {
            walk->arrows[walk->arrow_count++] = (struct arrow){flow->src, flow->dst};
        }
    }
    qsort(walk->arrows, walk->arrow_count, sizeof(*walk->arrows), by_backward);
    return LAC_OK;
}

/** The place of the first behind a slice, or the count. */
static uint32_t place_behind(const struct slice_list *list, uint32_t slice)
{
    uint32_t low = 0;

    LAC_BISECT(low, list->count, middle, list->at[middle] <= slice);
    return low;
}

/** Whether communication begins behind one slice of a thread and before another. */
static bool is_communication_between(const struct walk *walk, uint32_t slice, uint32_t later)
{
    const uint32_t place = place_behind(&walk->collectives, slice);

    return place < walk->collectives.count && walk->collectives.at[place] < later;
}

/** The operator that a function is the backward pass of. Operators count no sequence number while
 *  activations are not kept, so the arrow of a checkpoint begins at the last one inside it. */
static uint32_t operator_of(const struct walk *walk, const struct arrow *arrow)
{
    const struct lac_model *model = walk->model;
    const char *function = lac_model_str(model, model->slices.name[arrow->backward]);
    const uint32_t place = place_behind(&walk->checkpoints, arrow->forward);
    const uint32_t checkpoint = place > 0 ? walk->checkpoints.at[place - 1] : LAC_NONE;

    return checkpoint != LAC_NONE && strstr(function, CHECKPOINT_BACKWARD) != NULL &&
                   lac_model_track_of(model, checkpoint) ==
                       lac_model_track_of(model, arrow->forward) &&
                   end_of(model, checkpoint) >= end_of(model, arrow->forward)
               ? checkpoint
               : arrow->forward;
}

/** The first module behind a slice, or the count. */
static uint32_t module_behind(const struct walk *walk, uint32_t slice)
{
    uint32_t low = 0;

    LAC_BISECT(low, walk->module_count, middle, walk->modules[middle].slice <= slice);
    return low;
}

/** The modules around a slice of that track, which is none itself. */
static void find_chain(const struct walk *walk, const struct lac_track *track, uint32_t slice,
                       struct chain *ret_chain)
{
    const struct lac_model *model = walk->model;
    const uint32_t behind = module_behind(walk, slice);
    uint32_t m =
        behind > 0 && walk->modules[behind - 1].slice >= track->first ? behind - 1 : LAC_NONE;

    while (m != LAC_NONE && end_of(model, walk->modules[m].slice) < end_of(model, slice)) {
        m = walk->modules[m].around;
    }
    m = m != LAC_NONE ? walk->modules[m].shown : LAC_NONE;
    ret_chain->count = m != LAC_NONE ? walk->modules[m].depth : 0;
    for (uint32_t i = ret_chain->count; i > 0; i--) {
        ret_chain->at[i - 1] = walk->modules[m].slice;
        m = walk->modules[m].around;
    }
}

static uint32_t count_common(const struct chain *a, const struct chain *b)
{
    uint32_t common = 0;

    while (common < a->count && common < b->count && a->at[common] == b->at[common]) {
        common++;
    }
    return common;
}

/** Open slices of the functions around: those of the next one come behind them. */
static uint32_t count_around(const struct walk *walk)
{
    return walk->function_count > 0 ? walk->functions[walk->function_count - 1].open_count : 0;
}

/** Functions that have ended, and what lay inside them. Their own slices may go on in the next. */
static void leave_functions(struct walk *walk, int64_t t_ns)
{
    while (walk->function_count > 0 && walk->functions[walk->function_count - 1].end_ns <= t_ns) {
        walk->open_count = walk->functions[--walk->function_count].open_count;
    }
}

/** A part of a function's time, and what the innermost slice over it says. */
struct stretch {
    int64_t start_ns, end_ns;
    uint32_t depth; /**< modules of the chain that are over it */
    uint32_t name;  /**< string id */
    uint32_t link;  /**< of the innermost slice */
};

static enum lac_status open_slice(struct walk *walk, const struct stretch *stretch, uint32_t name,
                                  uint32_t link)
{
    if (walk->slice_count == walk->model->slices.count) {
        return LAC_ERR_LIMIT;
    }
    if (!LAC_RESERVE(walk->slices, walk->slice_capacity, walk->slice_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    walk->open[walk->open_count++] = walk->slice_count;
    walk->slices[walk->slice_count++] =
        (struct lac_derived_slice){.start_ns = stretch->start_ns,
                                   .dur_ns = stretch->end_ns - stretch->start_ns,
                                   .name = name,
                                   .link = link,
                                   .kind = LAC_SLICE_GPU_RANGE};
    return LAC_OK;
}

/** Whether the open slice at that place shows the same pass of the same module. */
static bool is_open(const struct walk *walk, uint32_t place, uint32_t module)
{
    return place < walk->open_count && walk->slices[walk->open[place]].link == module;
}

/** Lay modules over a stretch: what is open of them is stretched, the others begin. */
static enum lac_status lay(struct walk *walk, const struct chain *chain, uint32_t skipped,
                           const struct stretch *stretch)
{
    const struct lac_slices *slices = &walk->model->slices;
    const uint32_t base = count_around(walk);
    enum lac_status status = LAC_OK;
    uint32_t place = base;

    for (uint32_t i = skipped; i < stretch->depth && is_open(walk, place, chain->at[i]); i++) {
        place++;
    }
    /* "backward" of just these modules goes on, too */
    if (place - base == stretch->depth - skipped && place < walk->open_count &&
        walk->slices[walk->open[place]].name == stretch->name) {
        place++;
    }
    walk->open_count = place;
    for (uint32_t i = base; i < place; i++) {
        struct lac_derived_slice *slice = &walk->slices[walk->open[i]];

        slice->dur_ns = stretch->end_ns - slice->start_ns;
    }
    for (uint32_t i = skipped + (place - base); i <= stretch->depth && status == LAC_OK; i++) {
        status = i < stretch->depth
                     ? open_slice(walk, stretch, slices->name[chain->at[i]], chain->at[i])
                     : open_slice(walk, stretch, stretch->name, stretch->link);
    }
    return status;
}

/** The place in the chain of the module that runs again; the count: of none. */
static uint32_t place_of_recomputed(const struct walk *walk, const struct chain *chain,
                                    uint32_t skipped, uint32_t slice)
{
    const struct lac_slices *slices = &walk->model->slices;
    uint32_t place = skipped;

    while (place < chain->count && slices->name[chain->at[place]] != slices->name[slice]) {
        place++;
    }
    return place;
}

/**
 * Lay the modules over a function. Where activations are recomputed without a function of their own,
 * the first that needs them runs the forward pass of a module around it: that is the work of what is
 * around the module, and of itself, which lies in it.
 */
static enum lac_status enter(struct walk *walk, const struct arrow *arrow,
                             const struct chain *chain, uint32_t skipped)
{
    const struct lac_model *model = walk->model;
    const int64_t end_ns = end_of(model, arrow->backward);
    struct stretch stretch = {model->slices.start_ns[arrow->backward], end_ns, chain->count,
                              walk->backward_name, arrow->forward};
    enum lac_status status = LAC_OK;

    for (uint32_t m = module_behind(walk, arrow->backward);
         m < walk->module_count && status == LAC_OK; m++) {
        const uint32_t slice = walk->modules[m].slice;

        if (model->slices.start_ns[slice] >= end_ns || end_of(model, slice) > end_ns ||
            lac_model_track_of(model, slice) != lac_model_track_of(model, arrow->backward)) {
            break;
        }
        const uint32_t place = place_of_recomputed(walk, chain, skipped, slice);

        if (model->slices.start_ns[slice] < stretch.start_ns || place == chain->count) {
            continue;
        }
        const int64_t from_ns = model->slices.start_ns[slice];

        if (from_ns > stretch.start_ns) {
            stretch.end_ns = from_ns;
            status = lay(walk, chain, skipped, &stretch);
        }
        stretch = (struct stretch){from_ns, end_of(model, slice), place, walk->recomputed_name,
                                   arrow->forward};
        status = status == LAC_OK ? lay(walk, chain, skipped, &stretch) : status;
        stretch = (struct stretch){end_of(model, slice), end_ns, chain->count, walk->backward_name,
                                   arrow->forward};
    }
    return status == LAC_OK &&
                   (stretch.start_ns < end_ns || model->slices.dur_ns[arrow->backward] == 0)
               ? lay(walk, chain, skipped, &stretch)
               : status;
}

static enum lac_status pass(struct walk *walk, const struct lac_track *track,
                            const struct arrow *arrow)
{
    const struct lac_model *model = walk->model;
    const struct lac_track *from = &model->tracks[lac_model_track_of(model, arrow->forward)];
    struct chain chain;
    struct chain around;
    uint32_t skipped;

    leave_functions(walk, model->slices.start_ns[arrow->backward]);
    find_chain(walk, from, operator_of(walk, arrow), &chain);
    find_chain(walk, track, arrow->backward, &around);
    skipped = count_common(&chain, &around);
    if (walk->function_count > 0) {
        const uint32_t common =
            count_common(&chain, &walk->functions[walk->function_count - 1].chain);

        if (common == chain.count) {
            return LAC_OK; /* a part of the function that is under way */
        }
        skipped = common > skipped ? common : skipped;
    }
    if (chain.count == 0 || walk->function_count == NESTED_MAX) {
        return LAC_OK;
    }
    /* the bucket of gradients that was complete just then is not of this module */
    if (walk->latest != LAC_NONE && is_communication_between(walk, walk->latest, arrow->backward)) {
        walk->open_count = count_around(walk);
    }
    walk->latest = arrow->backward;
    const enum lac_status status = enter(walk, arrow, &chain, skipped);

    walk->functions[walk->function_count++] = (struct function){
        .chain = chain, .end_ns = end_of(model, arrow->backward), .open_count = walk->open_count};
    return status;
}

static enum lac_status append(struct walk *walk, const struct lac_track *thread)
{
    struct lac_track track = *thread;

    track.kind = LAC_TRACK_BACKWARD;
    qsort(walk->slices, walk->slice_count, sizeof(*walk->slices), lac_derived_slice_order);
    return lac_model_add_track(walk->model, &track, walk->slices, walk->slice_count);
}

/** The arrows that lead to one thread. */
static enum lac_status walk_thread(struct walk *walk, uint32_t t, uint64_t first, uint64_t end)
{
    const struct lac_track track = walk->model->tracks[t];
    enum lac_status status = LAC_OK;

    walk->slice_count = 0;
    walk->open_count = 0;
    walk->function_count = 0;
    walk->latest = LAC_NONE;
    for (uint64_t a = first; a < end && status == LAC_OK; a++) {
        status = pass(walk, &track, &walk->arrows[a]);
    }
    if (status == LAC_OK && walk->slice_count > 0) {
        status = append(walk, &track);
    }
    return status == LAC_ERR_LIMIT ? LAC_OK : status;
}

static enum lac_status walk_threads(struct walk *walk)
{
    const struct lac_model *model = walk->model;
    struct lac_strings *strings = &walk->model->strings;
    enum lac_status status = lac_strings_intern(strings, LAC_BACKWARD_NAME,
                                                strlen(LAC_BACKWARD_NAME), &walk->backward_name);

    status = status != LAC_OK
                 ? status
                 : lac_strings_intern(strings, LAC_RECOMPUTED_NAME, strlen(LAC_RECOMPUTED_NAME),
                                      &walk->recomputed_name);
    for (uint64_t first = 0; first < walk->arrow_count && status == LAC_OK;) {
        const uint32_t t = lac_model_track_of(model, walk->arrows[first].backward);
        const uint64_t track_end = model->tracks[t].first + model->tracks[t].count;
        uint64_t end = first + 1;

        while (end < walk->arrow_count && walk->arrows[end].backward < track_end) {
            end++;
        }
        if (model->tracks[t].kind == LAC_TRACK_THREAD) {
            status = walk_thread(walk, t, first, end);
        }
        first = end;
    }
    return status;
}

enum lac_status lac_backward_modules_add(struct lac_model *model)
{
    enum lac_status status = LAC_OK;
    struct walk *walk = NULL;
    uint8_t *names = NULL;

    if (model->flow_count == 0) {
        return LAC_OK;
    }
    names = look_at_names(model, &status);
    if (names == NULL) {
        return status;
    }
    walk = calloc(1, sizeof(*walk));
    status = walk != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (walk != NULL) {
        walk->model = model;
        status = find_modules(walk, names);
        status = status != LAC_OK ? status : find_arrows(walk);
        status = status != LAC_OK || walk->module_count == 0 ? status : walk_threads(walk);
        free(walk->modules);
        free(walk->collectives.at);
        free(walk->checkpoints.at);
        free(walk->arrows);
        free(walk->slices);
    }
    free(walk);
    free(names);
    return status;
}
