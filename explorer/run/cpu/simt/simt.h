// simt.h: what CUDA text needs to be compiled by a host C++17 compiler and run on the CPU.
//
// This file holds the language: qualifiers, built-in variables, the calls into the runtime and the launch trampoline.
// simt_math.h, simt_warp.h and simt_atomic.h hold the functions.  No standard header is included: a kernel then compiles
// in a fraction of the time.  SIMT_CHECKED is 1 for the verifying build and 0 for the fast one.
#pragma once
#define SIMT_HOST 1

typedef __SIZE_TYPE__ size_t;

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __builtin_assume(condition)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// The compiler must not look through what other threads may change, so shared arrays are `used`: never constant, never dropped.
// `extern __shared__` is spelled `extern __dynamic_shared__` before compilation, for `static extern` is no C++, and the
// `__device__` of a module's counters `__counter__`.
#if SIMT_CHECKED
#define SIMT_THREAD_LOCAL  // one operating-system thread runs everything: plain globals
#ifdef __APPLE__
#define SIMT_SHARED_SECTION __attribute__((used, section("__DATA,simt_shared")))
#else
#define SIMT_SHARED_SECTION __attribute__((used, section("simt_shared")))
#endif
#ifdef __APPLE__
#define __counter__ __attribute__((used, section("__DATA,simt_counters"))) static
#else
#define __counter__ __attribute__((used, section("simt_counters"))) static
#endif
#define __shared__ SIMT_SHARED_SECTION static
#define __dynamic_shared__
#define SIMT_DYNAMIC_DEFINITION SIMT_SHARED_SECTION
#else
#define SIMT_THREAD_LOCAL __thread
#define __counter__ static
#define __shared__ static __thread
#define __dynamic_shared__ __thread
#define SIMT_DYNAMIC_DEFINITION __thread
#endif

#define SIMT_UNCHECKED __attribute__((no_sanitize("thread"), no_sanitize("undefined")))

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// const: within one thread they never change, so the compiler may keep them in registers across barriers.
extern "C" {
extern SIMT_THREAD_LOCAL const uint3 threadIdx;
extern SIMT_THREAD_LOCAL const uint3 blockIdx;
extern SIMT_THREAD_LOCAL const dim3 blockDim;
extern SIMT_THREAD_LOCAL const dim3 gridDim;

// Calls into the runtime (scheduler.cpp, memory_check.cpp).  `line` is the line of the text that calls.
void simt_barrier(int line);
void simt_barrier_of(int number, int threads, int line);             // some threads of the block, so many
void simt_barrier_pass(int number, int threads);                      // the same, of which this thread waits for no others
void simt_grid_barrier(int line);                                     // cooperative launches only
void simt_cluster_gather(const void* value, int bytes, void* all);    // the values of one thread of each block of the cluster
void simt_cluster_hand(long long offset, unsigned rank, const void* value, int bytes);  // to that block's shared memory
void simt_cluster_meet(char* anchor);                                 // all threads of a cluster; then what was handed over is there
int simt_barrier_vote(int how, int predicate, int line);              // how: 0 count, 1 and, 2 or
void simt_warp_sync(unsigned mask, int line);
void simt_warp_exchange(unsigned mask, int how, int argument, int width, void* value, int bytes,
                        int line);                                    // 0 idx 1 up 2 down 3 xor; at most 16 bytes
void simt_warp_gather(unsigned mask, const void* value, int bytes, void* all, int line);  // all lanes' values, in order
unsigned simt_warp_vote(unsigned mask, int predicate, int line);      // ballot
unsigned simt_active_mask();
void simt_fence();
void simt_fence_proxy();                                              // for instructions that read shared memory by themselves
void simt_proxy_reads(bool);                                          // whether what follows are reads of such an instruction
void simt_trap(int line);
unsigned long long simt_clock();                                      // turns of the block's threads so far, and calls of this
void simt_atomic_access(const void* address, int bytes);              // the checks of one atomic operation
void simt_async_copy(void* shared, const void* global, int bytes, int first_byte, int end_byte);  // the others are zeros
void simt_async_commit();
void simt_async_wait(int newest_groups_left);
void simt_product_issue(void (*run)(const void*), const void* what, int bytes, int line);  // products.cpp; line: it reads registers
void simt_product_wait(int pending);
void simt_mbarrier_begin(void* at, int arrivals);                      // bulk.cpp
void simt_mbarrier_expect(void* at, int bytes);
void simt_mbarrier_arrive(void* at);
void simt_mbarrier_wait(void* at, int parity);
void simt_bulk_copy(void* shared, const void* map, const int* at, int rank, void* mbarrier);
void simt_bulk_copy_to(char* anchor, void* shared, const void* map, const int* at, int rank, void* mbarrier,
                       unsigned blocks);                               // letters.cpp; a bit for each block of the cluster
void simt_bulk_store(const void* map, const int* at, int rank, const void* shared);  // bulk_stores.cpp
void simt_bulk_stores_read();
void simt_mbarrier_arrive_at(char* anchor, void* at, unsigned block);
void simt_cluster_barrier(char* anchor, int line);                     // all threads of a cluster
unsigned simt_cluster_rank();
void simt_index_fault(long long index, int extent);                   // of an array of the thread's own
}
static SIMT_THREAD_LOCAL char simt_anchor;  // places of shared memory are told by their distance from it: the same in every block
inline long long simt_offset(const void* mine) { return (const char*)mine - &simt_anchor; }
inline void simt_cluster_meet() { simt_cluster_meet(&simt_anchor); }
__forceinline__ void simt_cluster_barrier(int line) { simt_cluster_barrier(&simt_anchor, line); }
__forceinline__ void simt_mbarrier_arrive_at(void* at, unsigned block) { simt_mbarrier_arrive_at(&simt_anchor, at, block); }
__forceinline__ void simt_bulk_copy_to(void* shared, const void* map, const int* at, int rank, void* mbarrier, unsigned blocks) {
    simt_bulk_copy_to(&simt_anchor, shared, map, at, rank, mbarrier, blocks);
}
static const int warpSize = 32;

// __builtin_LINE() as a default argument is the caller's line.
inline void __syncthreads(int line = __builtin_LINE()) { simt_barrier(line); }
inline int __syncthreads_count(int p, int line = __builtin_LINE()) { return simt_barrier_vote(0, p != 0, line); }
inline int __syncthreads_and(int p, int line = __builtin_LINE()) { return simt_barrier_vote(1, p != 0, line); }
inline int __syncthreads_or(int p, int line = __builtin_LINE()) { return simt_barrier_vote(2, p != 0, line); }
inline void __threadfence() { simt_fence(); }
inline void __threadfence_system() { simt_fence(); }
inline void __threadfence_block() {}  // orders, and synchronises nothing: a race stays a race
inline void __trap(int line = __builtin_LINE()) { simt_trap(line); }
inline void __nanosleep(unsigned) {}
#define assert(condition) ((condition) ? (void)0 : simt_trap(__LINE__))

// Loads and stores with cache hints are plain accesses here.
#define SIMT_LOAD(name) template <class T> __forceinline__ T name(const T* p) { return *p; }
#define SIMT_STORE(name) template <class T> __forceinline__ void name(T* p, T v) { *p = v; }
SIMT_LOAD(__ldg) SIMT_LOAD(__ldcg) SIMT_LOAD(__ldca) SIMT_LOAD(__ldcs) SIMT_LOAD(__ldlu) SIMT_LOAD(__ldcv)
SIMT_STORE(__stwb) SIMT_STORE(__stcg) SIMT_STORE(__stcs) SIMT_STORE(__stwt)

#include <string.h>  // memcpy, which device code has of itself
#include "simt_math.h"
#include "simt_warp.h"
#include "simt_atomic.h"
#include "simt_mma.h"

// A thread's own arrays, and what is declared without a value: in a checked build an index is looked at, and reading gives poison.
template <class T, int N, int... M> struct simt_row { using type = typename simt_row<T, M...>::type[N]; };
template <class T, int N> struct simt_row<T, N> { using type = T[N]; };
#if SIMT_CHECKED
template <class T, int N, int... M> struct simt_array {
    typename simt_row<simt_array<T, M...>, N>::type rows;
    __forceinline__ simt_array<T, M...>& operator[](long long i) { return rows[simt_inside(i)]; }
    __forceinline__ const simt_array<T, M...>& operator[](long long i) const { return rows[simt_inside(i)]; }
    static __forceinline__ long long simt_inside(long long i) { return i >= 0 && i < N ? i : (simt_index_fault(i, N), 0); }
};
template <class T, int N> struct simt_array<T, N> {
    T elements[N];
    __forceinline__ T& operator[](long long i) { return elements[simt_inside(i)]; }
    __forceinline__ const T& operator[](long long i) const { return elements[simt_inside(i)]; }
    static __forceinline__ long long simt_inside(long long i) { return i >= 0 && i < N ? i : (simt_index_fault(i, N), 0); }
};
template <class T> __forceinline__ void simt_poison(T& value) { __builtin_memset((void*)&value, 0xFF, sizeof value); }
#else
template <class T, int... N> using simt_array = typename simt_row<T, N...>::type;
template <class T> __forceinline__ void simt_poison(T&) {}
#endif

template <class T, int N> __forceinline__ T (&simt_elements(T (&value)[N]))[N] { return value; }
#if SIMT_CHECKED
template <class T, int N> __forceinline__ T (&simt_elements(simt_array<T, N>& value))[N] { return value.elements; }
#endif

// The launch trampoline: a kernel's signature is deduced, its arguments come as untyped pointers.
struct SimtKernel { const char* name; void (*call)(void**); int parameters; };

template <unsigned... I> struct SimtIndices {};
template <unsigned N, unsigned... I> struct SimtCount : SimtCount<N - 1, N - 1, I...> {};
template <unsigned... I> struct SimtCount<0, I...> { using Indices = SimtIndices<I...>; };

template <class P, bool IS_CLASS = __is_class(P)>
struct SimtArgument { SIMT_UNCHECKED static P from(void* a) { return (P)(__INTPTR_TYPE__)a; } };  // an integer
template <class P> struct SimtArgument<P, true> { SIMT_UNCHECKED static const P& from(void* a) { return *(const P*)a; } };
template <class T> struct SimtArgument<T*, false> { SIMT_UNCHECKED static T* from(void* a) { return (T*)a; } };

template <class... P, unsigned... I>
SIMT_UNCHECKED inline void simt_call(void (*kernel)(P...), void** arguments, SimtIndices<I...>) {
    kernel(SimtArgument<P>::from(arguments[I])...);
}

template <class... P>
SIMT_UNCHECKED inline void simt_call(void (*kernel)(P...), void** arguments) {
    simt_call(kernel, arguments, typename SimtCount<sizeof...(P)>::Indices());
}
template <class... P> constexpr int simt_parameters(void (*)(P...)) { return sizeof...(P); }
