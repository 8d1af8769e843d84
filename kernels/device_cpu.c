#include "kernels/device.h"
#include "kernels/ranges.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Two threads play a device's two queues. Each takes operations in order and executes them. Each
 * operation is a range on that thread, with the name of the kernel, so that recordings look alike.
 */

enum { QUEUE_LENGTH = 1024 }; /* how far the driver of a GPU lets the host run ahead */

struct device_tensor {
    float *values;
};

enum operation_kind {
    OP_COPY,
    OP_CONVOLVE,
    OP_TO_NHWC,
    OP_TO_NCHW,
    OP_UPDATE,
    OP_SIGNAL,
    OP_WAIT,
    OP_STOP
};

struct operation {
    enum operation_kind kind;
    float *to;
    const float *from;
    size_t count;
    int n, c, hw, work;
    float rate;
    bool tiled;
    uint64_t ticket; /* of a SIGNAL, or what a WAIT waits for */
    enum device_queue other;
};

struct queue {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct operation ring[QUEUE_LENGTH];
    uint64_t head, tail; /* done, submitted */
    uint64_t signalled;  /* the latest SIGNAL that was reached */
    uint64_t next_ticket;
};

static struct queue queues[2];

static void fail(const char *what)
{
    (void)fprintf(stderr, "workload: %s\n", what);
    exit(1);
}

static void transpose(float *to, const float *from, int n, int rows, int columns, bool tiled)
{
    const int step = tiled ? 32 : rows;

    for (int image = 0; image < n; image++) {
        const float *const source = from + (size_t)image * (size_t)rows * (size_t)columns;
        float *const target = to + (size_t)image * (size_t)rows * (size_t)columns;

        for (int first = 0; first < rows; first += step) {
            for (int x = 0; x < columns; x++) {
                for (int y = first; y < rows && y < first + step; y++) {
                    target[(size_t)x * (size_t)rows + (size_t)y] =
                        source[(size_t)y * (size_t)columns + (size_t)x];
                }
            }
        }
    }
}

static void convolve(float *values, size_t count, int work)
{
    for (size_t i = 0; i < count; i++) {
        float value = values[i];

        for (int k = 0; k < work; k++) {
            value = value * 0.999F + 0.001F;
        }
        values[i] = value;
    }
}

static void signal_ticket(struct queue *queue, uint64_t ticket)
{
    (void)pthread_mutex_lock(&queue->mutex);
    queue->signalled = ticket;
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->mutex);
}

static void wait_ticket(struct queue *queue, uint64_t ticket)
{
    (void)pthread_mutex_lock(&queue->mutex);
    while (queue->signalled < ticket) {
        (void)pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
}

static void perform(struct queue *queue, const struct operation *op)
{
    switch (op->kind) {
    case OP_COPY:
        range_push("Memcpy HtoD");
        memcpy(op->to, op->from, op->count * sizeof(float));
        range_pop();
        break;
    case OP_CONVOLVE:
        range_push("convolveKernel");
        convolve(op->to, op->count, op->work);
        range_pop();
        break;
    case OP_TO_NHWC:
        range_push(op->tiled ? "nchwToNhwcKernel" : "nchwToNhwcNaiveKernel");
        transpose(op->to, op->from, op->n, op->c, op->hw, op->tiled);
        range_pop();
        break;
    case OP_TO_NCHW:
        range_push(op->tiled ? "nhwcToNchwKernel" : "nhwcToNchwNaiveKernel");
        transpose(op->to, op->from, op->n, op->hw, op->c, op->tiled);
        range_pop();
        break;
    case OP_UPDATE:
        range_push("updateKernel");
        for (size_t i = 0; i < op->count; i++) {
            op->to[i] -= op->rate * op->to[i];
        }
        range_pop();
        break;
    case OP_SIGNAL:
        signal_ticket(queue, op->ticket);
        break;
    case OP_WAIT:
        wait_ticket(&queues[op->other], op->ticket);
        break;
    case OP_STOP:
        break;
    }
}

static void *run_queue(void *argument)
{
    struct queue *const queue = argument;
    struct operation op;

    do {
        (void)pthread_mutex_lock(&queue->mutex);
        while (queue->head == queue->tail) {
            (void)pthread_cond_wait(&queue->changed, &queue->mutex);
        }
        op = queue->ring[queue->head % QUEUE_LENGTH];
        (void)pthread_mutex_unlock(&queue->mutex);
        perform(queue, &op);
        (void)pthread_mutex_lock(&queue->mutex);
        queue->head++;
        (void)pthread_cond_broadcast(&queue->changed);
        (void)pthread_mutex_unlock(&queue->mutex);
    } while (op.kind != OP_STOP);
    return NULL;
}

static void submit(enum device_queue which, const struct operation *op)
{
    struct queue *const queue = &queues[which];

    (void)pthread_mutex_lock(&queue->mutex);
    while (queue->tail - queue->head == QUEUE_LENGTH) {
        (void)pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    queue->ring[queue->tail++ % QUEUE_LENGTH] = *op;
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->mutex);
}

static void drain(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->mutex);
    while (queue->head != queue->tail) {
        (void)pthread_cond_wait(&queue->changed, &queue->mutex);
    }
    (void)pthread_mutex_unlock(&queue->mutex);
}

bool device_is_gpu(void)
{
    return false;
}

const char *device_open(void)
{
    for (int i = 0; i < 2; i++) {
        (void)pthread_mutex_init(&queues[i].mutex, NULL);
        (void)pthread_cond_init(&queues[i].changed, NULL);
        if (pthread_create(&queues[i].thread, NULL, run_queue, &queues[i]) != 0) {
            fail("no thread");
        }
    }
    return "CPU thread";
}

void device_close(void)
{
    const struct operation stop = {.kind = OP_STOP};

    for (int i = 0; i < 2; i++) {
        submit((enum device_queue)i, &stop);
        (void)pthread_join(queues[i].thread, NULL);
    }
}

struct device_tensor *device_alloc(size_t float_count)
{
    struct device_tensor *const tensor = malloc(sizeof(*tensor));

    if (tensor == NULL || (tensor->values = calloc(float_count, sizeof(float))) == NULL) {
        fail("out of memory");
    }
    return tensor;
}

void device_free(struct device_tensor *tensor)
{
    if (tensor != NULL) {
        free(tensor->values);
        free(tensor);
    }
}

float *device_host_alloc(size_t float_count)
{
    float *const memory = malloc(float_count * sizeof(float));

    if (memory == NULL) {
        fail("out of memory");
    }
    return memory;
}

void device_host_free(float *memory)
{
    free(memory);
}

bool device_host_register(void *memory, size_t size_bytes)
{
    (void)memory;
    (void)size_bytes;
    return true;
}

void device_copy_in(enum device_queue queue, struct device_tensor *to, const float *from,
                    size_t float_count, bool pinned)
{
    const struct operation op = {
        .kind = OP_COPY, .to = to->values, .from = from, .count = float_count};

    submit(queue, &op);
    if (!pinned) {
        range_push("cudaMemcpyAsync (pageable)");
        drain(&queues[queue]);
        range_pop();
    }
}

void device_copy_out(float *to, const struct device_tensor *from, size_t float_count)
{
    range_push("cudaStreamSynchronize");
    drain(&queues[DEVICE_COMPUTE]);
    range_pop();
    memcpy(to, from->values, float_count * sizeof(float));
}

void device_queue_wait(enum device_queue to, enum device_queue from)
{
    struct operation op = {.kind = OP_SIGNAL, .ticket = ++queues[from].next_ticket, .other = from};

    submit(from, &op);
    op.kind = OP_WAIT;
    submit(to, &op);
}

void device_synchronize(void)
{
    range_push("cudaDeviceSynchronize");
    drain(&queues[DEVICE_COPY]);
    drain(&queues[DEVICE_COMPUTE]);
    range_pop();
}

void device_convolve(struct device_tensor *tensor, size_t float_count, int work)
{
    const struct operation op = {
        .kind = OP_CONVOLVE, .to = tensor->values, .count = float_count, .work = work};

    submit(DEVICE_COMPUTE, &op);
}

void device_nchw_to_nhwc(struct device_tensor *to, const struct device_tensor *from, int n, int c,
                         int hw, bool tiled)
{
    const struct operation op = {.kind = OP_TO_NHWC,
                                 .to = to->values,
                                 .from = from->values,
                                 .n = n,
                                 .c = c,
                                 .hw = hw,
                                 .tiled = tiled};

    submit(DEVICE_COMPUTE, &op);
}

void device_nhwc_to_nchw(struct device_tensor *to, const struct device_tensor *from, int n, int c,
                         int hw, bool tiled)
{
    const struct operation op = {.kind = OP_TO_NCHW,
                                 .to = to->values,
                                 .from = from->values,
                                 .n = n,
                                 .c = c,
                                 .hw = hw,
                                 .tiled = tiled};

    submit(DEVICE_COMPUTE, &op);
}

void device_update(struct device_tensor *tensor, size_t first, size_t float_count, float rate)
{
    const struct operation op = {
        .kind = OP_UPDATE, .to = tensor->values + first, .count = float_count, .rate = rate};

    submit(DEVICE_COMPUTE, &op);
}

double device_copy_bandwidth(size_t float_count)
{
    float *const from = calloc(float_count, sizeof(float));
    float *const to = calloc(float_count, sizeof(float));
    struct timespec start, stop;
    enum { ROUNDS = 10 };

    if (from == NULL || to == NULL) {
        fail("out of memory");
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(to, from, float_count * sizeof(float));
        from[i] = to[i] + 1.0F;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &stop);
    free(from);
    free(to);
    return 2.0 * ROUNDS * (double)float_count * sizeof(float) /
           ((double)(stop.tv_sec - start.tv_sec) + (double)(stop.tv_nsec - start.tv_nsec) * 1e-9);
}
