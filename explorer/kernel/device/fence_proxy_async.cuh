// What this thread has written to shared memory is, behind the next barrier, seen by instructions that read shared memory by
// themselves: tensor instructions of a warpgroup, bulk copies (PTX ISA, "Async proxy"; sm_90 and newer).
__device__ __forceinline__ void fence_proxy_async() {
#if defined(SIMT_HOST)
    simt_fence_proxy();
#else
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
