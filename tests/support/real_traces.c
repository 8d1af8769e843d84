#include "tests/support/real_traces.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char beside[] = "../shared/traces";
static const char fetched[] = "build/traces";

const char *real_traces(void)
{
    const char *const named = getenv("LACUNA_TRACES");

    if (named != NULL && named[0] != '\0') {
        return named;
    }
    return access(beside, R_OK) == 0 || access(fetched, R_OK) != 0 ? beside : fetched;
}

const char *real_trace(const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", real_traces(), name);
    return path;
}
