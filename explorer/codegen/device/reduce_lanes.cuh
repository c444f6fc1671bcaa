// COUNT reductions at once (reduce.cuh comes first): every thread brings COUNT values and gets its group's COUNT results.
// Two barriers in all, however many values; scratch is reduce_lanes_scratch() elements that nobody uses any more.
template <int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT>
constexpr __host__ __device__ int reduce_lanes_scratch() {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    return plan::apart == 1 ? 0 : plan::apart * plan::groups * COUNT;
}

template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, int COUNT, class T>
__device__ void block_reduce_lanes(T (&value)[COUNT], T* scratch) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    const int id = threadIdx.x + X * (threadIdx.y + Y * threadIdx.z);
    const int lanes = id / 32 < plan::threads / 32 ? 32 : plan::threads % 32;  // of this warp
    const unsigned mask = 0xffffffffu >> (32 - lanes);
    const int x = id % X, y = id / X % Y, z = id / (X * Y);
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
    if constexpr (plan::apart > 1) {
        const bool writer = x % steps_x == 0 && y % steps_y == 0 && z % steps_z == 0;
        int member = 0, group = 0;
        if constexpr (RZ) member = z / steps_z;
        else group = z;
        if constexpr (RY) member = member * (Y / steps_y) + y / steps_y;
        else group = group * Y + y;
        if constexpr (RX) member = member * (X / steps_x) + x / steps_x;
        else group = group * X + x;
        constexpr int cells = plan::groups * COUNT;
        if (writer) {
#pragma unroll
            for (int v = 0; v < COUNT; ++v) scratch[member * cells + v * plan::groups + group] = value[v];
        }
        __syncthreads();
        for (int cell = id; cell < cells; cell += plan::threads) {  // nobody else touches the cell
            if constexpr (plan::apart <= 32) scratch[cell] = reduce_tree<Op, plan::apart>(scratch + cell, cells);
            else
                for (int other = 1; other < plan::apart; ++other)
                    scratch[cell] = Op::apply(scratch[cell], scratch[other * cells + cell]);
        }
        __syncthreads();
#pragma unroll
        for (int v = 0; v < COUNT; ++v) value[v] = scratch[v * plan::groups + group];
    }
}
