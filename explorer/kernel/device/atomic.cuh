// Atomic updates of one element, each returning the old value: the hardware's where there is one, else a compare-and-swap loop.
// max and min keep a NaN, whether it was there or comes.  `and`, `or`, `xor` are logical.

template <class To, class From>
__device__ __forceinline__ To atomic_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    return *(const To*)&from;
}

// *address = combine(*address, value), for elements of 1, 2, 4 or 8 bytes.
template <class T, class Combine>
__device__ T atomic_update(T* address, T value, Combine combine) {
#if defined(SIMT_HOST)
    return simt_atomic(address, value, combine);
#else
    if constexpr (sizeof(T) == 1) {  // within the aligned word that holds it; global allocations end on such a word
        unsigned* word = (unsigned*)((size_t)address & ~(size_t)3);
        const int shift = 8 * (int)((size_t)address & 3);
        unsigned seen = *(volatile unsigned*)word, expected;
        T old;
        do {
            expected = seen;
            old = atomic_bits<T>((unsigned char)(expected >> shift));
            const unsigned desired = atomic_bits<unsigned char>(combine(old, value));
            seen = atomicCAS(word, expected, (expected & ~(0xffu << shift)) | desired << shift);
        } while (seen != expected);
        return old;
    } else if constexpr (sizeof(T) == 2) {
        unsigned short *word = (unsigned short*)address, seen = *(volatile unsigned short*)word, expected;
        do {
            expected = seen;
            seen = atomicCAS(word, expected, atomic_bits<unsigned short>(combine(atomic_bits<T>(expected), value)));
        } while (seen != expected);
        return atomic_bits<T>(expected);
    } else if constexpr (sizeof(T) == 4) {
        unsigned *word = (unsigned*)address, seen = *(volatile unsigned*)word, expected;
        do {
            expected = seen;
            seen = atomicCAS(word, expected, atomic_bits<unsigned>(combine(atomic_bits<T>(expected), value)));
        } while (seen != expected);
        return atomic_bits<T>(expected);
    } else {
        unsigned long long *word = (unsigned long long*)address, seen = *(volatile unsigned long long*)word, expected;
        do {
            expected = seen;
            seen = atomicCAS(word, expected, atomic_bits<unsigned long long>(combine(atomic_bits<T>(expected), value)));
        } while (seen != expected);
        return atomic_bits<T>(expected);
    }
#endif
}

template <class T> __device__ T atomic_add(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a + b); }); }
template <class T> __device__ T atomic_mul(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a * b); }); }
template <class T>
__device__ T atomic_max(T* p, T v) {
    return atomic_update(p, v, [](T a, T b) -> T { return a >= b || !(a == a) ? a : b; });
}
template <class T>
__device__ T atomic_min(T* p, T v) {
    return atomic_update(p, v, [](T a, T b) -> T { return a <= b || !(a == a) ? a : b; });
}
template <class T> __device__ T atomic_and(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a && b); }); }
template <class T> __device__ T atomic_or(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a || b); }); }
template <class T> __device__ T atomic_xor(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(!a != !b); }); }
template <class T> __device__ T atomic_bitand(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a & b); }); }
template <class T> __device__ T atomic_bitor(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a | b); }); }
template <class T> __device__ T atomic_bitxor(T* p, T v) { return atomic_update(p, v, [](T a, T b) -> T { return (T)(a ^ b); }); }

__device__ __forceinline__ float atomic_add(float* p, float v) { return atomicAdd(p, v); }
__device__ __forceinline__ double atomic_add(double* p, double v) { return atomicAdd(p, v); }
__device__ __forceinline__ int atomic_add(int* p, int v) { return atomicAdd(p, v); }
__device__ __forceinline__ long long atomic_add(long long* p, long long v) {
    return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
__device__ __forceinline__ unsigned int atomic_add(unsigned int* p, unsigned int v) { return atomicAdd(p, v); }
__device__ __forceinline__ unsigned long long atomic_add(unsigned long long* p, unsigned long long v) { return atomicAdd(p, v); }
__device__ __forceinline__ unsigned int atomic_max(unsigned int* p, unsigned int v) { return atomicMax(p, v); }
__device__ __forceinline__ unsigned int atomic_min(unsigned int* p, unsigned int v) { return atomicMin(p, v); }
__device__ __forceinline__ unsigned long long atomic_max(unsigned long long* p, unsigned long long v) { return atomicMax(p, v); }
__device__ __forceinline__ unsigned long long atomic_min(unsigned long long* p, unsigned long long v) { return atomicMin(p, v); }
__device__ __forceinline__ int atomic_max(int* p, int v) { return atomicMax(p, v); }
__device__ __forceinline__ int atomic_min(int* p, int v) { return atomicMin(p, v); }
__device__ __forceinline__ long long atomic_max(long long* p, long long v) { return atomicMax(p, v); }
__device__ __forceinline__ long long atomic_min(long long* p, long long v) { return atomicMin(p, v); }
__device__ __forceinline__ int atomic_bitand(int* p, int v) { return atomicAnd(p, v); }
__device__ __forceinline__ unsigned int atomic_bitand(unsigned int* p, unsigned int v) { return atomicAnd(p, v); }
__device__ __forceinline__ unsigned long long atomic_bitand(unsigned long long* p, unsigned long long v) { return atomicAnd(p, v); }
__device__ __forceinline__ long long atomic_bitand(long long* p, long long v) {
    return (long long)atomicAnd((unsigned long long*)p, (unsigned long long)v);
}
__device__ __forceinline__ int atomic_bitor(int* p, int v) { return atomicOr(p, v); }
__device__ __forceinline__ unsigned int atomic_bitor(unsigned int* p, unsigned int v) { return atomicOr(p, v); }
__device__ __forceinline__ unsigned long long atomic_bitor(unsigned long long* p, unsigned long long v) { return atomicOr(p, v); }
__device__ __forceinline__ long long atomic_bitor(long long* p, long long v) {
    return (long long)atomicOr((unsigned long long*)p, (unsigned long long)v);
}
__device__ __forceinline__ int atomic_bitxor(int* p, int v) { return atomicXor(p, v); }
__device__ __forceinline__ unsigned int atomic_bitxor(unsigned int* p, unsigned int v) { return atomicXor(p, v); }
__device__ __forceinline__ unsigned long long atomic_bitxor(unsigned long long* p, unsigned long long v) { return atomicXor(p, v); }
__device__ __forceinline__ long long atomic_bitxor(long long* p, long long v) {
    return (long long)atomicXor((unsigned long long*)p, (unsigned long long)v);
}

// Floats by integer atomics: bit patterns of one sign order like integers, those of negative numbers in reverse.  The largest
// pattern in that order is a NaN, which stays once it is there; one that was there with another pattern, and that a number has
// just replaced, is put back (nothing reads the element before all updates have ended).
__device__ __forceinline__ float atomic_max(float* p, float v) {
    const int bits = v != v ? 0x7fffffff : __float_as_int(v);
    const float old = bits >= 0 ? __int_as_float(atomicMax((int*)p, bits))
                                : __uint_as_float(atomicMin((unsigned*)p, (unsigned)bits));
    if (old != old) atomicMax((int*)p, 0x7fffffff);
    return old;
}
__device__ __forceinline__ float atomic_min(float* p, float v) {
    const int bits = v != v ? -1 : __float_as_int(v);
    const float old = bits >= 0 ? __int_as_float(atomicMin((int*)p, bits))
                                : __uint_as_float(atomicMax((unsigned*)p, (unsigned)bits));
    if (old != old) atomicMax((unsigned*)p, 0xffffffffu);
    return old;
}
__device__ __forceinline__ double atomic_max(double* p, double v) {
    const long long bits = v != v ? 0x7fffffffffffffffll : __double_as_longlong(v);
    const double old = bits >= 0 ? __longlong_as_double(atomicMax((long long*)p, bits))
                                 : __longlong_as_double((long long)atomicMin((unsigned long long*)p, (unsigned long long)bits));
    if (old != old) atomicMax((long long*)p, 0x7fffffffffffffffll);
    return old;
}
__device__ __forceinline__ double atomic_min(double* p, double v) {
    const long long bits = v != v ? -1ll : __double_as_longlong(v);
    const double old = bits >= 0 ? __longlong_as_double(atomicMin((long long*)p, bits))
                                 : __longlong_as_double((long long)atomicMax((unsigned long long*)p, (unsigned long long)bits));
    if (old != old) atomicMax((unsigned long long*)p, 0xffffffffffffffffull);
    return old;
}
