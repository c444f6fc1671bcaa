// N neighbouring elements moved by one instruction; the address must be a multiple of their size, at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) vec {
    static_assert(sizeof(T) * N <= 16 && (N & (N - 1)) == 0, "one access moves 1, 2, 4, 8 or 16 bytes");
    T at[N];
};

// The same value in all lanes.
template <class T, int N>
__device__ __forceinline__ vec<T, N> all_lanes(T value) {
    vec<T, N> values;
#pragma unroll
    for (int lane = 0; lane < N; ++lane) values.at[lane] = value;
    return values;
}
