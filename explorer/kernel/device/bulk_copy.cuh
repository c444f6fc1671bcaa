// Bulk copies of boxes from global to shared memory (TMA, sm_90 and newer), which one thread asks for.
// The host describes an array by a tensor_map.  A copy counts its bytes on an mbarrier, whose phase is complete when one thread has
// arrived and all bytes have landed; they may be used by every thread that has waited for this phase.

// As cuTensorMapEncodeTiled makes it; on the CPU device: where the array is, its extents and the box.
struct __align__(64) tensor_map { unsigned long long words[16]; };

#if !defined(SIMT_HOST)
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#endif

// Make mbarriers ready for so many arrivals in each phase; then a barrier of the block, before anybody uses them.
template <int N>
__device__ __forceinline__ void mbarrier_begin(unsigned long long (&all)[N], int arrivals = 1) {
#if defined(SIMT_HOST)
    for (int i = 0; i < N; ++i) simt_mbarrier_begin(&all[i], arrivals);
#else
    for (int i = 0; i < N; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&all[i])), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // the copies' engine sees them, too
#endif
}

// So many bytes more are to land in the current phase.
__device__ __forceinline__ void mbarrier_expect(unsigned long long& counted, int bytes) {
#if defined(SIMT_HOST)
    simt_mbarrier_expect(&counted, bytes);
#else
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&counted)), "r"(bytes) : "memory");
#endif
}

// The copies so far are a group: the phase ends when they have landed.
__device__ __forceinline__ void mbarrier_arrive(unsigned long long& counted) {
#if defined(SIMT_HOST)
    simt_mbarrier_arrive(&counted);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&counted)) : "memory");
#endif
}

// Wait until the phase of this parity is complete: the first phase has parity 0, the next one 1, the one after 0 again.
__device__ __forceinline__ void mbarrier_wait(unsigned long long& counted, int parity) {
#if defined(SIMT_HOST)
    simt_mbarrier_wait(&counted, parity);
#else
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
                 ::"r"(shared_address(&counted)), "r"(parity) : "memory");
#endif
}

// A box of BX, BY … elements, of which the first is the one at x, y …; zeros for those that lie beyond the array.
template <int BX, class T>
__device__ __forceinline__ void bulk_copy_1d(T* shared, const tensor_map& map, int x, unsigned long long& counted) {
    mbarrier_expect(counted, BX * (int)sizeof(T));
#if defined(SIMT_HOST)
    const int at[] = {x};
    simt_bulk_copy(shared, &map, at, 1, &counted);
#else
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(shared_address(&counted)) : "memory");
#endif
}

template <int BX, int BY, class T>
__device__ __forceinline__ void bulk_copy_2d(T* shared, const tensor_map& map, int x, int y, unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * (int)sizeof(T));
#if defined(SIMT_HOST)
    const int at[] = {x, y};
    simt_bulk_copy(shared, &map, at, 2, &counted);
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(shared_address(&counted)) : "memory");
#endif
}

template <int BX, int BY, int BZ, class T>
__device__ __forceinline__ void bulk_copy_3d(T* shared, const tensor_map& map, int x, int y, int z, unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * (int)sizeof(T));
#if defined(SIMT_HOST)
    const int at[] = {x, y, z};
    simt_bulk_copy(shared, &map, at, 3, &counted);
#else
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&counted)) : "memory");
#endif
}

template <int BX, int BY, int BZ, int BU, class T>
__device__ __forceinline__ void bulk_copy_4d(T* shared, const tensor_map& map, int x, int y, int z, int u, unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * BU * (int)sizeof(T));
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u};
    simt_bulk_copy(shared, &map, at, 4, &counted);
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(shared_address(&counted)) : "memory");
#endif
}

template <int BX, int BY, int BZ, int BU, int BV, class T>
__device__ __forceinline__ void bulk_copy_5d(T* shared, const tensor_map& map, int x, int y, int z, int u, int v,
                                             unsigned long long& counted) {
    mbarrier_expect(counted, BX * BY * BZ * BU * BV * (int)sizeof(T));
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u, v};
    simt_bulk_copy(shared, &map, at, 5, &counted);
#else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                 ::"r"(shared_address(shared)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(shared_address(&counted))
                 : "memory");
#endif
}
