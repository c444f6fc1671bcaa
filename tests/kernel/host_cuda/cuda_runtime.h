// Just enough CUDA for an exported file to run on the host: tests replace kernel<<<...>>>(...) by host_launch(...).
// Each block's threads are real threads, blocks run one after the other; no warp shuffles, no atomics across blocks needed.
#pragma once
#include <math.h>
#include <string.h>
#include <stdlib.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

template <class T, class U> T simt_bits(U u) { T t; memcpy(&t, &u, sizeof(T)); return t; }  // for the headers of run/cpu/simt

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static

inline int __float_as_int(float x) { return simt_bits<int>(x); }
inline float __int_as_float(int x) { return simt_bits<float>(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

struct float2 { float x, y; };
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
inline thread_local dim3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

typedef int cudaError_t;
typedef void* cudaStream_t;
typedef double* cudaEvent_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributeNonPortableClusterSizeAllowed };

inline const char* cudaGetErrorString(cudaError_t error) { return error ? "out of memory" : "no error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaMalloc(void** memory, size_t size) { return (*memory = malloc(size ? size : 1)) ? cudaSuccess : cudaErrorMemoryAllocation; }
inline cudaError_t cudaFree(void* memory) { free(memory); return cudaSuccess; }
inline cudaError_t cudaMemset(void* memory, int byte, size_t size) { memset(memory, byte, size); return cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) { memcpy(to, from, size); return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { *event = new double; return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { delete event; return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    *event = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = (float)((*b - *a) * 1e3); return cudaSuccess; }

class HostBarrier {
    std::mutex mutex;
    std::condition_variable changed;
    unsigned size = 1, waiting = 0, round = 0;
  public:
    void reset(unsigned n) { size = n; }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        const unsigned mine = round;
        if (++waiting == size) { waiting = 0; ++round; changed.notify_all(); }
        else changed.wait(lock, [&] { return round != mine; });
    }
};
inline HostBarrier host_barrier;
inline void __syncthreads() { host_barrier.wait(); }

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline int __syncthreads_or(int mine) {
    static std::atomic<int> any;
    __syncthreads();
    any = 0;
    __syncthreads();
    if (mine) any = 1;
    __syncthreads();
    return any;
}
inline unsigned atomicInc(unsigned* counter, unsigned most) { const unsigned old = *counter; *counter = old >= most ? 0 : old + 1; return old; }
inline unsigned atomicAdd(unsigned* counter, unsigned by) { const unsigned old = *counter; *counter = old + by; return old; }
// Blocks run one after the other here, so a barrier of the grid cannot be kept: it is refused as CUDA refuses a grid too large.
inline cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) { return 720; }

inline void host_launch(dim3 grid, dim3 block, const std::function<void()>& kernel) {
    gridDim = grid, blockDim = block;
    const unsigned threads = block.x * block.y * block.z;
    host_barrier.reset(threads);
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
        auto one = [&, b](unsigned t) {
            blockIdx = dim3(b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y);
            threadIdx = dim3(t % block.x, t / block.x % block.y, t / block.x / block.y);
            kernel();
        };
        if (threads == 1) { one(0); continue; }
        std::vector<std::thread> team;
        for (unsigned t = 0; t < threads; ++t) team.emplace_back(one, t);
        for (auto& member : team) member.join();
    }
}
