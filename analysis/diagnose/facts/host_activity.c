/*
 * What the threads that launch GPU work did, as sets of time per process: the material from which
 * idle time is explained.
 */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/model/grow.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_host_activity_done(struct lac_facts *facts)
{
    for (uint32_t h = 0; h < facts->host_count; h++) {
        struct lac_host *host = &facts->hosts[h];
        for (int s = 0; s < LAC_SET_COUNT_; s++) {
            lac_spans_done(&host->sets[s]);
        }
        lac_spans_done(&host->blocked);
        lac_spans_done(&host->waits_event);
        lac_spans_done(&host->queue_full);
        free(host->blocking);
        free(host->copy_blocking);
    }
    free(facts->hosts);
    free(facts->host_of_process);
    free(facts->fetches);
    free(facts->wait_marks.at);
    free(facts->step_marks.at);
    free(facts->step_like_marks.at);
    free(facts->optimizer_marks.at);
    free(facts->loader_parts.at);
    free(facts->alloc_marks.at);
    free(facts->other_work_marks.at);
    lac_spans_done(&facts->profiler);
    lac_spans_done(&facts->pauses);
    lac_spans_done(&facts->before_capture);
    lac_spans_done(&facts->queued);
    lac_spans_done(&facts->waits);
}

static enum lac_status mark(struct lac_facts *facts, struct lac_marks *marks, uint64_t slice,
                            uint32_t track)
{
    if (!LAC_RESERVE(marks->at, marks->capacity, marks->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    const struct lac_slices *slices = &facts->model->slices;
    marks->at[marks->count++] =
        (struct lac_mark){slices->start_ns[slice], slices->dur_ns[slice], (uint32_t)slice, track};
    return LAC_OK;
}

static enum lac_status add_fetch(struct lac_facts *facts, uint64_t slice)
{
    if (!LAC_RESERVE(facts->fetches, facts->fetch_capacity, facts->fetch_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    const struct lac_model *model = facts->model;
    struct lac_fetch fetch = {.start_ns = model->slices.start_ns[slice],
                              .dur_ns = model->slices.dur_ns[slice],
                              .batch = -1,
                              .cpu_ns = -1,
                              .worker = -1,
                              .slice = (uint32_t)slice};
    uint32_t row = model->slices.detail[slice];
    if (row != LAC_NONE && row < model->loader_info_count) {
        fetch.batch = model->loader_infos[row].batch;
        fetch.cpu_ns = model->loader_infos[row].cpu_ns;
        fetch.worker = model->loader_infos[row].worker;
    }
    facts->fetches[facts->fetch_count++] = fetch;
    return LAC_OK;
}

static enum lac_status push_call(struct lac_blocking_call **calls, uint64_t *count,
                                 uint64_t *capacity, struct lac_blocking_call call)
{
    if (LAC_GROW(*calls, capacity, *count + 1) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    (*calls)[(*count)++] = call;
    return LAC_OK;
}

static enum lac_status add_blocking(struct lac_host *host, int64_t start_ns, int64_t end_ns,
                                    uint64_t slice)
{
    struct lac_blocking_call call = {start_ns, end_ns, (uint32_t)slice};
    enum lac_status status =
        push_call(&host->blocking, &host->blocking_count, &host->blocking_capacity, call);
    return status ? status : lac_spans_add_unsorted(&host->blocked, start_ns, end_ns);
}

static enum lac_status add_launching(struct lac_host *host, int64_t start_ns, int64_t end_ns)
{
    return lac_spans_add_unsorted_bridged(&host->sets[LAC_SET_LAUNCH], start_ns, end_ns,
                                          LAUNCH_BRIDGE_NS);
}

/** Where a copy goes, as recorded, or LAC_COPY_UNKNOWN. */
static enum lac_copy_kind copy_kind_of(const struct lac_model *model, uint64_t slice)
{
    if (model->slices.kind[slice] != LAC_SLICE_COPY) {
        return LAC_COPY_UNKNOWN;
    }
    uint32_t row = model->slices.detail[slice];
    if (row == LAC_NONE || row >= model->copy_count) {
        return LAC_COPY_UNKNOWN;
    }
    return (enum lac_copy_kind)model->copies[row].copy_kind;
}

/** A copying call: towards the device it is copy_wait, back it blocks when it outlasts the copy. */
static enum lac_status add_copy_call(const struct lac_model *model, struct lac_host *host,
                                     uint64_t slice, bool is_blocking)
{
    const struct lac_slices *slices = &model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    uint32_t link = slices->link[slice];
    enum lac_copy_kind kind = link == LAC_NONE ? LAC_COPY_UNKNOWN : copy_kind_of(model, link);
    if (kind == LAC_COPY_HTOD) {
        /* from pageable memory the call lasts until the copy is done: the host was blocked */
        int64_t done_ns = slices->start_ns[link] + slices->dur_ns[link];
        if (end_ns >= done_ns - SYNC_RETURN_NS && slices->dur_ns[link] > SYNC_RETURN_NS) {
            struct lac_blocking_call call = {start_ns, end_ns, (uint32_t)slice};
            enum lac_status status = push_call(&host->copy_blocking, &host->copy_blocking_count,
                                               &host->copy_blocking_capacity, call);
            if (!status) {
                status = lac_spans_add_unsorted(&host->blocked, start_ns, end_ns);
            }
            if (status) {
                return status;
            }
        }
        return lac_spans_add_unsorted(&host->sets[LAC_SET_COPY], start_ns, end_ns);
    }
    bool outlasts = kind == LAC_COPY_DTOH &&
                    end_ns >= slices->start_ns[link] + slices->dur_ns[link] - SYNC_RETURN_NS;
    if (is_blocking || outlasts) {
        return add_blocking(host, start_ns, end_ns, slice);
    }
    return add_launching(host, start_ns, end_ns);
}

/** Whether the linked kernel is the first of its name: its launch may load its module. */
static bool is_first_of_its_name(const struct lac_facts *facts, uint64_t call)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t work = slices->link[call];
    if (work == LAC_NONE || slices->kind[work] != LAC_SLICE_KERNEL) {
        return false;
    }
    uint32_t row = facts->kernel_row[slices->name[work]];
    return facts->analysis->kernels[row].first_slice == work;
}

static enum lac_status add_call(struct lac_facts *facts, struct lac_host *host, uint64_t slice)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    enum lac_status status = LAC_OK;
    switch (lac_api_class_of(facts, slices->name[slice])) {
    case LAC_API_LAUNCH:
        host->launch_count++;
        if (end_ns - start_ns >= FIRST_LAUNCH_MIN_NS && is_first_of_its_name(facts, slice)) {
            facts->has_module_work = true;
            status = lac_spans_add_unsorted(&host->sets[LAC_SET_MODULE], start_ns, end_ns);
        } else if (end_ns - start_ns >= QUEUE_FULL_MIN_NS) {
            struct lac_blocking_call call = {start_ns + LAUNCH_USUAL_NS, end_ns, (uint32_t)slice};
            status = lac_spans_add_unsorted(&host->queue_full, call.start_ns, end_ns);
            if (!status) { /* it returns when the device has made room: it moves with the device */
                status = push_call(&host->copy_blocking, &host->copy_blocking_count,
                                   &host->copy_blocking_capacity, call);
            }
        }
        return status ? status : add_launching(host, start_ns, end_ns);
    case LAC_API_SYNC:
        return add_blocking(host, start_ns, end_ns, slice);
    case LAC_API_COPY:
        host->launch_count++;
        return add_copy_call(facts->model, host, slice, false);
    case LAC_API_COPY_BLOCKING:
        host->launch_count++;
        return add_copy_call(facts->model, host, slice, true);
    case LAC_API_ALLOC:
        status = mark(facts, &facts->alloc_marks, slice, LAC_NONE);
        if (status) {
            return status;
        }
        return lac_spans_add_unsorted(&host->sets[LAC_SET_ALLOC], start_ns, end_ns);
    case LAC_API_MODULE:
        if (end_ns - start_ns < MODULE_MIN_NS) {
            return LAC_OK;
        }
        facts->has_module_work = true;
        return lac_spans_add_unsorted(&host->sets[LAC_SET_MODULE], start_ns, end_ns);
    case LAC_API_QUERY: /* a row of them is one wait: add_spin() */
        return LAC_OK;
    case LAC_API_WAIT_EVENT:
        return lac_spans_add_unsorted(&host->waits_event, start_ns, start_ns + 1);
    case LAC_API_OTHER:
    case LAC_API_CLASS_COUNT_:
        break;
    }
    return LAC_OK;
}

/** The row of queries that begins there, as a call that waits. @return the slice behind it */
static enum lac_status add_spin(const struct lac_facts *facts, struct lac_host *host,
                                uint64_t slice, uint64_t *ret_behind)
{
    const struct lac_slices *slices = &facts->model->slices;
    struct lac_spin spin;
    bool is_query = slices->kind[slice] == LAC_SLICE_API &&
                    lac_api_class_of(facts, slices->name[slice]) == LAC_API_QUERY;
    if (slice < *ret_behind || !is_query) {
        return LAC_OK;
    }
    bool is_spin = lac_spin_at(facts, slice, &spin);
    *ret_behind = spin.last + 1;
    return is_spin ? add_blocking(host, slices->start_ns[slice], spin.end_ns, slice) : LAC_OK;
}

/** Whether a range's name says work beside the training itself. Looked up once a name. */
static bool is_other_work(struct lac_facts *facts, uint32_t id)
{
    uint8_t *known = &facts->other_work[id];
    if (*known == UINT8_MAX) {
        *known = (uint8_t)lac_step_kind_of(lac_model_str(facts->model, id));
    }
    return *known != LAC_KIND_TRAIN;
}

/** Whether a range says which step it is, as StepTraceAnnotation of JAX and TensorFlow does: in its
 *  arguments. Looked up once for arguments of one kind. */
static bool has_step_number(struct lac_facts *facts, uint32_t args)
{
    enum { NOT_LOOKED_UP, NONE, NUMBERED };
    uint8_t *known = &facts->step_numbers[args];
    if (*known == NOT_LOOKED_UP) {
        bool is_there = strstr(lac_model_str(facts->model, args), "\"step_num\"") != NULL;
        *known = is_there ? NUMBERED : NONE;
    }
    return *known == NUMBERED;
}

static enum lac_status add_range(struct lac_facts *facts, struct lac_host *host, uint64_t slice,
                                 uint32_t track)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    enum lac_status status;
    switch (lac_host_class_of(facts, slices->name[slice])) {
    case LAC_HOST_LOADER_WAIT:
        status = mark(facts, &facts->wait_marks, slice, track);
        if (status) {
            return status;
        }
        status = lac_spans_add_unsorted(&facts->waits, start_ns, end_ns);
        if (status || host == NULL) {
            return status;
        }
        return lac_spans_add_unsorted(&host->sets[LAC_SET_WAIT], start_ns, end_ns);
    case LAC_HOST_LOADER_FETCH:
        return add_fetch(facts, slice);
    case LAC_HOST_LOADER_PART:
        return mark(facts, &facts->loader_parts, slice, track);
    case LAC_HOST_STEP:
        return mark(facts, &facts->step_marks, slice, track);
    case LAC_HOST_STEP_LIKE:
        return mark(facts, &facts->step_like_marks, slice, track);
    case LAC_HOST_OPTIMIZER:
        return mark(facts, &facts->optimizer_marks, slice, track);
    case LAC_HOST_COMM:
        if (host == NULL) {
            return LAC_OK;
        }
        return lac_spans_add_unsorted(&host->sets[LAC_SET_COMM], start_ns, end_ns);
    case LAC_HOST_COMPILE:
        if (host == NULL) {
            return LAC_OK;
        }
        facts->has_module_work = true;
        return lac_spans_add_unsorted(&host->sets[LAC_SET_MODULE], start_ns, end_ns);
    case LAC_HOST_OTHER:
        if (slices->kind[slice] != LAC_SLICE_OP && /* of old profilers no kind is known */
            is_other_work(facts, slices->name[slice])) {
            return mark(facts, &facts->other_work_marks, slice, track);
        }
        if (has_step_number(facts, slices->args[slice])) {
            return mark(facts, &facts->step_like_marks, slice, track);
        }
        break;
    case LAC_HOST_PROFILER:
    case LAC_HOST_BACKWARD:
    case LAC_HOST_CLASS_COUNT_:
        break;
    }
    return LAC_OK;
}

static enum lac_status add_overhead(struct lac_facts *facts, uint64_t slice,
                                    struct lac_spans *modules)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    switch (lac_host_class_of(facts, slices->name[slice])) {
    case LAC_HOST_PROFILER:
        facts->profiler_count++;
        return lac_spans_add_unsorted(&facts->profiler, start_ns, end_ns);
    case LAC_HOST_COMPILE:
        facts->has_module_work = true;
        return lac_spans_add_unsorted(modules, start_ns, end_ns);
    case LAC_HOST_LOADER_WAIT:
    case LAC_HOST_LOADER_FETCH:
    case LAC_HOST_LOADER_PART:
    case LAC_HOST_STEP:
    case LAC_HOST_STEP_LIKE:
    case LAC_HOST_OPTIMIZER:
    case LAC_HOST_COMM:
    case LAC_HOST_BACKWARD:
    case LAC_HOST_OTHER:
    case LAC_HOST_CLASS_COUNT_:
        break;
    }
    return LAC_OK;
}

/** Whether a slice says what the host works at: operators, Python functions, and ranges of the user's
 *  own, not those that say what it waits for. */
static bool is_work_kind(const struct lac_facts *facts, uint64_t slice)
{
    const struct lac_slices *slices = &facts->model->slices;
    const uint8_t kind = slices->kind[slice];
    return kind == LAC_SLICE_OP || kind == LAC_SLICE_PYTHON ||
           (kind == LAC_SLICE_RANGE &&
            lac_host_class_of(facts, slices->name[slice]) == LAC_HOST_OTHER);
}

/** The host's own work: ranges of a thread, longest first, in which no call to the GPU begins. Rows
 *  of a track are in order of start, the one around another first. */
static enum lac_status collect_work(const struct lac_facts *facts, struct lac_host *host,
                                    uint32_t track)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint64_t first = facts->model->tracks[track].first;
    int64_t call_ns = INT64_MAX; /* the first call at or after this row, from the end on */
    for (uint64_t i = first + facts->model->tracks[track].count; i > first; i--) {
        uint64_t slice = i - 1;
        uint8_t kind = slices->kind[slice];
        int64_t start_ns = slices->start_ns[slice];
        if (kind == LAC_SLICE_API) {
            bool counts = lac_api_class_of(facts, slices->name[slice]) != LAC_API_OTHER;
            call_ns = counts ? start_ns : call_ns;
            continue;
        }
        bool is_work = slices->dur_ns[slice] >= WORK_MIN_NS &&
                       start_ns + slices->dur_ns[slice] <= call_ns && is_work_kind(facts, slice);
        if (is_work) {
            enum lac_status status = lac_spans_add_unsorted(&host->sets[LAC_SET_WORK], start_ns,
                                                            start_ns + slices->dur_ns[slice]);
            if (status) {
                return status;
            }
        }
    }
    return LAC_OK;
}

static enum lac_status collect_track(struct lac_facts *facts, uint32_t track,
                                     struct lac_spans *modules)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    struct lac_host *host = NULL;
    if (facts->track_flags[track] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) {
        uint32_t process = model->tracks[track].process;
        uint32_t index =
            process < model->process_count ? facts->host_of_process[process] : LAC_NONE;
        if (index != LAC_NONE) {
            host = &facts->hosts[index];
        }
    }
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    uint64_t spun = 0; /* queries before this slice were seen */
    for (uint64_t i = model->tracks[track].first; i < end; i++) {
        uint8_t kind = slices->kind[i];
        enum lac_status status = LAC_OK;
        if (kind == LAC_SLICE_API) {
            if (host != NULL) {
                status = add_call(facts, host, i);
                status = status ? status : add_spin(facts, host, i, &spun);
            }
        } else if (kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER) {
            status = add_range(facts, host, i, track);
        } else if (kind == LAC_SLICE_OVERHEAD) {
            status = add_overhead(facts, i, modules);
        } else if (kind != LAC_SLICE_PYTHON) {
            continue;
        }
        if (status) {
            return status;
        }
        if (host == NULL || slices->lane[i] != 0) {
            continue;
        }
        status = lac_spans_add_unsorted(&host->sets[LAC_SET_BUSY], slices->start_ns[i],
                                        slices->start_ns[i] + slices->dur_ns[i]);
        if (status) {
            return status;
        }
    }
    return host != NULL ? collect_work(facts, host, track) : LAC_OK;
}

/** One host for each process with a thread that launches or trains. */
static enum lac_status hosts_create(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    size_t process_count = model->process_count ? model->process_count : 1;
    facts->host_of_process = malloc(process_count * sizeof(uint32_t));
    if (facts->host_of_process == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(facts->host_of_process, 0xff, process_count * sizeof(uint32_t));
    uint32_t count = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        uint32_t process = model->tracks[t].process;
        if (!(facts->track_flags[t] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) ||
            process >= model->process_count || facts->host_of_process[process] != LAC_NONE) {
            continue;
        }
        facts->host_of_process[process] = count++;
    }
    facts->hosts = calloc(count ? count : 1, sizeof(*facts->hosts));
    if (facts->hosts == NULL) {
        return LAC_ERR_NOMEM;
    }
    facts->host_count = count;
    for (uint32_t p = 0; p < model->process_count; p++) {
        uint32_t index = facts->host_of_process[p];
        if (index != LAC_NONE) {
            facts->hosts[index].process = p;
        }
    }
    return LAC_OK;
}

static int by_call_start(const void *a, const void *b)
{
    const struct lac_blocking_call *x = a;
    const struct lac_blocking_call *y = b;
    const int order = LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

static int by_mark_start(const void *a, const void *b)
{
    const struct lac_mark *x = a;
    const struct lac_mark *y = b;
    const int order = LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

static int by_fetch_start(const void *a, const void *b)
{
    const struct lac_fetch *x = a;
    const struct lac_fetch *y = b;
    const int order = LAC_ORDER(x->start_ns, y->start_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

void lac_marks_sort(struct lac_marks *marks)
{
    if (marks->count > 1) {
        qsort(marks->at, marks->count, sizeof(*marks->at), by_mark_start);
    }
}

uint64_t lac_marks_between(const struct lac_marks *marks, int64_t start_ns, int64_t end_ns,
                           uint64_t *ret_first)
{
    uint64_t first = 0;
    uint64_t behind = 0;
    LAC_BISECT(first, marks->count, middle, marks->at[middle].start_ns < start_ns);
    LAC_BISECT(behind, marks->count, middle, marks->at[middle].start_ns < end_ns);
    if (ret_first != NULL) {
        *ret_first = first;
    }
    return behind - first;
}

uint32_t lac_marks_majority_track(const struct lac_marks *marks)
{
    uint32_t track = LAC_NONE;
    uint64_t lead = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        if (lead == 0) {
            track = marks->at[i].track;
        }
        lead = marks->at[i].track == track ? lead + 1 : lead - 1;
    }
    return track;
}

/** One wait seen twice, by the framework and by a range inside it, is one wait for one batch: the
 *  outer one's time, and the slice that knows the batch. */
static void join_nested_waits(struct lac_facts *facts)
{
    struct lac_marks *marks = &facts->wait_marks;
    const struct lac_slices *slices = &facts->model->slices;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        struct lac_mark mark = marks->at[i];
        struct lac_mark *before = NULL;
        for (uint64_t back = 1; back <= 4 && back <= kept && before == NULL; back++) {
            struct lac_mark *at = &marks->at[kept - back];
            bool is_inside = at->track == mark.track &&
                             mark.start_ns + mark.dur_ns <= at->start_ns + at->dur_ns &&
                             at->dur_ns > 0;
            before = is_inside ? at : NULL;
        }
        if (before == NULL) {
            marks->at[kept++] = mark;
        } else if (slices->detail[before->slice] == LAC_NONE &&
                   slices->detail[mark.slice] != LAC_NONE) {
            before->slice = mark.slice;
        }
    }
    marks->count = kept;
}

/** Where no fetch says which worker it is: each thread that fetches and never waits for a batch is
 *  one, in the order of their tracks. Fetches are still in the order of slices here. */
static enum lac_status name_workers(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        if (facts->fetches[i].worker >= 0) {
            return LAC_OK;
        }
    }
    bool *trains = calloc((size_t)model->track_count + 1, sizeof(*trains));
    if (trains == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < facts->wait_marks.count; i++) {
        trains[facts->wait_marks.at[i].track] = true;
    }
    uint32_t last = LAC_NONE;
    int32_t worker = -1;
    int32_t next = 0;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        uint32_t track = lac_model_track_of(model, facts->fetches[i].slice);
        if (track != last) {
            worker = trains[track] ? -1 : next++;
        }
        last = track;
        facts->fetches[i].worker = worker;
    }
    free(trains);
    return LAC_OK;
}

/** What a thread seems to work at while another one of its process launches, it waits for: as the
 *  training thread does in the backward pass. */
static void leave_out_waiting(struct lac_host *host)
{
    struct lac_spans *work = &host->sets[LAC_SET_WORK];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        struct lac_span at = work->at[i];
        if (lac_spans_length_inside(&host->sets[LAC_SET_LAUNCH], at.start_ns, at.end_ns) == 0) {
            work->at[kept++] = at;
        }
    }
    work->count = kept;
}

static enum lac_status hosts_finish(struct lac_facts *facts, const struct lac_spans *modules)
{
    for (uint32_t h = 0; h < facts->host_count; h++) {
        struct lac_host *host = &facts->hosts[h];
        for (uint64_t i = 0; i < modules->count; i++) {
            enum lac_status status = lac_spans_add_unsorted(
                &host->sets[LAC_SET_MODULE], modules->at[i].start_ns, modules->at[i].end_ns);
            if (status) {
                return status;
            }
        }
        for (int s = 0; s < LAC_SET_COUNT_; s++) {
            if (s == LAC_SET_WORK) {
                leave_out_waiting(host);
            }
            lac_spans_normalize(&host->sets[s], s == LAC_SET_LAUNCH ? LAUNCH_BRIDGE_NS : 0);
        }
        lac_spans_normalize(&host->blocked, 0);
        lac_spans_normalize(&host->queue_full, 0);
        if (host->copy_blocking_count > 1) {
            qsort(host->copy_blocking, host->copy_blocking_count, sizeof(*host->copy_blocking),
                  by_call_start);
        }
        lac_spans_normalize(&host->waits_event, 0);
        if (host->blocking_count > 1) {
            qsort(host->blocking, host->blocking_count, sizeof(*host->blocking), by_call_start);
        }
    }
    facts->main_host = LAC_NONE;
    for (uint32_t h = 0; h < facts->host_count; h++) {
        if (facts->main_host == LAC_NONE ||
            facts->hosts[h].launch_count > facts->hosts[facts->main_host].launch_count) {
            facts->main_host = h;
        }
    }
    lac_spans_normalize(&facts->profiler, 0);
    lac_spans_normalize(&facts->waits, 0);
    lac_marks_sort(&facts->wait_marks);
    join_nested_waits(facts);
    lac_marks_sort(&facts->step_marks);
    lac_marks_sort(&facts->other_work_marks);
    lac_marks_sort(&facts->step_like_marks);
    lac_marks_sort(&facts->optimizer_marks);
    lac_marks_sort(&facts->loader_parts);
    lac_marks_sort(&facts->alloc_marks);
    enum lac_status status = name_workers(facts);
    if (facts->fetch_count > 1) {
        qsort(facts->fetches, facts->fetch_count, sizeof(*facts->fetches), by_fetch_start);
    }
    return status;
}

enum lac_status lac_host_activity_collect(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    enum lac_status status = hosts_create(facts);
    struct lac_spans modules = {0};
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        enum lac_track_kind kind = model->tracks[t].kind;
        if (kind != LAC_TRACK_THREAD) {
            continue;
        }
        status = collect_track(facts, t, &modules);
    }
    if (!status) {
        status = hosts_finish(facts, &modules);
    }
    lac_spans_done(&modules);
    return status;
}

/* -- several processes in one recording -------------------------------------------------------- */

static uint32_t host_of_track(const struct lac_facts *facts, uint32_t track)
{
    const uint32_t process = facts->model->tracks[track].process;
    return process < facts->model->process_count ? facts->host_of_process[process] : LAC_NONE;
}

/** Count for each host the operations of a device's stream that it launched. */
static void count_launched(const struct lac_facts *facts, const struct lac_track *stream,
                           uint64_t *counts)
{
    const struct lac_model *model = facts->model;
    uint32_t track = 0; /* of the call before: mostly the next one is there, too */
    for (uint64_t i = stream->first; i < stream->first + stream->count; i++) {
        const uint32_t call = model->slices.link[i];
        if (call == LAC_NONE) {
            continue;
        }
        const struct lac_track *last = &model->tracks[track];
        if (call < last->first || call >= last->first + last->count) {
            track = lac_model_track_of(model, call);
        }
        const uint32_t host = host_of_track(facts, track);
        if (host != LAC_NONE) {
            counts[host]++;
        }
    }
}

enum lac_status lac_main_host_choose(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    if (facts->host_count < 2 || analysis->main_device == LAC_NONE) {
        return LAC_OK;
    }
    uint64_t *counts = calloc(facts->host_count, sizeof(*counts));
    if (counts == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *stream = &model->tracks[t];
        if ((facts->track_flags[t] & LAC_TRACK_HAS_GPU) != 0 &&
            stream->device == analysis->devices[analysis->main_device].id) {
            count_launched(facts, stream, counts);
        }
    }
    for (uint32_t h = 0; h < facts->host_count; h++) {
        if (counts[h] > counts[facts->main_host]) {
            facts->main_host = h;
        }
    }
    free(counts);
    return LAC_OK;
}

/** Whether the thread is of a process that trains beside the main host; at a GPU, where that is asked
 *  for. */
static bool is_of_another(const struct lac_facts *facts, uint32_t track, bool at_gpu)
{
    const uint32_t host = host_of_track(facts, track);
    return host != LAC_NONE && host != facts->main_host &&
           (!at_gpu || facts->hosts[host].launch_count > 0);
}

static uint32_t track_of_mark(const struct lac_facts *facts, const struct lac_mark *mark)
{
    return mark->track != LAC_NONE ? mark->track : lac_model_track_of(facts->model, mark->slice);
}

/** Marks of the main host and of what does not train; all, where the main host has none. */
static void keep_own_marks(const struct lac_facts *facts, struct lac_marks *marks, bool at_gpu)
{
    bool has_own = false;
    for (uint64_t i = 0; i < marks->count && !has_own; i++) {
        has_own = host_of_track(facts, track_of_mark(facts, &marks->at[i])) == facts->main_host;
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < marks->count && has_own; i++) {
        if (!is_of_another(facts, track_of_mark(facts, &marks->at[i]), at_gpu)) {
            marks->at[kept++] = marks->at[i];
        }
    }
    marks->count = has_own ? kept : marks->count;
}

/** Waits of the threads that compute, where some of these wait: another one of the process that takes
 *  batches from a loader fills a queue, and does not hold the training up by itself. Where it alone
 *  waits, its waits are all that is known. */
static void keep_training_waits(struct lac_facts *facts)
{
    struct lac_marks *waits = &facts->wait_marks;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < waits->count; i++) {
        if (facts->track_flags[track_of_mark(facts, &waits->at[i])] & LAC_TRACK_COMPUTES) {
            waits->at[kept++] = waits->at[i];
        }
    }
    waits->count = kept > 0 ? kept : waits->count;
}

enum lac_status lac_main_host_follow(struct lac_facts *facts)
{
    struct lac_marks *const all[] = {&facts->wait_marks, &facts->step_like_marks,
                                     &facts->optimizer_marks, &facts->other_work_marks,
                                     &facts->alloc_marks};
    const uint64_t wait_count = facts->wait_marks.count;
    for (size_t i = 0; i < LAC_COUNT_OF(all) && facts->host_count > 1; i++) {
        keep_own_marks(facts, all[i], true);
    }
    if (facts->host_count > 1) {
        keep_own_marks(facts, &facts->step_marks, false);
    }
    keep_training_waits(facts);
    if (facts->wait_marks.count == wait_count) {
        return LAC_OK;
    }
    facts->waits.count = 0;
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0; i < facts->wait_marks.count && !status; i++) {
        const struct lac_mark *wait = &facts->wait_marks.at[i];
        status =
            lac_spans_add_unsorted(&facts->waits, wait->start_ns, wait->start_ns + wait->dur_ns);
    }
    lac_spans_normalize(&facts->waits, 0);
    return status;
}
