// bulk_stores.cpp: bulk stores of boxes.  The engine reads a box at once (seeds 1 and 3), when the thread waits for that (seed 0), or
// at either time; nobody may write it in between.  What it writes is there then, which nobody in the launch may use.
#include "runtime.h"
#include "bulk.h"
#include <stdlib.h>
#include <string.h>
#if SIMT_CHECKED
#include "shadow.h"
extern "C" void simt_proxy_reads(bool), simt_fence_proxy();
#endif

namespace simt {

// Each piece of a row of a box that is in the array, by its addresses in shared and in global memory.
template <class Do>
static void each_piece(const Flight& f, const Do& move) {
    const BoxMap& map = f.map;
    const long long each = (long long)map.element_bytes, per_unit = 16 / each;
    each_row(f, [&](long long row, bool inside, long long to) {
        for (long long x = 0; inside && x < map.box[0]; x += per_unit) {
            uintptr_t from = (uintptr_t)f.to + (uintptr_t)((row * map.box[0] + x) * each);
            if (map.swizzle) from ^= (from >> 7 & (map.swizzle / 16 - 1)) << 4;
            for (long long e = 0; e < per_unit; ++e) {
                const long long at = f.at[0] + x + e;
                if (at >= 0 && at < (long long)map.extent[0])
                    move((char*)from + e * each, (char*)map.array + (to + at) * each, (int)each);
            }
        }
    });
}

static void send(const Flight& f) {
    each_piece(f, [](const char* from, char* to, int bytes) { memcpy(to, from, (size_t)bytes); });
}

#if SIMT_CHECKED
static bool may_be_read(const char* address, int bytes, const Flight& f) {
    bool met = false;
    each_piece(f, [&](const char* from, char*, int each) { met = met || (from < address + bytes && address < from + each); });
    return met;
}

// A thread writes shared memory: a store on its way may still read it.
void check_stores(const char* address, int bytes, const void* pc) {
    const Boxes* b = worker->boxes;
    for (int i = 0; b && i < b->store_count; ++i)
        if (address < b->stores[i].to + b->stores[i].bytes && b->stores[i].to < address + bytes && may_be_read(address, bytes, b->stores[i]))
            fault("store-pending", "pc=%u\tother_pc=%u%s", offset_of(pc), b->stores[i].pc, place_of(address).text);
}
#endif

void end_stores(Worker& w) {
    if (w.boxes && w.boxes->store_count) fault("store-unfinished", "pc=%u\tboxes=%d", w.boxes->stores[0].pc, w.boxes->store_count);
}

}  // namespace simt

using namespace simt;

extern "C" {
void simt_bulk_store(const void* map, const int* at, int rank, const void* shared) {
    Worker& w = *worker;
    const void* pc = __builtin_return_address(0);
    for (int d = 0; d < rank; ++d)  // an illegal instruction on an H200; loads take them
        if (at[d] < 0) fault("store-before", "pc=%u\tat=%d", offset_of(pc), at[d]);
    Flight f = box_of((void*)shared, map, at, rank, pc);
#if SIMT_CHECKED
    simt_fence_proxy();  // of what the thread itself wrote: see bulk_store.cuh
    simt_proxy_reads(true);
    each_piece(f, [&](const char* from, char*, int bytes) { check_access(from, bytes, READ, pc); });
    simt_proxy_reads(false);
    each_piece(f, [&](const char*, char* to, int bytes) { check_access(to, bytes, WRITE, pc); });
    if (!w.boxes) w.boxes = (Boxes*)calloc(1, sizeof(Boxes));
    Boxes& b = *w.boxes;
    f.mbarrier = (int)(w.current - w.threads);
    f.sent = w.landing == 1 || (w.landing == 2 && next_random(w) % 4 == 0);
    if (f.sent) send(f);
    if (b.store_count == b.store_capacity)
        b.stores = (Flight*)realloc(b.stores, (size_t)(b.store_capacity = b.store_capacity * 2 + 16) * sizeof(Flight));
    b.stores[b.store_count++] = f;
#else
    (void)w;
    send(f);
#endif
}

void simt_bulk_stores_read() {
#if SIMT_CHECKED
    Worker& w = *worker;
    if (!w.boxes) return;
    Boxes& b = *w.boxes;
    const int thread = (int)(w.current - w.threads);
    int kept = 0;
    for (int i = 0; i < b.store_count; ++i) {
        if (b.stores[i].mbarrier != thread) b.stores[kept++] = b.stores[i];
        else if (!b.stores[i].sent) send(b.stores[i]);
    }
    b.store_count = kept;
#endif
}
}
