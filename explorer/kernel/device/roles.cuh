// Roles of a block's warps: one thread of a producer's issues bulk copies, consumers use what they bring, on sm_90 and newer.

// Each consumer's warp has read a slot, all of its lanes: one arrival.  The producer waits for all of them.
__device__ __forceinline__ void mbarrier_release(unsigned long long& counted) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(counted);
}

// So many threads of the block meet, and no others.
template <int NUMBER, int THREADS>
__device__ __forceinline__ void barrier_of() {
#if defined(SIMT_HOST)
    simt_barrier_of(NUMBER, THREADS, __builtin_LINE());
#else
    asm volatile("bar.sync %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory");
#endif
}

// Warpgroups, the rows of a block, take turns round and round: barrier 8 + n is met by warpgroup n, which waits there, and by the
// one before it, which passes by.  The first one does not wait where its turn has BEGUN, the last one does not pass where all is OVER.
template <int GROUPS, bool BEGUN = false>
__device__ __forceinline__ void turn_wait() {
    if (BEGUN && threadIdx.y == 0) return;
#if defined(SIMT_HOST)
    simt_barrier_of(8 + (int)threadIdx.y, 256, __builtin_LINE());
#else
    asm volatile("bar.sync %0, 256;" ::"r"(8 + threadIdx.y) : "memory");
#endif
}
template <int GROUPS, bool OVER = false>
__device__ __forceinline__ void turn_pass() {
    const int next = threadIdx.y + 1 == GROUPS ? 0 : (int)threadIdx.y + 1;
    if (OVER && next == 0) return;
#if defined(SIMT_HOST)
    simt_barrier_pass(8 + next, 256);
#else
    asm volatile("bar.arrive %0, 256;" ::"r"(8 + next) : "memory");
#endif
}

// Each thread of this warpgroup keeps so many registers, and leaves the others to those that take some (sm_90a).
template <int REGISTERS>
__device__ __forceinline__ void registers_give() {
#if !defined(SIMT_HOST)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}

// Each thread of this warpgroup waits until it has so many registers.
template <int REGISTERS>
__device__ __forceinline__ void registers_take() {
#if !defined(SIMT_HOST)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
#endif
}
