#include "analysis/flame/flame_thread.h"

#include "analysis/flame/flame_tree.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Of a thread's time, in percent, what it waits for another from which on it is left out. */
enum { WAITING_MIN_PCT = 95 };

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

bool lac_flame_is_waiting(const char *name)
{
    static const char *const starts[] = {"<built-in method acquire of ",
                                         "<built-in method poll of ", "<built-in function sleep>",
                                         "<built-in function select>"};
    assert(name != NULL);
    for (size_t i = 0; i < LAC_COUNT_OF(starts); i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return is_sampled_waiting(name);
}

bool lac_flame_is_recorder(const char *name)
{
    static const char recorder[] = "PyTorch Profiler (";
    assert(name != NULL);
    return strncmp(name, recorder, sizeof(recorder) - 1) == 0;
}

bool lac_flame_is_mostly_waiting(int64_t waited_ns, int64_t covered_ns)
{
    return waited_ns > 0 && waited_ns >= covered_ns / 100 * WAITING_MIN_PCT;
}

void lac_flame_thread_add(struct lac_flame_thread *thread, const struct lac_model *names,
                          const struct lac_slices *slices, uint64_t first, uint64_t end)
{
    assert(thread != NULL && names != NULL && slices != NULL);
    bool is_recorder = thread->recorder_count == thread->count;
    for (uint64_t i = first; i < end; i++) {
        const char *name = lac_model_str(names, slices->name[i]);
        int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
        is_recorder = is_recorder && lac_flame_is_recorder(name);
        thread->recorder_count += is_recorder ? 1 : 0;
        thread->covered_ns =
            lac_flame_plus(thread->covered_ns, slices->lane[i] == 0 ? slices->dur_ns[i] : 0);
        /* only what is long can make it a thread that waits */
        bool may_wait = slices->kind[i] == LAC_SLICE_PYTHON && end_ns > thread->waited_until_ns &&
                        slices->dur_ns[i] >= LAC_FLAME_LONG_WAIT_NS;
        if (may_wait && lac_flame_is_waiting(name)) {
            thread->waited_ns = lac_flame_plus(thread->waited_ns, slices->dur_ns[i]);
            thread->waited_until_ns = end_ns;
        }
    }
    thread->count += end > first ? end - first : 0;
}

bool lac_flame_thread_is_left_out(const struct lac_flame_thread *thread)
{
    assert(thread != NULL);
    bool is_recorder = thread->count > 0 && thread->recorder_count == thread->count;
    return is_recorder || lac_flame_is_mostly_waiting(thread->waited_ns, thread->covered_ns);
}
