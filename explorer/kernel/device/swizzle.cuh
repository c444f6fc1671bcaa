// Where element `place` of a shared array lies whose units of 16 bytes change places within rows of MODE bytes, 32, 64 or 128: the
// number of a unit is xor-ed with that of the 128-byte line (PTX ISA, "Swizzling Modes").  The array begins at a multiple of 1024.
template <int MODE, class T>
__device__ __forceinline__ constexpr int swizzled(int place) {
    static_assert(MODE == 32 || MODE == 64 || MODE == 128, "the patterns of tensor maps");
    constexpr unsigned line = 128 / sizeof(T), unit = 16 / sizeof(T);
    return (int)((unsigned)place ^ (unsigned)place / line % (MODE / 16) * unit);
}
