// simt_math.h: CUDA's mathematical functions, in terms of the C library's (declared here: no header needed).
#pragma once

#define SIMT_UNARY(name)                                     \
    extern "C" double name(double) noexcept;                 \
    extern "C" float name##f(float) noexcept;                \
    __forceinline__ float name(float x) { return name##f(x); }
#define SIMT_BINARY(name)                                    \
    extern "C" double name(double, double) noexcept;         \
    extern "C" float name##f(float, float) noexcept;         \
    __forceinline__ float name(float x, float y) { return name##f(x, y); }
SIMT_UNARY(exp)
SIMT_UNARY(exp2) SIMT_UNARY(expm1) SIMT_UNARY(log) SIMT_UNARY(log2) SIMT_UNARY(log10) SIMT_UNARY(log1p) SIMT_UNARY(sqrt)
    SIMT_UNARY(cbrt) SIMT_UNARY(sin) SIMT_UNARY(cos) SIMT_UNARY(tan) SIMT_UNARY(asin) SIMT_UNARY(acos) SIMT_UNARY(atan)
        SIMT_UNARY(sinh) SIMT_UNARY(cosh) SIMT_UNARY(tanh) SIMT_UNARY(asinh) SIMT_UNARY(acosh) SIMT_UNARY(atanh) SIMT_UNARY(erf)
            SIMT_UNARY(erfc) SIMT_UNARY(lgamma) SIMT_UNARY(tgamma) SIMT_UNARY(floor) SIMT_UNARY(ceil) SIMT_UNARY(trunc)
                SIMT_UNARY(round) SIMT_UNARY(rint) SIMT_UNARY(nearbyint) SIMT_UNARY(fabs) SIMT_BINARY(pow) SIMT_BINARY(fmod)
                    SIMT_BINARY(atan2) SIMT_BINARY(hypot) SIMT_BINARY(copysign) SIMT_BINARY(fdim) SIMT_BINARY(remainder)
#undef SIMT_UNARY
#undef SIMT_BINARY
                        extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
__forceinline__ float fma(float x, float y, float z) { return fmaf(x, y, z); }

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// IEEE 754-2008 maxNum and minNum, as on the GPU: a NaN loses against a number.
__forceinline__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__forceinline__ float fminf(float a, float b) { return __builtin_fminf(a, b); }
__forceinline__ double fmax(double a, double b) { return __builtin_fmax(a, b); }
__forceinline__ double fmin(double a, double b) { return __builtin_fmin(a, b); }
__forceinline__ float fmax(float a, float b) { return fmaxf(a, b); }
__forceinline__ float fmin(float a, float b) { return fminf(a, b); }
__forceinline__ float max(float a, float b) { return fmaxf(a, b); }
__forceinline__ float min(float a, float b) { return fminf(a, b); }
__forceinline__ double max(double a, double b) { return fmax(a, b); }
__forceinline__ double min(double a, double b) { return fmin(a, b); }
#define SIMT_ORDER(T)                                                  \
    __forceinline__ T max(T a, T b) { return a > b ? a : b; }          \
    __forceinline__ T min(T a, T b) { return a < b ? a : b; }
SIMT_ORDER(int)
SIMT_ORDER(unsigned) SIMT_ORDER(long) SIMT_ORDER(unsigned long) SIMT_ORDER(long long) SIMT_ORDER(unsigned long long)
#undef SIMT_ORDER
    __forceinline__ int abs(int x) { return x < 0 ? -x : x; }
__forceinline__ long abs(long x) { return x < 0 ? -x : x; }
__forceinline__ long long abs(long long x) { return x < 0 ? -x : x; }
__forceinline__ long long llabs(long long x) { return x < 0 ? -x : x; }
__forceinline__ float abs(float x) { return fabsf(x); }
__forceinline__ double abs(double x) { return fabs(x); }

template <class T> __forceinline__ bool isnan(T x) { return __builtin_isnan(x); }
template <class T> __forceinline__ bool isinf(T x) { return __builtin_isinf(x); }
template <class T> __forceinline__ bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> __forceinline__ bool signbit(T x) { return __builtin_signbit(x); }

__forceinline__ float rsqrtf(float x) { return 1.0f / sqrtf(x); }
__forceinline__ double rsqrt(double x) { return 1.0 / sqrt(x); }
__forceinline__ float rsqrt(float x) { return rsqrtf(x); }
__forceinline__ float rcbrtf(float x) { return 1.0f / cbrtf(x); }
__forceinline__ float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__forceinline__ void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }

// The fast intrinsics are the accurate functions here.
__forceinline__ float __expf(float x) { return expf(x); }
__forceinline__ float __exp10f(float x) { return powf(10.0f, x); }
__forceinline__ float __logf(float x) { return logf(x); }
__forceinline__ float __log2f(float x) { return log2f(x); }
__forceinline__ float __log10f(float x) { return log10f(x); }
__forceinline__ float __powf(float x, float y) { return powf(x, y); }
__forceinline__ float __sinf(float x) { return sinf(x); }
__forceinline__ float __cosf(float x) { return cosf(x); }
__forceinline__ float __tanf(float x) { return tanf(x); }
__forceinline__ float __fdividef(float x, float y) { return x / y; }
__forceinline__ float __fdiv_rn(float x, float y) { return x / y; }
__forceinline__ float __frcp_rn(float x) { return 1.0f / x; }
__forceinline__ float __fsqrt_rn(float x) { return sqrtf(x); }
__forceinline__ float __frsqrt_rn(float x) { return rsqrtf(x); }
__forceinline__ float __fadd_rn(float x, float y) { return x + y; }
__forceinline__ float __fsub_rn(float x, float y) { return x - y; }
__forceinline__ float __fmul_rn(float x, float y) { return x * y; }
__forceinline__ float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
__forceinline__ float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

template <class To, class From> __forceinline__ To simt_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
__forceinline__ float __int_as_float(int x) { return simt_bits<float>(x); }
__forceinline__ float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
__forceinline__ int __float_as_int(float x) { return simt_bits<int>(x); }
__forceinline__ unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
__forceinline__ double __longlong_as_double(long long x) { return simt_bits<double>(x); }
__forceinline__ long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
__forceinline__ int __float2int_rn(float x) { return (int)nearbyintf(x); }
__forceinline__ int __float2int_rz(float x) { return (int)x; }
__forceinline__ int __float2int_rd(float x) { return (int)floorf(x); }
__forceinline__ int __float2int_ru(float x) { return (int)ceilf(x); }
__forceinline__ float __int2float_rn(int x) { return (float)x; }

__forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
__forceinline__ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__forceinline__ int __ffs(int x) { return __builtin_ffs(x); }
__forceinline__ int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
__forceinline__ int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
__forceinline__ unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
__forceinline__ int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
__forceinline__ int __mul24(int a, int b) { return a * b; }
