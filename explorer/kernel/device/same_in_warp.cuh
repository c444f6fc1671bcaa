// The value that a warp's first lane has, for all of them, which have the same: the compiler keeps it, and what is made of it, in
// uniform registers, as a warpgroup's instruction wants its descriptors.
__device__ __forceinline__ int same_in_warp(int value) {
#if defined(SIMT_HOST)
    return value;
#else
    return __shfl_sync(0xffffffffu, value, 0);
#endif
}
