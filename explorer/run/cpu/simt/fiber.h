// fiber.h: stacks and the switch between them: a dozen instructions on x86-64 and AArch64, ucontext elsewhere.
#pragma once
#include "runtime.h"
#include <stdlib.h>
#include <sys/mman.h>
#if !defined(SIMT_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SIMT_UCONTEXT 1
#endif
#if SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace simt {

constexpr size_t STACK_BYTES = 256 * 1024, GUARD_BYTES = 16 * 1024;

struct Fiber {
    Fiber* next;
    char *low, *high;
    void* stack_pointer;
};

void fiber_body();

#if SIMT_UCONTEXT

// A saved "stack pointer" is a context in the heap, made when a fiber or the scheduler first saves itself.
inline void switch_stack(void** save, void* load) {
    ucontext_t here;
    *save = &here;  // lives on the stack that is being left
    swapcontext(&here, (ucontext_t*)load);
}
inline void* initial_context(Fiber* f) {
    ucontext_t* context = (ucontext_t*)calloc(1, sizeof(ucontext_t));
    getcontext(context);
    context->uc_stack.ss_sp = f->low;
    context->uc_stack.ss_size = (size_t)(f->high - f->low);
    context->uc_link = nullptr;
    makecontext(context, fiber_body, 0);
    return context;
}

#else

#define SIMT_STRINGIFY_(x) #x
#define SIMT_STRINGIFY(x) SIMT_STRINGIFY_(x)
#define SIMT_SYMBOL(name) SIMT_STRINGIFY(__USER_LABEL_PREFIX__) #name
extern "C" void simt_switch_stack(void** save, void* load);

// Push what the calling convention lets the callee keep, swap stacks, pop, return into the other.
#if defined(__x86_64__)
asm(".text\n.globl " SIMT_SYMBOL(simt_switch_stack) "\n" SIMT_SYMBOL(simt_switch_stack) ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n");
inline void* initial_context(Fiber* f) {
    void** top = (void**)(f->high - 16);  // high is a multiple of 16
    top[0] = (void*)fiber_body;           // popped by ret; then rsp = 16k + 8, as after a call
    top[1] = nullptr;                     // where fiber_body would return to: it never does
    top -= 6;
    for (int i = 0; i < 6; ++i) top[i] = nullptr;
    return top;
}
#else
asm(".text\n.globl " SIMT_SYMBOL(simt_switch_stack) "\n.p2align 2\n" SIMT_SYMBOL(simt_switch_stack) ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n");
inline void* initial_context(Fiber* f) {
    void** frame = (void**)(f->high - 160);
    for (int i = 0; i < 20; ++i) frame[i] = nullptr;
    frame[11] = (void*)fiber_body;  // x30, the return address
    return frame;
}
#endif
inline void switch_stack(void** save, void* load) { simt_switch_stack(save, load); }

#endif

inline Fiber* make_fiber(char* stacks, unsigned number) {
    Fiber* f = (Fiber*)calloc(1, sizeof(Fiber));
    f->low = stacks + (size_t)number * STACK_BYTES;
#if SIMT_CHECKED
    mprotect(f->low, GUARD_BYTES, PROT_NONE);
    f->low += GUARD_BYTES;
#endif
    // Staggered, so that the hot ends of many stacks do not share one cache set.
    f->high = stacks + (size_t)(number + 1) * STACK_BYTES - (size_t)(number % 61) * 192;
    f->high -= (uintptr_t)f->high % 16;
    f->stack_pointer = initial_context(f);
    return f;
}

}  // namespace simt
