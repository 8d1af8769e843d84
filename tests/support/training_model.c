#include "tests/support/training_model.h"

#include "analysis/model/builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    RANKS_USUAL = 4,
    WORKERS = 2,
    OPS_PER_STEP = 400,
    NAMES = 160,
    KERNEL_FORMS = 4,
    CONFIGS = 24
};

#define RANDOM_SEED 88172645463325252U

/** What one process and its device have. Times are each row's own clock. */
struct rank {
    uint32_t main, backward, compute, copies, comm;
    uint32_t workers[WORKERS];
    int64_t host_ns, device_ns;
    uint64_t step;
};

struct training {
    struct lac_builder *builder;
    enum lac_status status; /**< the first failure; nothing is added after it */
    struct rank ranks[TRAINING_RANKS_MAX];
    uint32_t rank_count;
    training_take take; /**< who gets the slices, NULL the builder */
    void *context;
    uint64_t told;
    uint32_t ops[NAMES], kernels[NAMES], configs[CONFIGS];
    uint32_t launch, copy_call, sync, copy, all_reduce, wait, fetch, optimizer;
    uint32_t op_args, call_args;
    uint32_t copy_detail;
    uint32_t corr;
    int64_t external_id;
    uint64_t random;
};

static uint32_t below(struct training *training, uint32_t limit)
{
    training->random ^= training->random << 13;
    training->random ^= training->random >> 7;
    training->random ^= training->random << 17;
    return (uint32_t)(training->random % limit);
}

static void note(struct training *training, enum lac_status status)
{
    if (training->status == LAC_OK) {
        training->status = status;
    }
}

__attribute__((format(printf, 2, 3))) static uint32_t intern(struct training *training,
                                                             const char *format, ...)
{
    char text[160];
    uint32_t id = 0;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    note(training, lac_strings_intern(&lac_builder_model(training->builder)->strings, text,
                                      strlen(text), &id));
    return id;
}

static uint32_t add_track(struct training *training, enum lac_track_kind kind, uint32_t process,
                          const char *name, int64_t tid, int64_t device)
{
    uint32_t track = 0;
    uint32_t id_text = intern(training, "%lld", (long long)tid);

    note(training, lac_builder_track(training->builder, kind, process, id_text, tid, &track));
    if (training->status == LAC_OK) {
        struct lac_track *added = lac_builder_track_at(training->builder, track);

        added->device = device;
        added->name = intern(training, "%s", name);
    }
    return track;
}

static uint32_t add_process(struct training *training, int64_t pid, bool is_gpu, const char *name)
{
    uint32_t process = 0;
    uint32_t id_text = intern(training, "%lld", (long long)pid);

    note(training, lac_builder_process(training->builder, id_text, pid, &process));
    if (training->status == LAC_OK) {
        struct lac_process *added = lac_builder_process_at(training->builder, process);

        added->is_gpu = is_gpu;
        added->name = intern(training, "%s", name);
    }
    return process;
}

static void add_rank(struct training *training, int number)
{
    struct rank *rank = &training->ranks[number];
    int64_t pid = 4000 + 100 * number;
    uint32_t host = add_process(training, pid, false, "python");
    uint32_t gpu = add_process(training, number, true, "python");

    rank->main = add_track(training, LAC_TRACK_THREAD, host, "main", pid, -1);
    rank->backward = add_track(training, LAC_TRACK_THREAD, host, "autograd", pid + 60, -1);
    rank->compute = add_track(training, LAC_TRACK_STREAM, gpu, "stream 7", 7, number);
    rank->copies = add_track(training, LAC_TRACK_STREAM, gpu, "stream 20", 20, number);
    rank->comm = add_track(training, LAC_TRACK_STREAM, gpu, "stream 24", 24, number);
    for (int i = 0; i < WORKERS; i++) {
        uint32_t worker = add_process(training, pid + 1 + i, false, "pt_data_worker");

        rank->workers[i] =
            add_track(training, LAC_TRACK_THREAD, worker, "pt_data_worker", pid + 1 + i, -1);
    }
    if (training->status == LAC_OK && lac_builder_device(training->builder, number) == NULL) {
        note(training, LAC_ERR_NOMEM);
    }
    rank->host_ns = 1000000 + 5000 * number;
    rank->device_ns = rank->host_ns;
}

static void add_kernel_name(struct training *training, int i)
{
    uint32_t *name = &training->kernels[i];

    switch (i % KERNEL_FORMS) {
    case 0:
        *name = intern(training,
                       "void at::native::vectorized_elementwise_kernel<4, functor_%d>(int)", i);
        break;
    case 1:
        *name = intern(training, "ampere_fp16_s16816gemm_fp16_%dx128_ldg8_f2f_stages_64x3_nn", i);
        break;
    case 2:
        *name = intern(training, "void cudnn::bn_bw_1C11_kernel_new<__half, %d>(float)", i);
        break;
    default:
        *name = i % 40 == 3
                    ? intern(training, "void cudnn::ops::nchwToNhwcKernel<__half, %d>(int)", i)
                    : intern(training, "void at::native::reduce_kernel<512, 1, op_%d>(int)", i);
        break;
    }
    training->ops[i] = intern(training, "aten::operator_%d", i);
}

static void add_words(struct training *training)
{
    const struct lac_copy copy = {.bytes = 154140672,
                                  .copy_kind = LAC_COPY_HTOD,
                                  .src = LAC_MEMORY_PAGEABLE,
                                  .dst = LAC_MEMORY_DEVICE,
                                  .is_async = 1};

    for (int i = 0; i < NAMES; i++) {
        add_kernel_name(training, i);
    }
    for (uint32_t i = 0; i < CONFIGS; i++) {
        const struct lac_kernel_config config = {.grid = {64 + 32 * i, 1, 1},
                                                 .block = {128U << (i % 3), 1, 1},
                                                 .registers_per_thread = 32 + i,
                                                 .occupancy_pct = 50,
                                                 .blocks_per_sm = 4};

        note(training,
             lac_builder_kernel_config(training->builder, &config, &training->configs[i]));
    }
    note(training, lac_builder_copy(training->builder, &copy, &training->copy_detail));
    training->launch = intern(training, "cudaLaunchKernel");
    training->copy_call = intern(training, "cudaMemcpyAsync");
    training->sync = intern(training, "cudaStreamSynchronize");
    training->copy = intern(training, "Memcpy HtoD (Pageable -> Device)");
    training->all_reduce = intern(training, "ncclDevKernel_AllReduce_Sum_f16_RING_LL(int)");
    training->wait =
        intern(training, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
    training->fetch = intern(training, "loader.fetch");
    training->optimizer = intern(training, "Optimizer.step#SGD.step");
    training->op_args = intern(training, "{\"External id\":\x01,\"Input Dims\":[[64,256,56,56]]}");
    training->call_args = intern(training, "{\"External id\":\x01,\"correlation\":\x01}");
}

static void put(struct training *training, struct lac_slice_in slice)
{
    int64_t numbers[2] = {training->external_id, slice.corr};

    if (training->take != NULL) {
        if (training->status == LAC_OK) {
            training->take(training->context, lac_builder_model(training->builder), &slice,
                           numbers);
            training->told++;
        }
        return;
    }
    if (slice.args != 0 && training->status == LAC_OK) {
        note(training,
             lac_builder_arg_numbers(training->builder, numbers,
                                     slice.args == training->call_args ? 2 : 1, &slice.arg_num));
    }
    if (training->status == LAC_OK) {
        note(training, lac_builder_slice(training->builder, &slice));
    }
}

/** A slice without arguments that nothing is linked to. */
static void put_plain(struct training *training, uint32_t track, enum lac_slice_kind kind,
                      uint32_t name, int64_t start_ns, int64_t dur_ns)
{
    put(training, (struct lac_slice_in){.track = track,
                                        .kind = kind,
                                        .name = name,
                                        .start_ns = start_ns,
                                        .dur_ns = dur_ns,
                                        .detail = LAC_NONE});
}

/** A call on `thread` at `call_ns` and what it starts on `stream`, as soon as that is free. */
static void put_launch(struct training *training, struct rank *rank, uint32_t thread,
                       int64_t call_ns, uint32_t call_name, struct lac_slice_in operation)
{
    int64_t ready_ns = call_ns + 5000;

    training->corr++;
    put(training, (struct lac_slice_in){.track = thread,
                                        .kind = LAC_SLICE_API,
                                        .name = call_name,
                                        .start_ns = call_ns,
                                        .dur_ns = 2500 + below(training, 2000),
                                        .corr = training->corr,
                                        .detail = 0,
                                        .args = training->call_args});
    rank->device_ns = rank->device_ns + 700 > ready_ns ? rank->device_ns + 700 : ready_ns;
    operation.start_ns = rank->device_ns;
    operation.corr = training->corr;
    operation.args = training->call_args;
    rank->device_ns += operation.dur_ns;
    put(training, operation);
}

/** An operator with an inner one that launches a kernel: four slices. */
static void put_operator(struct training *training, struct rank *rank, uint32_t thread)
{
    uint32_t name = below(training, NAMES);
    int64_t start_ns = rank->host_ns;
    const struct lac_slice_in kernel = {.track = rank->compute,
                                        .kind = LAC_SLICE_KERNEL,
                                        .name = training->kernels[name],
                                        .dur_ns = 2000 + (int64_t)name * 150 + below(training, 900),
                                        .detail = training->configs[name % CONFIGS]};

    put(training, (struct lac_slice_in){.track = thread,
                                        .kind = LAC_SLICE_OP,
                                        .name = training->ops[name],
                                        .start_ns = start_ns,
                                        .dur_ns = 12000,
                                        .detail = LAC_NONE,
                                        .args = training->op_args});
    put(training, (struct lac_slice_in){.track = thread,
                                        .kind = LAC_SLICE_OP,
                                        .name = training->ops[(name + 1) % NAMES],
                                        .start_ns = start_ns + 900,
                                        .dur_ns = 10500,
                                        .detail = LAC_NONE,
                                        .args = training->op_args});
    put_launch(training, rank, thread, start_ns + 3000, training->launch, kernel);
    rank->host_ns += 13000 + below(training, 3000);
    training->external_id += 2;
}

static void put_step(struct training *training, struct rank *rank)
{
    int64_t begin_ns = rank->host_ns;
    const struct lac_slice_in copy = {.track = rank->copies,
                                      .kind = LAC_SLICE_COPY,
                                      .name = training->copy,
                                      .dur_ns = 400000,
                                      .detail = training->copy_detail};
    const struct lac_slice_in reduce = {.track = rank->comm,
                                        .kind = LAC_SLICE_KERNEL,
                                        .name = training->all_reduce,
                                        .dur_ns = 90000,
                                        .detail = LAC_NONE};

    put_plain(training, rank->main, LAC_SLICE_OP, training->wait, begin_ns + 500, 600000);
    put_plain(training, rank->workers[rank->step % WORKERS], LAC_SLICE_RANGE, training->fetch,
              begin_ns, 900000);
    rank->host_ns += 620000;
    put_launch(training, rank, rank->main, rank->host_ns, training->copy_call, copy);
    rank->host_ns += 8000;
    for (int i = 0; i < OPS_PER_STEP; i++) {
        put_operator(training, rank, i < OPS_PER_STEP / 2 ? rank->main : rank->backward);
        if (i > OPS_PER_STEP / 2 && i % 40 == 0) {
            put_launch(training, rank, rank->backward, rank->host_ns, training->launch, reduce);
            rank->host_ns += 6000;
        }
    }
    put_plain(training, rank->main, LAC_SLICE_RANGE, training->optimizer, rank->host_ns, 50000);
    rank->host_ns += 60000;
    put_plain(training, rank->main, LAC_SLICE_API, training->sync, rank->host_ns,
              rank->device_ns > rank->host_ns ? rank->device_ns - rank->host_ns + 3000 : 3000);
    rank->host_ns = (rank->device_ns > rank->host_ns ? rank->device_ns : rank->host_ns) + 6000;
    put_plain(training, rank->main, LAC_SLICE_RANGE,
              intern(training, "ProfilerStep#%llu", (unsigned long long)rank->step), begin_ns,
              rank->host_ns - begin_ns);
    rank->host_ns += 2000;
    rank->step++;
}

/** Processes, devices, words; then the steps, round by round, until there are `slice_count` slices. */
static void train(struct training *training, uint64_t slice_count)
{
    struct lac_model *building = lac_builder_model(training->builder);

    for (uint32_t i = 0; i < training->rank_count; i++) {
        add_rank(training, (int)i);
    }
    add_words(training);
    while (training->status == LAC_OK &&
           (training->take != NULL ? training->told : building->slices.count) < slice_count) {
        for (uint32_t i = 0; i < training->rank_count; i++) {
            put_step(training, &training->ranks[i]);
        }
    }
}

enum lac_status training_model_create(uint64_t slice_count, struct lac_model **ret_model)
{
    struct training training = {.random = RANDOM_SEED, .rank_count = RANKS_USUAL};
    struct lac_model *building;

    training.status = lac_builder_create(&training.builder);
    if (training.status != LAC_OK) {
        return training.status;
    }
    building = lac_builder_model(training.builder);
    train(&training, slice_count);
    building->info.format = LAC_FORMAT_KINETO;
    building->info.rank = -1;
    building->info.world_size = -1;
    building->info.event_count = building->slices.count;
    building->info.slice_count = building->slices.count;
    note(&training,
         training.status == LAC_OK ? lac_builder_finish(training.builder, 0, ret_model) : LAC_OK);
    if (training.status != LAC_OK) {
        lac_builder_destroy(training.builder);
    }
    return training.status;
}

enum lac_status training_model_tell(uint32_t rank_count, uint64_t slice_count, training_take take,
                                    void *context)
{
    struct training training = {
        .random = RANDOM_SEED, .rank_count = rank_count, .take = take, .context = context};

    assert(rank_count > 0 && rank_count <= TRAINING_RANKS_MAX && take != NULL);
    training.status = lac_builder_create(&training.builder);
    if (training.status == LAC_OK) {
        train(&training, slice_count);
        lac_builder_destroy(training.builder);
    }
    return training.status;
}
