#include "tests/support/oom.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

/* Allocations to be granted; below 0 counts those that came after them. Never runs out at first. */
static _Atomic int64_t left = INT64_MAX;
static _Atomic bool is_one_time_cost;
static _Atomic bool has_refused;

static bool refuse(void)
{
    int64_t before = atomic_fetch_sub(&left, 1);
    if (before > 0 || (before < 0 && atomic_load(&is_one_time_cost))) {
        return false;
    }
    atomic_store(&has_refused, true);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : __real_realloc(old, size);
}

static void begin(uint64_t n, bool once)
{
    atomic_store(&is_one_time_cost, once);
    atomic_store(&has_refused, false);
    atomic_store(&left, (int64_t)n);
}

void oom_after(uint64_t n)
{
    begin(n, false);
}

void oom_once_after(uint64_t n)
{
    begin(n, true);
}

bool oom_over(void)
{
    atomic_store(&left, INT64_MAX);
    return atomic_load(&has_refused);
}

bool oom_has_refused(void)
{
    return atomic_load(&has_refused);
}

int64_t oom_pause(void)
{
    return atomic_exchange(&left, INT64_MAX);
}

void oom_resume(int64_t paused)
{
    atomic_store(&left, paused);
}

uint64_t oom_each(const char *what, oom_part part, void *context, uint64_t stride)
{
    uint64_t tried = 0;
    for (uint64_t n = 0;; n += n < 100 ? 1 : stride) {
        oom_after(n);
        enum lac_status status = part(context);
        bool was_refused = oom_over();
        if (status != (was_refused ? LAC_ERR_NOMEM : LAC_OK)) {
            (void)fprintf(stderr, "%s: %s after %llu allocations, %s\n", what,
                          lac_status_name(status), (unsigned long long)n,
                          was_refused ? "then none" : "which was all it took");
            exit(1);
        }
        if (!was_refused) {
            return tried;
        }
        tried++;
    }
}

void oom_require(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
        exit(1);
    }
}
