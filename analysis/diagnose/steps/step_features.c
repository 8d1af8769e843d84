/* What the host did in each step, as far as it tells training from other work. */

#include "analysis/diagnose/steps/step_kinds.h"
#include "analysis/diagnose/steps/step_pace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -- names ------------------------------------------------------------------------------------- */

enum { SAYS_NOTHING = 0, SAYS_SAVING, SAYS_LOADER, NOT_LOOKED_UP = 0xff };

/** What a function's name says: files of PyTorch and its companions that write a state, and the
 *  making of a loader's iterator. */
static uint8_t says(const char *name)
{
    bool is_saving = (strstr(name, "serialization.py") != NULL && strstr(name, ": save") != NULL) ||
                     strstr(name, "state_dict_saver.py") != NULL ||
                     strstr(name, "_save_checkpoint") != NULL ||
                     (strstr(name, "safetensors") != NULL && strstr(name, ": save") != NULL);
    if (is_saving) {
        return SAYS_SAVING;
    }
    bool is_loader =
        strstr(name, "dataloader.py") != NULL || strstr(name, "DataLoaderIter") != NULL;
    bool begins = strstr(name, "__init__") != NULL || strstr(name, "__iter__") != NULL;
    return is_loader && begins ? SAYS_LOADER : SAYS_NOTHING;
}

/* -- what each step holds ---------------------------------------------------------------------- */

static int64_t bytes_to_host(const struct lac_model *model, uint64_t copy)
{
    uint32_t row = model->slices.detail[copy];
    if (row >= model->copy_count || model->copies[row].copy_kind != LAC_COPY_DTOH) {
        return 0;
    }
    return model->copies[row].bytes > 0 ? model->copies[row].bytes : 0;
}

static void add_call(const struct lac_facts *facts, struct lac_step_features *work, uint64_t call)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t launched = slices->link[call];
    if (launched == LAC_NONE) {
        return;
    }
    if (slices->kind[launched] == LAC_SLICE_KERNEL) {
        work->optimizer += lac_kernel_class_of(facts, launched)->family == LAC_FAMILY_OPTIMIZER;
    } else if (slices->kind[launched] == LAC_SLICE_COPY) {
        work->to_host_bytes =
            lac_sum_ns(work->to_host_bytes, bytes_to_host(facts->model, launched));
    }
}

static void add_range(struct lac_facts *facts, struct lac_step_features *work, uint64_t slice)
{
    const struct lac_slices *slices = &facts->model->slices;
    work->operators += slices->kind[slice] != LAC_SLICE_RANGE; /* or of no kind that is known */
    enum lac_host_class host_class = lac_host_class_of(facts, slices->name[slice]);
    if (host_class == LAC_HOST_BACKWARD) {
        int64_t start_ns = slices->start_ns[slice];
        bool is_first = work->backward++ == 0 || start_ns < work->first_backward_ns;
        work->first_backward_ns = is_first ? start_ns : work->first_backward_ns;
        if (start_ns > work->last_backward_ns) {
            work->last_backward_ns = start_ns;
        }
    }
    work->optimizer += host_class == LAC_HOST_OPTIMIZER;
}

static void add_named(const struct lac_slices *slices, struct lac_step_features *work,
                      uint64_t slice, uint8_t what)
{
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    if (what == SAYS_LOADER) {
        work->makes_loader = true;
        return;
    }
    bool is_first = work->saving_end_ns == 0;
    if (is_first || start_ns < work->saving_start_ns) {
        work->saving_start_ns = start_ns;
    }
    work->saving_end_ns = end_ns > work->saving_end_ns ? end_ns : work->saving_end_ns;
}

static void add_track(struct lac_kind_search *search, const struct lac_track *track, uint8_t *names)
{
    struct lac_facts *facts = search->facts;
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t at = 0;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        uint8_t kind = slices->kind[i];
        bool is_range = kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER;
        uint8_t what = SAYS_NOTHING;
        if (is_range || kind == LAC_SLICE_PYTHON) {
            uint8_t *known = &names[slices->name[i]];
            *known = *known == NOT_LOOKED_UP ? says(lac_model_str(facts->model, slices->name[i]))
                                             : *known;
            what = *known;
        }
        if (!is_range && kind != LAC_SLICE_API && what == SAYS_NOTHING) {
            continue;
        }
        uint32_t found = lac_step_at(facts->analysis, slices->start_ns[i], at);
        if (found == LAC_NONE) {
            continue;
        }
        at = found;
        const struct lac_step *step = &facts->analysis->steps[at];
        if (slices->start_ns[i] >= step->start_ns + step->dur_ns) {
            continue;
        }
        if (kind == LAC_SLICE_API) {
            add_call(facts, &search->works[at], i);
        } else if (is_range) {
            add_range(facts, &search->works[at], i);
        }
        if (what != SAYS_NOTHING) {
            add_named(slices, &search->works[at], i, what);
        }
    }
}

/** Waits of the thread that waits most: the training's. */
static void add_waits(struct lac_kind_search *search)
{
    const struct lac_facts *facts = search->facts;
    const struct lac_model *model = facts->model;
    uint32_t track = lac_marks_majority_track(&facts->wait_marks);
    uint32_t at = 0;
    for (uint64_t i = 0; i < facts->wait_marks.count; i++) {
        const struct lac_mark *wait = &facts->wait_marks.at[i];
        uint32_t found = lac_step_at(facts->analysis, wait->start_ns, at);
        if (wait->track != track || found == LAC_NONE) {
            continue;
        }
        at = found;
        const struct lac_step *step = &facts->analysis->steps[at];
        if (wait->start_ns >= step->start_ns + step->dur_ns) {
            continue;
        }
        struct lac_step_features *work = &search->works[at];
        uint32_t row = model->slices.detail[wait->slice];
        int64_t batch = row < model->loader_info_count ? model->loader_infos[row].batch : -1;
        if (work->waits++ == 0) {
            work->first_batch = batch;
        }
        bool is_behind = work->backward > 0 && wait->start_ns > work->last_backward_ns;
        if (is_behind && work->wait_after_backward_ns == 0) {
            work->wait_after_backward_ns = wait->start_ns;
        }
        work->last_batch = batch;
        work->last_wait_ns = wait->start_ns;
        work->last_wait_end_ns = wait->start_ns + wait->dur_ns;
    }
}

/* -- what is usual ----------------------------------------------------------------------------- */

static int64_t median(int64_t *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), lac_by_int64);
    return count == 0 ? 0 : values[(count - 1) / 2];
}

enum what { OF_OPS, OF_OPERATORS, OF_OWN, OF_BACKWARD, OF_WAITS, OF_WAIT_NS, OF_BYTES };

static int64_t value_of(const struct lac_step *step, const struct lac_step_features *work,
                        enum what what)
{
    switch (what) {
    case OF_OPS:
        return (int64_t)step->op_count;
    case OF_OPERATORS:
        return work->operators;
    case OF_OWN:
        return lac_step_own_ns(step);
    case OF_BACKWARD:
        return work->backward;
    case OF_WAITS:
        return work->waits;
    case OF_WAIT_NS:
        return step->wait_ns;
    case OF_BYTES:
        return work->to_host_bytes;
    }
    return 0;
}

static int64_t median_of(struct lac_kind_search *search, enum what what)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    uint32_t count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (analysis->steps[s].kind == LAC_KIND_TRAIN &&
            (!search->usual.validates_longer || search->works[s].backward > 0)) {
            search->scratch[count++] = value_of(&analysis->steps[s], &search->works[s], what);
        }
    }
    return median(search->scratch, count);
}

/** Whether most steps are of validations that take more batches than the training between them: runs of
 *  steps that have a backward pass and an update, and runs that have neither. What alternates step by
 *  step is one kind of work in several steps. */
static bool validates_longer(const struct lac_kind_search *search)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    uint32_t count = 0;
    uint32_t trains = 0;
    uint32_t runs = 0;
    bool trained = false;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step_features *work = &search->works[s];
        if (analysis->steps[s].kind != LAC_KIND_TRAIN || work->operators == 0) {
            continue;
        }
        bool has_backward = work->backward > 0;
        if (has_backward != (work->optimizer > 0)) {
            return false;
        }
        runs += count == 0 || has_backward != trained;
        trained = has_backward;
        trains += has_backward;
        count++;
    }
    return trains * 2 < count && trains >= VALIDATED_STEPS_MIN * count &&
           count >= RUN_OF_STEPS_MIN * runs && runs > 1;
}

static void find_usual(struct lac_kind_search *search)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    struct lac_step_usual *usual = &search->usual;
    usual->validates_longer = validates_longer(search);
    usual->ops = median_of(search, OF_OPS);
    usual->operators = median_of(search, OF_OPERATORS);
    usual->own_ns = median_of(search, OF_OWN);
    usual->backward = median_of(search, OF_BACKWARD);
    usual->waits = median_of(search, OF_WAITS);
    usual->wait_ns = median_of(search, OF_WAIT_NS);
    usual->to_host_bytes = median_of(search, OF_BYTES);
    uint32_t count = 0;
    uint32_t alike = 0;
    uint32_t backward = 0;
    uint32_t optimizer = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->kind != LAC_KIND_TRAIN) {
            continue;
        }
        count++;
        alike += llabs((int64_t)step->op_count - usual->ops) <= usual->ops / 20 + 2;
        backward += search->works[s].backward > 0;
        optimizer += search->works[s].optimizer > 0;
    }
    usual->are_alike = (uint64_t)alike * 3 >= (uint64_t)count * 2;
    usual->trains_by_host = count > 0 && (backward * 2 >= count || usual->validates_longer);
    usual->trains_by_kernels = count > 0 && optimizer * 2 >= count && !analysis->is_step_micro;
}

bool lac_step_does_nothing(const struct lac_kind_search *search, uint32_t step)
{
    const struct lac_step_usual *usual = &search->usual;
    if (usual->ops > 0) {
        return search->facts->analysis->steps[step].op_count == 0;
    }
    return usual->operators > 0 && (int64_t)search->works[step].operators * 10 <= usual->operators;
}

enum lac_status lac_step_features_collect(struct lac_kind_search *search)
{
    struct lac_facts *facts = search->facts;
    const struct lac_model *model = facts->model;
    size_t name_count = model->strings.count ? model->strings.count : 1;
    uint8_t *names = malloc(name_count);
    if (names == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(names, NOT_LOOKED_UP, name_count);
    for (uint32_t s = 0; s < facts->analysis->step_count; s++) {
        search->works[s] = (struct lac_step_features){.first_batch = -1, .last_batch = -1};
    }
    for (uint32_t t = 0; t < model->recorded_track_count && !facts->has_device_steps; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool trains = track->kind == LAC_TRACK_THREAD && track->process < model->process_count &&
                      facts->host_of_process[track->process] != LAC_NONE;
        if (trains) {
            add_track(search, track, names);
        }
    }
    if (!facts->has_device_steps) {
        add_waits(search);
    }
    find_usual(search);
    free(names);
    return LAC_OK;
}
