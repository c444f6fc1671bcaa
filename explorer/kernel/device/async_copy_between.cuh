// Asynchronous copies of which only some lanes are read, from one in the middle on: cp.async brings the first bytes alone.
// It uses the copies that async_copy.cuh defines.

// Copy LANES elements: those from `begin` to before `end` from `global`, the others zeros.  Where the first one is read, or none, it is
// a cp.async; else the vector is loaded, masked and stored at once, which is one of the moments at which a copy may land.
// With WHOLE no lane lies beyond the array's end.
template <int LANES, bool WHOLE, class T, class I, class J>
__device__ __forceinline__ void async_copy_between(T* shared, const T* global, I begin, J end) {
    constexpr int bytes = LANES * (int)sizeof(T);
    const int first = begin <= 0 ? 0 : begin >= LANES ? LANES : (int)begin;
    const int last = end <= first ? first : end >= LANES ? LANES : (int)end;
#if defined(SIMT_HOST)
    simt_async_copy(shared, global, bytes, first * (int)sizeof(T), last * (int)sizeof(T));
#else
    const int valid = first == last ? 0 : last * (int)sizeof(T);
    if (first == 0 || valid == 0) {
        if constexpr (WHOLE) async_copy<bytes>(shared, global, valid);
        else async_copy_part<bytes>(shared, global, valid);
    } else if constexpr (WHOLE) {
        struct alignas(bytes) Chunk { unsigned word[bytes / 4]; };
        Chunk chunk = *(const Chunk*)global;
        #pragma unroll
        for (int i = 0; i < bytes / 4; ++i) {  // bits of the word from the first byte that is read to before the last
            const int low = min(max(first * (int)sizeof(T) - 4 * i, 0), 4), high = min(max(valid - 4 * i, 0), 4);
            chunk.word[i] &= (unsigned)((1ull << 8 * high) - (1ull << 8 * low));
        }
        *(Chunk*)shared = chunk;
    } else {
        #pragma unroll
        for (int lane = 0; lane < LANES; ++lane) shared[lane] = lane >= first && lane < last ? global[lane] : T(0);
    }
#endif
}
