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
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
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
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorNotSupported = 801 };
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

// Tensor maps as the driver makes them of what it is told, and bulk copies that land at once: with -DSIMT_HOST.
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };
struct HostMap { const char* array; unsigned long long extent[5]; int rank, bytes, box[5], step[5], swizzle; };
inline int host_encode(void* map, int type, unsigned rank, void* array, const unsigned long long* extents,
                       const unsigned long long* strides, const unsigned* box, const unsigned* steps, int, int swizzle, int, int) {
    static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    HostMap m = {(const char*)array, {}, (int)rank, sizes[type], {}, {}, swizzle ? 16 << swizzle : 0};
    unsigned long long stride = (unsigned long long)m.bytes;
    for (unsigned d = 0; d < rank; ++d) {
        if (d && strides[d - 1] != stride) return 1;  // rows follow each other
        if (!steps[d] || steps[d] > 8 || (!d && steps[d] != 1) || box[d] > 256 || (d && strides[d - 1] % 16)) return 1;
        m.extent[d] = extents[d], m.step[d] = (int)steps[d], m.box[d] = (int)((box[d] + steps[d] - 1) / steps[d]), stride *= extents[d];
    }
    memcpy(map, &m, sizeof m);
    return 0;
}
inline cudaError_t cudaGetDriverEntryPoint(const char* name, void** found, int, cudaDriverEntryPointQueryResult* status) {
    *found = strcmp(name, "cuTensorMapEncodeTiled") ? nullptr : (void*)host_encode;
    *status = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
inline std::mutex host_phases;
inline std::condition_variable host_phase_ended;
inline void simt_mbarrier_begin(unsigned long long* counted, int) { *counted = 0; }  // it is the number of phases that have ended
inline void simt_mbarrier_expect(unsigned long long*, int) {}
inline void simt_mbarrier_arrive(unsigned long long* counted) {
    std::lock_guard<std::mutex> lock(host_phases);
    ++*counted;
    host_phase_ended.notify_all();
}
inline void simt_mbarrier_wait(unsigned long long* counted, int parity) {
    std::unique_lock<std::mutex> lock(host_phases);
    host_phase_ended.wait(lock, [&] { return (int)(*counted & 1) != parity; });
}
inline void simt_bulk_copy(void* shared, const void* map, const int* at, int, unsigned long long*) {
    HostMap m;
    memcpy(&m, map, sizeof m);
    long long count = 1;
    for (int d = 0; d < m.rank; ++d) count *= m.box[d];
    for (long long i = 0; i < count; ++i) {
        long long rest = i, from = 0, stride = 1;
        bool inside = true;
        for (int d = 0; d < m.rank; ++d) {
            const long long x = at[d] + rest % m.box[d] * m.step[d];
            rest /= m.box[d], inside = inside && x >= 0 && x < (long long)m.extent[d];
            from += x * stride, stride *= (long long)m.extent[d];
        }
        size_t to = (size_t)shared + (size_t)(i * m.bytes);
        if (m.swizzle) to ^= (to >> 7 & (size_t)(m.swizzle / 16 - 1)) << 4;
        if (inside) memcpy((void*)to, m.array + from * m.bytes, (size_t)m.bytes);
        else memset((void*)to, 0, (size_t)m.bytes);
    }
}

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
