#include "server/ingest/host_limits.h"

#include <stdio.h>
#include <sys/resource.h>

uint64_t lac_host_limit(int resource, uint64_t wanted)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_max == RLIM_INFINITY ||
        limit.rlim_max > wanted) {
        return wanted;
    }
    return limit.rlim_max;
}

bool lac_host_limit_set(int resource, uint64_t value)
{
    const rlim_t least = (rlim_t)lac_host_limit(resource, value);
    const struct rlimit limit = {.rlim_cur = least, .rlim_max = least};

    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

size_t lac_host_limit_advice(int resource, uint64_t wanted, char *out, size_t capacity_bytes)
{
    const uint64_t limit = lac_host_limit(resource, wanted);
    const char *const end = "start the server under a larger limit and try again";
    int length = 0;

    out[0] = '\0';
    if (limit >= wanted) {
        return 0;
    }
    if (resource == RLIMIT_CPU) {
        length = snprintf(out, capacity_bytes,
                          "; the server runs under a limit of %llu s (ulimit -t): %s",
                          (unsigned long long)limit, end);
    } else if (resource == RLIMIT_AS || resource == RLIMIT_FSIZE) {
        length = snprintf(out, capacity_bytes,
                          "; the server runs under a limit of %llu MiB of %s (ulimit -%c): %s",
                          (unsigned long long)(limit >> 20),
                          resource == RLIMIT_AS ? "addresses" : "a file",
                          resource == RLIMIT_AS ? 'v' : 'f', end);
    }
    return length > 0 ? (size_t)length : 0;
}
