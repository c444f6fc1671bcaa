// Copies from global to shared memory that run while the thread goes on (cp.async, sm_80 and newer; plain copies before).
// A copy belongs to the group that the next async_commit() closes.  Its bytes may be used after async_wait<N>(), which waits
// until at most the newest N groups are unfinished, and by other threads after a barrier as well.

// Copy the first `valid_bytes` of BYTES now, the rest zeros.
template <int BYTES>
__device__ __forceinline__ void copy_bytes(void* shared, const void* global, int valid_bytes) {
    struct alignas(BYTES) Chunk { unsigned char at[BYTES]; };
    Chunk chunk = {};
    if (valid_bytes == BYTES) chunk = *(const Chunk*)global;
    else
        for (int i = 0; i < valid_bytes; ++i) chunk.at[i] = ((const unsigned char*)global)[i];
    *(Chunk*)shared = chunk;
}

// Copy BYTES (4, 8 or 16, both addresses multiples of it): the first `valid_bytes` from `global`, the rest zeros.
template <int BYTES>
__device__ __forceinline__ void async_copy(void* shared, const void* global, int valid_bytes = BYTES) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async moves 4, 8 or 16 bytes");
#if defined(SIMT_HOST)
    simt_async_copy(shared, global, BYTES, 0, valid_bytes);
#elif __CUDA_ARCH__ >= 800
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    const size_t from = __cvta_generic_to_global(global);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid_bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(valid_bytes)
                     : "memory");
#else
    copy_bytes<BYTES>(shared, global, valid_bytes);
#endif
}

// The same where the array may end within the bytes: by words, of which one that is valid in part is copied at once, which is one of
// the moments at which a copy may land.  (cp.async can do it too, but compute-sanitizer's memcheck takes it for a read of all bytes.)
template <int BYTES>
__device__ __forceinline__ void async_copy_part(void* shared, const void* global, int valid_bytes) {
#if !defined(SIMT_HOST)
    if (valid_bytes != 0 && valid_bytes != BYTES) {
#pragma unroll
        for (int at = 0; at < BYTES; at += 4) {
            const int valid = valid_bytes - at >= 4 ? 4 : valid_bytes - at > 0 ? valid_bytes - at : 0;
            if (valid % 4 == 0) async_copy<4>((char*)shared + at, (const char*)global + at, valid);
            else copy_bytes<4>((char*)shared + at, (const char*)global + at, valid);
        }
        return;
    }
#endif
    async_copy<BYTES>(shared, global, valid_bytes);
}

// The bytes of the first `count` of the elements, of EACH bytes, that one copy of BYTES moves: none of a count below 1.
template <int BYTES, int EACH, class I>
__device__ __forceinline__ int first_elements(I count) {
    return count <= 0 ? 0 : count >= BYTES / EACH ? BYTES : (int)count * EACH;
}

// Close the group of this thread's copies since the last commit.
__device__ __forceinline__ void async_commit() {
#if defined(SIMT_HOST)
    simt_async_commit();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait for this thread's groups, all but the newest PENDING.
template <int PENDING>
__device__ __forceinline__ void async_wait() {
#if defined(SIMT_HOST)
    simt_async_wait(PENDING);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
