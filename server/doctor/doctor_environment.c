#include "collector/base/count_of.h"
#include "server/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Variables that make everything slower and are forgotten in shells and job scripts. */
static const struct {
    const char *name;
    const char *harmless; /* value that does nothing; NULL: any value matters */
    const char *effect;
} slow_switches[] = {
    {"LACUNA_DEBUG", "0", "the collector writes on stderr what it does, in every process"},
    {"CUDA_LAUNCH_BLOCKING", "0", "every kernel launch waits for the GPU"},
    {"TORCH_SHOW_CPP_STACKTRACES", "0", "errors carry stack traces"},
    {"TORCH_DISTRIBUTED_DEBUG", "OFF", "collectives are checked and logged"},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "0", "each tensor is a cudaMalloc and a cudaFree"},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", "0", "the driver waits for a debugger"},
    {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0", "the driver prepares core dumps"},
    {"TORCH_COMPILE_DEBUG", "0", "the compiler writes its steps to disk"},
    {"TORCH_LOGS", "", "the compiler logs"},
    {"NVIDIA_TF32_OVERRIDE", "1", "FP32 GEMMs do not use tensor cores"},
    {"NCCL_P2P_DISABLE", "0", "GPUs communicate through host memory"},
    {"NCCL_IB_DISABLE", "0", "nodes communicate over TCP"},
    {"PYTHONDEVMODE", "", "Python runs its debug checks"},
    {"PYTHONTRACEMALLOC", "0", "Python traces every allocation"},
    {"MALLOC_CHECK_", "0", "malloc checks its heap"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "false", "GPU memory grows piece by piece"},
};

static void check_switches(struct lac_doctor *doctor)
{
    unsigned count = 0;

    for (size_t i = 0; i < LAC_COUNT_OF(slow_switches); i++) {
        const char *value = getenv(slow_switches[i].name);
        char fix[80];

        if (value == NULL || value[0] == '\0' ||
            (slow_switches[i].harmless != NULL &&
             strcasecmp(value, slow_switches[i].harmless) == 0)) {
            continue;
        }
        (void)snprintf(fix, sizeof(fix), "unset %s", slow_switches[i].name);
        lac_doctor_add(doctor, "switches", LAC_DOCTOR_AMBER, fix, "%s is set: %s",
                       slow_switches[i].name, slow_switches[i].effect);
        count++;
    }
    const char *nccl = getenv("NCCL_DEBUG");
    if (nccl != NULL && (strcasecmp(nccl, "INFO") == 0 || strcasecmp(nccl, "TRACE") == 0)) {
        lac_doctor_add(doctor, "switches", LAC_DOCTOR_AMBER, "export NCCL_DEBUG=WARN",
                       "NCCL_DEBUG=%.8s logs every communicator", nccl);
        count++;
    }
    if (count == 0) {
        lac_doctor_add(doctor, "switches", LAC_DOCTOR_OK, NULL, "no debug switch is set");
    }
}

static void check_omp(struct lac_doctor *doctor)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const long threads = text == NULL ? 0 : strtol(text, NULL, 10);

    if (text == NULL) {
        lac_doctor_add(doctor, "threads", LAC_DOCTOR_OK, NULL,
                       "OMP_NUM_THREADS is not set: each process starts one thread per core");
    } else if (doctor->allowed_cores > 0 && threads > (long)doctor->allowed_cores) {
        lac_doctor_add(
            doctor, "threads", LAC_DOCTOR_AMBER, "set it to the cores of one process at most",
            "OMP_NUM_THREADS=%ld, but only %u cores are allowed", threads, doctor->allowed_cores);
    } else {
        lac_doctor_add(doctor, "threads", LAC_DOCTOR_OK, NULL, "OMP_NUM_THREADS=%ld", threads);
    }
}

/* Other tools in the process: either side may lose its events. */
static void check_intruders(struct lac_doctor *doctor)
{
    static const struct {
        const char *name;
        const char *what;
    } intruders[] = {
        {"LD_PRELOAD", "is loaded into every process"},
        {"NVTX_INJECTION64_PATH", "receives the NVTX ranges; ours would replace it"},
        {"CUDA_INJECTION64_PATH", "is loaded by the CUDA driver: another profiler"},
        {"NSYS_PROFILING_SESSION_ID", "says that Nsight Systems is recording"},
    };
    unsigned count = 0;

    for (size_t i = 0; i < LAC_COUNT_OF(intruders); i++) {
        const char *value = getenv(intruders[i].name);
        char fix[96];

        if (value == NULL || value[0] == '\0' || strstr(value, "liblacuna") != NULL) {
            continue;
        }
        (void)snprintf(fix, sizeof(fix), "unset %s while recording, or record with that tool alone",
                       intruders[i].name);
        lac_doctor_add(doctor, "injections", LAC_DOCTOR_AMBER, fix, "%s=%.100s %s",
                       intruders[i].name, value, intruders[i].what);
        count++;
    }
    if (count == 0) {
        lac_doctor_add(doctor, "injections", LAC_DOCTOR_OK, NULL, "no other tool is injected");
    }
    const char *path = getenv("PYTHONPATH");
    if (path != NULL && path[0] != '\0') {
        lac_doctor_add(doctor, "python path", LAC_DOCTOR_AMBER,
                       "unset PYTHONPATH if the training environment does not need it",
                       "PYTHONPATH=%.120s comes before the environment's own packages", path);
    }
}

void lac_doctor_environment(struct lac_doctor *doctor)
{
    check_omp(doctor);
    check_switches(doctor);
    check_intruders(doctor);
}
