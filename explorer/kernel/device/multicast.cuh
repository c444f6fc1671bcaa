// Bulk copies to several blocks of a thread block cluster at once, and arrivals at their mbarriers (sm_90 and newer).
// It uses tensor maps and mbarriers as bulk_copy.cuh defines them.  A place of shared memory is the same in each block.

// All threads of all blocks of the cluster wait for each other behind the making of the mbarriers, which other blocks use from then
// on.  The fence of `mbarrier_begin` is all that has to be released: without it here a kernel took 0.5 us less on an H100.
__device__ __forceinline__ void cluster_begins() {
#if defined(SIMT_HOST)
    simt_cluster_barrier(__builtin_LINE());
#else
    asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The same at the kernel's end, so that no block ends while others reach for its shared memory.
__device__ __forceinline__ void cluster_ends() {
#if defined(SIMT_HOST)
    simt_cluster_barrier(__builtin_LINE());
#else
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The mates of this block in one direction, itself among them: MATES blocks, whose ranks are EACH apart.  A bit for each.
template <int EACH, int MATES>
__device__ __forceinline__ unsigned multicast_mask() {
    static_assert(EACH * (MATES - 1) < 16, "a cluster has at most 16 blocks");
    unsigned all = 0, rank;
#if defined(SIMT_HOST)
    rank = simt_cluster_rank();
#else
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#pragma unroll
#endif
    for (int i = 0; i < MATES; ++i) all |= 1u << i * EACH;
    return all << (rank - rank / EACH % MATES * EACH);
}

// One part of a box, BX, BY … elements from x, y … on, goes to `shared` of each mate, which counts its bytes on its mbarrier.
// Each mate asks for its own part, and expects the whole box.  Another's part may land before that: the phase cannot be complete
// yet, since this block's own arrival is missing.
template <int BX, int EACH, int MATES, class T>
__device__ __forceinline__ void multicast_1d(T* shared, const tensor_map& map, int x, unsigned long long& counted) {
    mbarrier_expect(counted, BX * MATES * (int)sizeof(T));
    const unsigned mates = multicast_mask<EACH, MATES>();
#if defined(SIMT_HOST)
    const int at[] = {x};
    simt_bulk_copy_to(shared, &map, at, 1, &counted, mates);
#else
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2}], [%3], %4;"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(shared_address(&counted)),
                   "h"((unsigned short)mates) : "memory");
#endif
}

template <int BX, int BY, int EACH, int MATES, class T>
__device__ __forceinline__ void multicast_2d(T* shared, const tensor_map& map, int x, int y, unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * MATES * (int)sizeof(T));
    const unsigned mates = multicast_mask<EACH, MATES>();
#if defined(SIMT_HOST)
    const int at[] = {x, y};
    simt_bulk_copy_to(shared, &map, at, 2, &counted, mates);
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(shared_address(&counted)),
                   "h"((unsigned short)mates) : "memory");
#endif
}

template <int BX, int BY, int BZ, int EACH, int MATES, class T>
__device__ __forceinline__ void multicast_3d(T* shared, const tensor_map& map, int x, int y, int z,
                                             unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * MATES * (int)sizeof(T));
    const unsigned mates = multicast_mask<EACH, MATES>();
#if defined(SIMT_HOST)
    const int at[] = {x, y, z};
    simt_bulk_copy_to(shared, &map, at, 3, &counted, mates);
#else
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&counted)),
                   "h"((unsigned short)mates) : "memory");
#endif
}

template <int BX, int BY, int BZ, int BU, int EACH, int MATES, class T>
__device__ __forceinline__ void multicast_4d(T* shared, const tensor_map& map, int x, int y, int z, int u,
                                             unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * BU * MATES * (int)sizeof(T));
    const unsigned mates = multicast_mask<EACH, MATES>();
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u};
    simt_bulk_copy_to(shared, &map, at, 4, &counted, mates);
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(shared_address(&counted)),
                   "h"((unsigned short)mates) : "memory");
#endif
}

template <int BX, int BY, int BZ, int BU, int BV, int EACH, int MATES, class T>
__device__ __forceinline__ void multicast_5d(T* shared, const tensor_map& map, int x, int y, int z, int u, int v,
                                             unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * BU * BV * MATES * (int)sizeof(T));
    const unsigned mates = multicast_mask<EACH, MATES>();
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u, v};
    simt_bulk_copy_to(shared, &map, at, 5, &counted, mates);
#else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(shared_address(&counted)),
                   "h"((unsigned short)mates) : "memory");
#endif
}

// A warp has read a slot, all of its lanes: one arrival at the same mbarrier of each of the cluster's BLOCKS blocks.  No scope is
// said: with `.release.cluster` here and `.acquire.cluster` below each step of a loop took 0.4 us longer on an H200.  Triton and
// TileLang write the same.  What is ordered so are reads that have ended and a copy that is asked for later, no values.
template <int BLOCKS>
__device__ __forceinline__ void mbarrier_release_all(unsigned long long& counted) {
    static_assert(BLOCKS <= 16, "a cluster has at most 16 blocks");
    __syncwarp();
    const unsigned rank = threadIdx.x % 32;
    if (rank >= BLOCKS) return;
#if defined(SIMT_HOST)
    simt_mbarrier_arrive_at(&counted, rank);
#else
    asm volatile("{\n.reg .b32 theirs;\nmapa.shared::cluster.u32 theirs, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [theirs];\n}"
                 ::"r"(shared_address(&counted)), "r"(rank) : "memory");
#endif
}

// Wait as mbarrier_wait does, for arrivals of all blocks of the cluster: they have read the slot.
__device__ __forceinline__ void mbarrier_wait_all(unsigned long long& counted, int parity) {
#if defined(SIMT_HOST)
    simt_mbarrier_wait(&counted, parity);
#else
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}"
                 ::"r"(shared_address(&counted)), "r"(parity) : "memory");
#endif
}

// The producer, before it ends: until each slot has been released for the last time, of RELEASES in all.  From then on no other
// block reaches for this one's shared memory, so that it may end; a barrier of the cluster instead waits for all results to be
// written, 1 us of a product on an H100.
template <int RELEASES, int SLOTS>
__device__ __forceinline__ void mbarrier_drain(unsigned long long (&released)[SLOTS]) {
    for (int n = RELEASES < SLOTS ? 0 : RELEASES - SLOTS; n < RELEASES; ++n) mbarrier_wait_all(released[n % SLOTS], n / SLOTS % 2);
}
