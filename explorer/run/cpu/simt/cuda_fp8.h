// cuda_fp8.h for the host: __nv_fp8_e4m3 and __nv_fp8_e5m2, rounded to nearest even; what is too large, infinities too, becomes
// the largest finite number, as CUDA's constructors (__NV_SATFINITE) have it.  NaN stays NaN.
#pragma once

// The code of the nearest number with FRACTION bits behind the point, of which LOWEST is the smallest normal exponent.
template <int FRACTION, int LOWEST, int TOP>
inline unsigned char simt_to_fp8(double value) {
    const unsigned char sign = __builtin_signbit(value) ? 0x80 : 0;
    if (value != value) return sign | 0x7f;
    double size = __builtin_fabs(value);
    const double largest = (double)((TOP & ((1 << FRACTION) - 1)) | 1 << FRACTION) *
                           __builtin_ldexp(1.0, (TOP >> FRACTION) - 1 + LOWEST - FRACTION);
    if (size >= largest) return sign | TOP;
    int exponent = LOWEST;
    if (size > 0.0 && __builtin_ilogb(size) > LOWEST) exponent = __builtin_ilogb(size);
    const double units = __builtin_ldexp(size, FRACTION - exponent);  // exact
    int code = (int)units;
    const double rest = units - code;
    if (rest > 0.5 || (rest == 0.5 && (code & 1))) ++code;
    return sign | (unsigned char)(code + ((exponent - LOWEST) << FRACTION));
}

// The number of a code; codes above TOP are NaN, but for that of INFINITE, if there is one.
template <int FRACTION, int LOWEST, int TOP, int INFINITE>
inline float simt_from_fp8(unsigned char bits) {
    const int size = bits & 0x7f, exponent = size >> FRACTION, fraction = size & ((1 << FRACTION) - 1);
    float value = __builtin_ldexpf((float)(exponent ? fraction | 1 << FRACTION : fraction),
                                   (exponent ? exponent : 1) - 1 + LOWEST - FRACTION);
    if (INFINITE && size == INFINITE) value = __builtin_inff();
    else if (size > TOP) value = __builtin_nanf("");
    return bits & 0x80 ? -value : value;
}

#define SIMT_FP8(name, FRACTION, LOWEST, TOP, INFINITE)                                                      \
    struct name {                                                                                            \
        unsigned char __x;                                                                                   \
        constexpr name() : __x() {} /* as __half */                                                          \
        explicit name(float f) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>(f)) {}                               \
        explicit name(double d) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>(d)) {}                              \
        explicit name(int i) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>((float)i)) {}                          \
        explicit name(unsigned i) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>((float)i)) {}                     \
        explicit name(long long i) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>((float)i)) {}                    \
        explicit name(unsigned long long i) : __x(simt_to_fp8<FRACTION, LOWEST, TOP>((float)i)) {}           \
        explicit operator float() const { return simt_from_fp8<FRACTION, LOWEST, TOP, INFINITE>(__x); }      \
    };
SIMT_FP8(__nv_fp8_e4m3, 3, -6, 0x7e, 0)
SIMT_FP8(__nv_fp8_e5m2, 2, -14, 0x7b, 0x7c)
#undef SIMT_FP8
