// Parts of a result that the blocks of a launch hand to the block that joins them, without another launch and without a fence.
// A part is one 64-bit word, written and read by one access: the value, and the number of the launch it is of, its turn.  By the
// turn a reader knows that the part is there, and nothing has to be set back.  (So do the flags of Stream-K, Osama et al. 2023,
// and of decoupled look-back, Merrill and Garland 2016.)  A block waits only for blocks with lower numbers, which start before it.

// The number of this launch, for the blocks that share a counter of launches; the counter has to start at 0.  It is loaded where
// it stands, long before it is used, and by the multiprocessor's cache: all warps of the grid asking the memory would queue up.
__device__ __forceinline__ unsigned int signal_turn(unsigned int* turns, [[maybe_unused]] unsigned int parts) {
#if defined(SIMT_HOST)
    return atomicAdd(turns, 0u) / parts + 1;  // there it counts blocks
#else
    unsigned int before;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(before) : "l"(turns));
    return before + 1;
#endif
}

template <class T>
struct signalled {
    static_assert(sizeof(T) <= 4, "a value and its turn are one word");
    struct part {
        unsigned long long* word;
        unsigned int turn;

        __device__ __forceinline__ void operator=(T value) const {
            unsigned int bits = 0;
            memcpy(&bits, &value, sizeof(T));
            const unsigned long long both = (unsigned long long)turn << 32 | bits;
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
            if (both >> 32 != turn) __trap();  // blocks run one after the other: nobody will write it
#else
            do both = *(const volatile unsigned long long*)word;
            while (both >> 32 != turn);
#endif
            const unsigned int bits = (unsigned int)both;
            T value;
            memcpy(&value, &bits, sizeof(T));
            return value;
        }
    };
    unsigned long long* words;
    unsigned int turn;

    __device__ __forceinline__ part operator[](long long i) const { return {words + i, turn}; }
};

// Whether this block joins `parts` blocks' parts: the chosen one of them.  All threads of the block call it and get the answer.
__device__ __forceinline__ bool signal_joins([[maybe_unused]] unsigned int* turns, [[maybe_unused]] unsigned int parts,
                                             [[maybe_unused]] bool chosen) {
#if defined(SIMT_HOST)
    __syncthreads();  // blocks run in any order, one after the other: the last of them can join
    bool last = false;
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) last = atomicAdd(turns, 1u) % parts == parts - 1;
    return __syncthreads_or(last);
#else
    if (chosen) __syncthreads();  // the block has done its own part
    return chosen;
#endif
}

// The block that joined counts the launch, when all of its threads have what they waited for.
__device__ __forceinline__ void signal_end([[maybe_unused]] unsigned int* turns, [[maybe_unused]] unsigned int turn) {
#if !defined(SIMT_HOST)
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) *turns = turn;
#endif
}
