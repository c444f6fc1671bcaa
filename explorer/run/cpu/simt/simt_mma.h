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

// What a warpgroup's instruction on tf32 reads of an f32.
struct simt_tf32 {
    float whole;
    explicit operator float() const { return simt_mma_value<11>(whole); }
};

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

// wgmma on the CPU device: every thread of a warpgroup computes its own elements of the accumulator from tiles in shared memory,
// addressed as a matrix descriptor addresses them (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
template <class TILE>
inline const char* simt_tile_element(const TILE& tile, int step, int free, int depth, int size) {
    const int unit = TILE::swizzle / size;  // elements of a row
    const int row = TILE::transposed ? depth : free, column = TILE::transposed ? free : depth;
    unsigned long long at = (unsigned long long)(const char*)tile.first + (unsigned long long)step * TILE::step;
    at += (unsigned long long)(row / 8) * (8 * TILE::swizzle) + (row % 8) * TILE::swizzle;
    at += (unsigned long long)(column / unit) * TILE::panel + (column % unit) * size;
    return (const char*)(at ^ ((at / 128 % (TILE::swizzle / 16)) * 16));
}

// A left factor in registers: those of the four lanes that hold a row together, as they are when the product reads them.
template <class A, int NA>
struct SimtHeld { const A* of[4]; };

template <class A, int NA>
inline SimtHeld<A, NA> simt_held(const A (&a)[NA], int line) {
    const A *mine = a, *all[32];
    simt_warp_gather(0xffffffffu, &mine, (int)sizeof mine, all, line);
    const int lane = (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
    SimtHeld<A, NA> held;
    for (int n = 0; n < 4; ++n) held.of[n] = all[lane / 4 * 4 + n];
    return held;
}

// A row of the left factor: `half` is 1 for the eight lower rows of a warp's sixteen.
template <int K, int STEPS, class A, class LEFT, class W>
inline void simt_left(const LEFT& a, int row, int half, W* left) {
    (void)half;
    for (int k = 0; k < STEPS * K; ++k) left[k] = (W)*(const A*)simt_tile_element(a, k / K, row, k % K, (int)sizeof(A));
}
template <int K, int STEPS, class A, class E, int NA, class W>
SIMT_UNCHECKED __attribute__((noinline)) void simt_left(const SimtHeld<E, NA>& a, int, int half, W* left) {
    constexpr int P = 4 / (int)sizeof(E);
    for (int k = 0; k < STEPS * K; ++k) left[k] = (W)A{a.of[k % (4 * P) / P][k % P + half * P + k / (4 * P) * (2 * P)]};
}

template <class C, int NC, class LEFT, class RIGHT>
struct SimtProduct { C* c; LEFT a; RIGHT b; };

template <int N, int K, int STEPS, class A, class B, class C, int NC, class LEFT, class RIGHT>
inline void simt_wgmma_now(const void* what) {
    const SimtProduct<C, NC, LEFT, RIGHT>& p = *(const SimtProduct<C, NC, LEFT, RIGHT>*)what;
    typedef typename simt_mma_wide<A>::type wide;
    const int thread = (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 128);
    const int lane = thread % 32;
    simt_proxy_reads(true);
    for (int half = 0; half < 2; ++half) {
        const int row = thread / 32 * 16 + lane / 4 + 8 * half;
        wide left[STEPS * K];
        simt_left<K, STEPS, A>(p.a, row, half, left);
        for (int i = 0; i < NC; ++i) {
            if (i / 2 % 2 != half) continue;
            const int column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
            wide sum = (wide)p.c[i];
            for (int k = 0; k < STEPS * K; ++k)
                sum += left[k] * (wide)*(const B*)simt_tile_element(p.b, k / K, column, k % K, (int)sizeof(B));
            p.c[i] = (C)sum;
        }
    }
    simt_proxy_reads(false);
}

template <int N, int K, int STEPS, class A, class B, class C, int NC, class LEFT, class RIGHT>
inline void simt_wgmma(C (&c)[NC], const LEFT& a, const RIGHT& b, int line) {
    static_assert(NC == N / 2, "fragments of the tile");
    char mine = 0, all[32];
    simt_warp_gather(0xffffffffu, &mine, 1, all, line);  // no lane reads before all of its warp have come
    const SimtProduct<C, NC, LEFT, RIGHT> product = {c, a, b};
    simt_wgmma_now<N, K, STEPS, A, B, C, NC, LEFT, RIGHT>(&product);
}

template <int N, int K, int STEPS, class A, class B, class C, int NC, class E, int NA, class RIGHT>
inline void simt_wgmma(C (&c)[NC], const E (&a)[NA], const RIGHT& b, int line) {
    static_assert(NC == N / 2 && NA == STEPS * K / 2, "fragments of the tile");
    typedef SimtHeld<E, NA> LEFT;
    const SimtProduct<C, NC, LEFT, RIGHT> product = {c, simt_held(a, line), b};
    simt_wgmma_now<N, K, STEPS, A, B, C, NC, LEFT, RIGHT>(&product);
    simt_warp_sync(0xffffffffu, line);  // no lane changes its registers before all of its warp have read them
}

// In flight up to a wait: a thread reads both tiles, and adds to its accumulator, no sooner than there.
template <int N, int K, int STEPS, class A, class B, class C, int NC, class LEFT, class RIGHT>
inline void simt_wgmma_async(C (&c)[NC], const LEFT& a, const RIGHT& b, int line) {
    static_assert(NC == N / 2, "fragments of the tile");
    char mine = 0, all[32];
    simt_warp_gather(0xffffffffu, &mine, 1, all, line);
    const SimtProduct<C, NC, LEFT, RIGHT> product = {c, a, b};
    static_assert(sizeof product <= 64, "what a product in flight keeps");
    simt_product_issue(simt_wgmma_now<N, K, STEPS, A, B, C, NC, LEFT, RIGHT>, &product, (int)sizeof product, 0);
}

template <int N, int K, int STEPS, class A, class B, class C, int NC, class E, int NA, class RIGHT>
inline void simt_wgmma_async(C (&c)[NC], const E (&a)[NA], const RIGHT& b, int line) {
    static_assert(NC == N / 2 && NA == STEPS * K / 2, "fragments of the tile");
    typedef SimtHeld<E, NA> LEFT;
    const SimtProduct<C, NC, LEFT, RIGHT> product = {c, simt_held(a, line), b};
    static_assert(sizeof product <= 64, "what a product in flight keeps");
    simt_product_issue(simt_wgmma_now<N, K, STEPS, A, B, C, NC, LEFT, RIGHT>, &product, (int)sizeof product, line);
}

// ldmatrix on the CPU device: all lanes tell where their rows begin, then each reads its part of others' rows.
template <int COUNT, bool TRANSPOSED>
inline void simt_load_matrix(unsigned (&to)[COUNT], const void* row, int line) {
    const void* rows[32];
    simt_warp_gather(0xffffffffu, &row, (int)sizeof row, rows, line);
    const int lane = (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
    for (int m = 0; m < COUNT; ++m) {
        if (TRANSPOSED) {
            const unsigned low = ((const unsigned short*)rows[8 * m + 2 * (lane % 4)])[lane / 4];
            to[m] = low | (unsigned)((const unsigned short*)rows[8 * m + 2 * (lane % 4) + 1])[lane / 4] << 16;
        } else {
            to[m] = ((const unsigned*)rows[8 * m + lane / 4])[lane % 4];
        }
    }
}

// stmatrix on the CPU device: each lane writes its part of the rows that other lanes name.
template <int COUNT, bool TRANSPOSED>
inline void simt_store_matrix(void* row, const unsigned (&from)[COUNT], int line) {
    void* rows[32];
    simt_warp_gather(0xffffffffu, &row, (int)sizeof row, rows, line);
    const int lane = (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
    for (int m = 0; m < COUNT; ++m) {
        if (TRANSPOSED) {
            ((unsigned short*)rows[8 * m + 2 * (lane % 4)])[lane / 4] = (unsigned short)from[m];
            ((unsigned short*)rows[8 * m + 2 * (lane % 4) + 1])[lane / 4] = (unsigned short)(from[m] >> 16);
        } else {
            ((unsigned*)rows[8 * m + lane / 4])[lane % 4] = from[m];
        }
    }
}
