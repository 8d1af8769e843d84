#include "analysis/flame/flame_time.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Of a thread's time, in percent, what it waits for another from which on it is left out. */
enum { WAITING_MIN_PCT = 95, LONG_WAIT_NS = 1000000 };

/** Whether a sampled function is one in which Python itself waits. */
static bool is_sampled_waiting(const char *name)
{
    static const char *const waits[] = {"/threading.py(", "/selectors.py(", "/queue.py(",
                                        "/socket.py(", "/multiprocessing/connection.py("};
    for (size_t i = 0; i < LAC_COUNT_OF(waits); i++) {
        const char *at = strstr(name, waits[i]);
        const char *function = at != NULL ? strstr(at, "): ") : NULL;
        if (function != NULL && strncmp(function, "): run", 6) != 0 &&
            strncmp(function, "): _bootstrap", 13) != 0) {
            return true;
        }
    }
    return false;
}

/** Whether a Python function waits for another thread or process. */
static bool is_waiting(const char *name)
{
    static const char *const starts[] = {"<built-in method acquire of ",
                                         "<built-in method poll of ", "<built-in function sleep>",
                                         "<built-in function select>"};
    for (size_t i = 0; i < LAC_COUNT_OF(starts); i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return is_sampled_waiting(name);
}

/** Whether a thread's time is its own: not that of the recorder's own row, nor of a thread that only
 *  waits for others. */
static bool has_time_of_its_own(const struct lac_model *model, uint32_t track)
{
    static const char recorder[] = "PyTorch Profiler (";
    const struct lac_slices *slices = &model->slices;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    int64_t covered_ns = 0;
    int64_t waited_ns = 0;
    int64_t waited_until_ns = 0;
    bool is_recorder = end > model->tracks[track].first;
    for (uint64_t i = model->tracks[track].first; i < end; i++) {
        const char *name = lac_model_str(model, slices->name[i]);
        int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
        is_recorder = is_recorder && strncmp(name, recorder, sizeof(recorder) - 1) == 0;
        covered_ns += slices->lane[i] == 0 ? slices->dur_ns[i] : 0;
        /* only what is long can make it a thread that waits */
        bool may_wait = slices->kind[i] == LAC_SLICE_PYTHON && end_ns > waited_until_ns &&
                        slices->dur_ns[i] >= LONG_WAIT_NS;
        if (may_wait && is_waiting(name)) {
            waited_ns += slices->dur_ns[i];
            waited_until_ns = end_ns;
        }
    }
    bool only_waits = waited_ns > 0 && waited_ns >= covered_ns / 100 * WAITING_MIN_PCT;
    return !is_recorder && !only_waits;
}

enum lac_status lac_flame_walk_cpu(struct lac_flame_walk *walk)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_piece area = {.start_ns = walk->t0_ns, .end_ns = walk->t1_ns};
    struct lac_flame_pieces pieces = {.at = &area, .count = 1};
    enum lac_status status = LAC_OK;
    enum lac_track_kind kind = walk->is_profile   ? LAC_TRACK_PROFILE
                               : walk->is_sampled ? LAC_TRACK_STACKS
                                                  : LAC_TRACK_THREAD;
    for (uint32_t t = 0; t < model->recorded_track_count && status == LAC_OK; t++) {
        if (model->tracks[t].kind == kind && (walk->is_profile || has_time_of_its_own(model, t))) {
            status = lac_flame_time(walk, t, &pieces, true);
        }
    }
    for (uint32_t i = 1; i < walk->tree.count; i++) {
        walk->tree.frames[0].count += walk->tree.frames[i].count;
    }
    return status;
}
