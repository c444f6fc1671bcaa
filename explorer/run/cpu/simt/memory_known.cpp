// memory_known.cpp: what threads know of each other through mbarriers and barriers of some threads (the checked build only).
//
// A vector clock for each thread (FastTrack, Flanagan and Freund, PLDI 2009): who arrives at an mbarrier leaves what it knows
// there, and who waits for the phase takes it up; threads that meet know the same.
#include "runtime.h"
#include "shadow.h"
#include <string.h>

namespace simt {

static void far_part(int number);  // memory_mates.cpp

// What thread `t` knows to have happened, joined into what others will know.
static void join(uint32_t* known, unsigned t) {
    for (unsigned u = 0; u < worker->count; ++u) known[u] = seen_by[t][u] > known[u] ? seen_by[t][u] : known[u];
    const uint32_t* row = seen_by_warp[t / WARP][t % WARP];
    for (unsigned u = 0; u < WARP; ++u) {
        uint32_t& k = known[t / WARP * WARP + u];
        k = row[u] > k ? row[u] : k;
    }
    known[t] = now;
}

void check_arrival(uint32_t* until) {
    const unsigned t = (unsigned)(worker->current - worker->threads);
    ++now;
    join(until, t);
    thread_clock[t] = now;
}

bool check_seen(unsigned thread, unsigned other, uint32_t time) { return any_seen_by && time < seen_by[thread][other]; }

void check_awaited(const uint32_t* until) {
    const unsigned t = (unsigned)(worker->current - worker->threads);
    any_seen_by = true;
    for (unsigned u = 0; u < worker->count; ++u) seen_by[t][u] = until[u] > seen_by[t][u] ? until[u] : seen_by[t][u];
}

// The lanes of a warp have met: each knows what any of them did.
static void known_warp(unsigned warp, unsigned mask) {
    static uint32_t joined[MAX_THREADS];
    if (!any_seen_by) return;
    memset(joined, 0, sizeof joined);
    for (unsigned left = mask; left; left &= left - 1) join(joined, warp * WARP + (unsigned)__builtin_ctz(left));
    for (unsigned left = mask; left; left &= left - 1)
        memcpy(seen_by[warp * WARP + (unsigned)__builtin_ctz(left)], joined, worker->count * sizeof joined[0]);
}

void check_part(int number) {
    static uint32_t joined[MAX_THREADS];
    memset(joined, 0, sizeof joined);
    any_seen_by = true;
    ++now;
    const Worker& w = *worker;
    for (unsigned t = 0; t < w.count; ++t)
        if (w.threads[t].state == AT_PART && w.threads[t].argument == number) join(joined, t);
    for (unsigned t = 0; t < w.count; ++t)
        if (w.threads[t].state == AT_PART && w.threads[t].argument == number)
            memcpy(seen_by[t], joined, w.count * sizeof joined[0]), thread_clock[t] = now;
    far_part(number);
}

}  // namespace simt
