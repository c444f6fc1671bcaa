// products.cpp: products of a warpgroup in flight.  Each thread computes its own elements of the accumulator when it waits, as late
// as the rules allow, or at once (seed 3 of the checked build, and at random in random orders): before its wait it may read at any time.
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

namespace simt {

void forget_products(Thread& t) { t.products.first = t.products.count = 0; }

void release_products(Thread& t) { free(t.products.all); }

}  // namespace simt

using namespace simt;

extern "C" {
void simt_product_issue(void (*run)(const void*), const void* what, int bytes, int line) {
    ProductQueue& q = worker->current->products;
    if (q.first == q.count) q.first = q.count = 0;
    if (q.count == q.capacity) q.all = (Product*)realloc(q.all, (size_t)(q.capacity = q.capacity * 2 + 8) * sizeof(Product));
    Product& p = q.all[q.count++];
    p.run = run, p.line = line;
    memcpy(p.what, what, (size_t)bytes);
#if SIMT_CHECKED
    Worker& w = *worker;
    if (w.products == 1 || (w.products == 2 && next_random(w) % 2)) run(what), p.run = nullptr;
#endif
}

// The lanes of a warp wait together ("wgmma.wait_group.sync.aligned"): none goes on while another's product may read its registers.
void simt_product_wait(int pending) {
    ProductQueue& q = worker->current->products;
    int held = 0;
    while (q.count - q.first > pending) {
        const Product product = q.all[q.first++];  // on the thread's own stack, which checked code may read
        if (product.run) product.run(product.what);
        if (product.line) held = product.line;
    }
    if (held) simt_warp_sync(0xffffffffu, held);
}
}
