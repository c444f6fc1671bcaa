// runtime.h: the state the runtime's parts share.  One executable runs one request of the host program: see main.cpp.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace simt {

constexpr int MAX_THREADS = 1024, WARP = 32, MAX_WARPS = MAX_THREADS / WARP;

struct Index { unsigned x, y, z; };

struct Launch {
    char kernel[256];
    void (*call)(void**);
    Index grid, block, cluster;
    unsigned dynamic_bytes;
    int argument_count, arguments[64], scalar_count;
    long long scalars[16];
    int number, cooperative;  // an argument is a buffer or, behind those, a tensor map
    unsigned threads() const { return block.x * block.y * block.z; }
    uint64_t blocks() const { return (uint64_t)grid.x * grid.y * grid.z; }
    unsigned cluster_blocks() const { return cluster.x * cluster.y * cluster.z; }
    // The block with this rank of a cluster, by its number in the grid.
    uint64_t block_of(uint64_t number, unsigned rank) const {
        const uint64_t across = grid.x / cluster.x, down = grid.y / cluster.y;
        const uint64_t x = number % across * cluster.x + rank % cluster.x;
        const uint64_t y = number / across % down * cluster.y + rank / cluster.x % cluster.y;
        const uint64_t z = number / across / down * cluster.z + rank / cluster.x / cluster.y;
        return x + grid.x * (y + grid.y * z);
    }
};

struct Boxes;
struct Letters;

// What the blocks of a cluster wrote to each other's shared memory, until the cluster's barrier.
struct Handed { uint64_t block; long long offset; int bytes; const void* pc; unsigned char value[16]; };
struct Mail { Handed* all; size_t count, capacity; bool locked; };

enum State : uint8_t { UNSTARTED, READY, AT_BARRIER, AT_WARP, AT_GRID, AT_MBARRIER, AT_PART, DONE };
constexpr int MOST_PARTS = 16;  // barriers of a block (PTX ISA, "bar")
enum WarpOperation : uint8_t { SYNC, EXCHANGE, GATHER, VOTE };

struct AsyncCopy { char* to; const char* from; int bytes, first, end; int group; bool held; char as_asked[16]; };  // held: what was read
struct AsyncQueue { AsyncCopy* copies; int count, capacity; int group; };  // `group`: the one being filled

struct Product { void (*run)(const void*); int line; alignas(8) unsigned char what[64]; };  // line: 0 if it reads no lane's registers
struct ProductQueue { Product* all; int first, count, capacity; };  // those in flight stand from `first` on

struct Thread {
    void* stack_pointer;  // where to resume
    Index index;
    State state;
    WarpOperation operation;
    int line;             // of the text, where it waits
    int how, argument, width, bytes;
    unsigned mask;
    void *value, *all;    // what a lane gives; where it wants what all lanes give
    unsigned result;
    AsyncQueue async;
    ProductQueue products;
};

struct Worker {           // one operating-system thread and the block it runs
    Thread threads[MAX_THREADS];
    uint16_t order[MAX_THREADS];
    unsigned warp_live[MAX_WARPS], warp_waiting[MAX_WARPS];
    unsigned count, next_unstarted, done, waiting_at_barrier, waiting_at_grid;
    int barrier_line, barrier_how, barrier_total;
    unsigned waiting_at_part[MOST_PARTS];
    unsigned barrier_first;
    Thread* current;
    void* scheduler_stack_pointer;
    struct Fiber *free_fibers, *starting;
    char* stacks;
    unsigned fibers_made;
    void** arguments;
    const Launch* launch;
    uint64_t block;
    unsigned rank;        // in its cluster
    uint64_t cluster;     // its number
    Mail* mail;           // the cluster's
    unsigned char (*gathered)[MAX_THREADS][16];  // the cluster's values: by rank and thread
    struct Boxes* boxes;  // mbarriers and bulk copies: see bulk.h
    struct Letters* letters;  // what other blocks of the cluster sent: see letters.cpp
    Worker** mates;       // the cluster's blocks, by rank; null where each runs alone, or all of a grid in turn
    char* anchor;         // places of the block's shared memory are told by their distance from it
    bool went_on;         // whether it did anything when it last had its turn
    uint32_t met_at;      // when the cluster last met (the checked build)
    bool behind_meeting;  // and has had no turn since
    void* kept;           // what the checked build keeps of shared memory while the block waits for others
    uint64_t random;      // xorshift state; `order_kind` 0 in order, 1 reversed, 2 random
    int order_kind;
    int landing;          // copies read, and bulk copies land, 0 as late as can be, 1 at once, 2 at random times
    uint64_t turns;       // of threads: the clock that a text can ask for
    int products;         // a warpgroup's products in flight read 0 as late as can be, 1 at once, 2 at random times
};

extern thread_local Worker* worker;
extern int seed_in_progress;  // for messages

// scheduler.cpp
void prepare_worker(Worker&);
void run_block(Worker&, const Launch&, uint64_t block, void** arguments);
bool start_block(Worker&, const Launch&, uint64_t block, void** arguments);  // whether it waits for other blocks
bool resume_block(Worker&);
void release_worker(Worker&);
[[noreturn]] void deadlock(Worker&);
void run_cooperatively(Worker& model, const Launch&, void** arguments);  // all blocks, with barriers of the grid
void run_clusters(Worker& model, const Launch&, void** arguments);       // cluster after cluster, with barriers of a cluster
void shuffle(Worker&, uint16_t* order, unsigned count);
uint64_t next_random(Worker&);
extern char* stack_arena;          // of the checked build's one worker
extern size_t stack_arena_bytes;

// letters.cpp
void begin_letters(Worker&);     // a block begins
void end_letters(Worker&);       // a block ends
void release_letters(Worker&);
bool take_letters(Worker&);      // whether there were any
bool await_letters(Worker&);     // for a block that cannot go on; false where others have to run first, on this system thread

// products.cpp
void forget_products(Thread&);   // a block begins
void release_products(Thread&);

// report.cpp
[[noreturn]] void fault(const char* kind, const char* format, ...);   // fields are key=value, separated by tabs
void install_signal_handlers(int limit_ms);
void use_signal_stack();
uint32_t offset_of(const void* program_counter);                      // into the executable, for the line tables

// memory_check.cpp (the checked build only)
void check_begin_launch(const Launch&);
void check_begin_block(Worker&);
void check_barrier();
void check_part(int number);       // the threads that wait at this barrier have met
void check_arrival(uint32_t* until);       // what the current thread knows to be done is known behind an mbarrier's phase
void check_awaited(const uint32_t* until);  // and by the current thread from now on
void check_grid_barrier();
void check_leave_block(Worker&);   // its shared memory is kept until check_return_to_block
void check_return_to_block(Worker&);
void check_forget_block(Worker&);
void check_after_block(uint64_t block, uint32_t until);  // what it did before happened before what the current block does
uint32_t check_meeting();          // a cluster meets: the time
void check_write(char* address, int bytes, const void* pc);  // of the current thread, from outside of the text
void check_warp_sync(unsigned warp, unsigned mask);
struct Buffer {
    char name[256];
    char kind[16];
    uint64_t element_bytes, elements, offset, result_offset;
    char* memory;
    uint64_t bytes() const { return element_bytes * elements; }
};
void check_reserve(Buffer* buffers, int count);
void check_begin_run(Buffer* buffers, int count);
void check_add_shared(const char* name, const char* kernel, uint64_t offset, uint64_t bytes);
extern const void* recent_access;  // program counter of the newest access, for time-outs

}  // namespace simt
