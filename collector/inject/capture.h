#ifndef LAC_COLLECTOR_INJECT_CAPTURE_H
#define LAC_COLLECTOR_INJECT_CAPTURE_H

/*
 * Recording only inside of ranges that the job marks: LACUNA_RANGE=NAME (an NVTX range, or one of
 * the hook's) and LACUNA_PROFILER_API=1 (from cudaProfilerStart to cudaProfilerStop).
 *
 *   LAC_SPOOL_WAIT -> (the first range opens) LAC_SPOOL_RECORD -> (the last one closes) WAIT
 *
 * The process does this itself, so that nothing of a range is lost; its launcher sees it in the
 * spool's header and lets the other processes of the job record meanwhile. Where none of the two
 * variables is set, nor LACUNA_STEP (step_range.h), the cost is one load and one branch a range.
 */

#include "collector/inject/recorder.h"
#include "collector/inject/step_range.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_CAPTURE_NAME_BYTES = 256 };

struct lac_capture {
    bool looks_at_names;   /**< a range to capture or a step is looked for */
    uint32_t range_length; /**< 0: no range to capture is looked for */
    bool profiler_api;
    char range[LAC_CAPTURE_NAME_BYTES];
};

extern struct lac_capture lac_capture;

/** The two variables, once at load. */
void lac_capture_read(void);

/** What a process begins with. */
enum lac_spool_stop lac_capture_first(void);

/* For callers inside of the recorder; `name` is an id of this process's names. */
void lac_capture_pushed(struct lac_thread *self, uint16_t domain, uint32_t name);
void lac_capture_popped(struct lac_thread *self, uint16_t domain);
/** @return whether the range with that name is one to capture: recording may begin with it */
bool lac_capture_starts(struct lac_thread *self, uint32_t name);
/** Behind its beginning. `id` 0: it was not recorded, and nobody will tell its end. */
void lac_capture_started(uint64_t id);
void lac_capture_ended(struct lac_thread *self, uint64_t id);

/** cudaProfilerStart (true) or cudaProfilerStop was called. Any thread, also CUPTI's callbacks. */
void lac_capture_profiler(bool is_on);

/* Before a range is recorded: recording may begin with it. */
static inline void lac_capture_push(struct lac_thread *self, uint16_t domain, uint32_t name)
{
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_capture_pushed(self, domain, name);
        lac_step_pushed(self, domain, name);
    }
}

/* Behind its end: recording may end with it. */
static inline void lac_capture_pop(struct lac_thread *self, uint16_t domain)
{
    if (LAC_UNLIKELY((self->capture_level | self->step_level) > 0)) {
        lac_step_popped(self, domain);
        lac_capture_popped(self, domain);
    }
}

#endif
