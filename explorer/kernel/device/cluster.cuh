// Reductions over the blocks of a cluster through distributed shared memory (sm_90 and newer), in a fixed order.

#if !defined(SIMT_HOST)
// All threads of the cluster's blocks wait here; what they wrote to shared memory before is then visible to all.
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

// This block's number in its cluster.
__device__ __forceinline__ int cluster_rank() {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The same place of this block's shared memory in the block number `rank` of the cluster.
template <class T>
__device__ __forceinline__ const T* cluster_shared(const T* mine, int rank) {
    const T* theirs;
    asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
    return theirs;
}
#endif

// The values of the threads with one number in the BLOCKS blocks of the cluster, combined as a balanced tree; in the cluster's
// first block those that are `wanted` get the result.  All threads of all blocks call it, equally wanted in every block.
// `slots` is shared memory with one element for each thread.
template <class Op, int BLOCKS, class T>
__device__ T cluster_reduce(T value, T* slots, bool wanted) {
    T all[BLOCKS];
#if defined(SIMT_HOST)
    (void)slots, (void)wanted;
    simt_cluster_gather(&value, sizeof(T), all);
#else
    T* const mine = slots + threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (wanted) *mine = value;
    cluster_barrier();
    if (wanted && cluster_rank() == 0) {
#pragma unroll
        for (int rank = 0; rank < BLOCKS; ++rank) all[rank] = *cluster_shared(mine, rank);
    }
    cluster_barrier();  // the slots may be used again, and no block ends while another one reads its own
    if (!wanted || cluster_rank() != 0) return value;
#endif
#pragma unroll
    for (int step = 1; step < BLOCKS; step *= 2) {
#pragma unroll
        for (int rank = 0; rank + step < BLOCKS; rank += 2 * step) all[rank] = Op::apply(all[rank], all[rank + step]);
    }
    return all[0];
}
