#ifndef LAC_COLLECTOR_BASE_DEBUG_H
#define LAC_COLLECTOR_BASE_DEBUG_H

/*
 * LACUNA_DEBUG: lines on stderr about what the collector does, for whoever looks for the reason
 * why something is missing in a recording.
 *
 *   LACUNA_DEBUG=2                 every area, up to level 2
 *   LACUNA_DEBUG=spool:3,cupti:1   these areas alone
 *
 * 1: what was found, attached, decided or lost. 2: what happens now and then: segments, buffers,
 * forks, requests. 3: each single one of what happens often.
 *
 *   lacuna: 10:22:31.482913 [4711] spool: segment 3 is new
 *
 * Off, a line costs one load and one branch. On, it is put together on the stack and written with
 * one write(2) to the stderr that the process began with: no allocation, no lock, errno kept, safe
 * in signal handlers and between fork and exec. Where that stderr is closed, nothing is written.
 */

#include <stdbool.h>
#include <stdint.h>

enum lac_debug_area {
    LAC_DEBUG_PROCESS, /**< of the job: loaded by, forked by */
    LAC_DEBUG_NVTX,    /**< what of NVTX is taken; names of threads and domains */
    LAC_DEBUG_SPOOL,   /**< the file and its segments */
    LAC_DEBUG_NAMES,   /**< the table of names */
    LAC_DEBUG_HOOK,    /**< settings and workers, as the Python hook tells them */
    LAC_DEBUG_CUPTI,   /**< library, version, functions, buffers */
    LAC_DEBUG_LAUNCH,  /**< the launcher: job, signals, plan */
    LAC_DEBUG_GATHER,  /**< spools found, segments moved */
    LAC_DEBUG_SAMPLE,  /**< NVML and /proc */
    LAC_DEBUG_PUSH,    /**< requests to the server */
    LAC_DEBUG_AREA_COUNT_
};

enum { LAC_DEBUG_LEVEL_MAX = 3 };

/** Level of each area, 0: off. Only lac_debug_begin() writes it. */
extern uint8_t lac_debug_levels[LAC_DEBUG_AREA_COUNT_] __attribute__((visibility("hidden")));

/**
 * Read the value of LACUNA_DEBUG; NULL and "" mean 0. Call it once, early: the stderr of that
 * moment is kept in a descriptor of its own, far from those that programs count on. A value that
 * cannot be understood is told in one line on stderr and means 0.
 *
 * @return false: the value cannot be understood
 */
bool lac_debug_begin(const char *wish);

/** Whether anything is shown. */
bool lac_debug_is_any(void);

/** Whether a line of this area and level is written. */
#define LAC_DEBUG_IS_ON(area, level)                                                               \
    __builtin_expect(lac_debug_levels[LAC_DEBUG_##area] >= (level), 0)

/**
 * LAC_DEBUG(SPOOL, 2, "segment %u is new", index). Of printf() it knows %s, %.*s, %d, %u, %x, %zu,
 * %% and the numbers with l and ll. Whatever is not printable ASCII in a text appears as \xNN, a
 * NULL as (none).
 */
#define LAC_DEBUG(area, level, ...)                                                                \
    do {                                                                                           \
        if (LAC_DEBUG_IS_ON(area, level)) {                                                        \
            lac_debug_say(LAC_DEBUG_##area, __VA_ARGS__);                                          \
        }                                                                                          \
    } while (0)

/** Only for LAC_DEBUG(). */
void lac_debug_say(enum lac_debug_area area, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

#endif
