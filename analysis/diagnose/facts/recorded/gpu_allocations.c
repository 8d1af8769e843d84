/* Memory of the GPU over time: the profiler's allocations and releases, in order of time. */

#include "analysis/diagnose/facts/recorded/gpu_allocations.h"

#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEGABYTE 1e6 /* the unit of the launcher's samples, too */

enum { DEVICES_MAX = 64 };

/** One allocation or release of a device. */
struct change {
    int64_t at_ns;
    int64_t bytes; /**< negative: released */
    int64_t total; /**< allocated after it, or since the recording began */
    uint32_t slice;
    uint32_t owner; /**< string id of the outermost operator that it was in, 0 none */
};

/** All of one device, by time. */
struct changes {
    int64_t device;
    struct change *at;
    uint32_t count, capacity;
    bool is_relative;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    const int order = LAC_ORDER(x->at_ns, y->at_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

/** What is allocated after each change, where the recorder did not say. */
static void sum_up(struct changes *changes)
{
    changes->is_relative = false;
    for (uint32_t i = 0; i < changes->count; i++) {
        changes->is_relative = changes->is_relative || changes->at[i].total < 0;
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < changes->count && changes->is_relative; i++) {
        sum = lac_saturate(sum + changes->at[i].bytes);
        changes->at[i].total = sum;
    }
}

static enum lac_status collect(const struct lac_model *model, struct changes *changes)
{
    const struct lac_slices *slices = &model->slices;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        uint64_t end = track->first + track->count;
        for (uint64_t i = track->first; i < end && track->kind == LAC_TRACK_MARKS; i++) {
            if (slices->kind[i] != LAC_SLICE_ALLOC || slices->detail[i] >= model->alloc_count) {
                continue;
            }
            const struct lac_alloc *alloc = &model->allocs[slices->detail[i]];
            if (alloc->device != changes->device) {
                continue;
            }
            if (!LAC_RESERVE(changes->at, changes->capacity, changes->count, 1)) {
                return LAC_ERR_NOMEM;
            }
            changes->at[changes->count++] = (struct change){
                slices->start_ns[i], lac_saturate(alloc->bytes),
                alloc->total_allocated < 0 ? -1 : lac_saturate(alloc->total_allocated), (uint32_t)i,
                0};
        }
    }
    if (changes->count > 1) {
        qsort(changes->at, changes->count, sizeof(*changes->at), by_time);
    }
    sum_up(changes);
    return LAC_OK;
}

/* -- what held the peak ------------------------------------------------------------------------ */

/** A change by what it is about: its address, else its size. */
struct about {
    int64_t key;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct about *x = a;
    const struct about *y = b;
    const int order = LAC_ORDER(x->key, y->key);
    return order != 0 ? order : LAC_ORDER(x->index, y->index);
}

/** Which allocations up to `last` were not released by then: an address is in use once; of sizes alone
 *  the latest goes first. */
static enum lac_status find_live(const struct lac_model *model, const struct changes *changes,
                                 uint32_t last, bool *is_live)
{
    struct about *about = malloc(((size_t)last + 1) * sizeof(*about));
    uint32_t *stack = malloc(((size_t)last + 1) * sizeof(*stack));
    if (about == NULL || stack == NULL) {
        free(about);
        free(stack);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i <= last; i++) {
        int64_t bytes = changes->at[i].bytes;
        int64_t address = lac_slice_integer(model, changes->at[i].slice, "\"Addr\":", -1);
        about[i] = (struct about){address >= 0 ? address : bytes < 0 ? bytes : -bytes, i};
    }
    qsort(about, (size_t)last + 1, sizeof(*about), by_key);
    uint32_t depth = 0;
    for (uint32_t a = 0; a <= last; a++) {
        if (a > 0 && about[a].key != about[a - 1].key) {
            depth = 0;
        }
        uint32_t i = about[a].index;
        is_live[i] = changes->at[i].bytes > 0;
        if (is_live[i]) {
            stack[depth++] = i;
        } else if (depth > 0) {
            is_live[stack[--depth]] = false;
        }
    }
    free(about);
    free(stack);
    return LAC_OK;
}

/** The outermost operator of a thread, or its optimizer, at ascending times. */
struct outermost {
    uint64_t next, end;
    int64_t end_ns;
    uint32_t name;
};

static uint32_t owner_at(const struct lac_facts *facts, struct outermost *outermost, int64_t at_ns)
{
    const struct lac_slices *slices = &facts->model->slices;
    for (; outermost->next < outermost->end && slices->start_ns[outermost->next] <= at_ns;
         outermost->next++) {
        uint64_t i = outermost->next;
        bool is_owner = slices->kind[i] == LAC_SLICE_OP ||
                        (slices->kind[i] == LAC_SLICE_RANGE &&
                         lac_host_class_of(facts, slices->name[i]) == LAC_HOST_OPTIMIZER);
        if (is_owner && slices->start_ns[i] >= outermost->end_ns) {
            outermost->end_ns = slices->start_ns[i] + slices->dur_ns[i];
            outermost->name = slices->name[i];
        }
    }
    return at_ns <= outermost->end_ns ? outermost->name : 0;
}

static int by_slice(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    return LAC_ORDER(x->slice, y->slice);
}

/** Who allocated each: the changes are put in the order of slices, so thread by thread. */
static void find_owners(const struct lac_facts *facts, struct change *at, uint32_t count)
{
    const struct lac_model *model = facts->model;
    qsort(at, count, sizeof(*at), by_slice);
    uint32_t track = LAC_NONE;
    struct outermost outermost = {0};
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = track != LAC_NONE &&
                       at[i].slice < model->tracks[track].first + model->tracks[track].count;
        if (!is_same) {
            track = lac_model_track_of(model, at[i].slice);
            uint32_t thread = lac_model_thread_of(model, track);
            outermost = (struct outermost){0};
            if (thread != LAC_NONE) {
                outermost.next = model->tracks[thread].first;
                outermost.end = outermost.next + model->tracks[thread].count;
            }
        }
        at[i].owner = owner_at(facts, &outermost, at[i].at_ns);
    }
}

static int by_owner(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    const int order = LAC_ORDER(x->owner, y->owner);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

static void add_holder(struct lac_memory_facts *memory, const char *name, int64_t bytes)
{
    uint32_t at = memory->holder_count;
    while (at > 0 && memory->holders[at - 1].bytes < bytes) {
        at--;
    }
    if (bytes <= 0 || at == LAC_MEMORY_HOLDERS_MAX) {
        return;
    }
    uint32_t count = memory->holder_count < LAC_MEMORY_HOLDERS_MAX ? memory->holder_count
                                                                   : LAC_MEMORY_HOLDERS_MAX - 1;
    memmove(&memory->holders[at + 1], &memory->holders[at],
            (count - at) * sizeof(memory->holders[0]));
    memory->holders[at] = (struct lac_memory_holder){name, bytes};
    memory->holder_count = count + 1;
}

/** The live allocations by who made them, and what was there before. */
static void sum_holders(const struct lac_facts *facts, struct change *live, uint32_t count,
                        struct lac_memory_facts *memory)
{
    struct lac_text **texts = &facts->analysis->texts;
    int64_t known = 0;
    qsort(live, count, sizeof(*live), by_owner);
    for (uint32_t i = 0; i < count;) {
        int64_t bytes = 0;
        uint32_t owner = live[i].owner;
        for (; i < count && live[i].owner == owner; i++) {
            bytes = lac_saturate(bytes + live[i].bytes);
        }
        known = lac_saturate(known + bytes);
        add_holder(memory,
                   owner == 0 ? "outside operators"
                              : lac_texts_add(texts, "%.120s", lac_model_str(facts->model, owner)),
                   bytes);
    }
    if (!memory->is_relative && memory->peak_bytes > known) {
        add_holder(memory, "before the recording", memory->peak_bytes - known);
    }
}

static enum lac_status find_holders(const struct lac_facts *facts, const struct changes *changes,
                                    uint32_t peak, struct lac_memory_facts *memory)
{
    bool *is_live = calloc((size_t)peak + 1, sizeof(*is_live));
    struct change *live = malloc(((size_t)peak + 1) * sizeof(*live));
    enum lac_status status = is_live != NULL && live != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        status = find_live(facts->model, changes, peak, is_live);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i <= peak && !status; i++) {
        if (is_live[i] || i == peak) {
            live[count++] = changes->at[i];
        }
    }
    if (!status) {
        find_owners(facts, live, count);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (live[i].slice == memory->peak_slice && live[i].owner != 0) {
                memory->peak_in = lac_texts_add(&facts->analysis->texts, "%.120s",
                                                lac_model_str(facts->model, live[i].owner));
            }
            if (live[i].bytes > 0) {
                live[kept++] = live[i];
            }
        }
        sum_holders(facts, live, kept, memory);
    }
    free(is_live);
    free(live);
    return status;
}

enum lac_status lac_gpu_allocations_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_memory_facts *memory = &analysis->memory;
    *memory = (struct lac_memory_facts){.device = -1,
                                        .start_bytes = LAC_UNKNOWN_NS,
                                        .reserved_bytes = LAC_UNKNOWN_NS,
                                        .device_bytes = LAC_UNKNOWN_NS,
                                        .peak_slice = LAC_NONE,
                                        .peak_in = ""};
    if (analysis->main_device == LAC_NONE || facts->model->alloc_count == 0) {
        return LAC_OK;
    }
    struct changes changes = {.device = analysis->devices[analysis->main_device].id};
    enum lac_status status = collect(facts->model, &changes);
    if (!status && changes.count > 0) {
        uint32_t peak = 0;
        for (uint32_t i = 1; i < changes.count; i++) {
            peak = changes.at[i].total > changes.at[peak].total ? i : peak;
        }
        const struct change *first = &changes.at[0];
        memory->event_count = changes.count;
        memory->device = changes.device;
        memory->is_relative = changes.is_relative;
        memory->peak_bytes = changes.at[peak].total > 0 ? changes.at[peak].total : 0;
        memory->peak_ns = changes.at[peak].at_ns;
        memory->peak_slice = changes.at[peak].slice;
        int64_t reserved = lac_slice_integer(facts->model, memory->peak_slice,
                                             "\"Total Reserved\":", LAC_UNKNOWN_NS);
        memory->reserved_bytes = reserved > 0 ? lac_saturate(reserved) : LAC_UNKNOWN_NS;
        int64_t before = lac_saturate(first->total - first->bytes);
        memory->start_bytes = changes.is_relative || before < 0 ? LAC_UNKNOWN_NS : before;
        uint32_t row = lac_model_device_index(facts->model, changes.device);
        int64_t bytes = row != LAC_NONE ? facts->model->devices[row].memory_bytes : 0;
        memory->device_bytes = bytes > 0 ? lac_saturate(bytes) : LAC_UNKNOWN_NS;
        status = find_holders(facts, &changes, peak, memory);
    }
    free(changes.at);
    return status;
}

/* -- over time --------------------------------------------------------------------------------- */

static const char *const said[] = {"tensors allocated (MB)",
                                   "tensors allocated since the recording began (MB)"};

static bool has_counter(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const char *name = lac_model_str(model, model->tracks[t].name);
        if (model->tracks[t].kind == LAC_TRACK_COUNTER &&
            (strstr(name, said[0]) != NULL || strstr(name, said[1]) != NULL)) {
            return true;
        }
    }
    return false;
}

static enum lac_status add_counter(struct lac_model *model, const struct changes *changes)
{
    uint32_t marks = lac_model_track_of(model, changes->at[0].slice);
    struct lac_track track = {.process = model->tracks[marks].process, .sort_index = -997};
    int64_t *ts_ns = malloc(changes->count * sizeof(*ts_ns));
    double *values = malloc(changes->count * sizeof(*values));
    enum lac_status status = ts_ns != NULL && values != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        char name[96];
        int length = snprintf(name, sizeof(name), "GPU %lld: %s", (long long)changes->device,
                              said[changes->is_relative]);
        status = lac_strings_intern(&model->strings, name, (size_t)length, &track.name);
    }
    if (!status) {
        for (uint32_t i = 0; i < changes->count; i++) {
            ts_ns[i] = changes->at[i].at_ns;
            values[i] = (double)changes->at[i].total / MEGABYTE;
        }
        status = lac_model_add_counter(model, &track, ts_ns, values, changes->count);
    }
    free(ts_ns);
    free(values);
    return status;
}

enum lac_status lac_gpu_allocations_add(struct lac_model *model)
{
    if (model->alloc_count == 0 || has_counter(model)) {
        return LAC_OK;
    }
    enum lac_status status = LAC_OK;
    for (uint32_t d = 0; d < model->device_count && d < DEVICES_MAX && !status; d++) {
        struct changes changes = {.device = model->devices[d].id};
        status = collect(model, &changes);
        if (!status && changes.count > 0) {
            status = add_counter(model, &changes);
        }
        free(changes.at);
    }
    return status;
}
