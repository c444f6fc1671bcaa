// memory_turns.cpp: blocks of a cluster take turns; each finds its shared memory as it left it (the checked build only).
#include "runtime.h"
#include "shadow.h"
#include <stdlib.h>
#include <string.h>

namespace simt {

struct Kept { uint32_t serial; int shift[64]; char* bytes[64]; Cell* cells[64]; };

static size_t cell_count(const Region& r) { return ((size_t)(r.end - r.begin) + (((size_t)1 << r.shift) - 1)) >> r.shift; }

void check_forget_block(Worker& w) {
    Kept* kept = (Kept*)w.kept;
    for (int i = 0; kept && i < region_count - shared_first; ++i) free(kept->bytes[i]), free(kept->cells[i]);
    free(kept);
    w.kept = nullptr;
}

void check_leave_block(Worker& w) {
    check_forget_block(w);
    if (region_count - shared_first > 64) fault("request", "word=at most 64 shared arrays in a cluster");
    Kept* kept = (Kept*)calloc(1, sizeof(Kept));
    kept->serial = block_serial;
    for (int i = 0; i < region_count - shared_first; ++i) {
        const Region& r = regions[shared_first + i];
        const size_t bytes = (size_t)(r.end - r.begin), cells = cell_count(r) * sizeof(Cell);
        kept->shift[i] = r.shift;
        kept->bytes[i] = (char*)memcpy(malloc(bytes), r.begin, bytes);
        kept->cells[i] = (Cell*)memcpy(malloc(cells), (void*)r.cells, cells);
    }
    w.kept = kept;
}

void check_return_to_block(Worker& w) {
    const Kept& kept = *(const Kept*)w.kept;
    block_serial = kept.serial;
    block_epoch = ++now;
    block_fence = acquired_count = 0;
    for (unsigned i = 0; i < w.count; ++i) thread_clock[i] = now, thread_fence[i] = thread_fence_epoch[i] = 0;
    for (int i = 0; i < region_count - shared_first; ++i) {
        Region& r = regions[shared_first + i];
        r.shift = kept.shift[i];
        memcpy(r.begin, kept.bytes[i], (size_t)(r.end - r.begin));
        memcpy((void*)r.cells, kept.cells[i], cell_count(r) * sizeof(Cell));
    }
}

}  // namespace simt
