// memory_check.cpp: every access of the text is judged here: bounds, writability, initialisation, races.
//
// Arrays in global memory stand in one reservation with wide unmapped guards between them.  Each granule of an array has a
// Cell with the newest accesses.  Two accesses of different threads conflict when one writes, not both are atomic, and
// nothing orders them: another launch; a barrier of the block between them; a __syncwarp that both took part in (a vector
// clock per warp); or, across blocks, fence -> atomic -> atomic on the same word -> fence.  All times come from one counter, `now`.
// The rules are those of FastTrack (Flanagan and Freund, PLDI 2009) with two readers kept instead of a read vector.
#include "runtime.h"
#include "bulk.h"
#include "shadow.h"
#include <initializer_list>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simt {

const void* recent_access;
static Region regions[1024];
static int region_count, shared_first;  // global arrays, then the launched kernel's shared arrays
static Region shared_known[512];
static const char* shared_kernel[512];
static int shared_known_count;
static uint32_t now = 1, block_epoch, block_serial, last_serial;
static uint32_t thread_proxy[MAX_THREADS];  // what each thread wrote before is seen by instructions that read by themselves
static bool proxy_reads;
static uint32_t thread_clock[MAX_THREADS], thread_fence[MAX_THREADS], thread_fence_epoch[MAX_THREADS], block_fence;
static uint32_t seen_by_warp[MAX_WARPS][WARP][WARP];
static uint32_t seen_by[MAX_THREADS][MAX_THREADS];  // through mbarriers and barriers of some threads
static bool any_seen_by;
static char *reservation, *reservation_end;
static void known_warp(unsigned warp, unsigned mask);  // memory_known.cpp
static void far_barrier(), far_warp(unsigned warp, unsigned mask), forget_far();  // memory_mates.cpp

// ---- ordering between blocks: what a fence and an atomic publish, and what a later atomic and a fence acquire ----
// A fence publishes what its thread did before it, and what the block's other threads did before the last barrier.

struct Times { uint32_t own, others; };  // accesses before these times: of the thread itself, of its block
struct Published { uintptr_t word; uint32_t block, thread; Times until; };
static Published* published;
static uint32_t published_count, published_capacity;
// `pending` becomes `until` at a fence of thread `by`, the one with the atomic, or behind a barrier of any thread.
struct Acquired { uint32_t block, thread; Times until, pending; uint32_t by, epoch; };
static Acquired* acquired;
static uint32_t acquired_count, acquired_capacity;

static void later(Times& a, const Times& b) {
    if (b.own > a.own) a.own = b.own;
    if (b.others > a.others) a.others = b.others;
}

static void synchronise_through(uintptr_t word, uint32_t block, uint32_t thread, Times until) {
    bool known = false;
    for (uint32_t i = 0; i < published_count; ++i) {
        Published& p = published[i];
        if (p.word != word) continue;
        if (p.block == block) {
            if (p.thread == thread) later(p.until, until), known = true;
            continue;
        }
        uint32_t j = 0;
        while (j < acquired_count && (acquired[j].block != p.block || acquired[j].thread != p.thread || acquired[j].by != thread)) ++j;
        if (j == acquired_count) {
            if (j == acquired_capacity)
                acquired = (Acquired*)realloc(acquired, (acquired_capacity = acquired_capacity * 2 + 64) * sizeof(Acquired));
            acquired[acquired_count++] = {p.block, p.thread, {0, 0}, p.until, thread, block_epoch};
        } else later(acquired[j].pending, p.until), acquired[j].epoch = block_epoch;
    }
    if (known || !until.own) return;
    if (published_count == published_capacity)
        published = (Published*)realloc(published, (published_capacity = published_capacity * 2 + 64) * sizeof(Published));
    published[published_count++] = {word, block, thread, until};
}

static bool seen(const Stamp& before) {
    for (uint32_t i = 0; i < acquired_count; ++i) {
        const Acquired& a = acquired[i];
        if (a.block == before.block && before.clock < (a.thread == before.thread ? a.until.own : a.until.others)) return true;
    }
    return false;
}

void check_after_block(uint64_t block, uint32_t until) {
    if (acquired_count == acquired_capacity)
        acquired = (Acquired*)realloc(acquired, (acquired_capacity = acquired_capacity * 2 + 64) * sizeof(Acquired));
    acquired[acquired_count++] = {(uint32_t)block, 0, {until, until}, {until, until}, 0, block_epoch};
}

// ---- the order of two accesses ----

static bool ordered(const Stamp& before, const Stamp& current, bool shared) {
    if (!before.clock || before.thread == BOX) return true;
    if (before.block != current.block) return shared || seen(before);
    if (before.epoch != current.epoch || before.thread == current.thread) return true;
    if (any_seen_by && before.clock < seen_by[current.thread][before.thread]) return true;
    if (before.thread / WARP != current.thread / WARP) return false;
    return before.clock < seen_by_warp[current.thread / WARP][current.thread % WARP][before.thread % WARP];
}

static void keep(Stamp* slots, const Stamp& current, bool shared) {
    for (int i = 0; i < 2; ++i)
        if (ordered(slots[i], current, shared)) { slots[i] = current; return; }
    if (slots[0].thread / WARP == slots[1].thread / WARP && slots[0].block == slots[1].block) slots[1] = current;
}

[[noreturn]] static void access_fault(const char* kind, const Region& r, const char* address, int bytes, bool write,
                                      const void* pc, const Stamp* other, bool other_writes) {
    const long long offset = address - r.begin;
    if (other)
        fault(kind,
              "array=%s\tshared=%d\toffset=%lld\tbytes=%d\twrite=%d\tpc=%u\tother_block=%u\tother_thread=%u\tother_pc=%u\tother_"
              "write=%d",
              r.name, r.shared, offset, bytes, write, offset_of(pc), other->block, other->thread, other->pc, other_writes);
    fault(kind, "array=%s\tshared=%d\toffset=%lld\tbytes=%d\twrite=%d\tpc=%u\tsize=%lld", r.name, r.shared, offset, bytes, write,
          offset_of(pc), (long long)(r.end - r.begin));
}

// ---- finding the array ----

static Region* find(const char* address) {
    for (int i = region_count; i-- > 0;)
        if (address >= regions[i].begin && address < regions[i].end) return &regions[i];
    return nullptr;
}

static long long distance(const Region& r, const char* address) {
    return address < r.begin ? r.begin - address : address - r.end + 1;
}

// clang also announces reads of threadIdx and its kin.
static bool is_builtin(const char* address) {
    for (const Index* variable : {&threadIdx, &blockIdx, &blockDim, &gridDim})
        if (address >= (const char*)variable && address < (const char*)(variable + 1)) return true;
    return false;
}

static void outside(const char* address, int bytes, bool write, const void* pc) {
    if (!write && is_builtin(address)) return;
    if (!SHARED_ARRAYS_KNOWN && !(address >= reservation && address < reservation_end)) return;
    const Region* nearest = nullptr;
    for (int i = 0; i < region_count; ++i)
        if (!nearest || distance(regions[i], address) < distance(*nearest, address)) nearest = &regions[i];
    if (!nearest) fault("wild-access", "bytes=%d\twrite=%d\tpc=%u", bytes, write, offset_of(pc));
    access_fault(distance(*nearest, address) < (long long)GUARD_SPAN ? "out-of-bounds" : "wild-access", *nearest, address, bytes,
                 write, pc, nullptr, false);
}

// Cells start at one per element, or per 4 bytes of shared memory; the first narrower access divides them.
static void refine(Region& r, int shift) {
    const size_t factor = (size_t)1 << (r.shift - shift), count = (size_t)(r.end - r.begin + ((1 << r.shift) - 1)) >> r.shift;
    for (size_t i = count; i-- > 0;) {
        const Cell cell = r.cells[i];
        for (size_t k = factor; k-- > 0;) r.cells[i * factor + k] = cell;
    }
    r.shift = shift;
}

static Stamp stamp_here(const void* pc, bool atomic) {
    const Worker& w = *worker;
    const uint32_t thread = (uint32_t)(w.current - w.threads);
    return {(uint32_t)w.block, thread_clock[thread], block_epoch, offset_of(pc), (uint16_t)thread, (uint16_t)atomic};
}

enum Init : uint8_t { NEVER, WRITTEN, PENDING, BOXED };

static bool initialised(const Region& r, const Cell& c) {
    return (c.init == WRITTEN || c.init == BOXED) && (!r.shared || c.serial == block_serial);
}

void check_access(const char* address, int bytes, unsigned how, const void* pc) {
    if (address >= stack_arena && address < stack_arena + stack_arena_bytes) return;
    recent_access = pc;
    const bool write = how & WRITE, read = how & READ, atomic = how & ATOMIC;
    Region* r = find(address);
    if (!r) return outside(address, bytes, write, pc);
    if (address + bytes > r->end) access_fault("out-of-bounds", *r, address, bytes, write, pc, nullptr, false);
    if ((how & ALIGNED) && (uintptr_t)address % (uintptr_t)bytes)
        access_fault("misaligned", *r, address, bytes, write, pc, nullptr, false);
    if (write && r->read_only) access_fault("read-only", *r, address, bytes, write, pc, nullptr, false);
    const size_t offset = (size_t)(address - r->begin);
    const size_t low_bits = (offset | (size_t)bytes) & (((size_t)1 << r->shift) - 1);
    if (low_bits && r->shift) refine(*r, __builtin_ctzll(low_bits));
    if (write && r->shared) check_stores(address, bytes, pc);
    if (r->read_only) return;  // nothing writes it: initialised, and no race
    const Stamp current = stamp_here(pc, atomic);
    const size_t last = (offset + (size_t)bytes - 1) >> r->shift;
    for (size_t i = offset >> r->shift; i <= last; ++i) {
        Cell& c = r->cells[i];
        char* at = r->begin + (i << r->shift);
        const int part = 1 << r->shift;
        if (c.init == PENDING && (!r->shared || c.serial == block_serial))
            access_fault("async-pending", *r, at, part, write, pc, &c.writes[0], true);
        if (c.init == BOXED && c.serial == block_serial && !knows_box(c.writes[0].clock, current.thread, block_epoch))
            access_fault("bulk-pending", *r, at, part, write, pc, nullptr, false);
        for (const Stamp& other : c.writes)
            if (!(atomic && other.atomic) && !ordered(other, current, r->shared))
                access_fault("race", *r, at, part, write, pc, &other, true);
        if (proxy_reads && r->shared)
            for (const Stamp& other : c.writes)
                if (other.clock && other.thread != BOX && other.block == current.block && other.clock >= thread_proxy[other.thread])
                    access_fault("proxy-unfenced", *r, at, part, write, pc, &other, true);
        if (write)
            for (const Stamp& other : c.reads)
                if (!ordered(other, current, r->shared)) access_fault("race", *r, at, part, write, pc, &other, false);
        if (read && !initialised(*r, c)) access_fault("uninitialised", *r, at, part, false, pc, nullptr, false);
        if (write) {
            keep(c.writes, current, r->shared);
            c.init = (how & DEFERRED) ? PENDING : WRITTEN;
            c.serial = block_serial;
        } else keep(c.reads, current, r->shared);
    }
}

uint32_t check_time() { return now++; }
uint32_t check_meeting() { return ++now; }

// ---- synchronisation ----

void check_barrier() {
    block_epoch = ++now;
    for (unsigned i = 0; i < worker->count; ++i) {
        if (thread_fence[i] > block_fence) block_fence = thread_fence[i];
        thread_clock[i] = now;
    }
    far_barrier();
}

void check_warp_sync(unsigned warp, unsigned mask) {
    ++now;
    uint32_t joined[WARP] = {};
    for (unsigned left = mask; left; left &= left - 1) {
        const uint32_t* row = seen_by_warp[warp][__builtin_ctz(left)];
        for (int u = 0; u < WARP; ++u) joined[u] = row[u] > joined[u] ? row[u] : joined[u];
    }
    for (unsigned left = mask; left; left &= left - 1) joined[__builtin_ctz(left)] = now;
    for (unsigned left = mask; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        memcpy(seen_by_warp[warp][lane], joined, sizeof joined);
        thread_clock[warp * WARP + lane] = now;
    }
    known_warp(warp, mask), far_warp(warp, mask);
}

void check_begin_block(Worker& w) {
    for (unsigned t = 0; any_seen_by && t < w.count; ++t) memset(seen_by[t], 0, w.count * sizeof seen_by[t][0]);
    any_seen_by = false;
    forget_far();
    block_serial = ++last_serial;
    block_epoch = ++now;
    block_fence = acquired_count = 0;
    for (unsigned i = 0; i < w.count; ++i) thread_clock[i] = now, thread_fence[i] = thread_fence_epoch[i] = thread_proxy[i] = 0;
    proxy_reads = false;
    memset(seen_by_warp, 0, sizeof seen_by_warp[0] * ((w.count + WARP - 1) / WARP));
    for (int i = shared_first; i < region_count; ++i) memset(regions[i].begin, 0xFF, (size_t)(regions[i].end - regions[i].begin));
}

// Everything before it comes before everything behind it, in all blocks.
void check_grid_barrier() {
    for (int i = 0; i < shared_first; ++i) forget_accesses(regions[i]);
    published_count = 0;
}

void check_begin_launch(const Launch& launch) {
    for (int i = 0; i < shared_first; ++i) forget_accesses(regions[i]);
    published_count = 0;
    region_count = shared_first;
    for (int i = 0; i < shared_known_count; ++i) {
        if (strcmp(shared_kernel[i], "*") && strcmp(shared_kernel[i], launch.kernel)) continue;
        Region r = shared_known[i];
        const bool dynamic = shared_known[i].dynamic;
        if (dynamic) r.end = r.begin + launch.dynamic_bytes;
        if (r.end > r.begin) regions[region_count++] = r;
    }
    for (int i = shared_first; i < region_count; ++i) forget_accesses(regions[i]);
}

#ifdef __ELF__
static char* shared_section() { return &__start_simt_shared; }
#else
static char* shared_section() { return nullptr; }
#endif

void check_add_shared(const char* name, const char* kernel, uint64_t offset, uint64_t bytes) {
    if (!shared_section()) return;
    if (shared_known_count == 512) fault("request", "word=at most 512 shared arrays");
    Region r = {};
    r.begin = shared_section() + offset;
    r.end = r.begin + bytes;
    r.name = strdup(name);
    r.shared = true;
    r.dynamic = kernel[0] == '+';
    r.shift = 2;
    r.cells = new_cells(bytes + 4);
    shared_kernel[shared_known_count] = strdup(kernel + r.dynamic);
    shared_known[shared_known_count++] = r;
}

// The counters of the modules: in global memory, zero at first.
static void add_counters() {
#ifdef __ELF__
    if (!&__start_simt_counters || &__start_simt_counters == &__stop_simt_counters) return;
    Region& r = regions[region_count++];
    r.begin = &__start_simt_counters;
    r.end = &__stop_simt_counters;
    r.name = "counters";
    r.shift = 2;
    r.cells = new_cells((uint64_t)(r.end - r.begin) + 4);
    for (size_t k = 0, cells = (size_t)(r.end - r.begin) >> r.shift; k < cells; ++k) r.cells[k].init = WRITTEN;
#endif
}

void check_reserve(Buffer* buffers, int count) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t guard = GUARD_SPAN;; guard /= 16) {
        size_t total = guard;
        for (int i = 0; i < count; ++i) total += (buffers[i].bytes() + page - 1) / page * page + guard;
        void* at = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED && guard > page * 16) continue;
        if (at == MAP_FAILED) fault("memory", "bytes=%zu", total);
        reservation = (char*)at;
        reservation_end = reservation + total;
        char* next = reservation + guard;
        for (int i = 0; i < count; ++i) {
            Buffer& b = buffers[i];
            const size_t pages = (b.bytes() + page - 1) / page * page;
            if (pages && mprotect(next, pages, PROT_READ | PROT_WRITE)) fault("memory", "bytes=%zu", pages);
            b.memory = next;
            next += pages + guard;
            Region& r = regions[region_count++];
            r.begin = b.memory;
            r.end = b.memory + b.bytes();
            r.name = b.name;
            r.read_only = !strcmp(b.kind, "in");
            r.shift = __builtin_ctzll(b.element_bytes);
            r.cells = r.read_only ? nullptr : new_cells(b.bytes() + b.element_bytes);
        }
        add_counters();
        shared_first = region_count;
        return;
    }
}

void check_begin_run(Buffer* buffers, int count) {
    for (int i = 0; i < count; ++i) {
        Region& r = regions[i];
        if (r.read_only) continue;
        const bool given = !strcmp(buffers[i].kind, "inout");
        for (size_t k = 0, cells = (size_t)(r.end - r.begin) >> r.shift; k < cells; ++k)
            r.cells[k].init = given ? WRITTEN : NEVER;
    }
}

}  // namespace simt

using namespace simt;

extern "C" {
void simt_fence() {
    const Worker& w = *worker;
    const size_t thread = (size_t)(w.current - w.threads);
    thread_fence[thread] = thread_clock[thread] = ++now;
    thread_fence_epoch[thread] = block_epoch;
    for (uint32_t i = 0; i < acquired_count; ++i)
        if (acquired[i].by == thread || acquired[i].epoch < block_epoch) later(acquired[i].until, acquired[i].pending);
}

void simt_fence_proxy() {
    const size_t thread = (size_t)(worker->current - worker->threads);
    thread_proxy[thread] = thread_clock[thread] = ++now;
}

void simt_proxy_reads(bool on) { proxy_reads = on; }

void simt_atomic_access(const void* address, int bytes) {
    check_access((const char*)address, bytes, READ | WRITE | ATOMIC | ALIGNED, __builtin_return_address(0));
    const Worker& w = *worker;
    const uint32_t thread = (uint32_t)(w.current - w.threads);
    Times until = {block_fence, block_fence};
    later(until, {thread_fence[thread], thread_fence_epoch[thread]});
    synchronise_through((uintptr_t)address, (uint32_t)w.block, thread, until);
}
}
