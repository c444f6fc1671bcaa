// A fence against the compiler: values narrower than a register are packed into whole ones here.  Where a branch's end or a barrier
// is between their computation and a product, NVRTC 13.5 unpacks them (PRMT), and needs a register for each until it packs them again.
#if defined(SIMT_HOST)
template <class T>
__device__ __forceinline__ void pack_registers(T&) {}
#else
template <class T, int N>
__device__ __forceinline__ void pack_registers(T (&all)[N]) {
    constexpr int lanes = sizeof(unsigned) / sizeof(T);
    static_assert(N % lanes == 0, "whole registers");
    #pragma unroll
    for (int i = 0; i < N; i += lanes) {
        unsigned word;
        memcpy(&word, &all[i], sizeof word);
        asm volatile("" : "+r"(word));
        memcpy(&all[i], &word, sizeof word);
    }
}
template <class T, int M, int N>
__device__ __forceinline__ void pack_registers(T (&all)[M][N]) {
    #pragma unroll
    for (int i = 0; i < M; ++i) pack_registers(all[i]);
}
#endif
