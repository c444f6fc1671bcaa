// letters.cpp: what the blocks of a cluster send each other between its barriers: parts of boxes, and arrivals at mbarriers.
//
// A letter waits until the block that it is for has its turn: that block alone touches its mbarriers and its shared memory.  In
// the checked build all blocks of a cluster share a system thread, and one that cannot go on lets the others run; in the fast
// build each has its own, and sleeps until a letter comes.
#include "runtime.h"
#include "bulk.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace simt {

struct Letter {
    Flight flight;         // its place is told by `to` until the letter is taken
    long long to, at;      // of the box and of the mbarrier, from the anchor
    unsigned from, thread;  // who sent it
    bool box;              // or it is an arrival
    uint32_t* known;       // what the sender knows (the checked build)
    const void* pc;        // where it was sent
};
struct Letters { pthread_mutex_t lock; pthread_cond_t came; Letter* all; int count, capacity; bool ended; };

void begin_letters(Worker& w) {
    if (!w.mates) return;
    if (!w.letters) {
        w.letters = (Letters*)calloc(1, sizeof(Letters));
        pthread_mutex_init(&w.letters->lock, nullptr);
        pthread_cond_init(&w.letters->came, nullptr);
    }
    w.letters->ended = false;
}

void release_letters(Worker& w) {
    if (w.letters) free(w.letters->all);
    free(w.letters);
    w.letters = nullptr;
}

// The block that a text reaches for; that block itself is told apart by the caller.
static Worker& mate(Worker& w, unsigned rank, uint32_t pc) {
    const unsigned blocks = w.launch->cluster_blocks();
    if (rank >= blocks) fault("cluster-rank", "pc=%u\trank=%u\tblocks=%u", pc, rank, blocks);
    if (!w.mates) fault("request", "word=letters between blocks of a cooperative launch");
    return *w.mates[rank];
}

static void post(Worker& w, unsigned rank, Letter letter, char* anchor) {
    const uint32_t pc = offset_of(letter.pc);
    const void* const counted = anchor + letter.at;
    Worker& to = mate(w, rank, pc);
    if (!to.letters) not_ready(counted, pc);
    letter.from = w.rank, letter.thread = (unsigned)(w.current - w.threads);
    Letters& l = *to.letters;
    pthread_mutex_lock(&l.lock);
    if (l.ended) fault("cluster-ended", "pc=%u\trank=%u%s", pc, rank, place_of(counted).text);
#if SIMT_CHECKED
    to.anchor = anchor;
    const Mbarrier* const m = mbarrier_at(to, counted);
    letter.known = check_known();
    if (!m || m->begun_at >= letter.known[rank * w.count + m->begun_by]) not_ready(counted, pc);
#endif
    if (l.count == l.capacity) l.all = (Letter*)realloc(l.all, (size_t)(l.capacity = l.capacity * 2 + 16) * sizeof(Letter));
    l.all[l.count] = letter;
    __atomic_store_n(&l.count, l.count + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&l.came);
    pthread_mutex_unlock(&l.lock);
}

static void take(Worker& w, Letter& letter) {
    const uint32_t pc = offset_of(letter.pc);
    Mbarrier* const m = w.anchor ? mbarrier_at(w, w.anchor + letter.at) : nullptr;
    if (!m) not_ready(w.anchor + letter.at, pc);
#if SIMT_CHECKED
    worker = w.mates[letter.from];  // whose fault it is
    Thread* const was = worker->current;
    worker->current = &worker->threads[letter.thread];
    const uint32_t* const of_this_block = letter.known + w.rank * w.count;
#endif
    if (letter.box) {
        letter.flight.to = w.anchor + letter.to;
        letter.flight.mbarrier = (int)(m - w.boxes->mbarriers);
#if SIMT_CHECKED
        check_box_of_mate(w, letter.flight, of_this_block, letter.pc);
        memset(letter.flight.to, 0xFF, (size_t)letter.flight.bytes);
#endif
    } else {
#if SIMT_CHECKED
        for (unsigned t = 0; t < w.count; ++t) m->until[t] = of_this_block[t] > m->until[t] ? of_this_block[t] : m->until[t];
        join_far(m->far, letter.known);
#endif
        arrive(w, *m, pc);
    }
#if SIMT_CHECKED
    worker->current = was;
    worker = &w;
#endif
    if (letter.box) take_off(w, letter.flight);
    free(letter.known);
}

bool take_letters(Worker& w) {
    if (!w.letters || !__atomic_load_n(&w.letters->count, __ATOMIC_ACQUIRE)) return false;
    Letters& l = *w.letters;
    pthread_mutex_lock(&l.lock);
    Letter* const all = l.all;
    const int count = l.count;
    l.all = nullptr, l.count = l.capacity = 0;
    pthread_mutex_unlock(&l.lock);
    for (int i = 0; i < count; ++i) take(w, all[i]);
    free(all);
    return true;
}

bool await_letters(Worker& w) {
#if SIMT_CHECKED
    (void)w;
    return false;
#else
    Letters& l = *w.letters;
    pthread_mutex_lock(&l.lock);
    while (!l.count) pthread_cond_wait(&l.came, &l.lock);
    pthread_mutex_unlock(&l.lock);
    return true;
#endif
}

void end_letters(Worker& w) {
    while (w.letters && !w.letters->ended) {
        take_letters(w);
        pthread_mutex_lock(&w.letters->lock);
        w.letters->ended = !w.letters->count;
        pthread_mutex_unlock(&w.letters->lock);
    }
}

}  // namespace simt

using namespace simt;

extern "C" {
void simt_mbarrier_arrive_at(char* anchor, void* at, unsigned block) {
    Worker& w = *worker;
    const void* const pc = __builtin_return_address(0);
    if (block == w.rank) return arrive_here(w, at, pc);
    Letter letter = {};
    letter.at = (char*)at - anchor, letter.pc = pc;
    post(w, block, letter, anchor);
}

void simt_bulk_copy_to(char* anchor, void* shared, const void* map, const int* at, int rank, void* mbarrier, unsigned blocks) {
    Worker& w = *worker;
    const void* const pc = __builtin_return_address(0);
    Letter letter = {};
    letter.flight = flight_of(shared, map, at, rank, pc);
    letter.to = (char*)shared - anchor, letter.at = (char*)mbarrier - anchor, letter.box = true, letter.pc = pc;
    for (unsigned r = 0; r < 32; ++r)
        if ((blocks >> r & 1) && r != w.rank) post(w, r, letter, anchor);
    if (blocks >> w.rank & 1) put_box(w, letter.flight, mbarrier, pc);
}
}
