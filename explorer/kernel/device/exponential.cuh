// A number in units of the logarithm of 2: times log2 e, and still finite where it is finite.
__device__ __forceinline__ float in_octaves(float x) {
    const float t = x * 1.44269504f;
    return x - x == 0.0f ? fminf(fmaxf(t, -3.40282347e38f), 3.40282347e38f) : t;
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
