// shadow.h: what the checked build remembers about each piece of memory.
#pragma once
#include "runtime.h"
#include <string.h>
#include <sys/mman.h>
#ifdef __ELF__
extern "C" char __start_simt_shared __attribute__((weak));
extern "C" char __start_simt_counters __attribute__((weak));
extern "C" char __stop_simt_counters __attribute__((weak));
#endif

namespace simt {

constexpr size_t GUARD_SPAN = (size_t)1 << 30;  // unmapped addresses on each side of a global array

enum Access : unsigned { READ = 1, WRITE = 2, ATOMIC = 4, ALIGNED = 8, DEFERRED = 16 };

struct Stamp {  // one access; clock 0 means none
    uint32_t block, clock, epoch, pc;
    uint16_t thread, atomic;
};

constexpr uint16_t BOX = 0xFFFF;  // in the place of a thread: a bulk copy; its clock is the number of its phase

struct Cell {
    Stamp writes[2], reads[2];
    uint32_t serial;  // the block that initialised it (shared memory only)
    uint8_t init;
};

struct Region {
    char *begin, *end;
    const char* name;
    Cell* cells;      // one per 1 << shift bytes
    int shift;
    bool shared, read_only, dynamic;
};

void check_access(const char* address, int bytes, unsigned how, const void* pc);

// Room for one cell per byte, the finest division; untouched pages cost nothing.
inline Cell* new_cells(uint64_t bytes) {
    void* at = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) fault("memory", "bytes=%zu", (size_t)(bytes * sizeof(Cell)));
    return (Cell*)at;
}

inline void forget_accesses(Region& r) {
    if (!r.cells) return;
    const size_t cells = ((size_t)(r.end - r.begin) + (((size_t)1 << r.shift) - 1)) >> r.shift;
    for (size_t i = 0; i < cells; ++i) memset((void*)&r.cells[i], 0, sizeof(Stamp) * 4);
}

// Where the shared arrays' addresses are unknown (no ELF), memory outside the global arrays cannot be judged.
#ifdef __ELF__
constexpr bool SHARED_ARRAYS_KNOWN = true;
#else
constexpr bool SHARED_ARRAYS_KNOWN = false;
#endif

}  // namespace simt
