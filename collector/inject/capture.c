#include "collector/inject/capture.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"
#include "collector/inject/step_range.h"
#include "lacuna/spool.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lac_capture lac_capture;

/* Ranges that may end on any thread: more than these at a time are not captured. */
static uint64_t open_ids[16];
static uint32_t profiler_epoch; /* process in which cudaProfilerStart was the last; 0: none */

void lac_capture_read(void)
{
    const char *const range = getenv("LACUNA_RANGE");
    const char *const profiler = getenv("LACUNA_PROFILER_API");
    const size_t length = range != NULL ? strlen(range) : 0;

    if (length > 0 && length < sizeof(lac_capture.range)) {
        memcpy(lac_capture.range, range, length + 1);
        lac_capture.range_length = (uint32_t)length;
    }
    lac_capture.profiler_api = profiler != NULL && strcmp(profiler, "1") == 0;
    lac_step_read();
    lac_capture.looks_at_names = lac_capture.range_length > 0 || lac_step_name_length > 0;
}

enum lac_spool_stop lac_capture_first(void)
{
    return lac_capture.range_length > 0 || lac_capture.profiler_api ? LAC_SPOOL_WAIT
                                                                    : LAC_SPOOL_RECORD;
}

static void change(struct lac_spool_header *header, uint32_t from, uint32_t to)
{
    if (__atomic_compare_exchange_n(&header->stop, &from, to, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        (void)syscall(SYS_futex, &header->stop, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

static void open_one(void)
{
    struct lac_spool_header *const header = lac_spool_header();

    if (header == NULL) {
        return;
    }
    (void)__atomic_add_fetch(&header->captures_begun, 1u, __ATOMIC_SEQ_CST);
    (void)__atomic_add_fetch(&header->captures_open, 1u, __ATOMIC_SEQ_CST);
    change(header, LAC_SPOOL_WAIT, LAC_SPOOL_RECORD);
    (void)lac_gpu_watch_pause();
    LAC_DEBUG(PROCESS, 2, "a range to capture begins");
}

static void close_one(void)
{
    struct lac_spool_header *const header = lac_spool_header();

    if (header == NULL) {
        return;
    }
    if (__atomic_sub_fetch(&header->captures_open, 1u, __ATOMIC_SEQ_CST) == 0) {
        change(header, LAC_SPOOL_RECORD, LAC_SPOOL_WAIT);
        if (__atomic_load_n(&header->captures_open, __ATOMIC_SEQ_CST) > 0) {
            change(header, LAC_SPOOL_WAIT, LAC_SPOOL_RECORD); /* another thread was faster */
        }
    }
    (void)lac_gpu_watch_pause();
    LAC_DEBUG(PROCESS, 2, "a range to capture ends");
}

/* ---- ranges */

static bool is_the_one(struct lac_thread *self, uint32_t name)
{
    return lac_capture.range_length > 0 && name != 0 &&
           name == lac_recorder_name(self, lac_capture.range, lac_capture.range_length);
}

void lac_capture_pushed(struct lac_thread *self, uint16_t domain, uint32_t name)
{
    if (self->capture_level > 0) {
        self->capture_level += self->capture_domain == domain;
    } else if (is_the_one(self, name)) {
        self->capture_level = 1;
        self->capture_domain = domain;
        open_one();
    }
}

void lac_capture_popped(struct lac_thread *self, uint16_t domain)
{
    if (self->capture_level == 0 || self->capture_domain != domain) {
        return;
    }
    self->capture_level--;
    if (self->capture_level == 0) {
        close_one();
    }
}

bool lac_capture_starts(struct lac_thread *self, uint32_t name)
{
    if (!is_the_one(self, name)) {
        return false;
    }
    open_one();
    return true;
}

void lac_capture_started(uint64_t id)
{
    for (size_t i = 0; i < LAC_COUNT_OF(open_ids) && id != 0; i++) {
        uint64_t none = 0;

        if (__atomic_compare_exchange_n(&open_ids[i], &none, id, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return;
        }
    }
    close_one(); /* its end would not be known */
}

void lac_capture_ended(struct lac_thread *self, uint64_t id)
{
    lac_step_ended(self, id);
    for (size_t i = 0; i < LAC_COUNT_OF(open_ids); i++) {
        uint64_t expected = id;

        if (__atomic_compare_exchange_n(&open_ids[i], &expected, 0, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            close_one();
            return;
        }
    }
}

/* ---- cudaProfilerStart, cudaProfilerStop */

void lac_capture_profiler(bool is_on)
{
    struct lac_thread *const self = lac_recorder_enter(); /* the spool is there then */
    const uint32_t epoch = *lac_epoch_page;

    if (self == NULL) {
        return;
    }
    /* the runtime's call makes the driver's: either may be seen, or both */
    if (is_on && __atomic_exchange_n(&profiler_epoch, epoch, __ATOMIC_SEQ_CST) != epoch) {
        open_one();
    } else if (!is_on && __atomic_exchange_n(&profiler_epoch, 0, __ATOMIC_SEQ_CST) == epoch) {
        close_one();
    }
    lac_recorder_leave(self);
}
