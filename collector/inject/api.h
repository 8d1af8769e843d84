#ifndef LAC_COLLECTOR_INJECT_API_H
#define LAC_COLLECTOR_INJECT_API_H

/*
 * What liblacuna.so offers to our own hooks in addition to NVTX: ranges of the loader vocabulary
 * and settings. Plain C, found with dlsym; a version that a hook does not know is left alone.
 */

#include <stddef.h>
#include <stdint.h>

#define LACUNA_API_VERSION 4

struct lacuna_api {
    uint32_t version;
    /** Open a range; a batch >= 0 or worker >= 0 is recorded with it (-1: not). */
    void (*push)(const char *name, size_t length, int64_t batch, int32_t worker);
    /** Close the innermost one; cpu_ns < 0: not measured. */
    void (*pop)(int64_t cpu_ns);
    /** "key=value", once per process and key. */
    void (*setting)(const char *text, size_t length);
    /** A training step has ended. */
    void (*step)(void);
    /** A number that belongs to the range that was just opened. */
    void (*value)(uint64_t number);
    /** Leave GPU activity to another profiler (`yield` 1), or take it back (0). */
    void (*gpu_yield)(int yield, const char *to);
    /** Which rank of how many the process is; `group` names where they met, the same in each. */
    void (*identity)(int32_t rank, int32_t world_size, const char *group);
    /** Where a launcher asks for stacks: a number that grows, and a futex. NULL: nowhere. It stays
     * where it is until this process ends or forks. */
    const uint32_t *(*asked)(void);
    /** Whether recording is on: an enum lac_spool_stop, and a futex that is woken when the process
     * itself changes it. NULL: nothing is recorded. It stays where `asked` does. */
    const uint32_t *(*stop)(void);
    /** Define frame `number` of Python's stacks (LAC_EVENT_STACK_FRAME). 0: it is not kept. */
    int (*stack_frame)(uint32_t number, uint32_t caller, uint32_t line, const char *name,
                       size_t length);
    /** What a thread was found in: its innermost frame, and for how many periods that stands. */
    void (*stack_sample)(uint32_t frame, uint32_t tid, uint32_t periods);
    /** A result of the job has a value, such as its loss; also while recording pauses. */
    void (*metric)(const char *name, size_t length, double value);
};

/** NULL when nothing is recorded in this process. */
__attribute__((visibility("default"))) const struct lacuna_api *lacuna_get_api(void);

#endif
