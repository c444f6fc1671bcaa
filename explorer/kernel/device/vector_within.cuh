// N neighbouring elements from an aligned address, as far as `end`; beyond, what is said.  V is vec<T, N> or packed<T, N>.
template <class V, int N, class T, class Same>
__device__ __forceinline__ V load_within(const T* first, const T* end, Same outside) {
    if (first + N <= end) return *(const V*)first;
    vec<T, N> values;
#pragma unroll
    for (int lane = 0; lane < N; ++lane) values.at[lane] = first + lane < end ? first[lane] : (T)outside;
    return V::of(values);
}

// The first `count` of N neighbouring elements from an aligned address; the others, what is said.
template <class V, int N, class T, class I, class Same>
__device__ __forceinline__ V load_first(const T* first, I count, Same outside) {
    if (count >= N) return *(const V*)first;
    vec<T, N> values;
#pragma unroll
    for (int lane = 0; lane < N; ++lane) values.at[lane] = lane < count ? first[lane] : (T)outside;
    return V::of(values);
}

// Of N elements that were loaded from an address, those between two places; elsewhere, what is said.
template <class T, int N, class Same>
__device__ __forceinline__ void keep_between(vec<T, N>& values, const T* first, const T* begin, const T* end, Same outside) {
    if (begin <= first && first + N <= end) return;
#pragma unroll
    for (int lane = 0; lane < N; ++lane)
        if (first + lane < begin || first + lane >= end) values.at[lane] = (T)outside;
}
