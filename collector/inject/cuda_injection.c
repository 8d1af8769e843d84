/* Another tool's library, which CUDA_INJECTION64_PATH named before the launcher put ours there. */

#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"
#include "collector/inject/gpu.h"
#include "collector/inject/recorder.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ours by whatever path, as of a launcher below another one. */
static bool is_ours(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return strcmp(slash != NULL ? slash + 1 : path, "liblacuna.so") == 0;
}

static void tell(const char *what, const char *text)
{
    char line[400];

    (void)snprintf(line, sizeof(line), "%s: %.380s", what, text);
    LAC_DEBUG(CUPTI, 1, "the CUDA injection library of another tool is %s", line);
    if (lac_settings.enabled) {
        lac_setting("cuda_injection", line);
    }
}

void lac_cuda_injection_chain(void)
{
    static int is_done;
    const char *const path = getenv("LACUNA_CUDA_INJECTION");
    const char *problem;
    int (*initialize)(void) = NULL;
    void *library;

    if (path == NULL || path[0] == '\0' || is_ours(path) ||
        __atomic_exchange_n(&is_done, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    library = dlopen(path, RTLD_LAZY);
    if (library != NULL) {
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    }
    if (initialize == NULL) {
        problem = dlerror();
        tell("not loaded", problem != NULL ? problem : path);
        return;
    }
    tell(initialize() != 0 ? "loaded" : "refused", path);
}
