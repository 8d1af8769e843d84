#include "kernels/device.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

namespace {

constexpr int tile = 32;      // a tile is 32 x 32 values: one warp reads a row of it at once
constexpr int tile_rows = 8;  // a block has 32 x 8 threads, each moves four values

cudaStream_t streams[2];
cudaDeviceProp properties;

void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "workload: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

__global__ void convolveKernel(float *values, size_t count, int work)
{
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        float value = values[i];
        for (int k = 0; k < work; k++) {
            value = value * 0.999F + 0.001F;
        }
        values[i] = value;
    }
}

// Rows x columns of each image become columns x rows. One column of padding keeps the 32 reads of a
// tile's column in 32 different banks of shared memory.
__device__ void transposeTile(float *to, const float *from, int rows, int columns)
{
    __shared__ float buffer[tile][tile + 1];
    const size_t image = static_cast<size_t>(blockIdx.z) * rows * columns;
    int x = blockIdx.x * tile + threadIdx.x;
    int y = blockIdx.y * tile + threadIdx.y;

    for (int j = 0; j < tile; j += tile_rows) {
        if (x < columns && y + j < rows) {
            buffer[threadIdx.y + j][threadIdx.x] = from[image + static_cast<size_t>(y + j) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * tile + threadIdx.x;
    y = blockIdx.x * tile + threadIdx.y;
    for (int j = 0; j < tile; j += tile_rows) {
        if (x < rows && y + j < columns) {
            to[image + static_cast<size_t>(y + j) * rows + x] = buffer[threadIdx.x][threadIdx.y + j];
        }
    }
}

// Reads coalesced, writes strided: the obvious version, to show its cost.
__device__ void transposeNaive(float *to, const float *from, int rows, int columns)
{
    const size_t image = static_cast<size_t>(blockIdx.z) * rows * columns;
    const int x = blockIdx.x * tile + threadIdx.x;

    for (int y = blockIdx.y * tile + threadIdx.y; y < rows && y < static_cast<int>(blockIdx.y + 1) * tile; y += tile_rows) {
        if (x < columns) {
            to[image + static_cast<size_t>(x) * rows + y] = from[image + static_cast<size_t>(y) * columns + x];
        }
    }
}

__global__ void nchwToNhwcKernel(float *to, const float *from, int c, int hw) { transposeTile(to, from, c, hw); }
__global__ void nhwcToNchwKernel(float *to, const float *from, int c, int hw) { transposeTile(to, from, hw, c); }
__global__ void nchwToNhwcNaiveKernel(float *to, const float *from, int c, int hw) { transposeNaive(to, from, c, hw); }
__global__ void nhwcToNchwNaiveKernel(float *to, const float *from, int c, int hw) { transposeNaive(to, from, hw, c); }

__global__ void updateKernel(float *values, size_t first, size_t count, float rate)
{
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < count) {
        values[first + i] -= rate * values[first + i];
    }
}

dim3 transpose_grid(int n, int rows, int columns)
{
    return dim3((columns + tile - 1) / tile, (rows + tile - 1) / tile, n);
}

}  // namespace

struct device_tensor {
    float *values;
};

bool device_is_gpu(void)
{
    return true;
}

const char *device_open(void)
{
    check(cudaGetDeviceProperties(&properties, 0), "no GPU (try --cpu)");
    check(cudaStreamCreateWithFlags(&streams[DEVICE_COMPUTE], cudaStreamNonBlocking), "stream");
    check(cudaStreamCreateWithFlags(&streams[DEVICE_COPY], cudaStreamNonBlocking), "stream");
    return properties.name;
}

void device_close(void)
{
    check(cudaDeviceSynchronize(), "last operations");
    cudaStreamDestroy(streams[0]);
    cudaStreamDestroy(streams[1]);
}

device_tensor *device_alloc(size_t float_count)
{
    auto *tensor = new device_tensor;
    check(cudaMalloc(&tensor->values, float_count * sizeof(float)), "device memory");
    check(cudaMemset(tensor->values, 0, float_count * sizeof(float)), "device memory");
    return tensor;
}

void device_free(device_tensor *tensor)
{
    if (tensor != nullptr) {
        cudaFree(tensor->values);
        delete tensor;
    }
}

float *device_host_alloc(size_t float_count)
{
    void *memory = nullptr;
    check(cudaHostAlloc(&memory, float_count * sizeof(float), cudaHostAllocDefault), "pinned memory");
    return static_cast<float *>(memory);
}

void device_host_free(float *memory)
{
    cudaFreeHost(memory);
}

bool device_host_register(void *memory, size_t size_bytes)
{
    return cudaHostRegister(memory, size_bytes, cudaHostRegisterDefault) == cudaSuccess;
}

void device_copy_in(device_queue queue, device_tensor *to, const float *from, size_t float_count, bool pinned)
{
    (void)pinned;  // CUDA detects it
    check(cudaMemcpyAsync(to->values, from, float_count * sizeof(float), cudaMemcpyHostToDevice, streams[queue]), "copy");
}

void device_copy_out(float *to, const device_tensor *from, size_t float_count)
{
    check(cudaMemcpyAsync(to, from->values, float_count * sizeof(float), cudaMemcpyDeviceToHost, streams[DEVICE_COMPUTE]), "copy");
    check(cudaStreamSynchronize(streams[DEVICE_COMPUTE]), "copy");
}

void device_queue_wait(device_queue to, device_queue from)
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    check(cudaEventRecord(event, streams[from]), "event");
    check(cudaStreamWaitEvent(streams[to], event, 0), "event");
    cudaEventDestroy(event);
}

void device_synchronize(void)
{
    check(cudaDeviceSynchronize(), "kernels");
}

void device_convolve(device_tensor *tensor, size_t float_count, int work)
{
    const int blocks = properties.multiProcessorCount * 8;
    convolveKernel<<<blocks, 256, 0, streams[DEVICE_COMPUTE]>>>(tensor->values, float_count, work);
}

void device_nchw_to_nhwc(device_tensor *to, const device_tensor *from, int n, int c, int hw, bool tiled)
{
    const dim3 grid = transpose_grid(n, c, hw);
    const dim3 block(tile, tile_rows);
    if (tiled) {
        nchwToNhwcKernel<<<grid, block, 0, streams[DEVICE_COMPUTE]>>>(to->values, from->values, c, hw);
    } else {
        nchwToNhwcNaiveKernel<<<grid, block, 0, streams[DEVICE_COMPUTE]>>>(to->values, from->values, c, hw);
    }
}

void device_nhwc_to_nchw(device_tensor *to, const device_tensor *from, int n, int c, int hw, bool tiled)
{
    const dim3 grid = transpose_grid(n, hw, c);
    const dim3 block(tile, tile_rows);
    if (tiled) {
        nhwcToNchwKernel<<<grid, block, 0, streams[DEVICE_COMPUTE]>>>(to->values, from->values, c, hw);
    } else {
        nhwcToNchwNaiveKernel<<<grid, block, 0, streams[DEVICE_COMPUTE]>>>(to->values, from->values, c, hw);
    }
}

void device_update(device_tensor *tensor, size_t first, size_t float_count, float rate)
{
    const unsigned blocks = static_cast<unsigned>((float_count + 255) / 256);
    updateKernel<<<blocks, 256, 0, streams[DEVICE_COMPUTE]>>>(tensor->values, first, float_count, rate);
}

double device_copy_bandwidth(size_t float_count)
{
    device_tensor *const from = device_alloc(float_count);
    device_tensor *const to = device_alloc(float_count);
    cudaEvent_t start;
    cudaEvent_t stop;
    float ms = 0;
    constexpr int rounds = 10;

    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    cudaMemcpyAsync(to->values, from->values, float_count * sizeof(float), cudaMemcpyDeviceToDevice, streams[0]);
    check(cudaEventRecord(start, streams[0]), "event");
    for (int i = 0; i < rounds; i++) {
        cudaMemcpyAsync(to->values, from->values, float_count * sizeof(float), cudaMemcpyDeviceToDevice, streams[0]);
    }
    check(cudaEventRecord(stop, streams[0]), "event");
    check(cudaEventSynchronize(stop), "copies");
    check(cudaEventElapsedTime(&ms, start, stop), "event");
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    device_free(from);
    device_free(to);
    return 2.0 * rounds * static_cast<double>(float_count) * sizeof(float) / (ms * 1e-3);
}
