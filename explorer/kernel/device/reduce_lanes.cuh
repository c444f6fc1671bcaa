// COUNT reductions at once (reduce.cuh comes first): every thread brings COUNT values and gets its group's COUNT results.
// Two barriers in all, however many values; scratch is reduce_lanes_scratch() elements that nobody uses any more.
template <int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT>
constexpr __host__ __device__ int reduce_lanes_scratch() {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    return plan::apart == 1 ? 0 : plan::apart * plan::groups * COUNT;
}

// Where a thread stands among those that lanes of warps leave apart: the number of its partial results in its group, its group,
// and whether it brings them.
struct reduce_lanes_place { int member, group; bool writer; };

// The lanes of every warp combined, for each value.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT, class T>
__device__ __forceinline__ reduce_lanes_place reduce_lanes_warps(T (&value)[COUNT]) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    const int id = thread_number<X, Y, Z>();
    const int lanes = plan::threads % 32 == 0 || id / 32 < plan::threads / 32 ? 32 : plan::threads % 32;  // of this warp
    const unsigned mask = 0xffffffffu >> (32 - lanes);
    const int x = Y * Z == 1 ? id : id % X, y = Y == 1 ? 0 : Z == 1 ? id / X : id / X % Y, z = Z == 1 ? 0 : id / (X * Y);
    constexpr int steps_x = RX ? 1 << plan::bits_x : 1, steps_y = RY ? 1 << plan::bits_y : 1, steps_z = RZ ? 1 << plan::bits_z : 1;
#pragma unroll
    for (int v = 0; v < COUNT; ++v) {
#pragma unroll
        for (int step = steps_x / 2; step > 0; step /= 2)
            value[v] = Op::apply(value[v], (T)__shfl_xor_sync(mask, value[v], step));
#pragma unroll
        for (int step = steps_y / 2; step > 0; step /= 2)
            value[v] = Op::apply(value[v], (T)__shfl_xor_sync(mask, value[v], step * X));
#pragma unroll
        for (int step = steps_z / 2; step > 0; step /= 2)
            value[v] = Op::apply(value[v], (T)__shfl_xor_sync(mask, value[v], step * X * Y));
    }
    reduce_lanes_place at = {0, 0, x % steps_x == 0 && y % steps_y == 0 && z % steps_z == 0};
    if constexpr (RZ) at.member = z / steps_z;
    else at.group = z;
    if constexpr (RY) at.member = at.member * (Y / steps_y) + y / steps_y;
    else at.group = at.group * Y + y;
    if constexpr (RX) at.member = at.member * (X / steps_x) + x / steps_x;
    else at.group = at.group * X + x;
    return at;
}

template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT, class T>
__device__ void block_reduce_lanes(T (&value)[COUNT], T* scratch) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    const reduce_lanes_place at = reduce_lanes_warps<Op, X, Y, Z, RX, RY, RZ>(value);
    if constexpr (plan::apart > 1) {
        constexpr int cells = plan::groups * COUNT;
        if (at.writer) {
#pragma unroll
            for (int v = 0; v < COUNT; ++v) scratch[at.member * cells + v * plan::groups + at.group] = value[v];
        }
        __syncthreads();
        for (int cell = thread_number<X, Y, Z>(); cell < cells; cell += plan::threads) {  // nobody else touches the cell
            if constexpr (plan::apart <= 32) scratch[cell] = reduce_tree<Op, plan::apart>(scratch + cell, cells);
            else
                for (int other = 1; other < plan::apart; ++other)
                    scratch[cell] = Op::apply(scratch[cell], scratch[other * cells + cell]);
        }
        __syncthreads();
#pragma unroll
        for (int v = 0; v < COUNT; ++v) value[v] = scratch[v * plan::groups + at.group];
    }
}

// The same where only the first thread of each group needs the results: a few partial results it reads itself.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT, class T>
__device__ void block_reduce_lanes_first(T (&value)[COUNT], T* scratch) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    if constexpr (plan::apart * COUNT > 32) block_reduce_lanes<Op, X, Y, Z, RX, RY, RZ>(value, scratch);
    else {
        const reduce_lanes_place at = reduce_lanes_warps<Op, X, Y, Z, RX, RY, RZ>(value);
        if constexpr (plan::apart > 1) {
            constexpr int cells = plan::groups * COUNT;
            if (at.writer && at.member > 0) {
#pragma unroll
                for (int v = 0; v < COUNT; ++v) scratch[at.member * cells + v * plan::groups + at.group] = value[v];
            }
            __syncthreads();
            if (at.writer && at.member == 0) {
#pragma unroll
                for (int v = 0; v < COUNT; ++v) {
#pragma unroll
                    for (int other = 1; other < plan::apart; ++other)
                        value[v] = Op::apply(value[v], scratch[other * cells + v * plan::groups + at.group]);
                }
            }
        }
    }
}
