// memory_copies.cpp: asynchronous and bulk copies in the checked build: when their bytes count as written, and by whom.
// A thread's own copies read their source when they are asked for (seeds 1 and 3), when they are waited for (seed 0), or at either
// time; their bytes are poison up to the wait in any case.
#include "runtime.h"
#include "shadow.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace simt {

// The engine that brings a box writes beside all threads: who waits for its phase comes behind.
void check_box(char* address, int bytes, uint32_t record, const void* pc) {
    check_access(address, bytes, WRITE, pc);
    Region& r = *find(address);
    const size_t first = (size_t)(address - r.begin) >> r.shift, last = (size_t)(address + bytes - 1 - r.begin) >> r.shift;
    for (size_t i = first; i <= last; ++i) {
        Cell& c = r.cells[i];
        c.writes[0] = {(uint32_t)worker->block, record, 0, offset_of(pc), BOX, 0};
        c.writes[1].clock = 0;
        c.init = BOXED;
    }
}

void check_source(const Flight& f, const void* pc) {
    const long long each = (long long)f.map.element_bytes;
    each_row(f, [&](long long, bool inside, long long from) {
        const long long first = f.at[0] < 0 ? 0 : f.at[0], end = f.at[0] + f.map.box[0];
        const long long count = (end < (long long)f.map.extent[0] ? end : (long long)f.map.extent[0]) - first;
        if (inside && count > 0) check_access(f.map.array + (from + first) * each, (int)(count * each), READ, pc);
    });
}

void check_place(const void* at, char* text, size_t room) {
    const Region* r = find((const char*)at);
    if (r) snprintf(text, room, "\tarray=%s\tshared=1\toffset=%lld\twrite=0", r->name, (long long)((const char*)at - r->begin));
}

void check_write(char* address, int bytes, const void* pc) { check_access(address, bytes, WRITE, pc); }

// A deferred copy lands: its bytes count as written now, by the thread that waited.
static void land(const AsyncCopy& copy) {
    memset(copy.to, 0, (size_t)copy.bytes);
    memcpy(copy.to + copy.first, (copy.held ? copy.as_asked : copy.from) + copy.first, (size_t)(copy.end - copy.first));
    Region* r = find(copy.to);
    const size_t offset = (size_t)(copy.to - r->begin);
    for (size_t i = offset >> r->shift; i <= (offset + (size_t)copy.bytes - 1) >> r->shift; ++i) {
        Cell& c = r->cells[i];
        c.init = WRITTEN;
        const uint32_t pc = c.writes[0].pc;
        c.writes[0] = stamp_here(nullptr, false);
        c.writes[0].pc = pc;
    }
}

}  // namespace simt

using namespace simt;

extern "C" {
void simt_async_copy(void* shared, const void* global, int bytes, int first, int end) {
    const void* pc = __builtin_return_address(0);
    const int valid = end - first;
    if (first < 0 || valid < 0 || end > bytes) fault("async-size", "pc=%u\tbytes=%d\tvalid=%d", offset_of(pc), bytes, valid);
    if (valid) check_access((const char*)global + first, valid, READ, pc);
    if (valid && (uintptr_t)global % (uintptr_t)bytes)
        fault("async-alignment", "pc=%u\tbytes=%d\twhich=source", offset_of(pc), bytes);
    check_access((const char*)shared, bytes, WRITE | ALIGNED | DEFERRED, pc);
    memset(shared, 0xFF, (size_t)bytes);
    AsyncQueue& q = worker->current->async;
    if (q.count == q.capacity)
        q.copies = (AsyncCopy*)realloc(q.copies, (size_t)(q.capacity = q.capacity * 2 + 16) * sizeof(AsyncCopy));
    AsyncCopy& copy = q.copies[q.count++];
    copy = {(char*)shared, (const char*)global, bytes, first, end, q.group, false, {}};
    Worker& w = *worker;
    copy.held = w.landing == 1 || (w.landing == 2 && next_random(w) % 4 == 0);
    if (copy.held) memcpy(copy.as_asked + first, copy.from + first, (size_t)valid);
}

void simt_async_commit() { ++worker->current->async.group; }

void simt_async_wait(int newest_groups_left) {
    AsyncQueue& q = worker->current->async;
    int kept = 0;
    for (int i = 0; i < q.count; ++i) {
        if (q.copies[i].group < q.group - newest_groups_left) land(q.copies[i]);
        else q.copies[kept++] = q.copies[i];
    }
    q.count = kept;
}
}
