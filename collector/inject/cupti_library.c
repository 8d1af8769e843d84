#include "collector/base/debug.h"
#include "collector/base/old_symbols.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_search.h"
#include "collector/inject/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* What would do is counted, and the first after `skip` of them is taken; two names of one file are
 * one library. */
struct pick {
    unsigned skip;
    struct cupti_functions *functions;
    const void *seen[LAC_CUPTI_CANDIDATES_MAX + 1];
    size_t seen_count;
};

static char found_path[PATH_MAX + 32];
static struct lac_cupti_search search; /* too large for the stack of somebody's thread */

/* Take the library's functions, if it is the one that is looked for. */
static bool would_do(struct pick *pick, const char *path, void *library)
{
    struct cupti_functions *const functions = pick->functions;

    (void)snprintf(found_path, sizeof(found_path), "%s", path);
    if (library == NULL) {
        LAC_DEBUG(CUPTI, 3, "cannot be loaded: %s", found_path);
        return false;
    }
    for (size_t i = 0; i < pick->seen_count; i++) {
        if (pick->seen[i] == library) {
            return false;
        }
    }
    pick->seen[pick->seen_count++] = library;
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
    if (pick->skip > 0) {
        pick->skip--;
        return false;
    }
    return true;
}

static bool look(struct pick *pick)
{
    const char *const asked = getenv("LACUNA_CUPTI");
    char loaded[sizeof(found_path)];

    if (asked != NULL && asked[0] == '/') {
        return would_do(pick, asked, dlopen(asked, RTLD_NOW | RTLD_LOCAL));
    }
    lac_cupti_search(&search);
    /* two copies of CUPTI in a process conflict: the one that is there comes first */
    if (search.loaded[0] != '\0') {
        (void)snprintf(loaded, sizeof(loaded), "%s (loaded by the job)", search.loaded);
        if (would_do(pick, loaded, dlopen(search.loaded, RTLD_NOW | RTLD_NOLOAD))) {
            return true;
        }
    }
    for (size_t i = 0; i < search.count; i++) {
        const char *const path = search.candidates[i].path;

        if (would_do(pick, path, dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
            return true;
        }
    }
    return false;
}

bool lac_cupti_find(unsigned skip, struct cupti_functions *functions, const char **ret_path)
{
    struct pick pick = {.skip = skip, .functions = functions};

    if (!look(&pick)) {
        LAC_DEBUG(CUPTI, 1, "no libcupti can be used; the last that was tried: %s", found_path);
        return false;
    }
    *ret_path = found_path;
    return true;
}
