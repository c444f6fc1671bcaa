// Reductions over the blocks of a cluster through distributed shared memory (sm_90 and newer), in a fixed order.

#if !defined(SIMT_HOST)
// All threads of the cluster's blocks wait here; what they wrote to shared memory before is then visible to all.
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

// The same place of this block's shared memory in the block number `rank` of the cluster.
template <class T>
__device__ __forceinline__ const T* cluster_shared(const T* mine, int rank) {
    const T* theirs;
    asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
    return theirs;
}
#endif

// The values of the threads with one number in the BLOCKS blocks of the cluster, combined as a balanced tree; every one of
// them gets the result.  All threads of all blocks call it.  `slots` is shared memory with one element for each thread.
template <class Op, int BLOCKS, class T>
__device__ T cluster_reduce(T value, T* slots) {
    T all[BLOCKS];
#if defined(SIMT_HOST)
    (void)slots;
    simt_cluster_gather(&value, sizeof(T), all);
#else
    T* const mine = slots + threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    *mine = value;
    cluster_barrier();
#pragma unroll
    for (int rank = 0; rank < BLOCKS; ++rank) all[rank] = *cluster_shared(mine, rank);
    cluster_barrier();  // the slots may be used again, and no block ends while another one reads its own
#endif
#pragma unroll
    for (int step = 1; step < BLOCKS; step *= 2) {
#pragma unroll
        for (int rank = 0; rank + step < BLOCKS; rank += 2 * step) all[rank] = Op::apply(all[rank], all[rank + step]);
    }
    return all[0];
}
