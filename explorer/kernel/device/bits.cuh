// Shifts as NumPy has them: by as many bits as the type has, or more, or by a negative number, gives 0, or of a negative number
// shifted to the right -1.  (C++ leaves these undefined.)
template <class T, class N>
__device__ __forceinline__ T shift_left(T a, N by) {
    return (unsigned long long)by < 8 * sizeof(T) ? (T)((unsigned long long)a << by) : (T)0;
}

template <class T, class N>
__device__ __forceinline__ T shift_right(T a, N by) {
    return (unsigned long long)by < 8 * sizeof(T) ? (T)(a >> by) : a < (T)0 ? (T)-1 : (T)0;
}
