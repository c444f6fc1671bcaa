// N neighbouring elements from an aligned address, as far as the array goes.
template <class T, int N>
__device__ vec<T, N> load_within(const T* first, const T* end) {
    if (first + N <= end) return *(const vec<T, N>*)first;
    vec<T, N> values{};
#pragma unroll
    for (int lane = 0; lane < N; ++lane)
        if (first + lane < end) values.at[lane] = first[lane];
    return values;
}
