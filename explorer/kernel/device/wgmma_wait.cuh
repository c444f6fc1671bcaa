// Products of a warpgroup that stay in flight.  Until a wait has let one through, nobody may use its accumulator, except for another
// product of this shape, nor write what it reads (PTX ISA, "wgmma.mma_async"; sm_90a).
#if !defined(SIMT_HOST)
// What the accumulator holds is known from here on.
__device__ __forceinline__ void accumulated(float& one) { asm volatile("" : "+f"(one) :: "memory"); }
__device__ __forceinline__ void accumulated(int& one) { asm volatile("" : "+r"(one) :: "memory"); }
template <class T, int N>
__device__ __forceinline__ void accumulated(T (&all)[N]) {
    #pragma unroll
    for (int i = 0; i < N; ++i) accumulated(all[i]);
}
#endif
// Until at most PENDING of this warpgroup's products are in flight.
template <int PENDING, class... T>
__device__ __forceinline__ void wgmma_wait(T&... accumulators) {
#if defined(SIMT_HOST)
    simt_product_wait(PENDING);
#else
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
    (accumulated(accumulators), ...);
#endif
}

// A fence against the compiler: it reads no accumulator in front of it, as it moves nothing in front of a branch.  This one is never
// taken, which the compiler does not know.  NVRTC 13.5 converted accumulators to halves in front of the last wait, where neighbours
// are stored one by one: the last products were missing in them.
__device__ __forceinline__ void fence_reads() {
#if !defined(SIMT_HOST)
    unsigned z;
    asm volatile("mov.u32 %0, %%tid.z;" : "=r"(z));
    if (z > 1023) asm volatile("trap;");
#endif
}
