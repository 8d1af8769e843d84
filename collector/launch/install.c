#include "collector/launch/install.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool beside(const char *folder, const char *name, char *out, size_t capacity)
{
    return (size_t)snprintf(out, capacity, "%s/%s", folder, name) < capacity &&
           access(out, R_OK) == 0;
}

bool lac_install_find(struct lac_install *install)
{
    static const char *const places[] = {"", "/../lib/lacuna", "/../libexec/lacuna"};
    char folder[3072];
    char place[3200];
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    bool found = false;

    memset(install, 0, sizeof(*install));
    if (length <= 0) {
        return false;
    }
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(places) && !found; i++) {
        (void)snprintf(place, sizeof(place), "%s%s", folder, places[i]);
        found = beside(place, "liblacuna.so", install->library, sizeof(install->library));
        if (found && !beside(place, "python", install->python, sizeof(install->python))) {
            install->python[0] = '\0';
        }
    }
    if (getenv("LACUNA_PROGRAM") != NULL) { /* the program that carried us says where it is */
        (void)snprintf(install->lacuna, sizeof(install->lacuna), "%s", getenv("LACUNA_PROGRAM"));
        (void)unsetenv("LACUNA_PROGRAM");
        return found;
    }
    if (!beside(folder, "lacuna", install->lacuna, sizeof(install->lacuna)) &&
        !beside(folder, "../../bin/lacuna", install->lacuna, sizeof(install->lacuna))) {
        install->lacuna[0] = '\0';
    }
    return found;
}

static void prepend(const char *variable, const char *value)
{
    const char *const before = getenv(variable);
    char joined[16384];

    if (before == NULL || before[0] == '\0') {
        (void)setenv(variable, value, 1);
    } else if ((size_t)snprintf(joined, sizeof(joined), "%s:%s", value, before) < sizeof(joined)) {
        (void)setenv(variable, joined, 1);
    }
}

/* What an injection variable names beside us, or "". */
static const char *other_tool(const struct lac_install *install, const char *variable)
{
    const char *const before = getenv(variable);

    return before != NULL && strcmp(before, install->library) != 0 ? before : "";
}

const char *lac_install_cuda_tool(const struct lac_install *install)
{
    const char *const before = other_tool(install, "CUDA_INJECTION64_PATH");

    return strcmp(before, "none") != 0 ? before : ""; /* how tools write that there is none */
}

void lac_install_environment(const struct lac_install *install, const char *spool_folder,
                             struct lac_displaced *displaced)
{
    const char *const cuda = lac_install_cuda_tool(install);

    (void)snprintf(displaced->nvtx, sizeof(displaced->nvtx), "%s",
                   other_tool(install, "NVTX_INJECTION64_PATH"));
    (void)snprintf(displaced->cuda, sizeof(displaced->cuda), "%s", cuda);
    if (cuda[0] != '\0') {
        (void)setenv("LACUNA_CUDA_INJECTION", displaced->cuda, 1);
    }
    LAC_DEBUG(LAUNCH, 1, "library %s, Python hook %s", install->library,
              install->python[0] != '\0' ? install->python : "(none)");
    (void)setenv("NVTX_INJECTION64_PATH", install->library, 1);
    (void)setenv("CUDA_INJECTION64_PATH", install->library, 1);
    (void)setenv("LACUNA_SPOOL", spool_folder, 1);
    (void)unsetenv("LACUNA_ON_DEMAND"); /* the launcher says when */
    (void)unsetenv("LACUNA_RANGE");
    (void)unsetenv("LACUNA_PROFILER_API");
    (void)setenv("LACUNA_LIBRARY", install->library, 1);
    if (install->python[0] != '\0') {
        prepend("PYTHONPATH", install->python);
    }
}
