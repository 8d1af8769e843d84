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

enum { NAME_COUNT = LAC_COUNT_OF(names) };

/* One search: what would do is counted, and the first after `skip` of them is taken. */
struct search {
    unsigned skip;
    struct cupti_functions *functions;
    const char *order[NAME_COUNT];
    char loaded_path[PATH_MAX]; /* libcupti that the process has loaded */
    char runtime[PATH_MAX];     /* folder of the CUDA runtime that it has loaded */
};

static char found_path[PATH_MAX];

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Wheels bring CUPTI next to libcudart and libcublas, and some add a hash to the names:
 * libcudart-d0da41ae.so.11.0. */
static int note_library(struct dl_phdr_info *info, size_t size_bytes, void *out)
{
    struct search *const search = out;
    const char *const slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size_bytes;
    if (slash == NULL || strlen(info->dlpi_name) >= PATH_MAX) {
        return 0;
    }
    if (search->loaded_path[0] == '\0' &&
        (starts_with(slash, "/libcupti.so") || starts_with(slash, "/libcupti-"))) {
        (void)snprintf(search->loaded_path, PATH_MAX, "%s", info->dlpi_name);
    }
    if (starts_with(slash, "/libcudart") ||
        (search->runtime[0] == '\0' && starts_with(slash, "/libcublas"))) {
        memcpy(search->runtime, info->dlpi_name, (size_t)(slash - info->dlpi_name));
        search->runtime[slash - info->dlpi_name] = '\0';
    }
    return 0;
}

/* A libcupti of a newer CUDA than the driver's refuses to work: those of the driver's CUDA and
 * older come first, then the others. */
static void order_names(struct search *search)
{
    int (*get_driver_version)(int *) = NULL;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int version = INT_MAX;
    size_t count = 0;

    if (driver != NULL) {
        *(void **)&get_driver_version = dlsym(driver, "cuDriverGetVersion");
    }
    if (get_driver_version != NULL && get_driver_version(&version) != 0) {
        version = INT_MAX;
    }
    for (int newer = 0; newer <= 1; newer++) {
        for (size_t i = 0; i < NAME_COUNT; i++) {
            const int major = (int)strtol(names[i] + strlen("libcupti.so") +
                                              (names[i][strlen("libcupti.so")] == '.'),
                                          NULL, 10);

            if ((major > version / 1000) == (newer == 1)) {
                search->order[count++] = names[i];
            }
        }
    }
}

/* Take the library's functions, if it is the one that is looked for. */
static bool would_do(struct search *search, void *library)
{
    struct cupti_functions *const functions = search->functions;

    if (library == NULL) {
        return false;
    }
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
    FIND(set_attribute, "cuptiActivitySetAttribute");
    FIND(set_thread_id_type, "cuptiSetThreadIdType");
    FIND(get_stream_id, "cuptiGetStreamIdEx");
    FIND(get_device_id, "cuptiGetDeviceId");
    FIND(enable_callback, "cuptiEnableCallback");
#undef FIND
    if (functions->get_version == NULL || functions->subscribe == NULL ||
        functions->enable == NULL || functions->get_callback_name == NULL ||
        functions->register_buffers == NULL || functions->get_next_record == NULL ||
        functions->flush_all == NULL) {
        return false;
    }
    if (search->skip > 0) {
        search->skip--;
        return false;
    }
    return true;
}

static bool look_in(struct search *search, const char *folder)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        void *library;

        if (snprintf(found_path, sizeof(found_path), "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                     search->order[i]) >= (int)sizeof(found_path)) {
            continue;
        }
        library = dlopen(found_path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            LAC_DEBUG(CUPTI, 3, "cannot be loaded: %s", found_path);
        } else if (would_do(search, library)) {
            return true;
        }
    }
    return false;
}

static bool look(struct search *search)
{
    static const char *const near_runtime[] = {"", "/../../cuda_cupti/lib", "/../../cupti/lib",
                                               "/../extras/CUPTI/lib64"};
    static const char *const toolkits[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                           "/usr/local/cuda/lib64"};
    const char *const asked = getenv("LACUNA_CUPTI");
    char folder[PATH_MAX + 32];

    if (asked != NULL && asked[0] == '/') {
        (void)snprintf(found_path, sizeof(found_path), "%s", asked);
        return would_do(search, dlopen(asked, RTLD_NOW | RTLD_LOCAL));
    }
    (void)dl_iterate_phdr(note_library, search);
    order_names(search);
    /* two copies of CUPTI in a process conflict: the one that is there comes first */
    if (search->loaded_path[0] != '\0') {
        (void)snprintf(found_path, sizeof(found_path), "%.*s (loaded by the job)", PATH_MAX - 32,
                       search->loaded_path);
        if (would_do(search, dlopen(search->loaded_path, RTLD_NOW | RTLD_NOLOAD))) {
            return true;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(near_runtime) && search->runtime[0] != '\0'; i++) {
        (void)snprintf(folder, sizeof(folder), "%s%s", search->runtime, near_runtime[i]);
        if (look_in(search, folder)) {
            return true;
        }
    }
    if (look_in(search, "")) {
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(toolkits); i++) {
        if (look_in(search, toolkits[i])) {
            return true;
        }
    }
    return false;
}

bool lac_cupti_find(unsigned skip, struct cupti_functions *functions, const char **ret_path)
{
    struct search search = {.skip = skip, .functions = functions};

    if (!look(&search)) {
        LAC_DEBUG(CUPTI, 1, "no libcupti can be used; the last that was tried: %s", found_path);
        return false;
    }
    *ret_path = found_path;
    return true;
}
