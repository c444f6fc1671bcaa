// groups.cpp: blocks that wait for each other: barriers of the grid and of clusters.
//
// Every block keeps a worker of its own, with the stacks of its threads; between two barriers the blocks run one after another.
// What a block left in shared memory outlives a barrier of its cluster, and here not one of the grid (it does on a GPU; emitted
// text never uses that).
#include "runtime.h"
#include "fiber.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace simt {

static void go_on(Worker& w) {
    w.waiting_at_grid = 0;
    for (unsigned i = 0; i < w.count; ++i) w.threads[i].state = READY;
}

bool start_block(Worker& w, const Launch& launch, uint64_t block, void** arguments) {
    begin_block(w, launch, block, arguments);
    advance(w);
    return w.done < w.count;
}

bool resume_block(Worker& w) {
    go_on(w);
    advance(w);
    return w.done < w.count;
}

void release_worker(Worker& w) {
    while (Fiber* f = w.free_fibers) w.free_fibers = f->next, free(f);
    for (Thread& t : w.threads) free(t.async.copies), release_products(t);
    release_boxes(w), release_letters(w);
    munmap(w.stacks, (size_t)MAX_THREADS * STACK_BYTES);
}

static void prepare_group(Worker* all, uint64_t count, char* arena, const Launch& launch, Worker& model) {
    for (uint64_t b = 0; b < count; ++b) {
        memset((void*)&all[b], 0, sizeof(Worker));
        all[b].stacks = arena + b * launch.threads() * STACK_BYTES;
        all[b].random = next_random(model);
        all[b].order_kind = model.order_kind, all[b].landing = model.landing, all[b].products = model.products;
    }
}

// One block after another, again and again: until all wait for the cluster or the grid, or all have ended.
static void run_group(Worker& model, Worker* all, uint64_t count, bool whole_grid) {
    uint32_t* order = (uint32_t*)malloc(count * sizeof(uint32_t));
    for (uint64_t i = 0; i < count; ++i) order[i] = (uint32_t)(model.order_kind == 1 ? count - 1 - i : i);
    for (uint64_t left = count; left;) {
        for (uint64_t i = count; model.order_kind == 2 && i > 1; --i) {
            const uint64_t j = next_random(model) % i;
            const uint32_t swap = order[i - 1];
            order[i - 1] = order[j], order[j] = swap;
        }
        uint64_t waiting = 0;
        Worker* stuck = nullptr;
        bool went_on = false;
        for (uint64_t i = 0; i < count; ++i) {
            Worker& w = all[order[i]];
            if (w.count && w.done == w.count) continue;
            if (w.waiting_at_grid == w.count) { ++waiting; continue; }
            worker = &w;
            advance(w);
            went_on |= w.went_on;
            if (w.done == w.count) --left;
            else if (w.waiting_at_grid == w.count) ++waiting;
            else stuck = &w;
#if SIMT_CHECKED
            if (w.done < w.count && !whole_grid) check_leave_block(w);
#endif
        }
        if (stuck && went_on) continue;
        if (stuck) worker = stuck, deadlock(*stuck);
        if (waiting && left < count) fault("grid-divergence", "waiting=%u\tended=%u", (unsigned)waiting, (unsigned)(count - left));
        for (uint64_t b = 0; b < count; ++b)
            if (all[b].done < all[b].count) go_on(all[b]);
#if SIMT_CHECKED
        if (whole_grid) check_grid_barrier();
        const uint32_t met_at = check_meeting();
        for (uint64_t b = 0; b < count; ++b) all[b].met_at = met_at, all[b].behind_meeting = true;
#endif
    }
    worker = &model;
    free(order);
#if SIMT_CHECKED
    for (uint64_t b = 0; b < count; ++b) check_forget_block(all[b]);
#endif
}

static void run_in_groups(Worker& model, const Launch& launch, void** arguments, uint64_t count, bool whole_grid) {
    const size_t bytes = (size_t)launch.threads() * STACK_BYTES * count;
    void* arena = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) fault("memory", "bytes=%zu", bytes);
    char* const before = stack_arena;
    const size_t before_bytes = stack_arena_bytes;
    stack_arena = (char*)arena, stack_arena_bytes = bytes;
    const unsigned ranks = launch.cluster_blocks();
    const uint64_t clusters = count / ranks;
    Worker* all = (Worker*)malloc(count * sizeof(Worker));
    prepare_group(all, count, (char*)arena, launch, model);
    unsigned char(*gathered)[MAX_THREADS][16] = (unsigned char(*)[MAX_THREADS][16])malloc(count * sizeof *gathered);
    Mail mail = {};
    Worker** mates = (Worker**)malloc(count * sizeof(Worker*));
    for (uint64_t b = 0; b < count; ++b) mates[b] = &all[b];
    for (uint64_t first = 0; first < launch.blocks() / ranks; first += clusters) {
        for (uint64_t b = 0; b < count; ++b) {
            all[b].rank = (unsigned)(b % ranks);
            all[b].cluster = first + b / ranks;
            all[b].mail = &mail;
            all[b].mates = whole_grid ? nullptr : mates + b / ranks * ranks;
            all[b].met_at = 0, all[b].behind_meeting = false;
            all[b].gathered = gathered + b / ranks * ranks;
            begin_block(all[b], launch, launch.block_of(first + b / ranks, (unsigned)(b % ranks)), arguments);
        }
        run_group(model, all, count, whole_grid);
    }
    for (uint64_t b = 0; b < count; ++b) {
        while (Fiber* f = all[b].free_fibers) all[b].free_fibers = f->next, free(f);
        for (unsigned i = 0; i < all[b].count; ++i) free(all[b].threads[i].async.copies), release_products(all[b].threads[i]);
        release_boxes(all[b]), release_letters(all[b]);
    }
    free(all), free(mates), free(gathered), free(mail.all);
    munmap(arena, bytes);
    stack_arena = before, stack_arena_bytes = before_bytes;
}

void run_cooperatively(Worker& model, const Launch& launch, void** arguments) {
    run_in_groups(model, launch, arguments, launch.blocks(), true);
}

#if SIMT_CHECKED
void run_clusters(Worker& model, const Launch& launch, void** arguments) {
    run_in_groups(model, launch, arguments, launch.cluster_blocks(), false);
}
#endif

static void wait_for_blocks(int line) {
    Worker& w = *worker;
    Thread& self = *w.current;
    self.state = AT_GRID;
    self.line = line;
    ++w.waiting_at_grid;
    switch_stack(&self.stack_pointer, w.scheduler_stack_pointer);
}

static void grid_barrier(int line) {
    if (!worker->launch->cooperative) fault("grid-barrier", "line=%d", line);
    wait_for_blocks(line);
}

static void cluster_gather(const void* value, int bytes, void* all) {
    const Worker& w = *worker;
    const unsigned ranks = w.launch->cluster_blocks();
    const size_t id = (size_t)(w.current - w.threads);
    memcpy(w.gathered[w.rank][id], value, (size_t)bytes);
    wait_for_blocks(0);
    for (unsigned r = 0; r < ranks; ++r) memcpy((char*)all + r * (size_t)bytes, w.gathered[r][id], (size_t)bytes);
    wait_for_blocks(0);
}

static void lock(Mail& mail) { while (__atomic_test_and_set(&mail.locked, __ATOMIC_ACQUIRE)) {} }
static void unlock(Mail& mail) { __atomic_clear(&mail.locked, __ATOMIC_RELEASE); }

static void cluster_hand(long long offset, unsigned rank, const void* value, int bytes, const void* pc) {
    const Worker& w = *worker;
    Handed one = {w.launch->block_of(w.cluster, rank), offset, bytes, pc, {}};
    memcpy(one.value, value, (size_t)bytes);
    Mail& mail = *w.mail;
    lock(mail);
    if (mail.count == mail.capacity) {
        mail.capacity = mail.capacity ? 2 * mail.capacity : 256;
        mail.all = (Handed*)realloc(mail.all, mail.capacity * sizeof(Handed));
    }
    mail.all[mail.count++] = one;
    unlock(mail);
}

// One thread of each block takes what came for it; the caller lets the others wait.
static void cluster_meet(char* anchor) {
    worker->anchor = anchor;
    wait_for_blocks(0);
    const Worker& w = *worker;
    if (w.current != w.threads) return;
    Mail& mail = *w.mail;
    lock(mail);
    for (size_t i = 0; i < mail.count;) {
        const Handed one = mail.all[i];
        if (one.block != w.block) { ++i; continue; }
#if SIMT_CHECKED
        check_write(anchor + one.offset, one.bytes, one.pc);
#endif
        memcpy(anchor + one.offset, one.value, (size_t)one.bytes);
        mail.all[i] = mail.all[--mail.count];
    }
    unlock(mail);
}

static void cluster_barrier(char* anchor, int line) {
    Worker& w = *worker;
    w.anchor = anchor;
    if (w.launch->cluster_blocks() == 1) barrier(3, 0, line);
    else wait_for_blocks(line);
}

}  // namespace simt

extern "C" {
void simt_cluster_barrier(char* anchor, int line) { simt::cluster_barrier(anchor, line); }
unsigned simt_cluster_rank() { return simt::worker->rank; }
void simt_cluster_hand(long long offset, unsigned rank, const void* value, int bytes) {
    simt::cluster_hand(offset, rank, value, bytes, __builtin_return_address(0));
}
void simt_cluster_meet(char* anchor) { simt::cluster_meet(anchor); }
void simt_grid_barrier(int line) { simt::grid_barrier(line); }
void simt_cluster_gather(const void* value, int bytes, void* all) { simt::cluster_gather(value, bytes, all); }
}
