// memory_turns.cpp: blocks of a cluster take turns; each finds its shared memory and what its threads know as it left them (the
// checked build only).
#include "runtime.h"
#include "shadow.h"
#include <stdlib.h>
#include <string.h>

namespace simt {

struct Kept {
    uint32_t serial, epoch, fence, acquired_count;
    bool any_seen_by, any_far;
    int shift[64];
    char* bytes[64];
    Cell* cells[64];
    uint32_t times[4][MAX_THREADS];
    uint32_t* seen;  // by thread and thread
    Acquired* acquired;
    uint32_t warps[MAX_WARPS][WARP][WARP];
    uint32_t *far_of_block, *far_of[MAX_THREADS];
};

static uint32_t* const times_of_threads[4] = {thread_clock, thread_fence, thread_fence_epoch, thread_proxy};

static size_t cell_count(const Region& r) { return ((size_t)(r.end - r.begin) + (((size_t)1 << r.shift) - 1)) >> r.shift; }

template <class T>
static void save(T*& kept, const void* from, size_t bytes) { kept = (T*)memcpy(realloc((void*)kept, bytes + 1), from, bytes); }

void check_forget_block(Worker& w) {
    Kept* kept = (Kept*)w.kept;
    for (int i = 0; kept && i < region_count - shared_first; ++i) free(kept->bytes[i]), free(kept->cells[i]);
    for (unsigned t = 0; kept && t < w.count; ++t) free(kept->far_of[t]);
    if (kept) free(kept->seen), free(kept->acquired), free(kept->far_of_block);
    free(kept);
    w.kept = nullptr;
}

void check_leave_block(Worker& w) {
    if (region_count - shared_first > 64) fault("request", "word=at most 64 shared arrays in a cluster");
    if (!w.kept) w.kept = calloc(1, sizeof(Kept));
    Kept& kept = *(Kept*)w.kept;
    kept.serial = block_serial, kept.epoch = block_epoch, kept.fence = block_fence;
    for (int i = 0; i < region_count - shared_first; ++i) {
        const Region& r = regions[shared_first + i];
        kept.shift[i] = r.shift;
        save(kept.bytes[i], r.begin, (size_t)(r.end - r.begin));
        save(kept.cells[i], r.cells, cell_count(r) * sizeof(Cell));
    }
    for (int i = 0; i < 4; ++i) memcpy(kept.times[i], times_of_threads[i], w.count * sizeof(uint32_t));
    save(kept.acquired, acquired, acquired_count * sizeof(Acquired));
    kept.acquired_count = acquired_count;
    memcpy(kept.warps, seen_by_warp, sizeof kept.warps[0] * ((w.count + WARP - 1) / WARP));
    kept.any_seen_by = any_seen_by;
    if (any_seen_by) {
        kept.seen = (uint32_t*)realloc(kept.seen, (size_t)w.count * w.count * sizeof(uint32_t));
        for (unsigned t = 0; t < w.count; ++t) memcpy(kept.seen + (size_t)t * w.count, seen_by[t], w.count * sizeof(uint32_t));
    }
    kept.any_far = any_far, kept.far_of_block = far_of_block, far_of_block = nullptr, any_far = false;
    memcpy(kept.far_of, far_of, w.count * sizeof far_of[0]), memset(far_of, 0, w.count * sizeof far_of[0]);
}

void check_return_to_block(Worker& w) {
    Kept& kept = *(Kept*)w.kept;
    block_serial = kept.serial, block_epoch = kept.epoch, block_fence = kept.fence;
    for (int i = 0; i < region_count - shared_first; ++i) {
        Region& r = regions[shared_first + i];
        r.shift = kept.shift[i];
        memcpy(r.begin, kept.bytes[i], (size_t)(r.end - r.begin));
        memcpy((void*)r.cells, kept.cells[i], cell_count(r) * sizeof(Cell));
    }
    for (int i = 0; i < 4; ++i) memcpy(times_of_threads[i], kept.times[i], w.count * sizeof(uint32_t));
    memcpy(acquired, kept.acquired, kept.acquired_count * sizeof(Acquired));
    acquired_count = kept.acquired_count;
    memcpy(seen_by_warp, kept.warps, sizeof kept.warps[0] * ((w.count + WARP - 1) / WARP));
    for (unsigned t = 0; any_seen_by && !kept.any_seen_by && t < w.count; ++t) memset(seen_by[t], 0, w.count * sizeof(uint32_t));
    any_seen_by = kept.any_seen_by;
    for (unsigned t = 0; any_seen_by && t < w.count; ++t)
        memcpy(seen_by[t], kept.seen + (size_t)t * w.count, w.count * sizeof(uint32_t));
    forget_far();
    any_far = kept.any_far, far_of_block = kept.far_of_block, kept.far_of_block = nullptr;
    memcpy(far_of, kept.far_of, w.count * sizeof far_of[0]), memset(kept.far_of, 0, w.count * sizeof far_of[0]);
    if (!w.behind_meeting) return;
    w.behind_meeting = false;
    forget_far();
    block_epoch = ++now;
    block_fence = acquired_count = 0;
    for (unsigned t = 0; t < w.count; ++t) thread_clock[t] = now, thread_fence[t] = thread_fence_epoch[t] = 0;
    for (unsigned r = 0; r < w.launch->cluster_blocks(); ++r)
        if (r != w.rank) check_after_block(w.launch->block_of(w.cluster, r), w.met_at);
}

}  // namespace simt
