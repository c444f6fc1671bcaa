// Bulk stores of boxes from shared to global memory (TMA, sm_90 and newer), which one thread asks for.
// The engine reads the box while threads go on, sees what they wrote before a fence_proxy_async() of theirs, and leaves out what
// lies beyond the array.  The thread waits until all of its boxes are read before anybody writes there again, or the block ends.

template <class T>
__device__ __forceinline__ void bulk_store_1d(const tensor_map& map, int x, const T* shared) {
#if defined(SIMT_HOST)
    const int at[] = {x};
    simt_bulk_store(&map, at, 1, shared);
#else
    asm volatile("fence.proxy.async.shared::cta;\ncp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];\n"
                 "cp.async.bulk.commit_group;" ::"l"(&map), "r"(x), "r"(shared_address(shared)) : "memory");
#endif
}

template <class T>
__device__ __forceinline__ void bulk_store_2d(const tensor_map& map, int x, int y, const T* shared) {
#if defined(SIMT_HOST)
    const int at[] = {x, y};
    simt_bulk_store(&map, at, 2, shared);
#else
    asm volatile("fence.proxy.async.shared::cta;\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(&map), "r"(x), "r"(y), "r"(shared_address(shared)) : "memory");
#endif
}

template <class T>
__device__ __forceinline__ void bulk_store_3d(const tensor_map& map, int x, int y, int z, const T* shared) {
#if defined(SIMT_HOST)
    const int at[] = {x, y, z};
    simt_bulk_store(&map, at, 3, shared);
#else
    asm volatile("fence.proxy.async.shared::cta;\n"
                 "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];\ncp.async.bulk.commit_group;"
                 ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(shared)) : "memory");
#endif
}

template <class T>
__device__ __forceinline__ void bulk_store_4d(const tensor_map& map, int x, int y, int z, int u, const T* shared) {
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u};
    simt_bulk_store(&map, at, 4, shared);
#else
    asm volatile("fence.proxy.async.shared::cta;\n"
                 "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];\ncp.async.bulk.commit_group;"
                 ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(shared_address(shared)) : "memory");
#endif
}

template <class T>
__device__ __forceinline__ void bulk_store_5d(const tensor_map& map, int x, int y, int z, int u, int v, const T* shared) {
#if defined(SIMT_HOST)
    const int at[] = {x, y, z, u, v};
    simt_bulk_store(&map, at, 5, shared);
#else
    asm volatile("fence.proxy.async.shared::cta;\n"
                 "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];\n"
                 "cp.async.bulk.commit_group;"
                 ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(shared_address(shared)) : "memory");
#endif
}

// Until the engine has read all boxes that this thread has asked to be stored.
__device__ __forceinline__ void bulk_stores_read() {
#if defined(SIMT_HOST)
    simt_bulk_stores_read();
#else
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}
