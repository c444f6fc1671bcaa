// The last of several blocks: each counts itself as finished, and the last one goes on with what the others left (as the CUDA
// sample threadFenceReduction does).  Which block that is differs from run to run, what it computes does not.

// Whether this block is the last of `parts` blocks that are counted in `finished`.  All threads of the block call it and get the
// answer.  To the last block, everything that the others wrote before is visible.  The counter has to start at 0 and is 0 again
// when the last block has been counted: the next launch needs no reset.
__device__ __forceinline__ bool last_block(unsigned int* finished, unsigned int parts) {
    __syncthreads();  // the whole block has done its work
    bool last = false;
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        __threadfence();  // releases it to the other blocks
        last = atomicInc(finished, parts - 1) == parts - 1;
        __threadfence();  // acquires theirs
    }
    return __syncthreads_or(last);
}
