#include "collector/sample/nvml.h"

#include "collector/base/entry.h"
#include "collector/base/nvml_abi.h"
#include "collector/base/nvml_functions.h"
#include "collector/base/old_symbols.h"
#include "collector/base/progress_line.h"
#include "collector/sample/gpu_choice.h"
#include "collector/sample/nvml_calls.h"
#include "collector/sample/nvml_gpm.h"
#include "collector/sample/sample_spool.h"
#include "lacuna/spool.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEVICES_MAX = LAC_GPU_CHOICE_MAX,
    ROUND_MS = 100,
    PCIE_ROUNDS = 10,
    READINGS_MAX = 16,
    NAME_BYTES = LAC_GPU_CHOICE_TEXT,
    OPEN_WAIT_MS = 300,
    END_WAIT_MS = 2000,
    /* a launcher beside the first: a host may have one for each GPU */
    OWN_ROUND_MS = 1000,
    OWN_FRACTION = 1000, /* of a core */
    OWN_ROUND_MAX_MS = 10000,
};
#define AGAIN_NS 1000000000u /* means are told again after this even when they are the same */

static const struct {
    const char *what;
    const char *unit;
} series[LAC_NVML_VALUES] = {
    [LAC_NVML_GPU_USE] = {"GPU utilization", "%"},
    [LAC_NVML_MEMORY_USE] = {"memory utilization", "%"},
    [LAC_NVML_SM_CLOCK] = {"SM clock", "MHz"},
    [LAC_NVML_MEMORY_CLOCK] = {"memory clock", "MHz"},
    [LAC_NVML_MEMORY_USED] = {"memory used", "MB"},
    [LAC_NVML_POWER] = {"power", "W"},
    [LAC_NVML_ENERGY] = {"energy", "J"},
    [LAC_NVML_TEMPERATURE] = {"temperature", "C"},
    [LAC_NVML_CLOCKS_HELD] = {"clocks held down", "reasons"},
    [LAC_NVML_PCIE_SENT] = {"PCIe sent", "MB/s"},
    [LAC_NVML_PCIE_RECEIVED] = {"PCIe received", "MB/s"},
    [LAC_NVML_MEMORY_TOTAL] = {"memory total", "MB"},
    [LAC_NVML_SM_ACTIVE] = {"SMs active", "%"},
    [LAC_NVML_SM_OCCUPANCY] = {"SM occupancy", "%"},
    [LAC_NVML_TENSOR_ACTIVE] = {"tensor cores active", "%"},
    [LAC_NVML_MEMORY_BANDWIDTH] = {"memory bandwidth", "%"},
    [LAC_NVML_NVLINK_SENT] = {"NVLink sent", "MB/s"},
    [LAC_NVML_NVLINK_RECEIVED] = {"NVLink received", "MB/s"},
};

static const enum lac_nvml_value value_of_gpm[LAC_GPM_VALUES] = {
    [LAC_GPM_SM_ACTIVE] = LAC_NVML_SM_ACTIVE,
    [LAC_GPM_SM_OCCUPANCY] = LAC_NVML_SM_OCCUPANCY,
    [LAC_GPM_TENSOR_ACTIVE] = LAC_NVML_TENSOR_ACTIVE,
    [LAC_GPM_MEMORY_BANDWIDTH] = LAC_NVML_MEMORY_BANDWIDTH,
    [LAC_GPM_PCIE_SENT] = LAC_NVML_PCIE_SENT,
    [LAC_GPM_PCIE_RECEIVED] = LAC_NVML_PCIE_RECEIVED,
    [LAC_GPM_NVLINK_SENT] = LAC_NVML_NVLINK_SENT,
    [LAC_GPM_NVLINK_RECEIVED] = LAC_NVML_NVLINK_RECEIVED,
};

struct device {
    nvml_device handle;
    unsigned index; /* as NVML counts */
    char name[NAME_BYTES];
    char uuid[NAME_BYTES];
    char gpm_at_start[NAME_BYTES];  /* "True", or why not */
    double values[LAC_NVML_VALUES]; /* NAN: not told */
    double written[LAC_NVML_VALUES];
    unsigned processes; /* that compute on it, under the mutex */
    uint64_t written_ns[LAC_NVML_VALUES];
    uint32_t ids[LAC_NVML_VALUES];
    struct lac_gpm gpm; /* the reading thread's */
    bool has_gpm_pcie;
    /* for the writer, under the mutex */
    struct lac_gpm_reading readings[READINGS_MAX];
    unsigned reading_count;
    char gpm_off[sizeof(((struct lac_gpm *)NULL)->why_off)];
    bool was_told;
};

/* The driver may take seconds to begin, or hang: only the thread calls it, and who waits for the
 * thread does so for a while. */
enum state { OPENING, OPEN, FAILED };

struct lac_nvml {
    void *library;
    bool is_first;
    const char *chosen_by;
    struct lac_nvml_functions call;
    bool has_gpm;
    const char *why_no_gpm;
    char driver[NAME_BYTES];
    struct device devices[DEVICES_MAX];
    unsigned count;
    bool hides_all; /* there are GPUs, but none is the job's */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* `stop` was set */
    /* under the mutex. What the thread found when it opened the driver stays as it is
     * from OPEN on */
    enum state state;
    bool stop;
    bool has_ended;
    /* the writer's */
    bool was_noted;
    bool said_off;
};

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000L};

    (void)nanosleep(&pause, NULL);
}

static void open_device(struct lac_nvml *nvml, struct device *device)
{
    for (int k = 0; k < LAC_NVML_VALUES; k++) {
        device->values[k] = (double)NAN;
        device->written[k] = (double)NAN;
    }
    if (nvml->has_gpm) {
        lac_gpm_open(&nvml->call, device->handle, &device->gpm);
    }
    (void)snprintf(device->gpm_at_start, sizeof(device->gpm_at_start), "%s",
                   device->gpm.is_on ? "True"
                   : nvml->has_gpm   ? device->gpm.why_off
                                     : nvml->why_no_gpm);
}

static bool whole_of(void *context, const char *mig, char uuid[LAC_GPU_CHOICE_TEXT])
{
    const struct lac_nvml_functions *const call = &((const struct lac_nvml *)context)->call;
    nvml_device part = NULL;
    nvml_device whole = NULL;

    return call->by_uuid != NULL && call->whole_of != NULL && call->uuid != NULL &&
           call->by_uuid(mig, &part) == NVML_OK && call->whole_of(part, &whole) == NVML_OK &&
           call->uuid(whole, uuid, LAC_GPU_CHOICE_TEXT) == NVML_OK;
}

/* Those that the job may use, and what they are called. */
static void open_devices(struct lac_nvml *nvml)
{
    struct lac_gpu_seen seen[DEVICES_MAX] = {0};
    nvml_device handles[DEVICES_MAX] = {NULL};
    bool is_there[DEVICES_MAX] = {false};
    bool wanted[DEVICES_MAX] = {false};
    struct lac_gpu_situation situation = {.variable = getenv,
                                          .is_first = nvml->is_first,
                                          .seen = seen,
                                          .whole_of = whole_of,
                                          .context = nvml};
    unsigned count = 0;

    (void)nvml->call.count(&count);
    situation.count = count < DEVICES_MAX ? count : DEVICES_MAX;
    for (unsigned i = 0; i < situation.count; i++) {
        is_there[i] = nvml->call.handle(i, &handles[i]) == NVML_OK;
        if (is_there[i] && nvml->call.name != NULL) {
            (void)nvml->call.name(handles[i], seen[i].name, sizeof(seen[i].name));
        }
        if (is_there[i] && nvml->call.uuid != NULL) {
            (void)nvml->call.uuid(handles[i], seen[i].uuid, sizeof(seen[i].uuid));
        }
    }
    nvml->chosen_by = lac_gpu_choose(&situation, wanted);
    for (unsigned i = 0; i < situation.count; i++) {
        if (wanted[i] && is_there[i]) {
            struct device *const device = &nvml->devices[nvml->count++];

            device->handle = handles[i];
            device->index = i;
            memcpy(device->name, seen[i].name, sizeof(device->name));
            memcpy(device->uuid, seen[i].uuid, sizeof(device->uuid));
            open_device(nvml, device);
        }
    }
    nvml->hides_all = nvml->count == 0 && situation.count > 0;
}

static bool open_all(struct lac_nvml *nvml)
{
    const char *const wish = getenv("LACUNA_GPM");
    const bool is_unwanted = wish != NULL && strcmp(wish, "0") == 0;

    if (!lac_nvml_find(nvml->library, &nvml->call) || nvml->call.init() != NVML_OK) {
        return false;
    }
    nvml->has_gpm = lac_nvml_has_gpm(&nvml->call) && !is_unwanted;
    nvml->why_no_gpm = is_unwanted ? "turned off by LACUNA_GPM=0" : "this driver does not have it";
    if (nvml->call.driver != NULL) {
        (void)nvml->call.driver(nvml->driver, sizeof(nvml->driver));
    }
    open_devices(nvml);
    if (nvml->count == 0) {
        (void)nvml->call.shutdown();
    }
    return nvml->count > 0;
}

static void close_all(struct lac_nvml *nvml)
{
    for (unsigned i = 0; i < nvml->count && nvml->has_gpm; i++) {
        lac_gpm_close(&nvml->call, &nvml->devices[i].gpm);
    }
    (void)nvml->call.shutdown();
}

/* A reading for the writer; when it does not come, the oldest goes. */
static void keep_reading(struct device *device, const struct lac_gpm_reading *reading)
{
    if (device->reading_count == READINGS_MAX) {
        memmove(&device->readings[0], &device->readings[1],
                (READINGS_MAX - 1) * sizeof(device->readings[0]));
        device->reading_count--;
    }
    device->readings[device->reading_count++] = *reading;
}

static void read_all_of(struct lac_nvml *nvml, struct device *device, bool with_pcie)
{
    struct lac_gpm_reading reading;
    const bool was_on = device->gpm.is_on;
    const bool is_new = was_on && lac_gpm_read(&nvml->call, &device->gpm, &reading);
    double values[LAC_NVML_VALUES];
    unsigned processes = 0;

    if (with_pcie && nvml->call.processes != NULL) { /* it only counts, and says "too small" */
        (void)nvml->call.processes(device->handle, &processes, NULL);
    }
    if (is_new) {
        device->has_gpm_pcie = !isnan(reading.values[LAC_GPM_PCIE_SENT]) ||
                               !isnan(reading.values[LAC_GPM_PCIE_RECEIVED]);
    }
    for (int k = 0; k < LAC_NVML_VALUES; k++) {
        values[k] = (double)NAN;
    }
    lac_nvml_read(&nvml->call, device->handle,
                  with_pcie && !(device->gpm.is_on && device->has_gpm_pcie), values);
    (void)pthread_mutex_lock(&nvml->mutex);
    device->processes = with_pcie ? processes : device->processes;
    for (int k = 0; k < LAC_NVML_VALUES; k++) {
        if (!isnan(values[k])) {
            device->values[k] = values[k];
        }
    }
    if (is_new) {
        keep_reading(device, &reading);
        if (device->has_gpm_pcie) { /* one source: what the slow call said is old */
            device->values[LAC_NVML_PCIE_SENT] = (double)NAN;
            device->values[LAC_NVML_PCIE_RECEIVED] = (double)NAN;
        }
    }
    if (was_on && !device->gpm.is_on) {
        memcpy(device->gpm_off, device->gpm.why_off, sizeof(device->gpm_off));
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec used = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Between rounds; the job's end does not wait for it. @return whether to stop */
static bool pause_after(struct lac_nvml *nvml, uint64_t cost_ns)
{
    const uint64_t rare_ms = cost_ns / 1000 * OWN_FRACTION / 1000;
    const uint64_t wait_ms = nvml->is_first               ? ROUND_MS
                             : rare_ms > OWN_ROUND_MAX_MS ? OWN_ROUND_MAX_MS
                             : rare_ms > OWN_ROUND_MS     ? rare_ms
                                                          : OWN_ROUND_MS;
    struct timespec until = {0};
    int waited = 0;
    bool stop;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000L;
    until.tv_sec += (time_t)(wait_ms / 1000) + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_mutex_lock(&nvml->mutex);
    while (!nvml->stop && waited == 0) {
        waited = pthread_cond_timedwait(&nvml->wake, &nvml->mutex, &until);
    }
    stop = nvml->stop;
    (void)pthread_mutex_unlock(&nvml->mutex);
    return stop;
}

static void *run(void *context)
{
    struct lac_nvml *const nvml = context;
    bool is_open;
    bool stop;

    lac_entry_hold(lac_entry_held()); /* signals are the main thread's, faults are our own */
    is_open = open_all(nvml);
    (void)pthread_mutex_lock(&nvml->mutex);
    nvml->state = is_open ? OPEN : FAILED;
    stop = !is_open || nvml->stop;
    (void)pthread_mutex_unlock(&nvml->mutex);
    for (unsigned round = 0; !stop; round++) {
        const uint64_t before_ns = thread_cpu_ns();

        for (unsigned i = 0; i < nvml->count; i++) {
            /* not in the first round: by then GPM has told whether it has PCIe */
            read_all_of(nvml, &nvml->devices[i], round % PCIE_ROUNDS == 2);
        }
        stop = pause_after(nvml, thread_cpu_ns() - before_ns);
    }
    if (is_open) {
        close_all(nvml);
    }
    (void)pthread_mutex_lock(&nvml->mutex);
    nvml->has_ended = true;
    (void)pthread_mutex_unlock(&nvml->mutex);
    return NULL;
}

/* Until `holds`, which is asked under the mutex, but no longer. @return whether it holds */
static bool wait_until(struct lac_nvml *nvml, bool (*holds)(const struct lac_nvml *), long wait_ms)
{
    bool held = false;

    for (long waited_ms = 0; !held; waited_ms += 5) {
        (void)pthread_mutex_lock(&nvml->mutex);
        held = holds(nvml);
        (void)pthread_mutex_unlock(&nvml->mutex);
        if (held || waited_ms >= wait_ms) {
            break;
        }
        sleep_ms(5);
    }
    return held;
}

static bool has_opened(const struct lac_nvml *nvml)
{
    return nvml->state != OPENING;
}

static bool has_ended(const struct lac_nvml *nvml)
{
    return nvml->has_ended;
}

static void note_device(const struct device *device, struct lac_sample_spool *spool)
{
    char key[40];

    if (device->name[0] != '\0') {
        (void)snprintf(key, sizeof(key), "host.gpu.%u", device->index);
        lac_sample_spool_setting(spool, key, device->name);
    }
    if (device->uuid[0] != '\0') {
        (void)snprintf(key, sizeof(key), "host.gpu_uuid.%u", device->index);
        lac_sample_spool_setting(spool, key, device->uuid);
    }
    (void)snprintf(key, sizeof(key), "host.gpm.%u", device->index);
    lac_sample_spool_setting(spool, key, device->gpm_at_start);
}

/* What was found, once it is known. Under the mutex. */
static void note_facts(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    if (nvml->was_noted || nvml->state == OPENING) {
        return;
    }
    nvml->was_noted = true;
    lac_sample_spool_setting(spool, "host.gpu_monitor",
                             nvml->state == OPEN ? "nvml"
                             : nvml->hides_all   ? "CUDA_VISIBLE_DEVICES names none of its GPUs"
                                                 : "the driver shows no GPU");
    if (nvml->state == OPEN) {
        lac_sample_spool_setting(spool, "host.gpus_chosen_by", nvml->chosen_by);
    }
    if (nvml->driver[0] != '\0') {
        lac_sample_spool_setting(spool, "host.driver_version", nvml->driver);
    }
    for (unsigned i = 0; i < nvml->count; i++) {
        note_device(&nvml->devices[i], spool);
    }
}

struct lac_nvml *lac_nvml_create(struct lac_sample_spool *spool, bool is_first)
{
    void *const library = dlopen(LAC_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    struct lac_nvml *const nvml = library != NULL ? calloc(1, sizeof(*nvml)) : NULL;
    pthread_condattr_t monotonic;

    if (library == NULL) {
        lac_sample_spool_setting(spool, "host.gpu_monitor", LAC_NVML_LIBRARY " was not found");
    }
    if (nvml == NULL) {
        return NULL;
    }
    nvml->library = library;
    nvml->is_first = is_first;
    (void)pthread_mutex_init(&nvml->mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&nvml->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (pthread_create(&nvml->thread, NULL, run, nvml) != 0) {
        free(nvml);
        return NULL;
    }
    /* so that a short job has its facts, too */
    (void)wait_until(nvml, has_opened, OPEN_WAIT_MS);
    (void)pthread_mutex_lock(&nvml->mutex);
    note_facts(nvml, spool);
    (void)pthread_mutex_unlock(&nvml->mutex);
    return nvml;
}

static void write_value(struct lac_sample_spool *spool, struct device *device,
                        enum lac_nvml_value k, double value)
{
    char text[128];

    if (device->ids[k] == 0) {
        (void)snprintf(text, sizeof(text), "%c%c%c%cGPU %u: %s%c%s", LAC_SERIES_SEPARATOR,
                       LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR, LAC_SERIES_SEPARATOR,
                       device->index, series[k].what, LAC_SERIES_SEPARATOR, series[k].unit);
        device->ids[k] = lac_sample_spool_name(spool, text);
    }
    lac_sample_spool_value(spool, device->ids[k], value);
    device->written[k] = value;
}

/* A mean stands at the time at which it begins. */
static void write_readings(struct lac_sample_spool *spool, struct device *device)
{
    for (unsigned i = 0; i < device->reading_count; i++) {
        const struct lac_gpm_reading *const reading = &device->readings[i];

        lac_sample_spool_time(spool, reading->start_ns);
        for (int v = 0; v < LAC_GPM_VALUES; v++) {
            const enum lac_nvml_value k = value_of_gpm[v];

            if (!isnan(reading->values[v]) &&
                (reading->values[v] != device->written[k] ||
                 reading->start_ns - device->written_ns[k] >= AGAIN_NS)) {
                write_value(spool, device, k, reading->values[v]);
                device->written_ns[k] = reading->start_ns;
            }
        }
    }
    device->reading_count = 0;
}

static void tell_gpm_off(struct lac_nvml *nvml, struct lac_sample_spool *spool,
                         struct device *device)
{
    char key[40];

    (void)snprintf(key, sizeof(key), "host.gpm_off.%u", device->index);
    lac_sample_spool_setting(spool, key, device->gpm_off);
    device->was_told = true;
    if (!nvml->said_off) {
        nvml->said_off = true;
        lac_progress_line_clear();
        (void)fprintf(stderr, "lacuna: the counters of GPU %u are no longer read: %s\n",
                      device->index, device->gpm_off);
    }
}

unsigned lac_nvml_busy(struct lac_nvml *nvml, double *out, unsigned capacity)
{
    unsigned end = 0;

    (void)pthread_mutex_lock(&nvml->mutex);
    for (unsigned i = 0; nvml->state == OPEN && i < nvml->count; i++) {
        const struct device *const device = &nvml->devices[i];

        if (device->index < capacity) {
            for (; end < device->index; end++) { /* they are in the order of their indices */
                out[end] = (double)NAN;
            }
            out[end++] = device->values[LAC_NVML_GPU_USE] / 100;
        }
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
    return end;
}

unsigned lac_nvml_now(struct lac_nvml *nvml, struct lac_gpu_now *out, unsigned capacity)
{
    unsigned count = 0;

    (void)pthread_mutex_lock(&nvml->mutex);
    for (unsigned i = 0; nvml->state == OPEN && i < nvml->count && count < capacity; i++) {
        const struct device *const device = &nvml->devices[i];

        out[count++] = (struct lac_gpu_now){
            .index = device->index,
            .busy_pct = device->values[LAC_NVML_GPU_USE],
            .memory_pct = device->values[LAC_NVML_MEMORY_USE],
            .sm_mhz = device->values[LAC_NVML_SM_CLOCK],
            .power_w = device->values[LAC_NVML_POWER],
            .memory_used_mb = device->values[LAC_NVML_MEMORY_USED],
            .memory_total_mb = device->values[LAC_NVML_MEMORY_TOTAL],
            .clocks_held = device->values[LAC_NVML_CLOCKS_HELD],
            .processes = device->processes,
        };
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
    return count;
}

void lac_nvml_write(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    (void)pthread_mutex_lock(&nvml->mutex);
    note_facts(nvml, spool);
    for (unsigned i = 0; nvml->state == OPEN && i < nvml->count; i++) {
        struct device *const device = &nvml->devices[i];

        for (int k = 0; k < LAC_NVML_VALUES; k++) {
            if (!isnan(device->values[k]) && device->values[k] != device->written[k]) {
                write_value(spool, device, (enum lac_nvml_value)k, device->values[k]);
            }
        }
    }
    for (unsigned i = 0; nvml->state == OPEN && i < nvml->count; i++) {
        /* with times of their own */
        struct device *const device = &nvml->devices[i];

        write_readings(spool, device);
        if (device->gpm_off[0] != '\0' && !device->was_told) {
            tell_gpm_off(nvml, spool, device);
        }
    }
    (void)pthread_mutex_unlock(&nvml->mutex);
}

/* What a reading of the counters took, on average. */
static void note_cost(const struct device *device, struct lac_sample_spool *spool)
{
    char key[40];
    char text[32];

    if (device->gpm.reading_count > 0) {
        (void)snprintf(key, sizeof(key), "host.gpm_reading_us.%u", device->index);
        (void)snprintf(
            text, sizeof(text), "%llu",
            (unsigned long long)(device->gpm.took_ns / device->gpm.reading_count / 1000));
        lac_sample_spool_setting(spool, key, text);
    }
}

void lac_nvml_destroy(struct lac_nvml *nvml, struct lac_sample_spool *spool)
{
    struct timespec now;

    if (nvml == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&nvml->mutex);
    nvml->stop = true;
    (void)pthread_cond_signal(&nvml->wake);
    (void)pthread_mutex_unlock(&nvml->mutex);
    if (!wait_until(nvml, has_ended, END_WAIT_MS)) {
        lac_sample_spool_setting(spool,
                                 nvml->was_noted ? "host.gpu_monitor_end" : "host.gpu_monitor",
                                 "the driver does not answer");
        return; /* the thread is inside the driver: what it uses stays until the process ends */
    }
    (void)pthread_join(nvml->thread, NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    lac_sample_spool_time(spool, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    lac_nvml_write(nvml, spool);
    for (unsigned i = 0; i < nvml->count; i++) {
        note_cost(&nvml->devices[i], spool);
    }
    free(nvml);
}
