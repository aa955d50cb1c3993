// The functions that `-fsanitize=thread,bounds,alignment` calls. The sanitizers' own runtimes are not linked: these are
// all there is. Names and arguments are GCC's (gcc/sanitizer.def).
#include <cstdint>
#include <cstring>

#include "../device/runtime.hpp"
#include "access.hpp"
#include "memory.hpp"
#include "report.hpp"

namespace {

using namespace cuda_host;

void access(void* address, unsigned long size, Touch touch, bool is_volatile, void* pc) {
    on_access({reinterpret_cast<std::uintptr_t>(address), static_cast<unsigned>(size), touch, is_volatile,
               reinterpret_cast<std::uintptr_t>(pc)});
}

struct SourceLocation {
    const char* file;
    std::uint32_t line, column;
};

struct TypeDescriptor {
    std::uint16_t kind, info;
    char name[1];
};

struct ArrayIndex {
    SourceLocation where;
    TypeDescriptor* array;
};

struct Mismatch {
    SourceLocation where;
    TypeDescriptor* type;
    unsigned char log_alignment, check;
};

// The compiler knows the line where the access stands in the candidate's own text; in a header of ours the caller counts.
Place place(const SourceLocation& where, void* pc) {
    if (!std::strcmp(where.file, "kernel.cu")) return Place(static_cast<int>(where.line));
    return Place(reinterpret_cast<std::uintptr_t>(pc));
}

}  // namespace

#define PC __builtin_return_address(0)
#define CUDA_HOST_HOOK(PREFIX, N, VOLATILE)                                                               \
    void __tsan_##PREFIX##read##N(void* a) { access(a, N, Touch::read, VOLATILE, PC); }                   \
    void __tsan_##PREFIX##write##N(void* a) { access(a, N, Touch::write, VOLATILE, PC); }
#define CUDA_HOST_HOOKS(N)                  \
    CUDA_HOST_HOOK(, N, false)              \
    CUDA_HOST_HOOK(unaligned_, N, false)    \
    CUDA_HOST_HOOK(volatile_, N, true)      \
    CUDA_HOST_HOOK(unaligned_volatile_, N, true)

extern "C" {

CUDA_HOST_HOOKS(1)
CUDA_HOST_HOOKS(2)
CUDA_HOST_HOOKS(4)
CUDA_HOST_HOOKS(8)
CUDA_HOST_HOOKS(16)
void __tsan_read_range(void* a, unsigned long n) { access(a, n, Touch::read, false, PC); }
void __tsan_write_range(void* a, unsigned long n) { access(a, n, Touch::write, false, PC); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

void __ubsan_handle_out_of_bounds(void* data, std::uintptr_t index) {
    const auto* found = static_cast<ArrayIndex*>(data);
    note(Kind::out_of_bounds, place(found->where, PC), 0, "%s uses index %ld of an array of type %s", here_text(),
         static_cast<long>(index), found->array->name);
    end("failed");  // going on would overwrite the stack
}

void __ubsan_handle_type_mismatch_v1(void* data, std::uintptr_t pointer) {
    const auto* found = static_cast<Mismatch*>(data);
    const Region* region = find_region(pointer);
    const long offset = region ? static_cast<long>(pointer - region->low) : 0;
    note(Kind::misaligned, place(found->where, PC), 0, "%s accesses a %s, which needs %u-byte alignment, at byte %ld of %s",
         here_text(), found->type->name, 1u << found->log_alignment, offset, region ? region->name : "its local memory");
}

}  // extern "C"
