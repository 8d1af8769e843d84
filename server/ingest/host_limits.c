#include "server/ingest/host_limits.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

static __rlimit_resource_t resource_of(enum lac_host_limit what)
{
    static const __rlimit_resource_t resources[] = {
        [LAC_HOST_ADDRESSES] = RLIMIT_AS,
        [LAC_HOST_FILE] = RLIMIT_FSIZE,
        [LAC_HOST_CPU] = RLIMIT_CPU,
        [LAC_HOST_CORE] = RLIMIT_CORE,
        [LAC_HOST_DESCRIPTORS] = RLIMIT_NOFILE,
        [LAC_HOST_PROCESSES] = RLIMIT_NPROC,
    };

    return resources[what];
}

uint64_t lac_host_limit_least(enum lac_host_limit what, uint64_t wanted)
{
    struct rlimit limit;

    if (getrlimit(resource_of(what), &limit) != 0 || limit.rlim_max == RLIM_INFINITY ||
        limit.rlim_max > wanted) {
        return wanted;
    }
    return limit.rlim_max;
}

bool lac_host_limit_set(enum lac_host_limit what, uint64_t value)
{
    const rlim_t least = (rlim_t)lac_host_limit_least(what, value);
    const struct rlimit limit = {.rlim_cur = least, .rlim_max = least};

    return setrlimit(resource_of(what), &limit) == 0;
}

size_t lac_host_limit_advice(enum lac_host_limit what, uint64_t wanted, char *out,
                             size_t capacity_bytes)
{
    const uint64_t limit = lac_host_limit_least(what, wanted);
    const char *const end = "start the server under a larger limit and try again";
    int length = 0;

    out[0] = '\0';
    if (limit >= wanted) {
        return 0;
    }
    if (what == LAC_HOST_CPU) {
        length = snprintf(out, capacity_bytes,
                          "; the server runs under a limit of %llu s (ulimit -t): %s",
                          (unsigned long long)limit, end);
    } else if (what == LAC_HOST_ADDRESSES || what == LAC_HOST_FILE) {
        length = snprintf(out, capacity_bytes,
                          "; the server runs under a limit of %llu MiB of %s (ulimit -%c): %s",
                          (unsigned long long)(limit >> 20),
                          what == LAC_HOST_ADDRESSES ? "addresses" : "a file",
                          what == LAC_HOST_ADDRESSES ? 'v' : 'f', end);
    }
    return length > 0 ? (size_t)length : 0;
}
