#ifndef LAC_COLLECTOR_PYTHON_OPEN_RANGES_H
#define LAC_COLLECTOR_PYTHON_OPEN_RANGES_H

/* The open ranges of the calling thread, with the CPU time that they take. No call of Python's, so
 * an exception that is on its way is not touched. */

#include "collector/inject/api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The recorder to write to; called once, before anything else. */
void lac_ranges_use(const struct lacuna_api *api);

/** This thread goes on in a process that has forked. */
void lac_ranges_begin(void);

/** Open a range; batch or worker -1: none. */
void lac_range_open(const char *name, size_t length, int64_t batch, int32_t worker,
                    bool measures_cpu);
/** Close the innermost one; nothing where none is open. */
void lac_range_close(void);

#endif
