// cuda_bf16.h for the host: __nv_bfloat16 is the upper half of a binary32.
#pragma once

struct __nv_bfloat16;
inline float __bfloat162float(__nv_bfloat16 h);
inline __nv_bfloat16 __float2bfloat16_rn(float f);

struct __nv_bfloat16 {
    unsigned short bits;
    constexpr __nv_bfloat16() : bits() {}  // as __half
    inline __nv_bfloat16(float f);
    inline __nv_bfloat16(double f);
    inline __nv_bfloat16(int i);
    inline operator float() const;
};
using nv_bfloat16 = __nv_bfloat16;
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };

inline float __bfloat162float(__nv_bfloat16 h) { return simt_bits<float>((unsigned)h.bits << 16); }

inline __nv_bfloat16 __float2bfloat16_rn(float f) {  // round to nearest, ties to even; any NaN becomes 0x7fff, as on the GPU
    const unsigned word = simt_bits<unsigned>(f);
    __nv_bfloat16 h;
    h.bits = f != f ? 0x7fff : (unsigned short)((word + 0x7fffu + (word >> 16 & 1)) >> 16);
    return h;
}

inline __nv_bfloat16 __float2bfloat16(float f) { return __float2bfloat16_rn(f); }
inline __nv_bfloat16 __float2bfloat16_rz(float f) {  // towards zero
    __nv_bfloat16 h = __float2bfloat16_rn(f);
    if (__builtin_fabsf(__bfloat162float(h)) > __builtin_fabsf(f)) --h.bits;
    return h;
}
inline __nv_bfloat16 __double2bfloat16(double d) { return __float2bfloat16_rn((float)d); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { __nv_bfloat16 h; h.bits = u; return h; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
inline __nv_bfloat16::__nv_bfloat16(float f) : bits(__float2bfloat16_rn(f).bits) {}
inline __nv_bfloat16::__nv_bfloat16(double f) : bits(__float2bfloat16_rn((float)f).bits) {}
inline __nv_bfloat16::__nv_bfloat16(int i) : bits(__float2bfloat16_rn((float)i).bits) {}
inline __nv_bfloat16::operator float() const { return __bfloat162float(*this); }

#define SIMT_BF16_OPERATOR(op)                                                                          \
    inline __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) {                                \
        return __float2bfloat16_rn(__bfloat162float(a) op __bfloat162float(b));                         \
    }                                                                                                   \
    inline __nv_bfloat16& operator op##=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a op b; }
SIMT_BF16_OPERATOR(+) SIMT_BF16_OPERATOR(-) SIMT_BF16_OPERATOR(*) SIMT_BF16_OPERATOR(/)
#undef SIMT_BF16_OPERATOR
#define SIMT_BF16_COMPARISON(op) \
    inline bool operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return __bfloat162float(a) op __bfloat162float(b); }
SIMT_BF16_COMPARISON(<) SIMT_BF16_COMPARISON(>) SIMT_BF16_COMPARISON(<=) SIMT_BF16_COMPARISON(>=) SIMT_BF16_COMPARISON(==)
SIMT_BF16_COMPARISON(!=)
#undef SIMT_BF16_COMPARISON
inline __nv_bfloat16 operator-(__nv_bfloat16 a) { a.bits ^= 0x8000u; return a; }
inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {__bfloat162float(h.x), __bfloat162float(h.y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
