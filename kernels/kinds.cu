// Every kind of GPU activity that the recorder knows, a few times each, and then a CUDA graph of many
// small kernels for some seconds: what recordings of real buffers are made of.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>

extern "C" {
#include "kernels/ranges.h"
}

namespace {

constexpr size_t count = 1 << 20;
constexpr size_t bytes = count * sizeof(float);

void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "kinds: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

__global__ void addKernel(float *values, size_t n, float by)
{
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) {
        values[i] += by;
    }
}

__global__ void sumKernel(float *sums, const float *values)
{
    extern __shared__ float part[];
    part[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = part[0];
    }
}

struct memory {
    float *pageable;
    float *pinned;
    float *managed;
    float *device;
    float *other;
};

void copies(const memory &m, cudaStream_t stream)
{
    range_push("copies");
    check(cudaMemcpy(m.device, m.pageable, bytes, cudaMemcpyHostToDevice), "pageable to device");
    check(cudaMemcpyAsync(m.device, m.pinned, bytes, cudaMemcpyHostToDevice, stream), "pinned to device");
    check(cudaMemcpyAsync(m.other, m.device, bytes, cudaMemcpyDeviceToDevice, stream), "device to device");
    check(cudaMemcpyAsync(m.pinned, m.other, bytes, cudaMemcpyDeviceToHost, stream), "device to pinned");
    check(cudaStreamSynchronize(stream), "copies");
    check(cudaMemcpy(m.pageable, m.other, bytes, cudaMemcpyDeviceToHost), "device to pageable");
    check(cudaMemcpy(m.device, m.managed, bytes, cudaMemcpyDefault), "managed to device");
    check(cudaMemsetAsync(m.other, 7, bytes, stream), "memset");
    range_pop();
}

void kernels(const memory &m, cudaStream_t first, cudaStream_t second)
{
    cudaEvent_t event;

    range_push("kernels");
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    for (int i = 0; i < 20; i++) {
        addKernel<<<count / 256, 256, 0, first>>>(m.device, count, 1.0F);
        check(cudaEventRecord(event, first), "event");
        check(cudaStreamWaitEvent(second, event, 0), "event");
        sumKernel<<<count / 256, 256, 256 * sizeof(float), second>>>(m.other, m.device);
    }
    check(cudaEventSynchronize(event), "event");
    check(cudaDeviceSynchronize(), "kernels");
    check(cudaEventDestroy(event), "event");
    range_pop();
}

void allocations(cudaStream_t stream)
{
    void *block = nullptr;

    range_push("allocations");
    for (int i = 0; i < 10; i++) {
        check(cudaMalloc(&block, 1 << 20), "cudaMalloc");
        check(cudaFree(block), "cudaFree");
        if (cudaMallocAsync(&block, 1 << 20, stream) == cudaSuccess) {
            check(cudaFreeAsync(block, stream), "cudaFreeAsync");
        }
    }
    check(cudaStreamSynchronize(stream), "allocations");
    range_pop();
}

cudaGraphExec_t make_graph(const memory &m, cudaStream_t stream, int nodes)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    check(cudaMemsetAsync(m.other, 0, 4096, stream), "capture");
    for (int i = 0; i < nodes; i++) {
        addKernel<<<4, 256, 0, stream>>>(m.device, 1024, 1.0F);
    }
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "graph");
    check(cudaGraphDestroy(graph), "graph");
    return exec;
}

double now_s()
{
    timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// One line a second: how the launches change when the recorder does.
void run_graph(const memory &m, cudaStream_t stream, int nodes, double seconds)
{
    cudaGraphExec_t exec = make_graph(m, stream, nodes);
    const double begin = now_s();

    range_push("graph");
    while (now_s() < begin + seconds) {
        const double start = now_s();
        long launches = 0;
        while (now_s() < start + 1) {
            for (int i = 0; i < 10; i++, launches++) {
                check(cudaGraphLaunch(exec, stream), "launch");
            }
            check(cudaStreamSynchronize(stream), "graph");
        }
        std::printf("graph: %.1f us a launch of %d kernels\n", (now_s() - start) * 1e6 / static_cast<double>(launches), nodes);
    }
    range_pop();
    check(cudaGraphExecDestroy(exec), "graph");
}

}  // namespace

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
    const int nodes = argc > 2 ? std::atoi(argv[2]) : 200;
    cudaStream_t first;
    cudaStream_t second;
    memory m = {};

    if (argc > 3 || seconds < 0 || nodes < 1 || nodes > 100000) {
        std::fprintf(stderr, "usage: kinds [SECONDS of a graph [KERNELS in it]]\n");
        return 2;
    }
    range_open_library();
    check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), "no GPU");
    check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), "stream");
    m.pageable = static_cast<float *>(std::calloc(count, sizeof(float)));
    check(cudaHostAlloc(&m.pinned, bytes, cudaHostAllocDefault), "pinned memory");
    check(cudaMallocManaged(&m.managed, bytes), "managed memory");
    std::memset(m.managed, 0, bytes);
    check(cudaMalloc(&m.device, bytes), "device memory");
    check(cudaMalloc(&m.other, bytes), "device memory");
    copies(m, first);
    kernels(m, first, second);
    allocations(first);
    if (seconds > 0) {
        run_graph(m, first, nodes, seconds);
    }
    check(cudaDeviceSynchronize(), "the end");
    std::printf("kinds: done\n");
    return 0;
}
