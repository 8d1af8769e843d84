#ifndef LAC_TESTS_SUPPORT_OOM_H
#define LAC_TESTS_SUPPORT_OOM_H

/*
 * Memory that runs out when a test wants it to. Programs in tests/oom/ are linked so that malloc,
 * calloc and realloc of all that is linked statically come here first; any thread may call them.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

/** The next n allocations are granted, all after them refused. */
void oom_after(uint64_t n);

/** The next n allocations are granted, the one after them refused, all others granted. */
void oom_once_after(uint64_t n);

/** All are granted again. @return whether one was refused since oom_after or oom_once_after */
bool oom_over(void);

/** Whether one was refused since then; what was begun goes on. */
bool oom_has_refused(void);

/** For what must not fail in between: all are granted until oom_resume. @return what that takes */
int64_t oom_pause(void);
void oom_resume(int64_t paused);

/** What is tried with too little memory. */
typedef enum lac_status (*oom_part)(void *context);

/**
 * Try `part` with every allocation from the n-th on refused, for n = 0, 1, 2, ... until none is:
 * LAC_ERR_NOMEM as long as one was, LAC_OK then; any other answer ends the program with 1 and a
 * sentence that begins with `what`. Beyond the first hundred only each `stride`-th n is tried.
 * @return how often it was tried with too little
 */
uint64_t oom_each(const char *what, oom_part part, void *context, uint64_t stride);

/** Else end the program with 1 and the sentence. */
void oom_require(bool holds, const char *what);

#endif
