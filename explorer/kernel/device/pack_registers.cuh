// A fence against the compiler: values narrower than a register are packed into whole ones here.  Where a branch's end or a barrier
// is between their computation and a product, NVRTC 13.5 unpacks them (PRMT), and needs a register for each until it packs them again.
template <class T, int N>
__device__ __forceinline__ void pack_registers(T (&all)[N]) {
#if !defined(SIMT_HOST)
    constexpr int lanes = sizeof(unsigned) / sizeof(T);
    static_assert(N % lanes == 0, "whole registers");
    #pragma unroll
    for (int i = 0; i < N; i += lanes) {
        unsigned word;
        memcpy(&word, &all[i], sizeof word);
        asm volatile("" : "+r"(word));
        memcpy(&all[i], &word, sizeof word);
    }
#endif
}
