// scheduler.cpp: a block's threads as fibers, its barrier and its warps.
//
// A fiber runs one thread after another until one blocks; only threads that block keep a stack.  Fibers of a block stay on
// one operating-system thread.  The checked build permutes threads at each round (order_kind), the fast build never does.
#include "runtime.h"
#include "bulk.h"
#include "fiber.h"
#include <string.h>
#include <sys/mman.h>

#if SIMT_CHECKED
#define SIMT_LOCAL
#else
#define SIMT_LOCAL __thread
#endif
extern "C" {  // what the text knows as constants
SIMT_LOCAL simt::Index threadIdx, blockIdx, blockDim, gridDim;
}

namespace simt {

thread_local Worker* worker;
char* stack_arena;
size_t stack_arena_bytes;
int seed_in_progress;

uint64_t next_random(Worker& w) {  // xorshift64 (Marsaglia 2003)
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return w.random;
}

void shuffle(Worker& w, uint16_t* order, unsigned count) {
    for (unsigned i = count; i > 1; --i) {
        const unsigned j = (unsigned)(next_random(w) % i);
        const uint16_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

void prepare_worker(Worker& w) {
    memset((void*)&w, 0, sizeof w);
    w.random = 0x9E3779B97F4A7C15ull;
    const size_t bytes = (size_t)MAX_THREADS * STACK_BYTES;
    void* arena = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) fault("memory", "bytes=%zu", bytes);
    w.stacks = (char*)arena;
    stack_arena = w.stacks, stack_arena_bytes = bytes;
}

static void enter(Worker& w, Thread& t) {
    w.current = &t;
    threadIdx = t.index;
}

// Wait: let another thread go on.  In order, that is mostly the next one, straight from fiber to fiber.
static void leave(Worker& w) {
    Thread* self = w.current;
#if !SIMT_CHECKED
    Thread* next = self + 1 == w.threads + w.count ? w.threads : self + 1;
    if (w.next_unstarted == w.count && next->state == READY) {
        enter(w, *next);
        switch_stack(&self->stack_pointer, next->stack_pointer);
        return;
    }
#endif
    switch_stack(&self->stack_pointer, w.scheduler_stack_pointer);
}

static void try_warp(Worker& w, unsigned warp);

static void check_exit_against_barrier(Worker& w) {
    if (w.waiting_at_barrier && w.done && w.waiting_at_barrier + w.done == w.count) {
        unsigned ended = 0;
        while (w.threads[ended].state != DONE) ++ended;
        fault("barrier-divergence", "line=%d\tfirst=%u\tended=%u\twaiting=%u\tended_count=%u", w.barrier_line, w.barrier_first,
              ended, w.waiting_at_barrier, w.done);
    }
}

static void finish(Worker& w, Thread& t) {
    const unsigned id = (unsigned)(&t - w.threads), warp = id / WARP;
    t.state = DONE;
    ++w.done;
    w.warp_live[warp] &= ~(1u << id % WARP);
    if (w.warp_waiting[warp]) try_warp(w, warp);
    check_exit_against_barrier(w);
}

// The body of every fiber: start threads, one after another, until none is left; a thread that blocks keeps this fiber.
void fiber_body() {
    Fiber* self = worker->starting;
    for (;;) {
        Worker& w = *worker;
        while (w.next_unstarted < w.count) {
            Thread& t = w.threads[w.order[w.next_unstarted++]];
            t.state = READY;
            enter(w, t);
            w.launch->call(w.arguments);
            finish(w, t);
        }
        self->next = w.free_fibers;
        w.free_fibers = self;
        switch_stack(&self->stack_pointer, w.scheduler_stack_pointer);
    }
}

static void start_fiber(Worker& w) {
    Fiber* f = w.free_fibers;
    if (f) w.free_fibers = f->next;
    else f = make_fiber(w.stacks, w.fibers_made++);
    w.starting = f;
    switch_stack(&w.scheduler_stack_pointer, f->stack_pointer);
}

[[noreturn]] void deadlock(Worker& w) {
    report_mbarrier(w);
    for (unsigned i = 0; i < w.count; ++i) {
        const Thread& t = w.threads[i];
        if (t.state == AT_PART) fault("deadlock", "line=%d\tfirst=%u\twaiting=%u", t.line, i, w.waiting_at_part[t.argument]);
    }
    for (unsigned i = 0; i < w.count; ++i) {
        const Thread& t = w.threads[i];
        if (t.state != AT_WARP) continue;
        const unsigned missing = t.mask & w.warp_live[i / WARP];
        unsigned lane = 0;
        for (; lane < WARP; ++lane) {
            const Thread& other = w.threads[i / WARP * WARP + lane];
            if ((missing >> lane & 1) && (other.state != AT_WARP || other.mask != t.mask || other.operation != t.operation))
                break;
        }
        const Thread* other = lane < WARP ? &w.threads[i / WARP * WARP + lane] : nullptr;
        fault("warp-divergence", "line=%d\tthread=%u\tmask=%u\tother=%d\tother_state=%d\tother_line=%d\tother_mask=%u", t.line, i,
              t.mask, other ? (int)(other - w.threads) : -1, other ? other->state : -1, other ? other->line : 0,
              other ? other->mask : 0);
    }
    fault("deadlock", "line=%d\tfirst=%u\twaiting=%u", w.barrier_line, w.barrier_first, w.waiting_at_barrier);
}

static void announce(const Worker& w) {  // what the text knows about the block
    const Launch& launch = *w.launch;
    const uint64_t block = w.block;
    blockIdx = {(unsigned)(block % launch.grid.x), (unsigned)(block / launch.grid.x % launch.grid.y),
                (unsigned)(block / launch.grid.x / launch.grid.y)};
    blockDim = launch.block;
    gridDim = launch.grid;
}

static void begin_block(Worker& w, const Launch& launch, uint64_t block, void** arguments) {
    w.count = launch.threads();
    w.next_unstarted = w.done = w.waiting_at_barrier = w.waiting_at_grid = 0;
    memset(w.waiting_at_part, 0, sizeof w.waiting_at_part);
    w.launch = &launch, w.arguments = arguments, w.block = block;
    forget_boxes(w);
    begin_letters(w);
    Index index = {0, 0, 0};
    for (unsigned i = 0; i < w.count; ++i) {
        Thread& t = w.threads[i];
        t.state = UNSTARTED;
        t.index = index;
        t.async.count = t.async.group = 0;
        forget_products(t);
        w.order[i] = (uint16_t)(w.order_kind == 1 ? w.count - 1 - i : i);
        if (++index.x == launch.block.x && (index.x = 0, ++index.y == launch.block.y)) index.y = 0, ++index.z;
    }
    for (unsigned i = 0; i < w.count; i += WARP) {
        w.warp_live[i / WARP] = w.count - i >= WARP ? 0xffffffffu : (1u << (w.count - i)) - 1;
        w.warp_waiting[i / WARP] = 0;
    }
    if (w.order_kind == 2) shuffle(w, w.order, w.count);
}

// Run a block until all its threads are done or all wait for the other blocks; or until it can only go on when others of its
// cluster have, or at some time before (order_kind 2).
static void advance(Worker& w) {
    announce(w);
#if SIMT_CHECKED
    if (w.kept) check_return_to_block(w);
    else check_begin_block(w);
#endif
    w.went_on = w.next_unstarted < w.count;
    while (w.next_unstarted < w.count) start_fiber(w);
    while (w.done < w.count && w.waiting_at_grid < w.count) {
        bool progress = take_letters(w);
        if (w.order_kind == 2) shuffle(w, w.order, w.count), progress |= land_boxes(w, 4);
        for (unsigned i = 0; i < w.count; ++i) {
            Thread& t = w.threads[w.order[i]];
            if (t.state != READY) continue;
            progress = true;
            ++w.turns;
            enter(w, t);
            switch_stack(&w.scheduler_stack_pointer, t.stack_pointer);
        }
        if (progress || w.waiting_at_grid == w.count || land_boxes(w, 1)) {
            w.went_on = true;
            if (w.mates && w.order_kind == 2 && w.done < w.count && next_random(w) % 16 == 0) return;
        } else if (!w.mates) deadlock(w);
        else if (!await_letters(w)) return;
    }
    if (w.done == w.count) end_letters(w), end_boxes(w), end_stores(w);
}

void run_block(Worker& w, const Launch& launch, uint64_t block, void** arguments) {
    begin_block(w, launch, block, arguments);
    advance(w);
}

// ---- the block's barrier ----

static int barrier(int how, int predicate, int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    if (w.waiting_at_barrier == 0) {
        w.barrier_line = line, w.barrier_how = how, w.barrier_first = (unsigned)(&self - w.threads);
        w.barrier_total = how == 1;
    } else if (line != w.barrier_line || how != w.barrier_how) {
        fault("barrier-divergence", "line=%d\tfirst=%u\tother_line=%d\tother=%u", w.barrier_line, w.barrier_first, line,
              (unsigned)(&self - w.threads));
    }
    w.barrier_total = how == 0   ? w.barrier_total + predicate
                      : how == 1 ? w.barrier_total & predicate
                                 : w.barrier_total | predicate;
    ++w.waiting_at_barrier;
    self.state = AT_BARRIER;
    self.line = line;
    check_exit_against_barrier(w);
    if (w.waiting_at_barrier < w.count) {
        leave(w);
        return (int)self.result;
    }
    const int total = w.barrier_total;
    w.waiting_at_barrier = 0;
    for (unsigned i = 0; i < w.count; ++i) w.threads[i].state = READY, w.threads[i].result = (unsigned)total;
#if SIMT_CHECKED
    check_barrier();
    if (w.order_kind) leave(w);  // the last to arrive need not be the first to go on
#endif
    return total;
}

// Whether so many threads have come to a barrier with a number: those that wait there go on.
static bool met(Worker& w, int number, unsigned threads) {
    if (++w.waiting_at_part[number] < threads) return false;
    w.waiting_at_part[number] = 0;
#if SIMT_CHECKED
    check_part(number);
#endif
    for (unsigned i = 0; i < w.count; ++i)
        if (w.threads[i].state == AT_PART && w.threads[i].argument == number) w.threads[i].state = READY;
    return true;
}

// Some threads of the block, so many, meet at a barrier with a number.
static void barrier_of(int number, unsigned threads, int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    self.state = AT_PART;
    self.argument = number, self.line = line;
    if (!met(w, number, threads)) return leave(w);
    if (w.order_kind) leave(w);  // the last to arrive need not be the first to go on
}

// ---- warps ----

// The lane whose value `lane` receives, as the PTX instruction shfl computes it, or -1 for its own.
static int source_lane(const Thread& t, int lane) {
    const int segment = lane & ~(t.width - 1), last = segment + t.width - 1;
    switch (t.how) {
        case 0: return segment + (t.argument & (t.width - 1));
        case 1: return lane - t.argument >= segment ? lane - t.argument : -1;
        case 2: return lane + t.argument <= last ? lane + t.argument : -1;
        default: return (lane ^ t.argument) <= last ? lane ^ t.argument : -1;
    }
}

static void complete(Worker& w, unsigned warp, unsigned group) {
    Thread* lanes = w.threads + warp * WARP;
    const Thread& any = lanes[__builtin_ctz(group)];
    if (any.operation == EXCHANGE) {
        unsigned char received[WARP][16];
        for (int lane = 0; lane < WARP; ++lane) {
            if (!(group >> lane & 1)) continue;
            const int source = source_lane(lanes[lane], lane);
            if (source < 0) memcpy(received[lane], lanes[lane].value, (size_t)lanes[lane].bytes);
            else if (group >> source & 1) memcpy(received[lane], lanes[source].value, (size_t)lanes[lane].bytes);
            else memset(received[lane], 0xFF, sizeof received[lane]);  // a lane that does not take part: undefined, so poison
        }
        for (int lane = 0; lane < WARP; ++lane)
            if (group >> lane & 1) memcpy(lanes[lane].value, received[lane], (size_t)lanes[lane].bytes);
    } else if (any.operation == GATHER) {
        for (int lane = 0; lane < WARP; ++lane) {
            for (int source = 0; source < WARP && (group >> lane & 1); ++source) {
                char* const to = (char*)lanes[lane].all + source * (size_t)lanes[lane].bytes;
                if (group >> source & 1) memcpy(to, lanes[source].value, (size_t)lanes[lane].bytes);
                else memset(to, 0xFF, (size_t)lanes[lane].bytes);
            }
        }
    } else if (any.operation == VOTE) {
        unsigned ballot = 0;
        for (int lane = 0; lane < WARP; ++lane)
            if (group >> lane & 1) ballot |= (unsigned)(lanes[lane].argument != 0) << lane;
        for (int lane = 0; lane < WARP; ++lane)
            if (group >> lane & 1) lanes[lane].result = ballot;
    } else {
#if SIMT_CHECKED
        check_warp_sync(warp, group);
#endif
    }
    for (int lane = 0; lane < WARP; ++lane)
        if (group >> lane & 1) lanes[lane].state = READY;
    w.warp_waiting[warp] &= ~group;
}

// The live lanes of `mask` if all of them wait for the same operation, else 0.  Lanes that ended or never were do not count.
static unsigned ready_group(const Worker& w, unsigned warp, const Thread& t) {
    const unsigned group = t.mask & w.warp_live[warp];
    if (group & ~w.warp_waiting[warp]) return 0;
    const Thread* lanes = w.threads + warp * WARP;
    for (unsigned left = group; left; left &= left - 1) {
        const Thread& other = lanes[__builtin_ctz(left)];
        if (other.mask != t.mask || other.operation != t.operation || other.how != t.how) return 0;
    }
    return group;
}

static void try_warp(Worker& w, unsigned warp) {
    for (unsigned left = w.warp_waiting[warp]; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        if (!(w.warp_waiting[warp] >> lane & 1)) continue;
        if (const unsigned group = ready_group(w, warp, w.threads[warp * WARP + lane])) complete(w, warp, group);
    }
}

static void warp_operation(Worker& w, Thread& self, WarpOperation operation, unsigned mask, int line) {
    const unsigned id = (unsigned)(&self - w.threads), warp = id / WARP, lane = id % WARP;
    if (!(mask >> lane & 1)) fault("warp-mask", "line=%d\tmask=%u\tlane=%u", line, mask, lane);
    self.operation = operation, self.mask = mask, self.line = line;
    self.state = AT_WARP;
    w.warp_waiting[warp] |= 1u << lane;
    if (const unsigned group = ready_group(w, warp, self)) {
        complete(w, warp, group);
        if (!w.order_kind) return;
    }
    leave(w);
}

}  // namespace simt

using namespace simt;

extern "C" {
void simt_barrier(int line) { barrier(3, 0, line); }
void simt_barrier_of(int number, int threads, int line) { barrier_of(number, (unsigned)threads, line); }
void simt_barrier_pass(int number, int threads) { met(*worker, number, (unsigned)threads); }
int simt_barrier_vote(int how, int predicate, int line) { return barrier(how, predicate, line); }

void simt_warp_sync(unsigned mask, int line) {
    Worker& w = *worker;
    w.current->how = 0;
    warp_operation(w, *w.current, SYNC, mask, line);
}

void simt_warp_exchange(unsigned mask, int how, int argument, int width, void* value, int bytes, int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    self.how = how, self.argument = argument, self.width = width, self.value = value, self.bytes = bytes;
    warp_operation(w, self, EXCHANGE, mask, line);
}

void simt_warp_gather(unsigned mask, const void* value, int bytes, void* all, int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    self.how = 0, self.value = (void*)value, self.bytes = bytes, self.all = all;
    warp_operation(w, self, GATHER, mask, line);
}

unsigned simt_warp_vote(unsigned mask, int predicate, int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    self.how = 0, self.argument = predicate;
    warp_operation(w, self, VOTE, mask, line);
    return self.result;
}

// Any set of live lanes that holds the caller is a correct answer: all of them in order, the caller alone otherwise.
unsigned simt_active_mask() {
    Worker& w = *worker;
    const unsigned id = (unsigned)(w.current - w.threads);
    return w.order_kind ? 1u << id % WARP : w.warp_live[id / WARP];
}

unsigned long long simt_clock() { return ++worker->turns; }

void simt_trap(int line) { fault("trap", "line=%d", line); }
}
