#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/inject/cupti_abi.h"
#include "collector/inject/gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 2048, DOMAIN_COUNT = 2 };

/* Device buffers of 3.2 MB that CUPTI may have of a context. Its own limit is 250, for which a job
 * near the end of its memory has no room; 16 hold 1.6 million operations between two visits of
 * CUPTI's thread. */
enum { DEVICE_BUFFERS_MAX = 16, DEVICE_BUFFERS_ASKED_MAX = 4096 };

/* Calls worth recording: what starts GPU work, waits for it, moves or allocates memory, loads code.
 * Recording all of them would be too much: cudaGetDevice alone comes several times per operator. */
static const char *const call_prefixes[] = {
    "cudaLaunch",
    "__cudaLaunch", /* what <<<>>> calls from CUDA 13 on */
    "cudaGraphLaunch",
    "cudaMemcpy",
    "cudaMemset",
    "cudaMemPrefetch",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventRecord",
    "cudaEventQuery",
    "cudaStreamQuery",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaHostRegister",
    "cudaMemPoolTrim",
    "cudaGraphInstantiate",
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemSetAccess",
    "cuModuleLoad",
    "cuLibraryLoad",
    "cuModuleGetFunction",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuLinkComplete",
    "cuMemHostAlloc",
    "cuMemHostRegister",
};

static bool is_wanted(const char *name)
{
    for (size_t i = 0; i < LAC_COUNT_OF(call_prefixes); i++) {
        if (strncmp(name, call_prefixes[i], strlen(call_prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* CUPTI's own texts, which live as long as the library. Written once, before records come. */
static const char *call_names[DOMAIN_COUNT][CALLS_MAX];

void lac_cupti_names_load(const struct cupti_functions *functions)
{
    for (int domain = CUPTI_DOMAIN_DRIVER; domain <= CUPTI_DOMAIN_RUNTIME; domain++) {
        for (uint32_t number = 1; number < CALLS_MAX; number++) {
            const char *name = NULL;

            if (functions->get_callback_name(domain, number, &name) == CUPTI_OK) {
                call_names[domain - CUPTI_DOMAIN_DRIVER][number] = name;
            }
        }
    }
}

const char *lac_cupti_call_name(enum cupti_domain domain, uint32_t number)
{
    return number < CALLS_MAX ? call_names[domain - CUPTI_DOMAIN_DRIVER][number] : NULL;
}

/* Enabled one by one by name, because numbers differ between versions; a CUPTI without that gets
 * the whole kind. */
static bool enable_calls(const struct cupti_functions *functions, enum cupti_domain domain,
                         int (*enable_call)(uint32_t, uint8_t), int kind)
{
    bool any = false;

    for (uint32_t number = 1; enable_call != NULL && number < CALLS_MAX; number++) {
        const char *const name = lac_cupti_call_name(domain, number);

        if (name != NULL && is_wanted(name)) {
            any = enable_call(number, 1) == CUPTI_OK || any;
        }
    }
    return any || functions->enable(kind) == CUPTI_OK;
}

void lac_cupti_note_result(const struct cupti_functions *functions, const char *what, int result)
{
    const char *text = NULL;
    char line[300];

    if (functions->get_result_string == NULL ||
        functions->get_result_string(result, &text) != CUPTI_OK || text == NULL) {
        text = "unknown";
    }
    (void)snprintf(line, sizeof(line), "%s: %s (%d)%s", what, text, result,
                   result == CUPTI_RESULT_INSUFFICIENT_PRIVILEGES
                       ? "; the administrator allows it with: options nvidia "
                         "NVreg_RestrictProfilingToAdminUsers=0"
                       : "");
    lac_setting("gpu_recording_reason", line);
}

static int enable(const struct cupti_functions *functions, int kind)
{
    const int result = functions->enable(kind);

    LAC_DEBUG(CUPTI, 2, "kind %d: result %d", kind, result);
    return result;
}

/* As LACUNA_DEVICE_BUFFERS says, where that makes sense. */
static size_t device_buffers_max(void)
{
    const char *const text = getenv("LACUNA_DEVICE_BUFFERS");
    char *end = NULL;
    const unsigned long count = text != NULL ? strtoul(text, &end, 10) : 0;

    return text != NULL && end != text && *end == '\0' && count >= 1 &&
                   count <= DEVICE_BUFFERS_ASKED_MAX
               ? (size_t)count
               : DEVICE_BUFFERS_MAX;
}

/* Before a context is made: CUPTI keeps the memory that it took. */
static void limit_memory(const struct cupti_functions *functions)
{
    const size_t asked = device_buffers_max();
    size_t size_bytes = sizeof(asked);
    size_t count = asked;
    char text[32];

    if (functions->set_attribute != NULL &&
        functions->set_attribute(CUPTI_ATTRIBUTE_DEVICE_BUFFERS_MAX, &size_bytes, &count) ==
            CUPTI_OK) {
        (void)snprintf(text, sizeof(text), "%zu", asked);
        lac_setting("gpu_recording_device_buffers_max", text);
    }
}

static const int device_kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY,
                                   CUPTI_KIND_MEMSET, CUPTI_KIND_MEMCPY2};
static const int host_kinds[] = {CUPTI_KIND_SYNCHRONIZATION, CUPTI_KIND_CUDA_EVENT,
                                 CUPTI_KIND_OVERHEAD,        CUPTI_KIND_MEMORY2,
                                 CUPTI_KIND_DEVICE,          CUPTI_KIND_RUNTIME,
                                 CUPTI_KIND_DRIVER,          CUPTI_KIND_EXTERNAL_CORRELATION};
/* of host_kinds, those that are enabled whole: calls are chosen one by one */
enum { WHOLE_HOST_KINDS = 5 };

const char *lac_cupti_enable(const struct cupti_functions *functions, bool whole_graphs)
{
    int result = CUPTI_OK;
    bool any = false;

    limit_memory(functions);
    for (size_t i = 0; i < LAC_COUNT_OF(device_kinds); i++) {
        const int one = enable(functions, device_kinds[i]);

        any = any || one == CUPTI_OK;
        if (device_kinds[i] == CUPTI_KIND_CONCURRENT_KERNEL) {
            result = one;
        }
    }
    for (size_t i = 0; i < WHOLE_HOST_KINDS; i++) {
        any = enable(functions, host_kinds[i]) == CUPTI_OK || any;
    }
    any = enable_calls(functions, CUPTI_DOMAIN_RUNTIME, functions->enable_runtime_call,
                       CUPTI_KIND_RUNTIME) ||
          any;
    any = enable_calls(functions, CUPTI_DOMAIN_DRIVER, functions->enable_driver_call,
                       CUPTI_KIND_DRIVER) ||
          any;
    if (whole_graphs) {
        (void)functions->enable(CUPTI_KIND_GRAPH_TRACE);
    }
    if (any) { /* useless alone; no record comes unless the program pushes ids */
        (void)functions->enable(CUPTI_KIND_EXTERNAL_CORRELATION);
    }
    if (result != CUPTI_OK) {
        lac_cupti_note_result(
            functions, any ? "kernels cannot be recorded" : "no GPU activity can be recorded",
            result);
        return any ? "without-kernels" : "ranges-only";
    }
    return "full";
}

void lac_cupti_disable(const struct cupti_functions *functions)
{
    for (size_t i = 0; i < LAC_COUNT_OF(device_kinds); i++) {
        (void)functions->disable(device_kinds[i]);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(host_kinds); i++) {
        (void)functions->disable(host_kinds[i]);
    }
    for (uint32_t number = 1; number < CALLS_MAX; number++) {
        const char *const runtime = lac_cupti_call_name(CUPTI_DOMAIN_RUNTIME, number);
        const char *const driver = lac_cupti_call_name(CUPTI_DOMAIN_DRIVER, number);

        if (functions->enable_runtime_call != NULL && runtime != NULL && is_wanted(runtime)) {
            (void)functions->enable_runtime_call(number, 0);
        }
        if (functions->enable_driver_call != NULL && driver != NULL && is_wanted(driver)) {
            (void)functions->enable_driver_call(number, 0);
        }
    }
    (void)functions->disable(CUPTI_KIND_GRAPH_TRACE);
}
