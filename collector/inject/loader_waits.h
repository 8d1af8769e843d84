#ifndef LAC_COLLECTOR_INJECT_LOADER_WAITS_H
#define LAC_COLLECTOR_INJECT_LOADER_WAITS_H

/*
 * What the hook's threads spend waiting for batches, counted in the spool's header also while
 * recording pauses: the launcher tells it as a figure. For callers inside of the recorder.
 */

#include "collector/base/monotonic.h"
#include "collector/inject/recorder.h"

#include <stddef.h>
#include <string.h>

/** A range of the hook opens; costs a comparison of lengths for most. */
static inline void lac_loader_wait_begins(struct lac_thread *self, const char *name, size_t length)
{
    static const char wait[] = "loader.wait";

    if (self->wait_level > 0) {
        self->wait_level++;
    } else if (length == sizeof(wait) - 1 && memcmp(name, wait, length) == 0) {
        self->wait_level = 1;
        self->wait_began_ns = lac_monotonic_ns();
    }
}

/** The innermost one closes. */
static inline void lac_loader_wait_ends(struct lac_thread *self)
{
    if (self->wait_level == 0) {
        return;
    }
    self->wait_level--;
    if (self->wait_level == 0) {
        (void)__atomic_fetch_add(&lac_spool_header()->loader_wait_ns,
                                 lac_monotonic_ns() - self->wait_began_ns, __ATOMIC_RELAXED);
    }
}

#endif
