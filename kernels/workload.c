/*
 * A program shaped like a training job, so that each finding can be made to appear for real: loader
 * workers made by fork, host-to-device copies, layout conversions around each convolution, an
 * optimizer of small kernels, synchronizations. Runs on a GPU, or with --cpu on threads that play
 * one.
 */
#include "kernels/device.h"
#include "kernels/loader.h"
#include "kernels/ranges.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LAYERS = 8, CHANNELS = 64, SIDE = 28, HW = SIDE * SIDE, SMALL_KERNELS = 200, BUFFERS = 2 };

struct options {
    bool cpu, nhwc, pinned, async, sync_every_op, small_kernels, naive, check;
    int workers, steps, batch, fetch_ms, work;
};

static const char help[] =
    "usage: workload [OPTION]...\n"
    "\n"
    "  --cpu               threads play the device; no GPU needed\n"
    "  --layout nchw|nhwc  nchw: each convolution converts its input and output (default nchw)\n"
    "  --naive             the naive layout kernels instead of the tiled ones\n"
    "  --workers N         loader workers, 0: load in the training process (default 2)\n"
    "  --fetch-ms N        CPU time a batch takes to make (default 40)\n"
    "  --pinned            page-locked batches\n"
    "  --async             copy the next batch on a queue of its own while this one computes\n"
    "  --sync-every-op     wait for the device after every operation\n"
    "  --small-kernels     an optimizer of 200 small kernels instead of one\n"
    "  --batch N           images a batch (default 16)   --steps N  (default 40)   --work N  "
    "(default 64)\n"
    "  --check             only check the layout kernels against the processor, and say their "
    "bandwidth\n";

static int parse(int argc, char **argv, struct options *o)
{
    static const char *const numbers[] = {"--workers", "--steps", "--batch", "--fetch-ms",
                                          "--work"};
    int *const targets[] = {&o->workers, &o->steps, &o->batch, &o->fetch_ms, &o->work};
    static const char *const flags[] = {"--cpu",           "--pinned", "--async", "--sync-every-op",
                                        "--small-kernels", "--naive",  "--check"};
    bool *const switches[] = {&o->cpu,           &o->pinned, &o->async, &o->sync_every_op,
                              &o->small_kernels, &o->naive,  &o->check};

    *o = (struct options){.workers = 2, .steps = 40, .batch = 16, .fetch_ms = 40, .work = -1};
    for (int i = 1; i < argc; i++) {
        bool known = false;

        for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
            if (strcmp(argv[i], flags[k]) == 0) {
                *switches[k] = known = true;
            }
        }
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]) && !known; k++) {
            if (strcmp(argv[i], numbers[k]) == 0 && i + 1 < argc) {
                char *end = NULL;
                const long value = strtol(argv[++i], &end, 10);

                known = *end == '\0' && value >= 0 && value <= 100000;
                *targets[k] = (int)value;
            }
        }
        if (!known && strcmp(argv[i], "--layout") == 0 && i + 1 < argc) {
            i++;
            o->nhwc = strcmp(argv[i], "nhwc") == 0;
            known = o->nhwc || strcmp(argv[i], "nchw") == 0;
        }
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (!known) {
            (void)fprintf(stderr, "workload: what is %s? (workload --help)\n", argv[i]);
            return 2;
        }
    }
    if (o->batch == 0 || o->steps == 0 || o->workers > 256) {
        (void)fprintf(stderr,
                      "workload: --batch and --steps need at least 1, --workers at most 256\n");
        return 2;
    }
    if (o->work < 0) {
        o->work = o->cpu ? 1 : 64;
    }
    return -1;
}

/* The program with the other device, next to this one: workload <-> workload-cpu. */
static int run_on_cpu(char **argv)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 8);

    if (length > 0) {
        memcpy(path + length, "-cpu", 5);
        (void)execv(path, argv);
    }
    (void)fprintf(stderr, "workload: workload-cpu is not beside this program\n");
    return 1;
}

static double now_ms(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* ---- the layout kernels: right, and how fast */

static bool right(const float *converted, const float *original, int n, int c, int hw)
{
    for (int image = 0; image < n; image++) {
        for (int channel = 0; channel < c; channel++) {
            for (int i = 0; i < hw; i++) {
                const size_t base = (size_t)image * (size_t)c * (size_t)hw;

                if (converted[base + (size_t)i * (size_t)c + (size_t)channel] !=
                    original[base + (size_t)channel * (size_t)hw + (size_t)i]) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool check_layout(bool tiled, int n, int c, int hw)
{
    const size_t count = (size_t)n * (size_t)c * (size_t)hw;
    float *const original = device_host_alloc(count);
    float *const converted = device_host_alloc(count);
    float *const back = device_host_alloc(count);
    struct device_tensor *const a = device_alloc(count);
    struct device_tensor *const b = device_alloc(count);
    struct device_tensor *const d = device_alloc(count);
    bool ok;

    for (size_t i = 0; i < count; i++) {
        original[i] = (float)(i % 8191);
    }
    device_copy_in(DEVICE_COMPUTE, a, original, count, true);
    device_nchw_to_nhwc(b, a, n, c, hw, tiled);
    device_nhwc_to_nchw(d, b, n, c, hw, tiled);
    device_copy_out(converted, b, count);
    device_copy_out(back, d, count);
    ok = right(converted, original, n, c, hw) && memcmp(original, back, count * sizeof(float)) == 0;
    device_free(a);
    device_free(b);
    device_free(d);
    device_host_free(original);
    device_host_free(converted);
    device_host_free(back);
    return ok;
}

static double layout_bandwidth(bool tiled, int n)
{
    enum { ROUNDS = 20 };
    const size_t count = (size_t)n * CHANNELS * HW;
    struct device_tensor *const a = device_alloc(count);
    struct device_tensor *const b = device_alloc(count);
    double start;

    device_nchw_to_nhwc(b, a, n, CHANNELS, HW, tiled);
    device_synchronize();
    start = now_ms();
    for (int i = 0; i < ROUNDS; i++) {
        device_nchw_to_nhwc(b, a, n, CHANNELS, HW, tiled);
    }
    device_synchronize();
    start = now_ms() - start;
    device_free(a);
    device_free(b);
    return 2.0 * ROUNDS * (double)count * sizeof(float) / (start * 1e-3);
}

static int check(int batch)
{
    static const int shapes[][3] = {{1, 1, 1}, {2, 3, 49}, {3, 64, 784}, {1, 33, 31}, {4, 65, 127}};
    const double copy = device_copy_bandwidth((size_t)batch * CHANNELS * HW);
    bool ok = true;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int tiled = 0; tiled < 2; tiled++) {
            const bool one = check_layout(tiled != 0, shapes[i][0], shapes[i][1], shapes[i][2]);

            ok = ok && one;
            if (!one) {
                (void)printf("WRONG: %s, %d x %d x %d\n", tiled ? "tiled" : "naive", shapes[i][0],
                             shapes[i][1], shapes[i][2]);
            }
        }
    }
    for (int tiled = 0; tiled < 2; tiled++) {
        const double bandwidth = layout_bandwidth(tiled != 0, batch);

        (void)printf("%s layout kernel: %.1f GB/s, %.0f %% of a device copy (%.1f GB/s)\n",
                     tiled ? "tiled" : "naive", bandwidth * 1e-9, 100.0 * bandwidth / copy,
                     copy * 1e-9);
    }
    (void)printf("%s\n", ok ? "layout kernels are right" : "layout kernels are WRONG");
    return ok ? 0 : 1;
}

/* ---- a step */

struct model {
    const struct options *options;
    size_t floats; /* of one batch */
    struct device_tensor *input[BUFFERS];
    struct device_tensor *converted;
    struct device_tensor *weights;
};

static void after_operation(const struct model *model)
{
    if (model->options->sync_every_op) {
        device_synchronize();
    }
}

static void layer(const struct model *model, struct device_tensor *tensor)
{
    const struct options *const o = model->options;

    if (!o->nhwc) {
        device_nchw_to_nhwc(model->converted, tensor, o->batch, CHANNELS, HW, !o->naive);
        after_operation(model);
    }
    device_convolve(o->nhwc ? tensor : model->converted, model->floats, o->work);
    after_operation(model);
    if (!o->nhwc) {
        device_nhwc_to_nchw(tensor, model->converted, o->batch, CHANNELS, HW, !o->naive);
        after_operation(model);
    }
}

static void compute(const struct model *model, struct device_tensor *input)
{
    const size_t weights = (size_t)SMALL_KERNELS * 256;

    range_push("forward");
    for (int i = 0; i < LAYERS; i++) {
        layer(model, input);
    }
    range_pop();
    range_push("backward");
    for (int i = 0; i < LAYERS * 2; i++) {
        layer(model, input);
    }
    range_pop();
    range_push("Optimizer.step#SGD.step");
    if (model->options->small_kernels) {
        for (size_t i = 0; i < SMALL_KERNELS; i++) {
            device_update(model->weights, i * 256, 256, 0.01F);
            after_operation(model);
        }
    } else {
        device_update(model->weights, 0, weights, 0.01F);
        after_operation(model);
    }
    range_pop();
}

static void copy_batch(const struct model *model, int step, const float *batch)
{
    const struct options *const o = model->options;

    range_push("copy");
    device_copy_in(o->async ? DEVICE_COPY : DEVICE_COMPUTE, model->input[step % BUFFERS], batch,
                   model->floats, o->pinned);
    after_operation(model);
    range_pop();
}

static int train(const struct options *o)
{
    const size_t floats = (size_t)o->batch * CHANNELS * HW;
    const struct loader_options loading = {.workers = o->workers,
                                           .batches = o->steps,
                                           .batch_floats = floats,
                                           .fetch_ms = o->fetch_ms};
    struct model model = {.options = o, .floats = floats};
    struct loader *const loader =
        loader_open(&loading); /* before CUDA: its processes must not inherit a context */
    const char *const device = device_open();
    const float *batch;
    /* after the batches that the workers made while the device was being opened */
    const int ahead = 2 + 2 * o->workers;
    const int warm_up = ahead <= o->steps / 2 ? ahead : 2;
    float loss;
    double start = 0;
    char name[32];
    int step = 0;

    if (loader == NULL) {
        perror("workload: loader");
        return 1;
    }
    if (o->pinned) {
        size_t size_bytes = 0;
        void *const memory = loader_memory(loader, &size_bytes);

        if (!device_host_register(memory, size_bytes)) {
            (void)fprintf(stderr, "workload: the batches cannot be page-locked (ulimit -l)\n");
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        model.input[i] = device_alloc(floats);
    }
    model.converted = device_alloc(floats);
    model.weights = device_alloc((size_t)SMALL_KERNELS * 256);

    batch = loader_next(loader);
    if (o->async && batch != NULL) {
        copy_batch(&model, 0, batch);
    }
    for (; batch != NULL; step++) {
        start = step == warm_up ? now_ms() : start;
        (void)snprintf(name, sizeof(name), "ProfilerStep#%d", step);
        range_push(name);
        if (o->async) {
            device_queue_wait(DEVICE_COMPUTE, DEVICE_COPY); /* this batch is there */
            batch = loader_next(loader);
            if (batch != NULL) {
                device_queue_wait(DEVICE_COPY,
                                  DEVICE_COMPUTE); /* its buffer was last read a step ago */
                copy_batch(&model, step + 1, batch);
            }
            compute(&model, model.input[step % BUFFERS]);
        } else {
            copy_batch(&model, step, batch);
            compute(&model, model.input[step % BUFFERS]);
            batch = loader_next(loader);
        }
        if (step % 10 == 9) {
            device_copy_out(&loss, model.weights, 1);
        }
        range_pop();
    }
    device_synchronize();
    if (step > warm_up) {
        const double ms = (now_ms() - start) / (step - warm_up);

        (void)printf("%s: %d steps, %.2f ms a step, %.0f images/s\n", device, step, ms,
                     o->batch * 1000.0 / ms);
    }
    for (int i = 0; i < BUFFERS; i++) {
        device_free(model.input[i]);
    }
    device_free(model.converted);
    device_free(model.weights);
    device_close();
    loader_close(loader);
    return step == o->steps ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options;
    const int status = parse(argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    if (options.cpu && device_is_gpu()) {
        return run_on_cpu(argv);
    }
    if (!options.cpu && !device_is_gpu()) {
        (void)fprintf(stderr, "workload: built without CUDA; run with --cpu\n");
        return 1;
    }
    range_open_library();
    if (options.check) {
        (void)device_open();
        return check(options.batch);
    }
    return train(&options);
}
