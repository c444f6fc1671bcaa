// main.cpp: read one request, run its launches, answer.
//
// Request, on standard input, one item a line:
//     action run|time                 what to do
//     limit MS | threads N | repeats R WARMUP
//     seeds N s0 ... | result_stride BYTES
//     data DESCRIPTOR BYTES           a file with the arrays, mapped shared
//     buffers N, then: NAME KIND ELEMENT_BYTES ELEMENTS OFFSET RESULT_OFFSET
//     shared N, then: NAME KERNEL OFFSET BYTES      (KERNEL "*": any; a leading "+": the dynamic array)
//     maps N, then: BUFFER ELEMENT_BYTES RANK SWIZZLE, and of each dimension, innermost first: EXTENT BOX STEP
//     launches N, then: KERNEL gx gy gz bx by bz DYNAMIC_BYTES COOPERATIVE cx cy cz ARGUMENTS buffer... SCALARS value...
//         (an argument beyond the buffers is a tensor map)
// Answer, on standard output: "ok", preceded by one "sample MICROSECONDS" per repeat; or one "fault" line (report.cpp).
#include "runtime.h"
#include "bulk.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct SimtKernel { const char* name; void (*call)(void**); int parameters; };
extern "C" const SimtKernel simt_kernels[];
extern "C" const int simt_kernel_count;
#if !SIMT_CHECKED
extern "C" {
void simt_fence_proxy() {}
void simt_proxy_reads(bool) {}
void simt_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void simt_atomic_access(const void*, int) {}
void simt_async_copy(void* shared, const void* global, int bytes, int first, int end) {  // immediate: the earliest moment allowed
    memset(shared, 0, (size_t)bytes);
    memcpy((char*)shared + first, (const char*)global + first, (size_t)(end - first));
}
void simt_async_commit() {}
void simt_async_wait(int) {}
}
#endif

namespace simt {

static Buffer buffers[256];
static Launch* launches;
static int buffer_count, launch_count, map_count, thread_count = 1;
static struct { alignas(64) BoxMap map; int buffer; } maps[256];
static char* data;

[[noreturn]] static void bad_request(const char* word) { fault("request", "word=%s", word); }

struct Team { const Launch* launch; void** arguments; uint64_t next, blocks, grain; };

#if SIMT_CHECKED
static void run_launch(Team& team) {
    Worker& w = *worker;
    check_begin_launch(*team.launch);
    if (team.launch->cooperative) return run_cooperatively(w, *team.launch, team.arguments);
    if (team.launch->cluster_blocks() > 1) return run_clusters(w, *team.launch, team.arguments);
    uint32_t* order = (uint32_t*)malloc(team.blocks * sizeof(uint32_t));
    for (uint64_t i = 0; i < team.blocks; ++i) order[i] = (uint32_t)(w.order_kind == 1 ? team.blocks - 1 - i : i);
    if (w.order_kind == 2)
        for (uint64_t i = team.blocks; i > 1; --i) {
            const uint64_t j = next_random(w) % i;
            const uint32_t swap = order[i - 1];
            order[i - 1] = order[j], order[j] = swap;
        }
    for (uint64_t i = 0; i < team.blocks; ++i) run_block(w, *team.launch, order[i], team.arguments);
    free(order);
}
#else
static void run_blocks(Worker& w, Team& team) {
    for (;;) {
        const uint64_t first = __atomic_fetch_add(&team.next, team.grain, __ATOMIC_RELAXED);
        if (first >= team.blocks) return;
        const uint64_t last = first + team.grain < team.blocks ? first + team.grain : team.blocks;
        for (uint64_t b = first; b < last; ++b) run_block(w, *team.launch, b, team.arguments);
    }
}

static Team shared_team;
struct Gate { pthread_mutex_t lock; pthread_cond_t changed; uint64_t round; int working; };
static Gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void* helper(void*) {
    Worker* w = (Worker*)malloc(sizeof(Worker));
    worker = w;
    prepare_worker(*w);
    use_signal_stack();
    for (uint64_t seen = 0;;) {
        pthread_mutex_lock(&gate.lock);
        while (gate.round == seen) pthread_cond_wait(&gate.changed, &gate.lock);
        seen = gate.round;
        pthread_mutex_unlock(&gate.lock);
        run_blocks(*w, shared_team);
        pthread_mutex_lock(&gate.lock);
        if (--gate.working == 0) pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
    }
}

// Each block of a cluster on a system thread of its own, which has the block's shared memory.
struct Meeting { pthread_mutex_t lock; pthread_cond_t changed; unsigned here, round; };
struct Rank {
    const Launch* launch;
    void** arguments;
    unsigned number;
    unsigned char (*gathered)[MAX_THREADS][16];
    Meeting* meeting;
    Mail* mail;
    Worker** workers;
};

static void meet(Meeting& m, unsigned all) {
    pthread_mutex_lock(&m.lock);
    const unsigned round = m.round;
    if (++m.here == all) {
        m.here = 0, ++m.round;
        pthread_cond_broadcast(&m.changed);
    }
    while (m.round == round) pthread_cond_wait(&m.changed, &m.lock);
    pthread_mutex_unlock(&m.lock);
}

static void* run_rank(void* given) {
    const Rank& rank = *(const Rank*)given;
    const unsigned all = rank.launch->cluster_blocks();
    Worker* w = rank.workers[rank.number];
    worker = w;
    prepare_worker(*w);
    use_signal_stack();
    w->mates = rank.workers;
    begin_letters(*w);
    meet(*rank.meeting, all);  // each can be written to
    w->rank = rank.number, w->gathered = rank.gathered, w->mail = rank.mail;
    for (uint64_t c = 0; c < rank.launch->blocks() / all; ++c) {
        w->cluster = c;
        for (bool more = start_block(*w, *rank.launch, rank.launch->block_of(c, rank.number), rank.arguments); more; more = resume_block(*w))
            meet(*rank.meeting, all);
        meet(*rank.meeting, all);  // nobody writes to a block of the next cluster
    }
    release_worker(*w);
    return nullptr;
}

void run_clusters(Worker&, const Launch& launch, void** arguments) {
    const unsigned all = launch.cluster_blocks();
    Meeting meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    unsigned char(*gathered)[MAX_THREADS][16] = (unsigned char(*)[MAX_THREADS][16])malloc(all * sizeof *gathered);
    Mail mail = {};
    Rank ranks[64];
    Worker* workers[64];
    pthread_t handles[64];
    if (all > 64) bad_request("at most 64 blocks of a cluster");
    for (unsigned r = 0; r < all; ++r) {
        workers[r] = (Worker*)calloc(1, sizeof(Worker));
        ranks[r] = {&launch, arguments, r, gathered, &meeting, &mail, workers};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, (size_t)64 << 20);
        if (pthread_create(&handles[r], &attributes, run_rank, &ranks[r])) fault("memory", "bytes=0");
    }
    for (unsigned r = 0; r < all; ++r) pthread_join(handles[r], nullptr), free(workers[r]);
    free(gathered), free(mail.all);
}

static void run_launch(Team& team) {
    if (team.launch->cooperative) return run_cooperatively(*worker, *team.launch, team.arguments);
    if (team.launch->cluster_blocks() > 1) return run_clusters(*worker, *team.launch, team.arguments);
    pthread_mutex_lock(&gate.lock);
    shared_team = team;
    ++gate.round;
    gate.working = thread_count - 1;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    run_blocks(*worker, shared_team);
    pthread_mutex_lock(&gate.lock);
    while (gate.working) pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}
#endif

static void run_all() {
    for (int i = 0; i < launch_count; ++i) {
        const Launch& l = launches[i];
        void* arguments[80];
        for (int m = 0; m < map_count; ++m) maps[m].map.array = buffers[maps[m].buffer].memory;
        for (int a = 0; a < l.argument_count; ++a) {
            const int which = l.arguments[a];
            arguments[a] = which < buffer_count ? (void*)buffers[which].memory : (void*)&maps[which - buffer_count].map;
        }
        for (int a = 0; a < l.scalar_count; ++a) arguments[l.argument_count + a] = (void*)(intptr_t)l.scalars[a];
        const uint64_t blocks = l.blocks(), grain = blocks / (uint64_t)(thread_count * 16) + 1;
        Team team = {};
        team.launch = &l, team.arguments = arguments, team.blocks = blocks, team.grain = grain;
        run_launch(team);
    }
}

static double microseconds() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static long long number() {
    long long n;
    if (scanf("%lld", &n) != 1) bad_request("a number");
    return n;
}

static void read_buffer(Buffer& b) {
    if (scanf("%255s %15s", b.name, b.kind) != 2) bad_request("buffer");
    b.element_bytes = (uint64_t)number(), b.elements = (uint64_t)number();
    b.offset = (uint64_t)number(), b.result_offset = (uint64_t)number();
}

static void read_map(int position) {
    BoxMap& m = maps[position].map;
    maps[position].buffer = (int)number();
    m.element_bytes = (unsigned)number(), m.rank = (int)number(), m.swizzle = (unsigned)number(), m.pitch = (uint64_t)number();
    if (m.rank < 1 || m.rank > 5) bad_request("1 to 5 dimensions");
    for (int d = 0; d < m.rank; ++d) m.extent[d] = (uint64_t)number(), m.box[d] = (int)number(), m.step[d] = (int)number();
}

static void read_launch(Launch& l, int position) {
    if (scanf("%255s", l.kernel) != 1) bad_request("launch");
    l.number = position;
    unsigned* extents[] = {&l.grid.x, &l.grid.y, &l.grid.z, &l.block.x, &l.block.y, &l.block.z, &l.dynamic_bytes};
    for (unsigned* e : extents) *e = (unsigned)number();
    l.cooperative = (int)number();
    l.cluster.x = (unsigned)number(), l.cluster.y = (unsigned)number(), l.cluster.z = (unsigned)number();
    l.argument_count = (int)number();
    if (l.argument_count > 64) bad_request("at most 64 arguments");
    for (int i = 0; i < l.argument_count; ++i) l.arguments[i] = (int)number();
    l.scalar_count = (int)number();
    if (l.scalar_count > 16) bad_request("at most 16 scalars");
    for (int i = 0; i < l.scalar_count; ++i) l.scalars[i] = number();
    for (int k = 0; k < simt_kernel_count; ++k)
        if (!strcmp(simt_kernels[k].name, l.kernel)) {
            l.call = simt_kernels[k].call;
            if (simt_kernels[k].parameters != l.argument_count + l.scalar_count)
                fault("arguments", "kernel=%s\tlaunch=%d\tparameters=%d\targuments=%d", l.kernel, position,
                      simt_kernels[k].parameters, l.argument_count + l.scalar_count);
        }
    if (!l.call) bad_request(l.kernel);
}

static int main_run() {
    static Worker first;
    worker = &first;
    prepare_worker(first);
    char word[64], action[16] = "run";
    int repeats = 1, warmup = 0, seed_count = 0, seeds[1024], limit = 0;
    uint64_t result_stride = 0;
    while (scanf("%63s", word) == 1) {
        if (!strcmp(word, "action")) { if (scanf("%15s", action) != 1) bad_request(word); }
        else if (!strcmp(word, "limit")) limit = (int)number();
        else if (!strcmp(word, "threads")) thread_count = (int)number();
        else if (!strcmp(word, "repeats")) repeats = (int)number(), warmup = (int)number();
        else if (!strcmp(word, "result_stride")) result_stride = (uint64_t)number();
        else if (!strcmp(word, "seeds")) {
            seed_count = (int)number();
            if (seed_count > (int)(sizeof seeds / sizeof seeds[0])) bad_request("at most 1024 seeds");
            for (int i = 0; i < seed_count; ++i) seeds[i] = (int)number();
        } else if (!strcmp(word, "data")) {
            const int descriptor = (int)number();
            const size_t bytes = (size_t)number();
            void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            if (at == MAP_FAILED) fault("memory", "bytes=%zu", bytes);
            data = (char*)at;
        } else if (!strcmp(word, "buffers")) {
            buffer_count = (int)number();
            if (buffer_count > (int)(sizeof buffers / sizeof buffers[0])) bad_request("at most 256 buffers");
            for (int i = 0; i < buffer_count; ++i) read_buffer(buffers[i]);
        } else if (!strcmp(word, "shared")) {
            for (long long left = number(); left > 0; --left) {
                char name[256], kernel[256];
                if (scanf("%255s %255s", name, kernel) != 2) bad_request(word);
                const uint64_t offset = (uint64_t)number(), bytes = (uint64_t)number();
#if SIMT_CHECKED
                check_add_shared(name, kernel, offset, bytes);
#else
                (void)offset, (void)bytes;
#endif
            }
        } else if (!strcmp(word, "maps")) {
            map_count = (int)number();
            if (map_count > (int)(sizeof maps / sizeof maps[0])) bad_request("at most 256 maps");
            for (int i = 0; i < map_count; ++i) read_map(i);
        } else if (!strcmp(word, "launches")) {
            launch_count = (int)number();
            launches = (Launch*)calloc((size_t)launch_count, sizeof(Launch));
            for (int i = 0; i < launch_count; ++i) read_launch(launches[i], i);
        } else
            bad_request(word);
    }
    install_signal_handlers(limit);
#if SIMT_CHECKED
    thread_count = 1;
    check_reserve(buffers, buffer_count);
    for (int s = 0; s < seed_count; ++s) {
        seed_in_progress = seeds[s];
        first.order_kind = seeds[s] % 3 == 0 && seeds[s] < 4 ? 0 : seeds[s] == 1 ? 1 : 2;
        first.landing = seeds[s] == 3 ? 1 : first.order_kind;
        first.products = seeds[s] == 3 ? 1 : first.order_kind == 2 ? 2 : 0;
        first.random = 0x9E3779B97F4A7C15ull * (uint64_t)(seeds[s] + 1) | 1;
        for (int i = 0; i < buffer_count; ++i) {
            Buffer& b = buffers[i];
            if (b.kind[0] == 'i') memcpy(b.memory, data + b.offset, b.bytes());
            else memset(b.memory, 0xFF, b.bytes());
        }
        check_begin_run(buffers, buffer_count);
        run_all();
        for (int i = 0; i < buffer_count; ++i) {
            const Buffer& b = buffers[i];
            if (!strcmp(b.kind, "out") || !strcmp(b.kind, "inout"))
                memcpy(data + b.result_offset + (uint64_t)s * result_stride, b.memory, b.bytes());
        }
    }
    (void)repeats, (void)warmup, (void)microseconds;
#else
    (void)seed_count, (void)seeds, (void)result_stride;
    for (int i = 0; i < buffer_count; ++i) buffers[i].memory = data + buffers[i].offset;
    for (int i = 1; i < thread_count; ++i) {
        pthread_t handle;
        pthread_attr_t attributes;  // the stack also holds the thread's shared memory
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, (size_t)64 << 20);
        if (pthread_create(&handle, &attributes, helper, nullptr)) fault("memory", "bytes=0");
    }
    const bool timing = !strcmp(action, "time");
    for (int i = timing ? -warmup : 0; i < (timing ? repeats : 1); ++i) {
        const double start = microseconds();
        run_all();
        const double elapsed = microseconds() - start;
        if (timing && i >= 0) printf("sample %.3f\n", elapsed);
    }
#endif
    printf("ok\n");
    fflush(stdout);
    _Exit(0);
}

}  // namespace simt

int main() { return simt::main_run(); }
