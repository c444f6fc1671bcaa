// simt_warp.h: warp-wide functions.  Only __syncwarp orders memory; a shuffle or a vote exchanges registers and nothing else.
#pragma once

inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { simt_warp_sync(mask, line); }
inline unsigned __activemask() { return simt_active_mask(); }
inline unsigned __ballot_sync(unsigned mask, int p, int line = __builtin_LINE()) { return simt_warp_vote(mask, p != 0, line); }
inline int __any_sync(unsigned mask, int p, int line = __builtin_LINE()) { return simt_warp_vote(mask, p != 0, line) != 0; }
inline int __all_sync(unsigned mask, int p, int line = __builtin_LINE()) { return simt_warp_vote(mask, p == 0, line) == 0; }

// The value travels as an integer of its size: an integer narrower than int is promoted first, as CUDA's overloads do.
#define SIMT_SHUFFLE(name, how, argument)                                                                            \
    template <class T>                                                                                               \
    inline auto name(unsigned mask, T v, argument a, int width = 32, int line = __builtin_LINE())->decltype(+v) {    \
        decltype(+v) value = v;                                                                                      \
        simt_warp_exchange(mask, how, (int)a, width, &value, (int)sizeof value, line);                               \
        return value;                                                                                                \
    }
SIMT_SHUFFLE(__shfl_sync, 0, int)
SIMT_SHUFFLE(__shfl_up_sync, 1, unsigned)
SIMT_SHUFFLE(__shfl_down_sync, 2, unsigned)
SIMT_SHUFFLE(__shfl_xor_sync, 3, int)
#undef SIMT_SHUFFLE

template <class T, class F>
inline T simt_warp_fold(unsigned mask, T v, F combine, int line) {
    const unsigned lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
    T total = v;
    for (unsigned other = 0; other < 32; ++other) {
        if (!(mask >> other & 1)) continue;
        T theirs = v;
        simt_warp_exchange(mask, 0, (int)other, 32, &theirs, (int)sizeof theirs, line);
        if (other != lane) total = combine(total, theirs);
    }
    return total;
}
#define SIMT_WARP_REDUCE(name, T, expression)                                                     \
    inline T name(unsigned mask, T v, int line = __builtin_LINE()) {                              \
        return simt_warp_fold(mask, v, [](T a, T b) -> T { return expression; }, line);           \
    }
SIMT_WARP_REDUCE(__reduce_add_sync, int, a + b)
SIMT_WARP_REDUCE(__reduce_min_sync, int, a < b ? a : b)
SIMT_WARP_REDUCE(__reduce_max_sync, int, a > b ? a : b)
SIMT_WARP_REDUCE(__reduce_add_sync, unsigned, a + b)
SIMT_WARP_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
SIMT_WARP_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
SIMT_WARP_REDUCE(__reduce_and_sync, unsigned, a & b)
SIMT_WARP_REDUCE(__reduce_or_sync, unsigned, a | b)
SIMT_WARP_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef SIMT_WARP_REDUCE
