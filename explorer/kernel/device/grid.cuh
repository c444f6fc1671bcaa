// A barrier of the whole grid, for launches whose blocks are all resident at once (cooperative launches).

// All threads of all blocks wait here until the last has come; what they wrote before is then visible to all.  `arrived` has to
// start at 0 and serves any number of barriers and launches: block 0 adds what the others leave of the top bit, so each barrier
// flips that bit and leaves the others 0 (the algorithm of grid_group::sync in CUDA's cooperative groups).
__device__ __forceinline__ void grid_barrier(unsigned int* arrived) {
#if defined(SIMT_HOST)
    simt_grid_barrier(__builtin_LINE());
#else
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        const unsigned int blocks = gridDim.x * gridDim.y * gridDim.z;
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        __threadfence();  // releases what the block wrote
        const unsigned int before = atomicAdd(arrived, first ? 0x80000000u - (blocks - 1) : 1u);
        while (((before ^ *(volatile unsigned int*)arrived) & 0x80000000u) == 0) {}
        __threadfence();  // acquires what the others wrote
    }
    __syncthreads();
#endif
}
