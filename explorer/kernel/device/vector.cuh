// N neighbouring elements moved by one instruction; the address must be a multiple of their size, at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) vec {
    static_assert(sizeof(T) * N <= 16 && (N & (N - 1)) == 0, "one access moves 1, 2, 4, 8 or 16 bytes");
    T at[N];
    static __device__ __forceinline__ vec of(const vec& values) { return values; }
};

// The same value in all lanes.
template <class T, int N>
__device__ __forceinline__ vec<T, N> all_lanes(T value) {
    vec<T, N> values;
#pragma unroll
    for (int lane = 0; lane < N; ++lane) values.at[lane] = value;
    return values;
}

// The same as they lie in memory, in words.  Elements of less than a word that are loaded under a condition would be taken out of
// their words behind that condition, and every load would be waited for there; these are taken out where they are used.
template <class T, int N>
struct alignas(sizeof(T) * N) packed {
    static_assert(sizeof(T) * N % 4 == 0 && sizeof(T) * N <= 16, "whole words, at most 16 bytes");
    unsigned word[sizeof(T) * N / 4];
    __device__ __forceinline__ vec<T, N> lanes() const {
        vec<T, N> values;
        memcpy(&values, word, sizeof(word));
        return values;
    }
    static __device__ __forceinline__ packed of(const vec<T, N>& values) {
        packed words;
        memcpy(words.word, &values, sizeof(words.word));
        return words;
    }
};
