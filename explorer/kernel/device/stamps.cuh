// Stamps: chosen threads write down when they begin to do what.  For instrumented copies of kernels.

// Where a thread writes: `left` stamps fit; far below 0 it is none of the chosen ones, and nothing is written.
struct stamp_log {
    unsigned long long* next;
    int left;
};

constexpr int STAMP_HEAD = 3, STAMP_NOBODY = -(1 << 30);  // pairs of words before the stamps; and of `left`

// Nanoseconds of the GPU's clock, the cycles of this multiprocessor's, and its number.
__device__ __forceinline__ unsigned long long stamp_ns() {
#if defined(SIMT_HOST)
    return simt_clock();
#else
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
#endif
}

__device__ __forceinline__ unsigned long long stamp_cycles() {
#if defined(SIMT_HOST)
    return simt_clock();
#else
    unsigned long long cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
#endif
}

__device__ __forceinline__ unsigned int stamp_multiprocessor() {
#if defined(SIMT_HOST)
    return 0;
#else
    unsigned int number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
#endif
}

__device__ __forceinline__ int stamp_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

__device__ __forceinline__ int stamp_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// The number of this thread's log: of every EACH-th of the first THREADS, counted from the first one's.
template <int EACH, int THREADS>
__device__ __forceinline__ int stamp_number(int first) {
    const int thread = stamp_thread();
    return first >= 0 && thread % EACH == 0 && thread < THREADS ? first + thread / EACH : -1;
}

// The log with this number, of `ROOM` stamps; no log where that is below 0.
template <int ROOM>
__device__ __forceinline__ stamp_log stamp_begin(unsigned long long* all, int number) {
    stamp_log log = {all, STAMP_NOBODY};
    if (number >= 0) {
        log.next = all + 2LL * (STAMP_HEAD + ROOM) * number;
        log.left = ROOM;
        log.next[0] = stamp_ns();
        log.next[1] = stamp_cycles();
        log.next[4] = stamp_multiprocessor();
        log.next += 2 * STAMP_HEAD;
    }
    return log;
}

// From now on the thread does what the mark says, in this iteration.  No branch: products in flight stay so.
__device__ __forceinline__ void stamp_put(stamp_log& log, int mark, int at) {
    const unsigned long long what = (unsigned long long)(unsigned)mark << 32 | (unsigned)at;
#if defined(SIMT_HOST)
    if (log.left > 0) log.next[0] = stamp_cycles(), log.next[1] = what;
#else
    asm volatile(
        "{\n.reg .pred room;\n.reg .b64 cycles;\nsetp.gt.s32 room, %1, 0;\nmov.u64 cycles, %%clock64;\n"
        "@room st.global.v2.b64 [%0], {cycles, %2};\n}" ::"l"(log.next), "r"(log.left), "l"(what) : "memory");
#endif
    if (log.left > 0) log.next += 2;
    --log.left;
}

// The thread is done; its log's head gets the end, and how many stamps there were, those without room too.
template <int ROOM>
__device__ __forceinline__ void stamp_end(stamp_log& log) {
    stamp_put(log, -1, 0);
    if (log.left >= STAMP_NOBODY / 2) {
        const int count = ROOM - log.left;
        unsigned long long* head = log.next - 2 * ((count < ROOM ? count : ROOM) + STAMP_HEAD);
        head[2] = stamp_ns();
        head[3] = stamp_cycles();
        head[5] = count;
    }
}
