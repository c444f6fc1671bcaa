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

// 2 to the power of t, which is 0 where it is not normal (PTX ISA, "ex2").
__device__ __forceinline__ float power_of_two(float t) {
#if defined(SIMT_HOST)
    const float y = exp2f(t);
    return y < 1.17549435e-38f ? 0.0f : y;
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(t));
    return y;
#endif
}

// exp(x * scale - m) as one fused multiply-add and one power of two.
__device__ __forceinline__ float fused_exp(float x, float scale, float m) {
    return power_of_two(fmaf(x, in_octaves(scale), -in_octaves(m)));
}

// The error function as 1 - 2^p(|x|), with a polynomial for log2(erfc) whose error in the result is least at most (1.6e-8, by
// iterated weights on 0 to 4.3); its last term takes larger numbers to 1.  Near 0, where that difference has few digits, two terms of
// the series.
__device__ __forceinline__ float fast_erf(float x) {
    const float u = fabsf(x);
    float p = fmaf(-4.53578323e-05f, u, 0.000445501355f);
    p = fmaf(p, u, -0.00148942135f);
    p = fmaf(p, u, -0.000774662301f);
    p = fmaf(p, u, 0.0282537099f);
    p = fmaf(p, u, -0.148481622f);
    p = fmaf(p, u, -0.918416381f);
    p = fmaf(p, u, -1.62790859f);
    const float near = x * fmaf(-0.376126389f * x, x, 1.12837917f);
    const float far = copysignf(1.0f - power_of_two(p * u), x);
    return u < 0.05f ? near : far;
}

// The hyperbolic tangent as 1 - 2 / (1 + e^2|x|), by one power of two and one approximate quotient, which is 0 where the power is
// infinite.  Near 0, where that difference has few digits, two terms of the series.
__device__ __forceinline__ float fast_tanh(float x) {
    const float u = fabsf(x);
    const float near = x * fmaf(-0.333333343f * x, x, 1.0f);
    const float far = copysignf(1.0f - __fdividef(2.0f, 1.0f + power_of_two(2.88539004f * u)), x);
    return u < 0.05f ? near : far;
}

// 1 / (1 + e^-x), by one power of two and one approximate reciprocal, which is 0 where it is not normal (PTX ISA, "rcp").
__device__ __forceinline__ float fast_sigmoid(float x) {
    const float y = 1.0f + power_of_two(-1.44269504f * x);
#if defined(SIMT_HOST)
    return y > 8.50705917e37f ? 0.0f : 1.0f / y;
#else
    float z;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(z) : "f"(y));
    return z;
#endif
}

// x / 2 * (1 + erf(x / sqrt 2)): x times the normal distribution, which is 2^(p(|x|) - 1) below 0 and the rest of it above, with the
// polynomial of fast_erf in |x| / sqrt 2.
__device__ __forceinline__ float fast_gelu(float x) {
    const float u = fabsf(x);
    float p = fmaf(-2.8348645e-06f, u, 3.937713e-05f);
    p = fmaf(p, u, -0.00018617767f);
    p = fmaf(p, u, -0.00013694224f);
    p = fmaf(p, u, 0.0070634275f);
    p = fmaf(p, u, -0.05249618f);
    p = fmaf(p, u, -0.4592082f);
    p = fmaf(p, u, -1.1511052f);
    const float below = power_of_two(fmaf(p, u, -1.0f));
    return x * (x < 0.0f ? below : 1.0f - below);
}
