// memory_mates.cpp: what threads know of the threads of other blocks of their cluster (the checked build only).
//
// All times come from one counter, so that a thread's vector clock goes on over the whole cluster: a time for each rank and
// thread.  It travels with arrivals at mbarriers of other blocks, and from there with whatever orders the threads of a block.  A
// part that a mate puts into this block's shared memory comes with what the thread that asked for it knew of this block: what is
// not among that may happen at the same time.  Accesses to global memory of two blocks are not ordered by arrivals, here.
#include "runtime.h"
#include "bulk.h"
#include "shadow.h"
#include <stdlib.h>
#include <string.h>

namespace simt {

static uint32_t *far_of_block, *far_of[MAX_THREADS];  // known to all threads of the current block, and to one
static bool any_far;

static size_t far_count() { return (size_t)worker->launch->cluster_blocks() * worker->count; }

void join_far(uint32_t*& known, const uint32_t* more) {
    if (!more) return;
    if (!known) known = (uint32_t*)calloc(far_count(), sizeof(uint32_t));
    for (size_t i = 0; i < far_count(); ++i) known[i] = more[i] > known[i] ? more[i] : known[i];
}

static void forget_far() {
    for (unsigned t = 0; any_far && t < MAX_THREADS; ++t) free(far_of[t]), far_of[t] = nullptr;
    free(far_of_block);
    far_of_block = nullptr, any_far = false;
}

static void far_barrier() {
    for (unsigned t = 0; any_far && t < worker->count; ++t) {
        join_far(far_of_block, far_of[t]);
        free(far_of[t]), far_of[t] = nullptr;
    }
    any_far = false;
}

// Threads that meet know the same.
template <class Meets>
static void far_meeting(unsigned first, unsigned count, Meets meets) {
    if (!any_far) return;
    uint32_t* joined = nullptr;
    for (unsigned t = first; t < first + count; ++t)
        if (meets(t)) join_far(joined, far_of[t]);
    for (unsigned t = first; joined && t < first + count; ++t)
        if (meets(t)) join_far(far_of[t], joined);
    free(joined);
}

static void far_warp(unsigned warp, unsigned mask) {
    far_meeting(warp * WARP, WARP, [&](unsigned t) { return mask >> t % WARP & 1; });
}

static void far_part(int number) {
    const Worker& w = *worker;
    far_meeting(0, w.count, [&](unsigned t) { return w.threads[t].state == AT_PART && w.threads[t].argument == number; });
}

void check_far_arrival(uint32_t*& far) {
    if (any_far) join_far(far, far_of[worker->current - worker->threads]);
}

void check_far_awaited(const uint32_t* far) {
    if (far) join_far(far_of[worker->current - worker->threads], far), any_far = true;
}

uint32_t* check_known() {
    const Worker& w = *worker;
    const unsigned t = (unsigned)(w.current - w.threads);
    uint32_t* known = (uint32_t*)calloc(far_count(), sizeof(uint32_t));
    join_far(known, far_of_block);
    join_far(known, far_of[t]);
    uint32_t* const own = known + w.rank * w.count;
    for (unsigned u = 0; u < w.count; ++u) own[u] = block_epoch > own[u] ? block_epoch : own[u];
    check_arrival(own);
    for (size_t i = 0; i < far_count(); ++i) known[i] = w.met_at > known[i] ? w.met_at : known[i];
    return known;
}

// Whether a thread of another block comes behind the end of this phase: behind any that has waited for it.
static bool knows_box_of_mate(const KnownPhase& p, const Worker& w, const uint32_t* known) {
    for (unsigned t = 0; p.known_at && t < w.count; ++t)
        if ((p.waited[t / 64] >> t % 64 & 1) && p.known_at < known[t]) return true;
    return false;
}

[[noreturn]] static void fault_of_mate(const char* kind, const Region& r, const char* at, const void* pc, const Stamp& other,
                                       bool writes) {
    fault(kind,
          "mate=1\tarray=%s\tshared=1\toffset=%lld\tbytes=%d\twrite=1\tpc=%u\tother_block=%u\tother_thread=%u\tother_pc=%u\t"
          "other_write=%d",
          r.name, (long long)(at - r.begin), 1 << r.shift, offset_of(pc), other.block, other.thread, other.pc, writes);
}

// It is called when the block has its turn, with `worker` the one that asked.
void check_box_of_mate(Worker& w, const Flight& f, const uint32_t* known, const void* pc) {
    Region* const r = find(f.to);
    if (!r) return outside(f.to, f.bytes, true, pc);
    if (f.to + f.bytes > r->end) access_fault("out-of-bounds", *r, f.to, f.bytes, true, pc, nullptr, false);
    const size_t first = (size_t)(f.to - r->begin) >> r->shift, last = (size_t)(f.to + f.bytes - 1 - r->begin) >> r->shift;
    for (size_t i = first; i <= last; ++i) {
        Cell& c = r->cells[i];
        char* const at = r->begin + (i << r->shift);
        const bool of_this_block = c.serial == block_serial;
        if (of_this_block && c.init == PENDING) fault_of_mate("async-pending", *r, at, pc, c.writes[0], true);
        if (of_this_block && c.init == BOXED && !knows_box_of_mate(w.boxes->phases[c.writes[0].clock], w, known))
            fault_of_mate("bulk-pending", *r, at, pc, c.writes[0], true);
        for (int k = 0; k < 4; ++k) {
            const Stamp& s = k < 2 ? c.writes[k] : c.reads[k - 2];
            if (s.clock && s.thread != BOX && s.block == (uint32_t)w.block && s.clock >= known[s.thread])
                fault_of_mate("race", *r, at, pc, s, k < 2);
        }
        c.writes[0] = {(uint32_t)w.block, (uint32_t)w.boxes->mbarriers[f.mbarrier].record, 0, f.pc, BOX, 0};
        c.writes[1].clock = c.reads[0].clock = c.reads[1].clock = 0;
        c.init = BOXED, c.serial = block_serial;
    }
}

}  // namespace simt
