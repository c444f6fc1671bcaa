// mma.sync on the CPU device: fragments as the PTX ISA lays them out ("Matrix Fragments for mma.m16n8k16" and its like).
// Every lane gets what all lanes hold, and computes its own elements of the accumulator.

template <class T> struct simt_mma_wide { typedef float type; };  // what products are added in
template <> struct simt_mma_wide<double> { typedef double type; };
template <> struct simt_mma_wide<signed char> { typedef int type; };
template <> struct simt_mma_wide<unsigned char> { typedef int type; };

// A factor's element: of an f32 in an instruction on tf32 the first BITS bits of the significand.
template <int BITS, class T>
inline typename simt_mma_wide<T>::type simt_mma_value(T v) { return (typename simt_mma_wide<T>::type)v; }
template <int BITS>
inline float simt_mma_value(float v) {
    unsigned bits;
    memcpy(&bits, &v, sizeof bits);
    if (BITS) bits &= ~((1u << (24 - BITS)) - 1u);
    memcpy(&v, &bits, sizeof bits);
    return v;
}

template <int M, int N, int K, int BITS = 0, class A, class B, class C, int NA, int NB, int NC>
inline void simt_mma(C (&c)[NC], const A (&a)[NA], const B (&b)[NB], int line) {
    struct Held { A a[NA]; B b[NB]; };
    static_assert(NA == M * K / 32 && NB == K * N / 32 && NC == M * N / 32, "fragments of the tile");
    Held mine, all[32];
    const int lane = (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
    for (int n = 0; n < NA; ++n) mine.a[n] = a[n];
    for (int n = 0; n < NB; ++n) mine.b[n] = b[n];
    simt_warp_gather(0xffffffffu, &mine, (int)sizeof mine, all, line);
    constexpr int P = sizeof(A) < 4 ? 4 / (int)sizeof(A) : 1, Q = sizeof(B) < 4 ? 4 / (int)sizeof(B) : 1;
    for (int i = 0; i < NC; ++i) {
        const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        typename simt_mma_wide<A>::type sum = (typename simt_mma_wide<A>::type)c[i];
        for (int k = 0; k < K; ++k) {
            const Held& left = all[4 * (row % 8) + k % (4 * P) / P];
            const Held& right = all[4 * column + k % (4 * Q) / Q];
            sum += simt_mma_value<BITS>(left.a[k % P + row / 8 * P + k / (4 * P) * P * (M / 8)])
                * simt_mma_value<BITS>(right.b[k % Q + k / (4 * Q) * Q]);
        }
        c[i] = (C)sum;
    }
}
