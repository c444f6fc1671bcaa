// A factor of a warpgroup's product in shared memory: rows of SWIZZLE bytes, eight of them to a pattern; with TRANSPOSED the depth
// runs across the rows.  PANEL bytes further is the next panel, STEP bytes further the next instruction along the depth.
template <int SWIZZLE, bool TRANSPOSED, int PANEL, int STEP>
struct shared_tile {
    static constexpr int swizzle = SWIZZLE, panel = PANEL, step = STEP;
    static constexpr bool transposed = TRANSPOSED;
    const void* first;

    __device__ __forceinline__ explicit shared_tile(const void* at) : first(at) {}

#if !defined(SIMT_HOST)
    // The matrix descriptor of one instruction (PTX ISA, "Matrix Descriptor Format").
    __device__ __forceinline__ unsigned long long descriptor(int number) const {
        const unsigned at = (unsigned)__cvta_generic_to_shared(first) + number * STEP;
        constexpr unsigned long long mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : 3;
        return (at & 0x3FFFFu) >> 4 | (unsigned long long)(PANEL >> 4) << 16 | (unsigned long long)(8 * SWIZZLE >> 4) << 32 | mode << 62;
    }
#endif
};
