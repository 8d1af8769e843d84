#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUDA 11 has the minor version in its soname; the newest first. */
static const char *const names[] = {
    "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
    "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
    "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so",
};

static char found_path[PATH_MAX];

/* Folder of the libcudart or libcublas that the process has loaded: wheels bring
 * CUPTI next to them. */
static int note_runtime(struct dl_phdr_info *info, size_t size_bytes, void *out)
{
    const char *const slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size_bytes;
    if (slash == NULL || strncmp(slash, "/libcudart.so", 13) != 0 ||
        slash - info->dlpi_name >= PATH_MAX) {
        return 0;
    }
    memcpy(out, info->dlpi_name, (size_t)(slash - info->dlpi_name));
    ((char *)out)[slash - info->dlpi_name] = '\0';
    return 1;
}

static void *open_in(const char *folder)
{
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        void *library;

        if (snprintf(found_path, sizeof(found_path), "%s/%s", folder, names[i]) >=
            (int)sizeof(found_path)) {
            continue;
        }
        library = dlopen(found_path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            return library;
        }
        LAC_DEBUG(CUPTI, 3, "cannot be loaded: %s", found_path);
    }
    return NULL;
}

static void *open_library(void)
{
    static const char *const near_runtime[] = {"", "/../../cuda_cupti/lib", "/../../cupti/lib",
                                               "/../extras/CUPTI/lib64"};
    static const char *const toolkits[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                           "/usr/local/cuda/lib64"};
    const char *const asked = getenv("LACUNA_CUPTI");
    char runtime[PATH_MAX] = "";
    char folder[PATH_MAX + 32];
    void *library = NULL;

    if (asked != NULL && asked[0] == '/') {
        (void)snprintf(found_path, sizeof(found_path), "%s", asked);
        return dlopen(asked, RTLD_NOW | RTLD_LOCAL);
    }
    /* two copies of CUPTI in a process conflict: the one that is there comes first */
    for (size_t i = 0; i < LAC_COUNT_OF(names) && library == NULL; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
        (void)snprintf(found_path, sizeof(found_path), "%s (loaded by the job)", names[i]);
    }
    (void)dl_iterate_phdr(note_runtime, runtime);
    for (size_t i = 0; i < LAC_COUNT_OF(near_runtime) && library == NULL && runtime[0] != '\0';
         i++) {
        (void)snprintf(folder, sizeof(folder), "%s%s", runtime, near_runtime[i]);
        library = open_in(folder);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(names) && library == NULL; i++) {
        (void)snprintf(found_path, sizeof(found_path), "%s", names[i]);
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(toolkits) && library == NULL; i++) {
        library = open_in(toolkits[i]);
    }
    return library;
}

bool lac_cupti_find(struct cupti_functions *functions, const char **ret_path)
{
    void *const library = open_library();

    if (library == NULL) {
        LAC_DEBUG(CUPTI, 1, "no libcupti can be loaded; the last that was tried: %s", found_path);
        return false;
    }
    *ret_path = found_path;
#define FIND(field, name)                                                                          \
    do {                                                                                           \
        *(void **)&functions->field = dlsym(library, name);                                        \
        if (functions->field == NULL) {                                                            \
            LAC_DEBUG(CUPTI, 1, "%s: no function %s", found_path, name);                           \
        }                                                                                          \
    } while (0)
    FIND(get_version, "cuptiGetVersion");
    FIND(get_result_string, "cuptiGetResultString");
    FIND(subscribe, "cuptiSubscribe");
    FIND(subscribe_named, "cuptiSubscribe_v2");
    FIND(unsubscribe, "cuptiUnsubscribe");
    FIND(enable, "cuptiActivityEnable");
    FIND(disable, "cuptiActivityDisable");
    FIND(enable_runtime_call, "cuptiActivityEnableRuntimeApi");
    FIND(enable_driver_call, "cuptiActivityEnableDriverApi");
    FIND(get_callback_name, "cuptiGetCallbackName");
    FIND(register_buffers, "cuptiActivityRegisterCallbacks");
    FIND(register_timestamp, "cuptiActivityRegisterTimestampCallback");
    FIND(get_next_record, "cuptiActivityGetNextRecord");
    FIND(get_dropped, "cuptiActivityGetNumDroppedRecords");
    FIND(flush_all, "cuptiActivityFlushAll");
    FIND(set_thread_id_type, "cuptiSetThreadIdType");
    FIND(get_stream_id, "cuptiGetStreamIdEx");
    FIND(get_device_id, "cuptiGetDeviceId");
#undef FIND
    return functions->get_version != NULL && functions->subscribe != NULL &&
           functions->enable != NULL && functions->get_callback_name != NULL &&
           functions->register_buffers != NULL && functions->get_next_record != NULL &&
           functions->flush_all != NULL;
}
