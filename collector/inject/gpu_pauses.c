#include "collector/base/monotonic.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Records come seconds after what they tell of, maybe two pauses later, so the last pauses are
 * kept. More than PAUSES_KEPT within the time that CUPTI keeps a buffer back is not to be expected:
 * measuring the cost takes sixteen.
 */
enum { PAUSES_KEPT = 64 };

struct pause {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t end_ns;   /* UINT64_MAX: it lasts */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pause pauses[PAUSES_KEPT]; /* number n at n % PAUSES_KEPT; guarded by mutex */
static uint64_t pause_count;
static bool is_paused;
static uint64_t seen_paused_ns; /* when that was last looked at and so */

enum lac_spool_stop lac_gpu_watch_pause(void)
{
    const struct lac_spool_header *const header = lac_spool_header();
    const uint32_t wish = header != NULL ? header->stop : LAC_SPOOL_RECORD;
    const bool pauses_now = wish != LAC_SPOOL_RECORD;

    if (pauses_now != __atomic_load_n(&is_paused, __ATOMIC_RELAXED)) {
        (void)pthread_mutex_lock(&mutex);
        if (pauses_now && !is_paused) {
            pauses[pause_count++ % PAUSES_KEPT] = (struct pause){lac_monotonic_ns(), UINT64_MAX};
        } else if (!pauses_now && is_paused) {
            /* it may have ended just after: rather a record too many */
            pauses[(pause_count - 1) % PAUSES_KEPT].end_ns = seen_paused_ns;
        }
        __atomic_store_n(&is_paused, pauses_now, __ATOMIC_RELAXED);
        (void)pthread_mutex_unlock(&mutex);
    }
    if (pauses_now) {
        __atomic_store_n(&seen_paused_ns, lac_monotonic_ns(), __ATOMIC_RELAXED);
    }
    return (enum lac_spool_stop)wish;
}

bool lac_gpu_was_recording(uint64_t monotonic_ns)
{
    bool was = true;

    if (__atomic_load_n(&pause_count, __ATOMIC_RELAXED) == 0) {
        return true;
    }
    (void)pthread_mutex_lock(&mutex);
    /* the latest first: what is asked about is mostly later than all of them */
    for (uint64_t i = pause_count; i > 0 && pause_count - i < PAUSES_KEPT; i--) {
        const struct pause *const pause = &pauses[(i - 1) % PAUSES_KEPT];

        if (monotonic_ns >= pause->begin_ns) {
            was = monotonic_ns >= pause->end_ns;
            break;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return was;
}

void lac_gpu_pauses_forget(void)
{
    lac_mutex_renew(&mutex);
}
