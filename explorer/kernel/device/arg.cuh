// A value and its index in one integer: the largest argmax_key is that of the first largest value, the smallest argmin_key that
// of the first smallest, and a NaN comes before every number.  The index is (int)~key and (int)key.

// a + b, of which 0 and -0 make 0 and every NaN is 0x7fffffff, as the GPU's additions give it (CUDA C++ Programming Guide,
// "Floating-Point Standard"); in assembly, since a compiler may not tell one NaN from another.
__device__ __forceinline__ float arg_sum(float a, float b) {
#if defined(__CUDA_ARCH__)
    float sum;
    asm("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(a), "f"(b));
    return sum;
#else
    return a == a ? a + b : __int_as_float(0x7fffffff);
#endif
}
// An integer in the order of the values: complementing the low bits of negative numbers orders IEEE 754 bit patterns.
__device__ __forceinline__ int arg_rank(float value) {
    const int bits = __float_as_int(value);
    return bits ^ (bits >> 31 & 0x7fffffff);
}

__device__ __forceinline__ long long argmax_key(float value, int index) {
    return (long long)arg_rank(arg_sum(value, 0.0f)) * 0x100000000ll + (unsigned)~index;
}
__device__ __forceinline__ long long argmin_key(float value, int index) {
    return (long long)~arg_rank(arg_sum(-value, 0.0f)) * 0x100000000ll + (unsigned)index;
}
__device__ __forceinline__ long long argmax_key(int value, int index) { return value * 0x100000000ll + (unsigned)~index; }
__device__ __forceinline__ long long argmin_key(int value, int index) { return value * 0x100000000ll + (unsigned)index; }
