// sanitizer.cpp: the functions that -fsanitize=thread,bounds,alignment,integer-divide-by-zero makes the text call, in place of
// libtsan and libubsan.
#include "runtime.h"
#include "shadow.h"

using namespace simt;

namespace {
struct Location { const char* file; uint32_t line, column; };  // the layouts of LLVM's ubsan_value.h, which GCC shares
struct Type { uint16_t kind, info; char name[1]; };
struct OutOfBounds { Location at; const Type *array, *index; };
struct Overflow { Location at; const Type* type; };
struct TypeMismatch { Location at; const Type* type; unsigned char log_alignment, kind; };

long long signed_value(const Type* type, uintptr_t value) {
    const int bits = 1 << (type->info >> 1);
    if (!(type->info & 1) || bits >= 64) return (long long)value;
    return (long long)((uint64_t)value << (64 - bits)) >> (64 - bits);
}
}  // namespace

#define PC __builtin_return_address(0)
#define SIMT_SIZED(bytes)                                                                                              \
    void __tsan_read##bytes(void* p) { check_access((char*)p, bytes, READ | ALIGNED, PC); }                            \
    void __tsan_write##bytes(void* p) { check_access((char*)p, bytes, WRITE | ALIGNED, PC); }                          \
    void __tsan_unaligned_read##bytes(void* p) { check_access((char*)p, bytes, READ, PC); }                            \
    void __tsan_unaligned_write##bytes(void* p) { check_access((char*)p, bytes, WRITE, PC); }                          \
    void __tsan_volatile_read##bytes(void* p) { check_access((char*)p, bytes, READ | ALIGNED, PC); }                   \
    void __tsan_volatile_write##bytes(void* p) { check_access((char*)p, bytes, WRITE | ALIGNED, PC); }                 \
    void __tsan_unaligned_volatile_read##bytes(void* p) { check_access((char*)p, bytes, READ, PC); }                   \
    void __tsan_unaligned_volatile_write##bytes(void* p) { check_access((char*)p, bytes, WRITE, PC); }                 \
    void __tsan_read_write##bytes(void* p) {                                                                           \
        check_access((char*)p, bytes, READ | ALIGNED, PC);                                                             \
        check_access((char*)p, bytes, WRITE | ALIGNED, PC);                                                            \
    }                                                                                                                  \
    void __tsan_unaligned_read_write##bytes(void* p) {                                                                 \
        check_access((char*)p, bytes, READ, PC);                                                                       \
        check_access((char*)p, bytes, WRITE, PC);                                                                      \
    }

extern "C" {
SIMT_SIZED(1) SIMT_SIZED(2) SIMT_SIZED(4) SIMT_SIZED(8) SIMT_SIZED(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read_range(void* p, unsigned long bytes) { if (bytes) check_access((char*)p, (int)bytes, READ, PC); }
void __tsan_write_range(void* p, unsigned long bytes) { if (bytes) check_access((char*)p, (int)bytes, WRITE, PC); }

void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
    if (bytes) check_access((const char*)from, (int)bytes, READ, PC), check_access((char*)to, (int)bytes, WRITE, PC);
    return __builtin_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
    if (bytes) check_access((const char*)from, (int)bytes, READ, PC), check_access((char*)to, (int)bytes, WRITE, PC);
    return __builtin_memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
    if (bytes) check_access((char*)to, (int)bytes, WRITE, PC);
    return __builtin_memset(to, value, bytes);
}

void __ubsan_handle_out_of_bounds(OutOfBounds* data, void* index) {
    fault("array-bounds", "line=%u\tcolumn=%u\ttype=%s\tindex=%lld", data->at.line, data->at.column, data->array->name,
          signed_value(data->index, (uintptr_t)index));
}
void simt_index_fault(long long index, int extent) {
    fault("array-bounds", "pc=%u\ttype=[%d]\tindex=%lld", offset_of(PC), extent, index);
}
void __ubsan_handle_divrem_overflow(Overflow* data, void*, void*) {
    fault("division", "line=%u\tcolumn=%u\ttype=%s", data->at.line, data->at.column, data->type->name);
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, void* address) {
    fault("misaligned", "line=%u\tcolumn=%u\ttype=%s\talignment=%d\taddress_mod=%d", data->at.line, data->at.column,
          data->type->name, 1 << data->log_alignment, (int)((uintptr_t)address % ((uintptr_t)1 << data->log_alignment)));
}
}
