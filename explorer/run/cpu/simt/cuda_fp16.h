// cuda_fp16.h for the host: __half as IEEE binary16, converted in software so that any C++17 compiler will do.
#pragma once

struct __half;
inline float __half2float(__half h);
inline __half __float2half_rn(float f);

struct __half {
    unsigned short bits;
    constexpr __half() : bits() {}  // not "= default": g++ would then construct a shared array of them at run time
    inline __half(float f);
    inline __half(double f);
    inline __half(int i);
    inline operator float() const;
};
using half = __half;
struct alignas(4) __half2 { __half x, y; };
using half2 = __half2;

inline float __half2float(__half h) {
#if defined(__F16C__) && defined(__FLT16_MAX__)
    return (float)simt_bits<_Float16>(h.bits);
#else
    const unsigned sign = (h.bits & 0x8000u) << 16, exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    if (exponent == 31) return simt_bits<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in binary32
        const float magnitude = (float)fraction * 5.9604644775390625e-08f;
        return sign ? -magnitude : magnitude;
    }
    return simt_bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
#endif
}

inline __half __float2half_rn(float f) {  // round to nearest, ties to even
    __half h;
#if defined(__F16C__) && defined(__FLT16_MAX__)
    h.bits = simt_bits<unsigned short>((_Float16)f);
#else
    const unsigned word = simt_bits<unsigned>(f), sign = word >> 16 & 0x8000u, magnitude = word & 0x7fffffffu;
    unsigned result;
    if (magnitude > 0x7f800000u) result = 0x7e00u | (magnitude >> 13 & 1023);    // NaN, quiet
    else if (magnitude >= 0x477ff000u) result = 0x7c00u;                          // 65520 and above round to infinity
    else if (magnitude < 0x38800000u) {                                           // below 2^-14: subnormal
        // Adding 0.5 aligns the unit in the last place with 2^-24 and lets the hardware round.
        result = simt_bits<unsigned>(simt_bits<float>(magnitude) + 0.5f) - 0x3f000000u;
    } else {
        const unsigned odd = magnitude >> 13 & 1;
        result = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
    }
    h.bits = (unsigned short)(sign | result);
#endif
    return h;
}

inline __half __float2half(float f) { return __float2half_rn(f); }
inline __half __float2half_rz(float f) {  // towards zero: one step back where rounding went away from it
    __half h = __float2half_rn(f);
    if (__builtin_fabsf(__half2float(h)) > __builtin_fabsf(f)) --h.bits;
    return h;
}
inline __half __double2half(double d) { return __float2half_rn((float)d); }
inline __half __ushort_as_half(unsigned short u) { __half h; h.bits = u; return h; }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half::__half(float f) : bits(__float2half_rn(f).bits) {}
inline __half::__half(double f) : bits(__float2half_rn((float)f).bits) {}
inline __half::__half(int i) : bits(__float2half_rn((float)i).bits) {}
inline __half::operator float() const { return __half2float(*this); }

#define SIMT_HALF_OPERATOR(op)                                                                                       \
    inline __half operator op(__half a, __half b) { return __float2half_rn(__half2float(a) op __half2float(b)); }    \
    inline __half& operator op##=(__half& a, __half b) { return a = a op b; }
SIMT_HALF_OPERATOR(+)
SIMT_HALF_OPERATOR(-) SIMT_HALF_OPERATOR(*) SIMT_HALF_OPERATOR(/)
#undef SIMT_HALF_OPERATOR
#define SIMT_HALF_COMPARISON(op) \
    inline bool operator op(__half a, __half b) { return __half2float(a) op __half2float(b); }
    SIMT_HALF_COMPARISON(<) SIMT_HALF_COMPARISON(>) SIMT_HALF_COMPARISON(<=) SIMT_HALF_COMPARISON(>=) SIMT_HALF_COMPARISON(==)
        SIMT_HALF_COMPARISON(!=)
#undef SIMT_HALF_COMPARISON
            inline __half
            operator-(__half a) { a.bits ^= 0x8000u; return a; }
inline __half __hadd(__half a, __half b) { return a + b; }
inline __half __hsub(__half a, __half b) { return a - b; }
inline __half __hmul(__half a, __half b) { return a * b; }
inline __half __hdiv(__half a, __half b) { return a / b; }
inline __half __hfma(__half a, __half b, __half c) {
    return __float2half_rn(fmaf(__half2float(a), __half2float(b), __half2float(c)));
}
inline __half __hmax(__half a, __half b) { return __float2half_rn(fmaxf(__half2float(a), __half2float(b))); }
inline __half __hmin(__half a, __half b) { return __float2half_rn(fminf(__half2float(a), __half2float(b))); }
inline float2 __half22float2(__half2 h) { return {__half2float(h.x), __half2float(h.y)}; }
inline __half2 __float22half2_rn(float2 f) { return {__float2half_rn(f.x), __float2half_rn(f.y)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
