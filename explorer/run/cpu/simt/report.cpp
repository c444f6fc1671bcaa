// report.cpp: how a run ends badly: one line on standard output, fields separated by tabs, then exit status 3.
#include "runtime.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef __linux__
#include <ucontext.h>
#endif
#ifdef __ELF__
extern "C" char __executable_start;
#endif

namespace simt {

uint32_t offset_of(const void* program_counter) {
#ifdef __ELF__
    return (uint32_t)((const char*)program_counter - &__executable_start);
#else
    (void)program_counter;
    return 0;
#endif
}

[[noreturn]] static void vfault(const char* kind, const char* format, va_list fields) {
    char text[2048];
    size_t used = 0;
    const auto room = [&] { return sizeof text - used; };
    used += (size_t)snprintf(text, room(), "fault\tkind=%s\tseed=%d", kind, seed_in_progress);
    if (const Worker* w = worker; w && w->launch) {
        const Launch& l = *w->launch;
        used += (size_t)snprintf(text + used, room(), "\tkernel=%s\tlaunch=%d\tblock=%u,%u,%u", l.kernel, l.number,
                                 (unsigned)(w->block % l.grid.x), (unsigned)(w->block / l.grid.x % l.grid.y),
                                 (unsigned)(w->block / l.grid.x / l.grid.y));
        if (w->current)
            used += (size_t)snprintf(text + used, room(), "\tthread=%u,%u,%u", w->current->index.x, w->current->index.y,
                                     w->current->index.z);
    }
    used += (size_t)snprintf(text + used, room(), "\t");
    used += (size_t)vsnprintf(text + used, room(), format, fields);
    if (used > sizeof text - 2) used = sizeof text - 2;
    text[used++] = '\n';
    ssize_t written = write(STDOUT_FILENO, text, used);
    (void)written;
    _exit(3);
}

[[noreturn]] void fault(const char* kind, const char* format, ...) {
    va_list fields;
    va_start(fields, format);
    vfault(kind, format, fields);
}

static const void* program_counter(void* context) {
#if defined(__linux__) && defined(__x86_64__)
    return (const void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__linux__) && defined(__aarch64__)
    return (const void*)((ucontext_t*)context)->uc_mcontext.pc;
#else
    (void)context;
    return nullptr;
#endif
}

static void on_signal(int number, siginfo_t* info, void* context) {
    const void* at = program_counter(context);
    const char* kind = number == SIGALRM ? "timeout" : "signal";
#if SIMT_CHECKED
    const uint32_t recent = recent_access ? offset_of(recent_access) : 0;
#else
    const uint32_t recent = 0;
#endif
    const char* low = worker ? worker->stacks : nullptr;
    const char* address = (const char*)info->si_addr;
    const int overflow = number == SIGSEGV && low && address >= low && address < low + stack_arena_bytes;
    fault(kind, "signal=%d\tname=%s\taddress=%p\tpc=%u\trecent_pc=%u\tstack_overflow=%d", number, strsignal(number),
          number == SIGALRM ? nullptr : info->si_addr, at ? offset_of(at) : 0, recent, overflow);
}

void use_signal_stack() {
    stack_t stack = {};
    stack.ss_size = 64 * 1024;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
}

void install_signal_handlers(int limit_ms) {
    use_signal_stack();
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM};
    for (int number : numbers) sigaction(number, &action, nullptr);
    if (limit_ms > 0) {
        struct itimerval timer = {};
        timer.it_value.tv_sec = limit_ms / 1000;
        timer.it_value.tv_usec = limit_ms % 1000 * 1000;
        setitimer(ITIMER_REAL, &timer, nullptr);
    }
}

}  // namespace simt
