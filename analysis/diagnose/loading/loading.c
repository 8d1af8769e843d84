/* Why batches come late: what the trace recorded of it, measured once for all findings. */

#include "analysis/diagnose/loading/loading.h"

#include "analysis/diagnose/facts/program.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CORES_MAX = 65536, WORKERS_MAX = 4096, COPIES_MAX = 8 };

void lac_loading_destroy(struct lac_loading *loading)
{
    if (loading != NULL) {
        free(loading->threads);
        free(loading);
    }
}

/* -- workers and their fetches ----------------------------------------------------------------- */

static int by_worker(const void *a, const void *b)
{
    const struct lac_worker_thread *x = a;
    const struct lac_worker_thread *y = b;
    int order = LAC_ORDER(x->worker, y->worker);
    order = order != 0 ? order : LAC_ORDER(x->track, y->track);
    return order != 0 ? order : LAC_ORDER(x->first_ns, y->first_ns);
}

static int by_worker_time(const void *a, const void *b)
{
    const struct lac_worker_thread *x = a;
    const struct lac_worker_thread *y = b;
    const int order = LAC_ORDER(x->worker, y->worker);
    return order != 0 ? order : LAC_ORDER(x->first_ns, y->first_ns);
}

/** One entry for each thread that fetched as a worker. */
static enum lac_status collect_threads(const struct lac_facts *facts, struct lac_loading *loading)
{
    const struct lac_model *model = facts->model;
    uint64_t most = facts->fetch_count < (uint64_t)UINT32_MAX ? facts->fetch_count : 0;
    struct lac_worker_thread *threads = malloc((most + 1) * sizeof(*threads));
    if (threads == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint32_t count = 0;
    for (uint64_t i = 0; i < most; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker < 0 || fetch->worker >= WORKERS_MAX) {
            continue;
        }
        uint32_t track = lac_model_track_of(model, fetch->slice);
        threads[count++] =
            (struct lac_worker_thread){fetch->start_ns, fetch->start_ns + fetch->dur_ns, track,
                                       model->tracks[track].process, fetch->worker};
    }
    qsort(threads, count, sizeof(*threads), by_worker);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct lac_worker_thread *last = kept > 0 ? &threads[kept - 1] : NULL;
        if (last != NULL && last->worker == threads[i].worker && last->track == threads[i].track) {
            last->last_ns = threads[i].last_ns > last->last_ns ? threads[i].last_ns : last->last_ns;
        } else {
            threads[kept++] = threads[i];
        }
    }
    qsort(threads, kept, sizeof(*threads), by_worker_time);
    loading->threads = threads;
    loading->thread_count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        bool is_new = i == 0 || threads[i].worker != threads[i - 1].worker;
        loading->workers += is_new;
        loading->respawned += !is_new && threads[i].process != threads[i - 1].process;
        uint32_t trains = facts->wait_marks.count > 0 ? facts->wait_marks.at[0].track : LAC_NONE;
        loading->is_threads =
            loading->is_threads ||
            (trains != LAC_NONE && model->tracks[trains].process == threads[i].process);
    }
    return LAC_OK;
}

static bool is_thread_before(const struct lac_worker_thread *at, const struct lac_fetch *fetch)
{
    return at->worker < fetch->worker ||
           (at->worker == fetch->worker && at->first_ns < fetch->start_ns);
}

/** Whether a fetch is the first of its thread: it pays for what a new worker opens. */
static bool is_first_of_thread(const struct lac_loading *loading, const struct lac_fetch *fetch)
{
    uint32_t low = 0;
    LAC_BISECT(low, loading->thread_count, middle,
               is_thread_before(&loading->threads[middle], fetch));
    return low < loading->thread_count && loading->threads[low].worker == fetch->worker &&
           loading->threads[low].first_ns == fetch->start_ns;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

/** Median and 99th percentile of workers' fetches, those of new workers left out; CPU time. */
static enum lac_status measure_fetches(const struct lac_facts *facts, struct lac_loading *loading)
{
    double *durations = malloc((facts->fetch_count + 1) * sizeof(*durations));
    if (durations == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t count = 0;
    double wall_ns = 0.0;
    double cpu_ns = 0.0;
    bool has_cpu = true;
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker < 0) {
            continue;
        }
        int64_t end_ns = fetch->start_ns + fetch->dur_ns;
        first_ns = fetch->start_ns < first_ns ? fetch->start_ns : first_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
        wall_ns += (double)fetch->dur_ns;
        has_cpu = has_cpu && fetch->cpu_ns >= 0;
        cpu_ns += (double)fetch->cpu_ns;
        if (!is_first_of_thread(loading, fetch)) {
            durations[count++] = (double)fetch->dur_ns;
        }
    }
    if (count > 0) {
        qsort(durations, count, sizeof(*durations), by_number);
        loading->median_ns = durations[(count - 1) / 2];
        loading->p99_ns = durations[(count * 99 + 99) / 100 - 1];
    }
    loading->wall_ns = wall_ns;
    if (has_cpu && wall_ns > 0.0 && last_ns > first_ns) {
        loading->cpu_cores = cpu_ns / (double)(last_ns - first_ns);
    }
    free(durations);
    return LAC_OK;
}

/** How many workers were at it at once. */
static enum lac_status measure_overlap(const struct lac_facts *facts, struct lac_loading *loading)
{
    struct lac_spans any = {0};
    struct lac_spans two = {0};
    enum lac_status status = LAC_OK;
    double wall_ns = 0.0;
    int64_t until_ns = INT64_MIN; /* end of the fetch that lasts longest so far */
    for (uint64_t i = 0; i < facts->fetch_count && !status; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker < 0 || fetch->dur_ns == 0) {
            continue;
        }
        int64_t end_ns = fetch->start_ns + fetch->dur_ns;
        wall_ns += (double)fetch->dur_ns;
        status = lac_spans_add(&any, fetch->start_ns, end_ns);
        if (!status && fetch->start_ns < until_ns) {
            status = lac_spans_add(&two, fetch->start_ns, end_ns < until_ns ? end_ns : until_ns);
        }
        until_ns = end_ns > until_ns ? end_ns : until_ns;
    }
    double any_ns = (double)lac_spans_length(&any);
    if (!status && any.count > 0 && any_ns > 0.0) {
        double span_ns = (double)(any.at[any.count - 1].end_ns - any.at[0].start_ns);
        loading->overlap = wall_ns / any_ns;
        loading->alone_pct = 100.0 * (any_ns - (double)lac_spans_length(&two)) / any_ns;
        loading->covered_pct = 100.0 * any_ns / span_ns;
    }
    lac_spans_done(&any);
    lac_spans_done(&two);
    return status;
}

/** Play the loader's queue with slow batches taking the usual time. */
static enum lac_status measure_tail(const struct lac_facts *facts, struct lac_loading *loading)
{
    const struct lac_step_time *time = facts->time;
    int32_t workers = facts->analysis->loader.num_workers;
    loading->tail = (struct lac_tail){(double)NAN, (double)NAN, (double)NAN};
    if (time->fetch_ns == NULL || time->fetch_count == 0 || workers < 1 ||
        isnan(loading->median_ns)) {
        return LAC_OK;
    }
    double *even = malloc(time->fetch_count * sizeof(*even));
    if (even == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t slow = 0;
    for (uint64_t i = 0; i < time->fetch_count; i++) {
        bool is_slow = time->fetch_ns[i] >= LAC_SLOW_FACTOR * loading->median_ns;
        even[i] = is_slow ? loading->median_ns : time->fetch_ns[i];
        slow += is_slow;
    }
    struct lac_step_time usual = *time;
    usual.fetch_ns = even;
    loading->tail = (struct lac_tail){
        .now_ns = lac_loader_step(time, loading->free_ns, workers, 1.0),
        .even_ns = fmax(lac_loader_step(&usual, loading->free_ns, workers, 1.0), time->cores_ns),
        .slow_pct = 100.0 * (double)slow / (double)time->fetch_count};
    free(even);
    return LAC_OK;
}

/* -- what surrounds them ----------------------------------------------------------------------- */

static void read_surroundings(const struct lac_facts *facts, struct lac_loading *loading)
{
    const struct lac_step_time *time = facts->time;
    loading->online_cores = (int32_t)lac_setting_count(facts, "host", "cores_online", CORES_MAX);
    if (loading->online_cores < 0) {
        loading->online_cores =
            (int32_t)lac_setting_count(facts, "settings", "cpu_count", CORES_MAX);
    }
    loading->mask_cores = (int32_t)lac_setting_count(facts, "settings", "cpu_affinity", CORES_MAX);
    if (loading->mask_cores < 0) {
        loading->mask_cores = lac_setting_cores(facts, "cores_allowed");
    }
    loading->most_workers = lac_has_chunk_pipeline(facts->model) ? 1 : INT32_MAX;
    loading->quota_cores = lac_setting_real(facts, "host", "cpu_quota_cores");
    loading->prefetch = lac_setting_count(facts, "settings", "prefetch_factor", 4096);
    loading->prefetch = loading->prefetch > 0 ? loading->prefetch : 2;
    double bytes = time->class_bytes[LAC_OP_COPY_PAGEABLE] + time->class_bytes[LAC_OP_COPY_PINNED];
    double copies = time->class_count[LAC_OP_COPY_PAGEABLE] + time->class_count[LAC_OP_COPY_PINNED];
    /* a batch is a few copies; many are weights or activations that go back and forth */
    loading->batch_bytes = bytes > 0.0 && copies <= COPIES_MAX ? lac_round(bytes) : -1;
}

static void fill_facts(struct lac_facts *facts, const struct lac_loading *loading)
{
    struct lac_loading_facts *loading_facts = &facts->analysis->loading;
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    struct lac_shm_budget room;
    lac_shm_budget(facts, &room);
    loading_facts->allowed_cores = facts->settings.allowed_cores;
    loading_facts->cores_busy = loading->cpu_cores;
    loading_facts->batch_bytes = loading->batch_bytes > 0 ? loading->batch_bytes : LAC_UNKNOWN_NS;
    loading_facts->shm_free_bytes = room.shm_free_bytes >= 0 ? room.shm_free_bytes : LAC_UNKNOWN_NS;
    loading_facts->memory_bytes = room.memory_bytes >= 0 ? room.memory_bytes : LAC_UNKNOWN_NS;
    loading_facts->workers_by_memory = room.workers_most < INT32_MAX ? room.workers_most : -1;
    if (loading_facts->allowed_cores > 0 && loader->fetch_cpu_mean_ns > 0) {
        double carried = CORES_FILLED_MAX * loading_facts->allowed_cores *
                         (double)loader->fetch_mean_ns / (double)loader->fetch_cpu_mean_ns;
        loading_facts->workers_by_cores =
            (int32_t)fmin(fmax(1.0, round(carried)), (double)WORKERS_MAX);
    }
    if (loading->samples.has_threads) {
        loading_facts->ready_pct = loading->samples.ready_pct;
    }
    if (loading->samples.has_io && loading->workers > 0) {
        loading_facts->storage_mb_s = loading->samples.storage_mb_s;
    }
}

static void set_unknown(struct lac_loading_facts *loading_facts)
{
    *loading_facts = (struct lac_loading_facts){.verdict = "",
                                                .allowed_cores = -1,
                                                .cores_busy = (double)NAN,
                                                .ready_pct = (double)NAN,
                                                .storage_mb_s = (double)NAN,
                                                .batch_bytes = LAC_UNKNOWN_NS,
                                                .shm_free_bytes = LAC_UNKNOWN_NS,
                                                .memory_bytes = LAC_UNKNOWN_NS,
                                                .workers_by_cores = -1,
                                                .workers_by_memory = -1};
}

/** For the steps with other numbers of workers: one at a time, a batch takes what it takes alone;
 *  else the turns of the others are in what it took. */
static void note_turns(struct lac_facts *facts)
{
    enum lac_serialization serialization = facts->loading->serialization;
    int32_t workers = facts->analysis->loader.num_workers;
    if (serialization != LAC_SERIAL_NOT && workers >= 2) {
        facts->serialized_workers =
            serialization == LAC_SERIAL_ONE_AT_A_TIME ? 1.0 : (double)workers;
    }
}

enum lac_status lac_loading_measure(struct lac_facts *facts)
{
    set_unknown(&facts->analysis->loading);
    if (facts->time == NULL || !facts->analysis->loader.is_present) {
        return LAC_OK;
    }
    struct lac_loading *loading = calloc(1, sizeof(*loading));
    if (loading == NULL) {
        return LAC_ERR_NOMEM;
    }
    facts->loading = loading;
    loading->overlap = (double)NAN;
    loading->alone_pct = (double)NAN;
    loading->covered_pct = (double)NAN;
    loading->cpu_cores = (double)NAN;
    loading->median_ns = (double)NAN;
    loading->p99_ns = (double)NAN;
    loading->free_ns = fmin(fmax(lac_step_without_waiting(facts), 0.0), facts->time->step_ns);
    read_surroundings(facts, loading);
    enum lac_status status = collect_threads(facts, loading);
    if (!status) {
        status = measure_fetches(facts, loading);
    }
    if (!status) {
        status = measure_overlap(facts, loading);
    }
    if (!status) {
        status = measure_tail(facts, loading);
    }
    if (!status) {
        status = lac_worker_turns_measure(facts, &loading->turns);
    }
    if (!status) {
        status = lac_fetch_breakdown(facts, loading);
    }
    if (!status) {
        lac_loading_sample(facts, loading, &loading->samples);
        lac_loading_late(facts, isnan(loading->median_ns) ? 0.0 : loading->median_ns,
                         &loading->late);
        fill_facts(facts, loading);
        loading->serialization = lac_serialization_of(facts);
        note_turns(facts);
        lac_padding_measure(facts);
    }
    return status;
}
