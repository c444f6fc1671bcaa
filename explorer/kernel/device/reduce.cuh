// Reductions over the lanes of a warp and the threads of a block, in a fixed order: equal inputs give equal bits.

struct reduce_sum { template <class T> static __device__ T apply(T a, T b) { return a + b; } };
struct reduce_prod { template <class T> static __device__ T apply(T a, T b) { return a * b; } };
struct reduce_and { template <class T> static __device__ T apply(T a, T b) { return (T)(a && b); } };
struct reduce_or { template <class T> static __device__ T apply(T a, T b) { return (T)(a || b); } };
struct reduce_xor { template <class T> static __device__ T apply(T a, T b) { return (T)(!a != !b); } };
struct reduce_bitand { template <class T> static __device__ T apply(T a, T b) { return a & b; } };
struct reduce_bitor { template <class T> static __device__ T apply(T a, T b) { return a | b; } };
struct reduce_bitxor { template <class T> static __device__ T apply(T a, T b) { return a ^ b; } };
struct reduce_max {
    static __device__ float apply(float a, float b) { return max_nan(a, b); }
    static __device__ double apply(double a, double b) { return max_nan(a, b); }
    template <class T> static __device__ T apply(T a, T b) { return a > b ? a : b; }
};
struct reduce_min {
    static __device__ float apply(float a, float b) { return min_nan(a, b); }
    static __device__ double apply(double a, double b) { return min_nan(a, b); }
    template <class T> static __device__ T apply(T a, T b) { return a < b ? a : b; }
};

// The number of the calling thread in its block of X * Y * Z threads.
template <int X, int Y, int Z>
__device__ __forceinline__ int thread_number() {
    int id = threadIdx.x;
    if constexpr (Y > 1) id += X * threadIdx.y;
    if constexpr (Z > 1) id += X * Y * threadIdx.z;
    return id;
}

// Over aligned groups of WIDTH lanes (a power of two, at most 32); every lane gets its group's result.
// `mask` names the lanes that call: whole groups.
template <class Op, int WIDTH, class T>
__device__ T warp_reduce(T value, unsigned mask = 0xffffffffu) {
    static_assert(WIDTH >= 1 && WIDTH <= 32 && (WIDTH & (WIDTH - 1)) == 0, "a power of two, at most 32");
#pragma unroll
    for (int lanes = WIDTH / 2; lanes > 0; lanes /= 2) value = Op::apply(value, (T)__shfl_xor_sync(mask, value, lanes));
    return value;
}

// log2 of the largest power of two that divides `extent`, at most `most`.
constexpr __host__ __device__ int reduce_bits(int extent, int most) {
    int bits = 0;
    while (bits < most && (extent >> bits & 1) == 0) ++bits;
    return bits;
}

// How a block of X * Y * Z threads (id = x + X * (y + Y * z)) reduces over the axes named by RX, RY, RZ.
// Lanes that differ only in the low bits of reduced axes are combined by shuffles.  What remains of a group, `members`
// partial results, meets in shared memory: scratch elements = members == 1 ? 0 : members * groups.
// A block that is one group and would leave more partials than it has warps uses a guarded tree of shuffles per warp instead.
template <int X, int Y, int Z, bool RX, bool RY, bool RZ>
struct reduce_plan {
    static constexpr int threads = X * Y * Z, warps = (threads + 31) / 32;
    static constexpr int bits_x = reduce_bits(X, 5);
    static constexpr int bits_y = X == 1 << bits_x ? reduce_bits(Y, 5 - bits_x) : 0;
    static constexpr int bits_z = X == 1 << bits_x && Y == 1 << bits_y ? reduce_bits(Z, 5 - bits_x - bits_y) : 0;
    static constexpr int apart = (RX ? X >> bits_x : 1) * (RY ? Y >> bits_y : 1) * (RZ ? Z >> bits_z : 1);
    static constexpr int groups = (RX ? 1 : X) * (RY ? 1 : Y) * (RZ ? 1 : Z);
    static constexpr bool guarded = groups == 1 && apart > warps;
    static constexpr int members = guarded ? warps : apart;
    static constexpr int scratch = members == 1 ? 0 : members * groups;
    // The partials of the only group, one from each of so many warps, are as many as lanes that every warp has.
    static constexpr bool even = groups == 1 && threads % 32 == 0 && members <= 32 && (members & (members - 1)) == 0;
};

template <int X, int Y, int Z, bool RX, bool RY, bool RZ>
constexpr __host__ __device__ int block_reduce_scratch() { return reduce_plan<X, Y, Z, RX, RY, RZ>::scratch; }

// COUNT values, `stride` apart, combined as a balanced tree.
template <class Op, int COUNT, class T>
__device__ __forceinline__ T reduce_tree(const T* values, int stride) {
    if constexpr (COUNT == 1) return values[0];
    else
        return Op::apply(reduce_tree<Op, (COUNT + 1) / 2>(values, stride),
                         reduce_tree<Op, COUNT / 2>(values + (COUNT + 1) / 2 * stride, stride));
}

// The partials of `members` members in shared memory, folded in halves; element (member, group) at member * groups + group.
template <class Op, int MEMBERS, int GROUPS, class T>
__device__ T reduce_fold(T* scratch, int member, int group, bool writer) {
    int span = 1;
    while (span < MEMBERS) span *= 2;
    for (span /= 2; span > 0; span /= 2) {
        if (writer && member < span && member + span < MEMBERS) {
            T* mine = scratch + member * GROUPS + group;
            *mine = Op::apply(*mine, mine[span * GROUPS]);
        }
        __syncthreads();
    }
    return scratch[group];
}

// The smallest number whose square is at least `count`.
constexpr __host__ __device__ int reduce_root(int count) {
    int root = 1;
    while (root * root < count) ++root;
    return root;
}

// The same in two steps, where halves would take many: each of the first members combines a share, every thread the shares.
template <class Op, int MEMBERS, int GROUPS, class T>
__device__ T reduce_shares(T* scratch, int member, int group, bool writer) {
    constexpr int shares = reduce_root(MEMBERS);
    if (writer && member < shares) {
        T share = scratch[member * GROUPS + group];
#pragma unroll
        for (int other = shares; other < MEMBERS; other += shares)
            if (member + other < MEMBERS) share = Op::apply(share, scratch[(member + other) * GROUPS + group]);
        scratch[member * GROUPS + group] = share;
    }
    __syncthreads();
    return reduce_tree<Op, shares>(scratch + group, GROUPS);
}

// Where a thread's partial result stands after the shuffles: its group, its number among the group's partials, whether it is the
// one that brings it to shared memory, and whether it is the group's first thread (0 on all reduced axes).
struct reduce_place { int member, group; bool writer, first; };

// The lanes of every warp combined, as far as they belong to one group.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, class T>
__device__ __forceinline__ T reduce_warps(T value, reduce_place& at) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    const int id = thread_number<X, Y, Z>(), lane = id % 32;
    const int lanes = plan::threads % 32 == 0 || id / 32 < plan::threads / 32 ? 32 : plan::threads % 32;  // of this warp
    const unsigned mask = 0xffffffffu >> (32 - lanes);
    const int x = Y * Z == 1 ? id : id % X, y = Y == 1 ? 0 : Z == 1 ? id / X : id / X % Y, z = Z == 1 ? 0 : id / (X * Y);
    at = {0, 0, true, (!RX || x == 0) && (!RY || y == 0) && (!RZ || z == 0)};
    if constexpr (plan::guarded) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            const T other = (T)__shfl_down_sync(mask, value, step);
            if (lane + step < lanes) value = Op::apply(value, other);
        }
        at.member = id / 32;
        at.writer = lane == 0;
    } else {
        if constexpr (RX) {
#pragma unroll
            for (int step = (1 << plan::bits_x) / 2; step > 0; step /= 2)
                value = Op::apply(value, (T)__shfl_xor_sync(mask, value, step));
            at.writer = at.writer && x % (1 << plan::bits_x) == 0;
        }
        if constexpr (RY) {
#pragma unroll
            for (int step = (1 << plan::bits_y) / 2; step > 0; step /= 2)
                value = Op::apply(value, (T)__shfl_xor_sync(mask, value, step * X));
            at.writer = at.writer && y % (1 << plan::bits_y) == 0;
        }
        if constexpr (RZ) {
#pragma unroll
            for (int step = (1 << plan::bits_z) / 2; step > 0; step /= 2)
                value = Op::apply(value, (T)__shfl_xor_sync(mask, value, step * X * Y));
            at.writer = at.writer && z % (1 << plan::bits_z) == 0;
            at.member = z >> plan::bits_z;
        } else at.group = z;
        if constexpr (RY) at.member = at.member * (Y >> plan::bits_y) + (y >> plan::bits_y);
        else at.group = at.group * Y + y;
        if constexpr (RX) at.member = at.member * (X >> plan::bits_x) + (x >> plan::bits_x);
        else at.group = at.group * X + x;
    }
    return value;
}

// Every thread of the block calls it; every thread gets the result of its group (the threads with equal coordinates on the
// axes that are not reduced).  `scratch` is shared memory of block_reduce_scratch() elements that nobody uses any more; with
// none, it is not touched and there is no barrier.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, class T>
__device__ T block_reduce(T value, T* scratch) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    reduce_place at;
    value = reduce_warps<Op, X, Y, Z, RX, RY, RZ>(value, at);
    if constexpr (plan::members == 1) {
        if constexpr (plan::guarded) return (T)__shfl_sync(0xffffffffu >> (32 - plan::threads), value, 0);
        else return value;
    } else {
        if (at.writer) scratch[at.member * plan::groups + at.group] = value;
        __syncthreads();
        if constexpr (plan::even) return warp_reduce<Op, plan::members>(scratch[(unsigned)thread_number<X, Y, Z>() % plan::members]);
        else if constexpr (plan::members <= 16) return reduce_tree<Op, plan::members>(scratch + at.group, plan::groups);
        else return reduce_shares<Op, plan::members, plan::groups>(scratch, at.member, at.group, at.writer);
    }
}

template <int X, int Y, int Z, bool RX, bool RY, bool RZ>
constexpr __host__ __device__ int block_reduce_first_scratch() {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    return plan::groups == 1 && plan::threads > 32 ? plan::threads : plan::scratch;
}

// The same where only the first thread of each group needs the result; what the others get means nothing.  One group of more
// than a warp leaves all values in shared memory (block_reduce_first_scratch() elements): each lane of the first warp adds those
// of its like in other warps, the first lane adds the lanes' results.  That is quicker than ten shuffles one after the other.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, class T>
__device__ T block_reduce_first(T value, T* scratch) {
    using plan = reduce_plan<X, Y, Z, RX, RY, RZ>;
    if constexpr (plan::groups == 1 && plan::threads > 32) {
        constexpr int warps = plan::threads / 32, rest = plan::threads % 32;
        const int id = thread_number<X, Y, Z>();
        scratch[id] = value;
        __syncthreads();
        if (id < 32) {
            value = reduce_tree<Op, warps>(scratch + id, 32);
            if (rest > 0 && id < rest) value = Op::apply(value, scratch[32 * warps + id]);
            scratch[id] = value;
            __syncwarp();
            if (id == 0) value = reduce_tree<Op, 32>(scratch, 1);
        }
        return value;
    } else {
        reduce_place at;
        value = reduce_warps<Op, X, Y, Z, RX, RY, RZ>(value, at);
        if constexpr (plan::members > 1) {
            if (at.writer) scratch[at.member * plan::groups + at.group] = value;
            __syncthreads();
            if constexpr (plan::members <= 16) {
                if (at.first) value = reduce_tree<Op, plan::members>(scratch + at.group, plan::groups);
            } else value = reduce_shares<Op, plan::members, plan::groups>(scratch, at.member, at.group, at.writer);
        }
        return value;
    }
}

// block_reduce by shared memory alone, as textbooks show it; scratch elements = X * Y * Z.
template <class Op, int X, int Y, int Z, bool RX, bool RY, bool RZ, class T>
__device__ T block_reduce_shared(T value, T* scratch) {
    constexpr int groups = (RX ? 1 : X) * (RY ? 1 : Y) * (RZ ? 1 : Z), members = X * Y * Z / groups;
    const int id = thread_number<X, Y, Z>();
    const int x = id % X, y = id / X % Y, z = id / (X * Y);
    const int member = ((RZ ? z : 0) * (RY ? Y : 1) + (RY ? y : 0)) * (RX ? X : 1) + (RX ? x : 0);
    const int group = ((RZ ? 0 : z) * (RY ? 1 : Y) + (RY ? 0 : y)) * (RX ? 1 : X) + (RX ? 0 : x);
    scratch[member * groups + group] = value;
    __syncthreads();
    return reduce_fold<Op, members, groups>(scratch, member, group, true);
}
