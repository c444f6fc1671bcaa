// A factor of a warpgroup's product in shared memory: rows of SWIZZLE bytes, eight of them to a pattern; with TRANSPOSED the depth
// runs across the rows.  PANEL bytes further is the next panel, STEP bytes further the next instruction along the depth.
template <int SWIZZLE, bool TRANSPOSED, int PANEL, int STEP>
struct shared_tile {
    static constexpr int swizzle = SWIZZLE, panel = PANEL, step = STEP;
    static constexpr bool transposed = TRANSPOSED;
    const void* first;

    __device__ __forceinline__ explicit shared_tile(const void* at) : first(at) {}

#if !defined(SIMT_HOST)
    // The matrix descriptor of one instruction (PTX ISA, "Matrix Descriptor Format").  It has 18 bits of an address in shared memory;
    // above them is the block's number in its cluster.  Those of a tile's instructions differ in the lower half alone, by a constant.
    __device__ __forceinline__ unsigned long long descriptor(int number) const {
        static_assert(STEP % 16 == 0 && PANEL % 16 == 0, "in units of 16 bytes");
        constexpr unsigned mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : 3, high = 8 * SWIZZLE >> 4 | mode << 30;
        const unsigned low = ((unsigned)__cvta_generic_to_shared(first) & 0x3FFFFu) >> 4 | (PANEL >> 4) << 16;
        return (unsigned long long)high << 32 | (low + number * (STEP >> 4));
    }
#endif
};
