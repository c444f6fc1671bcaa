// The quotient a / b rounded down and its remainder, which has the sign of b: Python's a // b and a % b.  Both are 0 where b is.
template <class T>
__device__ __forceinline__ T floor_div(T a, T b) {
    if (b == 0) return 0;
    if constexpr ((T)-1 > (T)0) return a / b;
    else {
        if (b == -1) return (T)(0ULL - (unsigned long long)a);
        return a / b - (a % b != 0 && (a < 0) != (b < 0));
    }
}

template <class T>
__device__ __forceinline__ T floor_mod(T a, T b) {
    if (b == 0) return 0;
    if constexpr ((T)-1 > (T)0) return a % b;
    else {
        if (b == -1) return 0;
        const T rest = a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
}
