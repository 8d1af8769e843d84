/*
 * The n-th allocation fails, for every n, while a small file of each tool's is imported: profilers'
 * documents, pickles, stacks, tables and logs, Perfetto, planes of XProf, mangled names. The files
 * are the seeds of the fuzz targets; it runs in the root of the tree, as they do.
 */

#include "analysis/import/import_private.h"
#include "collector/base/count_of.h"
#include "tests/support/oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20 };

struct input {
    const char *name;
    const uint8_t *bytes;
    size_t size;
};

static enum lac_status drop(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    ++*(int *)context;
    lac_model_destroy(model);
    return LAC_OK;
}

static enum lac_status import(void *context)
{
    static const struct lac_import_tuning tuning = {512, 100};
    const struct input *input = context;
    struct lac_import_options options = {.name = input->name};
    struct lac_error error = {0};
    int count = 0;
    lac_import_limits_default(&options.limits);
    const enum lac_status status =
        lac_import_bytes_tuned(input->bytes, input->size, &options, &tuning, drop, &count, &error);
    oom_require(status == LAC_OK ? count > 0 : error.message[0] != '\0',
                "neither a trace nor a message");
    return status;
}

/* The file's bytes alone in their memory: a reader that goes beyond them is found. */
static uint64_t import_seed(const char *seed)
{
    static uint8_t buffer[FILE_BYTES_MAX];
    char path[128];
    (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/%s", seed);
    FILE *file = fopen(path, "rb");
    oom_require(file != NULL, path);
    if (strncmp(seed, "stacks/", 7) == 0) {
        (void)fgetc(file); /* says which importer its target asks */
    }
    const size_t size = fread(buffer, 1, sizeof(buffer), file);
    (void)fclose(file);
    uint8_t *bytes = malloc(size);
    oom_require(size > 0 && size < sizeof(buffer) && bytes != NULL, path);
    memcpy(bytes, buffer, size);
    struct input input = {strrchr(seed, '/') + 1, bytes, size};
    const uint64_t refused = oom_each(seed, import, &input, 1);
    free(bytes);
    oom_require(refused > 5, "too few allocations to be true");
    return refused;
}

static uint64_t import_seeds(void)
{
    static const char *const SEEDS[] = {
        "import/callgrind",
        "import/cprofile_text",
        "import/graph_notes",
        "import/graph_notes.json",
        "import/line_profiler",
        "import/line_profiler_text",
        "import/nccl_trace_rank_3",
        "import/perf_stat_csv",
        "import/perf_stat_interval",
        "import/perf_stat_json",
        "import/perf_stat_text",
        "import/py_spy_dump",
        "import/rocprofv3_markers",
        "import/scalene",
        "import/tensorboard",
        "import/small.pftrace",
        "import/torch_memory",
        "stacks/cprofile",
        "stacks/firefox",
        "stacks/firefox_bytes",
        "stacks/firefox_gecko",
        "stacks/firefox_shared",
        "stacks/folded",
        "stacks/perf",
        "stacks/rocprofv3",
        "stacks/speedscope_evented",
        "stacks/speedscope_sampled",
        "tables/dcgm",
        "tables/dmon",
        "tables/gpu_trace_csv",
        "tables/gpu_trace_text",
        "tables/ncu_details",
        "tables/ncu_raw",
        "tables/nmon",
        "tables/nsys_sums",
        "tables/nsys_trace",
        "tables/nvprof_dump",
        "tables/rocm_counters",
        "tables/rocm_stats",
        "tables/rocm_trace",
        "tables/smi",
        "tables/summary",
        "tables/torch",
    };
    uint64_t refused = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(SEEDS); i++) {
        refused += import_seed(SEEDS[i]);
    }
    return refused;
}

/* Planes of XProf, and a database whose kernels have the compiler's names, with arguments that are
 * templates, substitutions and functions. */
static uint64_t import_texts(void)
{
    static const char *const TEXTS[] = {
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":["
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"/device:GPU:0 "
        "NVIDIA H100\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":7,\"name\":\"thread_name\",\"args\":{\"name\":\"Stream "
        "#7(Compute,MemcpyH2D)\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":9,\"name\":\"thread_name\",\"args\":{\"name\":\"XLA "
        "Ops\"}},"
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":7,\"ts\":1.5,\"dur\":2,\"name\":\"fusion\",\"args\":{"
        "\"correlation_id\":\"12\",\"hlo_op\":\"fusion.1\",\"kernel_details\":\"regs:32\"}},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":9,\"ts\":1.5,\"dur\":2,\"name\":\"fusion.1\"},"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":3,\"ts\":1,\"dur\":1,\"name\":\"launch\",\"args\":{"
        "\"correlation_id\":\"12\"}}]}",
        "BEGIN TRANSACTION;CREATE TABLE StringTable(_id_ INT, value TEXT);INSERT INTO StringTable "
        "VALUES(1,'_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_"
        "15CUDAFunctorOnSelf_addIfEEEENS_6detail5ArrayIPcLi2EEEEEviT0_T1_'),"
        "(2,'_Z9transposePKfPfi'),(3,'_ZNKSt8functionIFvRKSsEEclES1_'),(4,'_ZN1aIXadL_Z1fvEEE');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, name INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,1),(3,4,2),(5,6,3),(7,8,4);COMMIT;",
    };
    uint64_t refused = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(TEXTS); i++) {
        struct input input = {"text", (const uint8_t *)TEXTS[i], strlen(TEXTS[i])};
        refused += oom_each(i == 0 ? "planes" : "mangled names", import, &input, 1);
    }
    return refused;
}

int main(void)
{
    const uint64_t refused = import_seeds() + import_texts();
    printf("oom_formats: %llu allocations refused\n", (unsigned long long)refused);
    return 0;
}
