// bulk.cpp: mbarriers and bulk copies of boxes.
//
// A box lands at some time between its request and the end of its phase: at once (seeds 1 and 3), as late as can be (seed 0: when no
// thread can go on otherwise), at random times else; the fast build lands it at once.  A thread may use the bytes when it
// has waited for their phase, or when another thread of its block had before a barrier of the block.
#include "runtime.h"
#include "bulk.h"
#include "fiber.h"
#include <stdlib.h>
#include <string.h>
#if SIMT_CHECKED
#include "shadow.h"
#endif

namespace simt {

Place place_of(const void* at) {
    Place place = {};
#if SIMT_CHECKED
    check_place(at, place.text, sizeof place.text);
#else
    (void)at;
#endif
    return place;
}

Mbarrier* mbarrier_at(Worker& w, const void* at) {
    for (int i = 0; w.boxes && i < w.boxes->mbarrier_count; ++i)
        if (w.boxes->mbarriers[i].at == at) return &w.boxes->mbarriers[i];
    return nullptr;
}

[[noreturn]] void not_ready(const void* at, uint32_t pc) { fault("mbarrier-not-ready", "pc=%u%s", pc, place_of(at).text); }

static Mbarrier* find_mbarrier(Worker& w, const void* at, const void* pc) {
    if (Mbarrier* const found = mbarrier_at(w, at)) return found;
    not_ready(at, offset_of(pc));
}

static int add_phase(Boxes& b) {
    if (b.phase_count == b.phase_capacity)
        b.phases = (KnownPhase*)realloc(b.phases, (size_t)(b.phase_capacity = b.phase_capacity * 2 + 64) * sizeof(KnownPhase));
    memset(&b.phases[b.phase_count], 0, sizeof(KnownPhase));
    return b.phase_count++;
}

// All threads that wait for this phase go on; they look again themselves.
static void try_complete(Worker& w, Mbarrier& m) {
    if (m.missing || m.bytes) return;
    ++m.phase;
    m.missing = m.arrivals;
    m.last_record = m.record, m.record = add_phase(*w.boxes);
#if SIMT_CHECKED
    uint32_t* const kept = m.last_until;
    m.last_until = m.until, m.until = kept;
    memset(m.until, 0, MAX_THREADS * sizeof(uint32_t));
    free(m.last_far);
    m.last_far = m.far, m.far = nullptr;
#endif
    for (unsigned i = 0; i < w.count; ++i)
        if (w.threads[i].state == AT_MBARRIER && w.threads[i].value == m.at) w.threads[i].state = READY;
}

static void land_box(Worker& w, const Flight& f) {
    const BoxMap& map = f.map;
    const long long each = (long long)map.element_bytes, per_unit = 16 / each;
    each_row(f, [&](long long row, bool inside, long long from) {
        for (long long x = 0; x < map.box[0]; x += per_unit) {
            uintptr_t to = (uintptr_t)f.to + (uintptr_t)((row * map.box[0] + x) * each);
            if (map.swizzle) to ^= (to >> 7 & (map.swizzle / 16 - 1)) << 4;
            const long long first = f.at[0] + x;
            if (inside && first >= 0 && first + per_unit <= (long long)map.extent[0]) {
                memcpy((void*)to, map.array + (from + first) * each, 16);
                continue;
            }
            for (long long e = 0; e < per_unit; ++e) {
                const bool valid = inside && first + e >= 0 && first + e < (long long)map.extent[0];
                if (valid) memcpy((char*)to + e * each, map.array + (from + first + e) * each, (size_t)each);
                else memset((char*)to + e * each, 0, (size_t)each);
            }
        }
    });
    Mbarrier& m = w.boxes->mbarriers[f.mbarrier];
    m.bytes -= f.bytes;
    try_complete(w, m);
}

bool land_boxes(Worker& w, unsigned one_in) {
    if (!w.boxes || !w.boxes->flight_count) return false;
    Boxes& b = *w.boxes;
    int kept = 0;
    bool landed = false;
    for (int i = 0; i < b.flight_count; ++i) {
        if (one_in == 1 || next_random(w) % one_in == 0) land_box(w, b.flights[i]), landed = true;
        else b.flights[kept++] = b.flights[i];
    }
    b.flight_count = kept;
    return landed;
}

void arrive(Worker& w, Mbarrier& m, uint32_t pc) {
    if (!m.missing) fault("mbarrier-again", "pc=%u\tphase=%u\tbytes_left=%lld%s", pc, m.phase, m.bytes, place_of(m.at).text);
    --m.missing;
    try_complete(w, m);
}

void arrive_here(Worker& w, void* at, const void* pc) {
    Mbarrier& m = *find_mbarrier(w, at, pc);
#if SIMT_CHECKED
    const KnownPhase* last = m.missing && m.last_record >= 0 ? &w.boxes->phases[m.last_record] : nullptr;
    if (last && last->filled && !last->known_at)
        fault("mbarrier-unwaited", "pc=%u\tphase=%u%s", offset_of(pc), m.phase - 1, place_of(at).text);
    check_arrival(m.until);
    check_far_arrival(m.far);
#endif
    arrive(w, m, offset_of(pc));
}

void take_off(Worker& w, const Flight& f) {
#if SIMT_CHECKED
    const bool now = w.landing == 1 || (w.landing == 2 && next_random(w) % 4 == 0);
#else
    const bool now = true;
#endif
    if (now) return land_box(w, f);
    Boxes& b = *w.boxes;
    if (b.flight_count == b.flight_capacity)
        b.flights = (Flight*)realloc(b.flights, (size_t)(b.flight_capacity = b.flight_capacity * 2 + 16) * sizeof(Flight));
    b.flights[b.flight_count++] = f;
}

Flight box_of(void* shared, const void* map, const int* at, int rank, const void* pc) {
    Flight f = {(char*)shared, {}, {}, 0, 0, offset_of(pc), false};
    memcpy(&f.map, map, sizeof f.map);
    if (rank != f.map.rank) fault("bulk-shape", "pc=%u\trank=%d\tof_map=%d", offset_of(pc), rank, f.map.rank);
    f.bytes = (int)f.map.element_bytes;
    for (int d = 0; d < rank; ++d) f.at[d] = at[d], f.bytes *= f.map.box[d];
    if ((uintptr_t)shared % 128) fault("bulk-alignment", "pc=%u", offset_of(pc));
    if (at[0] * (int)f.map.element_bytes % 16) fault("bulk-column", "pc=%u\tat=%d", offset_of(pc), at[0]);
    return f;
}

Flight flight_of(void* shared, const void* map, const int* at, int rank, const void* pc) {
    const Flight f = box_of(shared, map, at, rank, pc);
#if SIMT_CHECKED
    check_source(f, pc);
#endif
    return f;
}

void put_box(Worker& w, Flight& f, void* mbarrier, const void* pc) {
    f.mbarrier = (int)(find_mbarrier(w, mbarrier, pc) - w.boxes->mbarriers);
#if SIMT_CHECKED
    check_box(f.to, f.bytes, (uint32_t)w.boxes->mbarriers[f.mbarrier].record, pc);
    memset(f.to, 0xFF, (size_t)f.bytes);
#endif
    take_off(w, f);
}

void forget_boxes(Worker& w) {
    if (!w.boxes) return;
    for (int i = 0; i < w.boxes->mbarrier_count; ++i) free(w.boxes->mbarriers[i].far), free(w.boxes->mbarriers[i].last_far);
    w.boxes->flight_count = w.boxes->mbarrier_count = w.boxes->phase_count = w.boxes->store_count = 0;
}

void release_boxes(Worker& w) {
    if (!w.boxes) return;
    forget_boxes(w);
    free(w.boxes->flights), free(w.boxes->stores), free(w.boxes->phases), free(w.boxes->clocks), free(w.boxes);
    w.boxes = nullptr;
}

void end_boxes(Worker& w) {
    if (w.boxes && w.boxes->flight_count) fault("bulk-unfinished", "pc=%u\tboxes=%d", w.boxes->flights[0].pc, w.boxes->flight_count);
}

// Who else waits, for something other than this thread: how many at one place, and where it is; and how many have ended.
struct Others {
    unsigned count, pc;
    int line;
    unsigned ended;
};

static Others others_than(const Worker& w, const Thread& t) {
    unsigned ended = 0;
    for (unsigned i = 0; i < w.count; ++i) ended += w.threads[i].state == DONE;
    for (unsigned i = 0; i < w.count; ++i) {
        const Thread& o = w.threads[i];
        if (o.state == DONE || o.state == READY || (o.state == AT_MBARRIER && o.value == t.value)) continue;
        unsigned count = 0;
        for (unsigned k = 0; k < w.count; ++k)
            count += w.threads[k].state == o.state &&
                     (o.state == AT_MBARRIER ? w.threads[k].value == o.value : w.threads[k].line == o.line);
        return o.state == AT_MBARRIER ? Others{count, o.mask, 0, ended} : Others{count, 0, o.line, ended};
    }
    return {0, 0, 0, ended};
}

void report_mbarrier(Worker& w) {
    for (unsigned i = 0; i < w.count; ++i) {
        const Thread& t = w.threads[i];
        if (t.state != AT_MBARRIER) continue;
        unsigned waiting = 0;
        for (unsigned k = 0; k < w.count; ++k) waiting += w.threads[k].state == AT_MBARRIER && w.threads[k].value == t.value;
        const Mbarrier& m = *find_mbarrier(w, t.value, nullptr);
        const Others others = others_than(w, t);
        w.current = &w.threads[i];
        fault("mbarrier",
              "pc=%u\tparity=%d\tphase=%u\tmissing=%d\tbytes_left=%lld\twaiting=%u\tothers=%u\tended=%u\tother_pc=%u\tother_line=%d%s",
              t.mask, t.argument, m.phase, m.missing, m.bytes, waiting, others.count, others.ended, others.pc, others.line,
              place_of(t.value).text);
    }
}

#if SIMT_CHECKED
bool knows_box(uint32_t record, unsigned thread, uint32_t since_barrier) {
    const KnownPhase& p = worker->boxes->phases[record];
    return (p.waited[thread / 64] >> thread % 64 & 1) || (p.known_at && p.known_at < since_barrier) ||
           (p.known_at && check_seen(thread, p.known_by, p.known_at));
}
#endif

}  // namespace simt

using namespace simt;

extern "C" {
void simt_mbarrier_begin(void* at, int arrivals) {
    Worker& w = *worker;
    if (!w.boxes) w.boxes = (Boxes*)calloc(1, sizeof(Boxes));
    Boxes& b = *w.boxes;
    for (int i = 0; i < b.mbarrier_count; ++i)
        if (b.mbarriers[i].at == at) fault("mbarrier-begun", "pc=%u%s", offset_of(__builtin_return_address(0)), place_of(at).text);
    if (b.mbarrier_count == MOST_MBARRIERS) fault("request", "word=at most %d mbarriers", MOST_MBARRIERS);
    uint32_t* until = nullptr;
#if SIMT_CHECKED
    if (!b.clocks) b.clocks = (uint32_t*)malloc(MOST_MBARRIERS * 2 * MAX_THREADS * sizeof(uint32_t));
    until = b.clocks + b.mbarrier_count * 2 * MAX_THREADS;
    memset(until, 0, 2 * MAX_THREADS * sizeof(uint32_t));
#endif
    Mbarrier& m = b.mbarriers[b.mbarrier_count++];
    m = {at, 0, arrivals, arrivals, 0, add_phase(b), -1, until, until + (until ? MAX_THREADS : 0), nullptr, nullptr, 0, 0};
#if SIMT_CHECKED
    m.begun_at = check_time(), m.begun_by = (unsigned)(w.current - w.threads);
#endif
}

void simt_mbarrier_expect(void* at, int bytes) {
    Mbarrier& m = *find_mbarrier(*worker, at, __builtin_return_address(0));
    m.bytes += bytes;
    worker->boxes->phases[m.record].filled = true;
}

void simt_mbarrier_arrive(void* at) { arrive_here(*worker, at, __builtin_return_address(0)); }

void simt_mbarrier_wait(void* at, int parity) {
    Worker& w = *worker;
    Thread& self = *w.current;
    const void* pc = __builtin_return_address(0);
    for (;;) {
        Mbarrier& m = *find_mbarrier(w, at, pc);
        if ((int)(m.phase & 1) != parity) {
#if SIMT_CHECKED
            if (m.last_record >= 0) {
                KnownPhase& p = w.boxes->phases[m.last_record];
                const unsigned thread = (unsigned)(&self - w.threads);
                p.waited[thread / 64] |= 1ull << thread % 64;
                if (!p.known_at) p.known_at = check_time(), p.known_by = thread;
                check_awaited(m.last_until);
                check_far_awaited(m.last_far);
            }
#endif
            return;
        }
        self.value = at, self.argument = parity, self.mask = offset_of(pc);
        self.state = AT_MBARRIER;
        leave(w);
    }
}

void simt_bulk_copy(void* shared, const void* map, const int* at, int rank, void* mbarrier) {
    const void* pc = __builtin_return_address(0);
    find_mbarrier(*worker, mbarrier, pc);
    Flight f = flight_of(shared, map, at, rank, pc);
    put_box(*worker, f, mbarrier, pc);
}
}
