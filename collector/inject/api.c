#include "collector/inject/api.h"

#include "collector/base/debug.h"
#include "collector/inject/capture.h"
#include "collector/inject/gpu.h"
#include "collector/inject/loader_waits.h"
#include "collector/inject/recorder.h"
#include "collector/inject/step_range.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Which worker of the data loader a process is shows in its ranges. */
static __attribute__((cold, noinline)) void tell_worker(const char *name, size_t length,
                                                        int64_t batch, int32_t worker)
{
    static int32_t told = -1;

    if (worker >= 0 && __atomic_exchange_n(&told, worker, __ATOMIC_RELAXED) != worker) {
        LAC_DEBUG(HOOK, 1, "worker %d of the data loader", (int)worker);
    }
    LAC_DEBUG(HOOK, 3, "%.*s, batch %lld", (int)length, name, (long long)batch);
}

/* The thread that trains goes on: a launcher sees by it whether a job hangs. Plain stores of one
 * thread; before that is known, a count that two lose between them says enough. A loader asks its
 * workers' queue again every few seconds, also in vain. */
static inline void note_progress(const struct lac_thread *self, const char *name, size_t length)
{
    static const char asks[] = "loader.unpack";
    struct lac_spool_header *const header = lac_spool_header();
    const int32_t training = __atomic_load_n(&header->training_tid, __ATOMIC_RELAXED);

    if (length == sizeof(asks) - 1 && memcmp(name, asks, length) == 0) {
        return;
    }
    if (training == 0 || training == self->tid) {
        const uint64_t count = __atomic_load_n(&header->progress_count, __ATOMIC_RELAXED);

        __atomic_store_n(&header->progress_count, count + 1, __ATOMIC_RELAXED);
    }
}

static void api_push(const char *name, size_t length, int64_t batch, int32_t worker)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return;
    }
    note_progress(self, name, length);
    if (LAC_DEBUG_IS_ON(HOOK, 1)) {
        tell_worker(name, length, batch, worker);
    }
    lac_loader_wait_begins(self, name, length);
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_capture_push(self, 0, lac_recorder_name(self, name, length));
    }
    if (lac_recorder_opens(self, &self->depth[0], 2)) {
        const uint32_t id = lac_recorder_name(self, name, length);
        const uint64_t now = lac_clock_now();

        lac_recorder_put(self, now, id, 0, 0, LAC_EVENT_PUSH);
        if (batch >= 0 || worker >= 0) {
            lac_recorder_put(self, (uint64_t)batch, worker >= 0 ? (uint32_t)worker + 1 : 0, 0, 0,
                             LAC_EVENT_LOADER);
        }
        if (LAC_UNLIKELY(now > self->next_sync_ticks)) {
            lac_recorder_sync(self);
        }
    }
    lac_recorder_leave(self);
}

static void api_pop(int64_t cpu_ns)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return;
    }
    if (lac_recorder_closes(self, &self->depth[0])) {
        if (cpu_ns >= 0) {
            lac_recorder_put(self, (uint64_t)cpu_ns, 0, 0, 0, LAC_EVENT_CPU);
        }
        lac_recorder_put(self, lac_clock_now(), 0, 0, 0, LAC_EVENT_POP);
    }
    lac_capture_pop(self, 0);
    lac_loader_wait_ends(self);
    lac_recorder_leave(self);
}

static void api_setting(const char *text, size_t length)
{
    struct lac_thread *const self = lac_recorder_enter();

    LAC_DEBUG(HOOK, 2, "%.*s", (int)length, text);
    if (self == NULL) {
        return;
    }
    if (lac_recorder_room_always(self, 1)) {
        lac_recorder_put(self, 0, lac_recorder_name(self, text, length), 0, 0, LAC_EVENT_SETTING);
    }
    lac_recorder_leave(self);
}

/* Also counted while recording pauses: the launcher opens its windows by this count. */
static void api_step(void)
{
    struct lac_thread *const self = lac_recorder_enter();

    LAC_DEBUG(HOOK, 3, "a step has ended");
    if (self != NULL) {
        if (lac_step_name_length == 0) { /* else it says which steps count */
            lac_step_count(self);
        }
        lac_recorder_leave(self);
    }
}

static void api_value(uint64_t number)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return;
    }
    if (self->depth[0].skipped == 0 && self->depth[0].open > 0 &&
        lac_recorder_room_always(self, 1)) {
        lac_recorder_put(self, number, 0, 0, LAC_PAYLOAD_UINT64, LAC_EVENT_PAYLOAD);
    }
    lac_recorder_leave(self);
}

static void api_gpu_yield(int yield, const char *to)
{
    lac_gpu_yield(yield != 0, to);
}

/* FNV-1a */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

static void api_identity(int32_t rank, int32_t world_size, const char *group)
{
    struct lac_thread *const self = lac_recorder_enter();

    LAC_DEBUG(HOOK, 1, "rank %d of %d", (int)rank, (int)world_size);
    if (self == NULL) {
        return;
    }
    if (rank >= 0 && rank < world_size) {
        struct lac_spool_header *const header = lac_spool_header();

        __atomic_store_n(&header->rank_group, hash_of(group), __ATOMIC_RELAXED);
        __atomic_store_n(&header->rank, (uint64_t)world_size << 32 | (uint32_t)rank,
                         __ATOMIC_RELEASE);
    }
    lac_recorder_leave(self);
}

static const uint32_t *api_asked(void)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return NULL;
    }
    lac_recorder_leave(self);
    return &lac_spool_header()->ask_count;
}

static const uint32_t *api_stop(void)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return NULL;
    }
    lac_recorder_leave(self);
    return &lac_spool_header()->stop;
}

static int api_stack_frame(uint32_t number, uint32_t caller, uint32_t line, const char *name,
                           size_t length)
{
    struct lac_thread *const self = lac_recorder_enter();
    bool is_kept = false;

    if (self == NULL) {
        return 0;
    }
    is_kept = number <= UINT16_MAX && lac_recorder_room(self, 1);
    if (is_kept) {
        lac_recorder_put(self, (uint64_t)caller << 32 | line, lac_recorder_name(self, name, length),
                         (uint16_t)number, 0, LAC_EVENT_STACK_FRAME);
    }
    lac_recorder_leave(self);
    return is_kept;
}

static void api_stack_sample(uint32_t frame, uint32_t tid, uint32_t periods)
{
    struct lac_thread *const self = lac_recorder_enter();

    if (self == NULL) {
        return;
    }
    if (lac_recorder_room(self, 1)) {
        const uint64_t now = lac_clock_now();

        lac_recorder_put(self, now, tid, (uint16_t)frame,
                         (uint8_t)(periods < UINT8_MAX ? periods : UINT8_MAX),
                         LAC_EVENT_STACK_SAMPLE);
        if (now > self->next_sync_ticks) {
            lac_recorder_sync(self);
        }
    }
    lac_recorder_leave(self);
}

static void api_metric(const char *name, size_t length, double value)
{
    struct lac_thread *const self = lac_recorder_enter();
    uint64_t bits;

    if (self == NULL) {
        return;
    }
    memcpy(&bits, &value, sizeof(bits));
    if (lac_recorder_room_always(self, 2)) {
        const uint64_t now = lac_clock_now();

        lac_recorder_put(self, now, lac_recorder_name(self, name, length), 0, 0, LAC_EVENT_METRIC);
        lac_recorder_put(self, bits, 0, 0, 0, LAC_EVENT_METRIC_VALUE);
        if (now > self->next_sync_ticks) {
            lac_recorder_sync(self);
        }
    }
    lac_recorder_leave(self);
}

const struct lacuna_api *lacuna_get_api(void)
{
    static const struct lacuna_api api = {
        LACUNA_API_VERSION, api_push,         api_pop,      api_setting, api_step,
        api_value,          api_gpu_yield,    api_identity, api_asked,   api_stop,
        api_stack_frame,    api_stack_sample, api_metric};

    return lac_settings.enabled ? &api : NULL;
}
