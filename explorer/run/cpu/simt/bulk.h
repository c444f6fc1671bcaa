// bulk.h: what the runtime keeps of mbarriers and of bulk copies on their way, for each block.
#pragma once
#include "runtime.h"

namespace simt {

constexpr int MOST_MBARRIERS = 256;

// What is in a tensor_map here: dimensions and coordinates stand innermost first, as the hardware's do.
struct BoxMap {
    const char* array;
    int rank;
    unsigned element_bytes;
    uint64_t extent[5], pitch;  // elements from one row to the next
    int box[5], step[5];
    unsigned swizzle;
};
static_assert(sizeof(BoxMap) <= 128, "a tensor map");

struct Mbarrier {
    const void* at;
    unsigned phase;       // how many are complete
    int arrivals, missing;
    long long bytes;      // expected, and not landed
    int record, last_record;  // of the phase that goes on, and of the one before
    uint32_t *until, *last_until;  // of each thread: what those that arrived know of it (the checked build)
    uint32_t *far, *last_far;      // and of each thread of the whole cluster; null: nothing
    uint32_t begun_at, begun_by;
};

struct Flight {
    char* to;
    BoxMap map;
    long long at[5];
    int bytes, mbarrier;  // of a store: the thread that asked for it
    uint32_t pc;
    bool sent;            // a store that has been read
};

// Which threads have waited for it, since when, and who was the first.
struct KnownPhase { uint64_t waited[MAX_THREADS / 64]; uint32_t known_at, known_by; bool filled; };

struct Boxes {
    Mbarrier mbarriers[MOST_MBARRIERS];
    Flight* flights;
    KnownPhase* phases;
    uint32_t* clocks;         // room for `until` and `last_until` of every mbarrier
    Flight* stores;           // that may not have been read yet (the checked build)
    int mbarrier_count, flight_count, flight_capacity, phase_count, phase_capacity, store_count, store_capacity;
};

// Each row of a box: its number, whether it is in the array but for its columns, and the element of the array at column 0.
template <class Do>
void each_row(const Flight& f, const Do& row_done) {
    const BoxMap& map = f.map;
    long long rows = 1;
    for (int d = 1; d < map.rank; ++d) rows *= map.box[d];
    for (long long row = 0; row < rows; ++row) {
        bool inside = true;
        long long first = 0, stride = (long long)map.pitch, rest = row;
        for (int d = 1; d < map.rank; ++d) {
            const long long at = f.at[d] + rest % map.box[d] * map.step[d];
            rest /= map.box[d];
            inside = inside && at >= 0 && at < (long long)map.extent[d];
            first += at * stride;
            stride *= (long long)map.extent[d];
        }
        row_done(row, inside, first);
    }
}

bool land_boxes(Worker&, unsigned one_in);  // some of those on their way, or all; whether any has landed
void forget_boxes(Worker&);                 // a block begins
void end_boxes(Worker&);                    // a block ends
void end_stores(Worker&);                   // the same, of stores
void release_boxes(Worker&);
void report_mbarrier(Worker&);              // returns where no thread waits for a phase
struct Place { char text[320]; };           // which mbarrier it is, for a fault
Place place_of(const void* at);
Mbarrier* mbarrier_at(Worker&, const void* at);  // null where no thread has made it ready
[[noreturn]] void not_ready(const void* at, uint32_t pc);
void arrive(Worker&, Mbarrier&, uint32_t pc);
void arrive_here(Worker&, void* at, const void* pc);  // the current thread, in its own block
void take_off(Worker&, const Flight&);      // it lands now or later
Flight box_of(void* shared, const void* map, const int* at, int rank, const void* pc);  // of the right shape, at the right places
Flight flight_of(void* shared, const void* map, const int* at, int rank, const void* pc);
void put_box(Worker&, Flight&, void* mbarrier, const void* pc);  // of the current block, to its own shared memory

void check_stores(const char* address, int bytes, const void* pc);  // a thread writes shared memory

// memory_check.cpp
bool check_seen(unsigned thread, unsigned other, uint32_t time);  // whether what the other had done then is known to a thread
bool knows_box(uint32_t record, unsigned thread, uint32_t since_barrier);
uint32_t check_time();
void check_box(char* address, int bytes, uint32_t record, const void* pc);  // the current thread asks for a box to be put there
void check_source(const Flight&, const void* pc);
void check_box_of_mate(Worker&, const Flight&, const uint32_t* known, const void* pc);  // a mate, who knows so much of the block
void check_place(const void* at, char* text, size_t room);  // a shared array and a byte of it, as fields of a fault

// memory_mates.cpp: what threads know of those of other blocks of the cluster: a time for each rank and thread, or null.
uint32_t* check_known();                    // the current thread; the caller frees it
void join_far(uint32_t*& known, const uint32_t* more);
void check_far_arrival(uint32_t*& far);     // what the current thread knows is known behind an mbarrier's phase
void check_far_awaited(const uint32_t* far);

}  // namespace simt
