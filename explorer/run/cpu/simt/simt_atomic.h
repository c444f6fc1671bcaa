// simt_atomic.h: atomic functions.  Each first tells the runtime what it touches (a no-op in the fast build), in code that
// is inlined into the kernel so that the text's line is known, and then acts out of the instrumentation's sight.
#pragma once

template <int BYTES> struct SimtWord;
template <> struct SimtWord<1> { using type = unsigned char; };
template <> struct SimtWord<2> { using type = unsigned short; };
template <> struct SimtWord<4> { using type = unsigned; };
template <> struct SimtWord<8> { using type = unsigned long long; };

// *p = combine(*p, v) in one indivisible step; returns the old value.
template <class T, class F>
SIMT_UNCHECKED __attribute__((noinline)) T simt_atomic_update(T* p, T v, F combine) {
#if SIMT_CHECKED  // one operating-system thread, which switches fibers elsewhere
    const T old = *p;
    *p = combine(old, v);
    return old;
#else
    using Word = typename SimtWord<sizeof(T)>::type;
    Word seen = __atomic_load_n((Word*)p, __ATOMIC_RELAXED);
    for (;;) {
        T old = simt_bits<T>(seen);
        if (__atomic_compare_exchange_n((Word*)p, &seen, simt_bits<Word>(combine(old, v)), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return old;
    }
#endif
}

template <class T, class F>
__forceinline__ T simt_atomic(T* p, T v, F combine) {
#if SIMT_CHECKED
    simt_atomic_access(p, (int)sizeof(T));
#endif
    return simt_atomic_update(p, v, combine);
}

#define SIMT_ATOMIC(name, T, expression)                            \
    __forceinline__ T name(T* p, T v) {                             \
        return simt_atomic(p, v, [](T a, T b) SIMT_UNCHECKED -> T { \
            (void)a;                                                \
            return (T)(expression);                                 \
        });                                                         \
    }
#define SIMT_ATOMIC_INTEGER(T)                                                                                        \
    SIMT_ATOMIC(atomicAdd, T, a + b)                                                                                  \
    SIMT_ATOMIC(atomicMin, T, a < b ? a : b) SIMT_ATOMIC(atomicMax, T, a > b ? a : b) SIMT_ATOMIC(atomicAnd, T, a& b) \
        SIMT_ATOMIC(atomicOr, T, a | b) SIMT_ATOMIC(atomicXor, T, a ^ b) SIMT_ATOMIC(atomicExch, T, b)
SIMT_ATOMIC_INTEGER(int)
SIMT_ATOMIC_INTEGER(unsigned)
SIMT_ATOMIC_INTEGER(long long)
SIMT_ATOMIC_INTEGER(unsigned long long)
SIMT_ATOMIC(atomicAdd, float, a + b)
SIMT_ATOMIC(atomicAdd, double, a + b)
SIMT_ATOMIC(atomicExch, float, b)
SIMT_ATOMIC(atomicSub, int, a - b)
SIMT_ATOMIC(atomicSub, unsigned, a - b)
SIMT_ATOMIC(atomicInc, unsigned, a >= b ? 0u : a + 1)
SIMT_ATOMIC(atomicDec, unsigned, a == 0 || a > b ? b : a - 1)
#undef SIMT_ATOMIC_INTEGER
#undef SIMT_ATOMIC

template <class T>
SIMT_UNCHECKED __attribute__((noinline)) T simt_atomic_swap_if(T* p, T expected, T desired) {
#if SIMT_CHECKED
    const T old = *p;
    if (old == expected) *p = desired;
    return old;
#else
    __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    return expected;
#endif
}
#define SIMT_ATOMIC_CAS(T)                                              \
    __forceinline__ T atomicCAS(T* p, T expected, T desired) {          \
        simt_atomic_access(p, (int)sizeof(T));                          \
        return simt_atomic_swap_if(p, expected, desired);               \
    }
SIMT_ATOMIC_CAS(int) SIMT_ATOMIC_CAS(unsigned) SIMT_ATOMIC_CAS(unsigned short) SIMT_ATOMIC_CAS(unsigned long long)
#undef SIMT_ATOMIC_CAS
