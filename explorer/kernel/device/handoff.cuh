// Handoff of partial results: each block of a launch passes values to the block that joins them, without another launch or fence.
// A part is one 64-bit word, written and read by one access: the value and its flag, which is the number of the launch.  A flag
// of this launch says that the value is there; an older one needs no reset.  (So do the flags of Stream-K, Osama et al. 2023,
// and of decoupled look-back, Merrill and Garland 2016.)  A block waits only for blocks with lower numbers, which start before it.

// The flag of this launch: its number, for the blocks that share a counter of launches, which has to start at 0.  The counter is
// loaded early, long before the flag is used, and through the L1 cache: loads of all warps from memory would queue up.
__device__ __forceinline__ unsigned int handoff_flag(unsigned int* launches, [[maybe_unused]] unsigned int parts) {
#if defined(SIMT_HOST)
    return atomicAdd(launches, 0u) / parts + 1;  // there it counts blocks
#else
    unsigned int before;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(before) : "l"(launches));
    return before + 1;
#endif
}

template <class T>
struct handed_off {
    static_assert(sizeof(T) <= 4, "a value and its flag are one word");
    struct part {
        unsigned long long* word;
        unsigned int flag;

        __device__ __forceinline__ void operator=(T value) const {
            unsigned int bits = 0;
            memcpy(&bits, &value, sizeof(T));
            const unsigned long long both = (unsigned long long)flag << 32 | bits;
#if defined(SIMT_HOST)
            atomicExch(word, both);
#else
            *(volatile unsigned long long*)word = both;
#endif
        }

        // Waits until the part is there.
        __device__ __forceinline__ T take() const {
            unsigned long long both;
#if defined(SIMT_HOST)
            both = atomicAdd(word, 0ull);
            if (both >> 32 != flag) __trap();  // blocks run one after the other: nobody will write it
#else
            do both = *(const volatile unsigned long long*)word;
            while (both >> 32 != flag);
#endif
            const unsigned int bits = (unsigned int)both;
            T value;
            memcpy(&value, &bits, sizeof(T));
            return value;
        }
    };
    unsigned long long* words;
    unsigned int flag;

    __device__ __forceinline__ part operator[](long long i) const { return {words + i, flag}; }
};

// Whether this block joins `parts` blocks' parts: the chosen one of them.  All threads of the block call it and get the answer.
__device__ __forceinline__ bool handoff_joins([[maybe_unused]] unsigned int* launches, [[maybe_unused]] unsigned int parts,
                                              [[maybe_unused]] bool chosen) {
#if defined(SIMT_HOST)
    __syncthreads();  // blocks run in any order, one after the other: the last of them can join
    bool last = false;
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) last = atomicAdd(launches, 1u) % parts == parts - 1;
    return __syncthreads_or(last);
#else
    if (chosen) __syncthreads();  // the block has done its own part
    return chosen;
#endif
}

// The block that joined counts the launch, when all of its threads have what they waited for.
__device__ __forceinline__ void handoff_end([[maybe_unused]] unsigned int* launches, [[maybe_unused]] unsigned int flag) {
#if !defined(SIMT_HOST)
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) *launches = flag;
#endif
}
