// Parts of a result that the blocks of a cluster leave in the shared memory of the one that joins them (sm_90 and newer).
// Nothing passes through global memory, no counter is kept between launches, and no block waits for one of another cluster.

// One block writes to another's shared memory when that has begun: `cluster_begin` says that this one has, at the kernel's start,
// and `cluster_begun` waits for the others, after the loads.  All threads call them.
__device__ __forceinline__ void cluster_begin() {
#if !defined(SIMT_HOST)
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_begun() {
#if !defined(SIMT_HOST)
    asm volatile("barrier.cluster.wait;" ::: "memory");
#endif
}

// Elements in the shared memory of the block number `rank` of the cluster: any block writes them, that one takes them.
template <class T>
struct cluster_parts {
    struct part {
        T* mine;
        int rank;

        __device__ __forceinline__ void operator=(T value) const {
#if defined(SIMT_HOST)
            simt_cluster_hand(simt_offset(mine), (unsigned)rank, &value, sizeof(T));
#else
            T* theirs;
            asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
            *theirs = value;
#endif
        }

        __device__ __forceinline__ T take() const { return *mine; }
    };
    T* slots;
    int rank;

    __device__ __forceinline__ part operator[](int i) const { return {slots + i, rank}; }
};

// Whether this block joins the parts: the chosen one of its cluster, to which all that the others wrote before is then visible.
// All threads of all blocks call it, once.  The others wait too: that is within the noise, and compute-sanitizer's racecheck does
// not come to an end where a block of a cluster has left while another waits.
__device__ __forceinline__ bool cluster_joins(bool chosen) {
#if defined(SIMT_HOST)
    simt_cluster_meet();
    __syncthreads();
#else
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
    return chosen;
}
