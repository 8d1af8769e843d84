/*
 * What the launcher's samples say of the workers and of the training thread, over the kept steps.
 * A series is written when it changed: a value holds from the round before it until the next one.
 */

#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/** Series that are looked at, as the spool's importer names their tracks. */
enum series {
    ON_CORE = 0,
    READY,
    DISK,
    STORAGE,
    CALLS,
    THROTTLED,
    THROTTLED_PERIODS,
    SERIES_COUNT,
};

static const struct {
    const char *name;
    bool is_of_thread;
    bool is_of_host;
} series_names[SERIES_COUNT] = {
    {": on a core (%)", true, false},        {": waiting for a core (%)", true, false},
    {": blocked on input (%)", true, false}, {"read from storage (MB/s)", false, false},
    {"read by calls (MB/s)", false, false},  {"cgroup throttled (%)", false, true},
    {"periods throttled (/s)", false, true},
};

struct sums {
    double worker_ns; /* time that workers were at work inside the window */
    double worker[SERIES_COUNT];
    double process[SERIES_COUNT]; /* of workers' processes */
    double job[SERIES_COUNT];
    double host[SERIES_COUNT];
};

/** Which series a track is, or SERIES_COUNT; the thread's id where it is of one. */
static enum series series_of(const struct lac_model *model, const struct lac_track *track,
                             int64_t *ret_tid)
{
    const char *name = lac_model_str(model, track->name);
    size_t length = lac_strings_length(&model->strings, track->name);
    for (int s = 0; s < SERIES_COUNT; s++) {
        size_t wanted = strlen(series_names[s].name);
        if (length < wanted || strcmp(name + length - wanted, series_names[s].name) != 0) {
            continue;
        }
        if (!series_names[s].is_of_thread) {
            return length == wanted ? (enum series)s : SERIES_COUNT;
        }
        int64_t tid = 0;
        int64_t unit = 1;
        size_t at = length - wanted;
        for (; at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9' && unit < (int64_t)1e12; at--) {
            tid += unit * (name[at - 1] - '0');
            unit *= 10;
        }
        *ret_tid = tid;
        return unit > 1 ? (enum series)s : SERIES_COUNT;
    }
    return SERIES_COUNT;
}

/** Integral of the series over [start, end), in the series' unit times ns. The last value holds for
 *  a round only where the thread may have ended with it. */
static double integral(const struct lac_model *model, const struct lac_track *track,
                       double start_ns, double end_ns, bool holds_on)
{
    double sum = 0.0;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        bool is_last = i + 1 == track->first + track->count;
        double from_ns = (double)model->sample_ts_ns[i];
        double to_ns = !is_last   ? (double)model->sample_ts_ns[i + 1]
                       : holds_on ? end_ns
                                  : from_ns + ROUND_NS;
        double value = model->sample_value[i];
        double width = fmin(to_ns, end_ns) - fmax(from_ns, start_ns);
        sum += width > 0.0 && isfinite(value) ? value * width : 0.0;
    }
    return sum;
}

static bool is_of_worker(const struct lac_facts *facts, const struct lac_loading *loading,
                         uint32_t process, int64_t tid)
{
    for (uint32_t i = 0; i < loading->thread_count; i++) {
        if (loading->threads[i].process == process &&
            (tid < 0 || facts->model->tracks[loading->threads[i].track].tid == tid)) {
            return true;
        }
    }
    return false;
}

static void add_series(const struct lac_facts *facts, const struct lac_loading *loading,
                       const struct lac_track *track, const double window[2], struct sums *sums)
{
    const struct lac_model *model = facts->model;
    int64_t tid = -1;
    enum series s = series_of(model, track, &tid);
    if (s == SERIES_COUNT || track->process >= model->process_count) {
        return;
    }
    double sum = integral(model, track, window[0], window[1], series_names[s].is_of_host);
    if (series_names[s].is_of_host) {
        bool is_host =
            strcmp(lac_model_str(model, model->processes[track->process].name), "host") == 0;
        sums->host[s] += is_host ? sum : 0.0;
        return;
    }
    sums->job[s] += sum;
    if (is_of_worker(facts, loading, track->process, -1)) {
        sums->process[s] += sum;
    }
    if (series_names[s].is_of_thread && is_of_worker(facts, loading, track->process, tid)) {
        sums->worker[s] += sum;
    }
}

/** Threads of a worker's process with a twentieth of its time or more in that series. */
static uint32_t threads_in(const struct lac_facts *facts, const struct lac_worker_thread *worker,
                           enum series wanted, const double window[2])
{
    const struct lac_model *model = facts->model;
    double alive_ns =
        fmin(window[1], (double)worker->last_ns) - fmax(window[0], (double)worker->first_ns);
    uint32_t count = 0;
    for (uint32_t t = 0; t < model->track_count && alive_ns > 0.0; t++) {
        const struct lac_track *track = &model->tracks[t];
        int64_t tid = -1;
        if (track->kind == LAC_TRACK_COUNTER && track->process == worker->process &&
            series_of(model, track, &tid) == wanted) {
            double spent_ns = integral(model, track, window[0], window[1], false) / 100.0;
            count += spent_ns >= BUSY_CORES * alive_ns;
        }
    }
    return count;
}

/** Threads of one worker that ran, or wanted to: most over all workers. */
static uint32_t busy_threads(const struct lac_facts *facts, const struct lac_loading *loading,
                             const double window[2])
{
    enum { LOOKED_AT = 64 };
    uint32_t most = 0;
    for (uint32_t w = 0; w < loading->thread_count && w < LOOKED_AT; w++) {
        uint32_t ran = threads_in(facts, &loading->threads[w], ON_CORE, window);
        uint32_t wanted = threads_in(facts, &loading->threads[w], READY, window);
        most = ran > most ? ran : most;
        most = wanted > most ? wanted : most;
    }
    return most;
}

void lac_loading_sample(const struct lac_facts *facts, const struct lac_loading *loading,
                        struct lac_loading_samples *ret_samples)
{
    const struct lac_model *model = facts->model;
    const struct lac_spans *kept = &facts->host_kept;
    *ret_samples = (struct lac_loading_samples){0};
    const double window[2] = {(double)kept->at[0].start_ns,
                              (double)kept->at[kept->count - 1].end_ns};
    double length_ns = window[1] - window[0];
    if (length_ns < WINDOW_ROUNDS * ROUND_NS) {
        return; /* too few rounds to say anything */
    }
    struct sums sums = {0};
    for (uint32_t i = 0; i < loading->thread_count; i++) {
        sums.worker_ns += fmax(0.0, fmin(window[1], (double)loading->threads[i].last_ns) -
                                        fmax(window[0], (double)loading->threads[i].first_ns));
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER) {
            add_series(facts, loading, &model->tracks[t], window, &sums);
        }
    }
    ret_samples->job_cores = sums.job[ON_CORE] / 100.0 / length_ns;
    ret_samples->job_ready = sums.job[READY] / 100.0 / length_ns;
    ret_samples->storage_mb_s = sums.process[STORAGE] / length_ns;
    ret_samples->has_io = sums.job[STORAGE] > 0.0 || sums.job[CALLS] > 0.0;
    ret_samples->throttled_pct = sums.host[THROTTLED] / length_ns;
    ret_samples->throttled_periods = sums.host[THROTTLED_PERIODS] / length_ns;
    /* a kernel that does not say who ran says of no thread that it did */
    if (sums.worker_ns <= 0.0 || sums.worker[ON_CORE] + sums.worker[READY] <= 0.0) {
        return;
    }
    ret_samples->has_threads = true;
    ret_samples->ready_pct = sums.worker[READY] / sums.worker_ns;
    ret_samples->disk_pct = sums.worker[DISK] / sums.worker_ns;
    if (!loading->is_threads) {
        ret_samples->other_cores =
            fmax(0.0, sums.process[ON_CORE] - sums.worker[ON_CORE]) / 100.0 / sums.worker_ns;
        ret_samples->other_ready =
            fmax(0.0, sums.process[READY] - sums.worker[READY]) / 100.0 / sums.worker_ns;
        ret_samples->busy_threads = busy_threads(facts, loading, window);
    }
    ret_samples->wait_for_cores =
        ret_samples->ready_pct >= READY_PCT_MIN || ret_samples->other_ready >= OTHER_READY_MIN;
}
