// A number in units of the logarithm of 2: times log2 e, rounded towards zero, so that it is still finite where it is finite.
__device__ __forceinline__ float in_octaves(float x) {
#if defined(SIMT_HOST)
    const double exact = static_cast<double>(x) * 1.44269504f;
    const float t = static_cast<float>(exact);
    return fabs(static_cast<double>(t)) > fabs(exact) ? __int_as_float(__float_as_int(t) - 1) : t;  // the next one towards zero
#else
    return __fmul_rz(x, 1.44269504f);
#endif
}

// exp(x * scale - m) as one fused multiply-add and one power of two, which is 0 where it is not normal (PTX ISA, "ex2").
__device__ __forceinline__ float fused_exp(float x, float scale, float m) {
    const float t = fmaf(x, in_octaves(scale), -in_octaves(m));
#if defined(SIMT_HOST)
    const float y = exp2f(t);
    return y < 1.17549435e-38f ? 0.0f : y;
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
    return y;
#endif
}
