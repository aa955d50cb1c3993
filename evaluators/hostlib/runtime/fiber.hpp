// Fibers: a stack and a place to go on from. A switch saves what the compiler expects to survive a call, and no more.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || defined(CUDA_HOST_UCONTEXT)
#define CUDA_HOST_PORTABLE_FIBERS
#include <ucontext.h>
#endif

namespace cuda_host {

struct Fiber {
#ifdef CUDA_HOST_PORTABLE_FIBERS
    ucontext_t context;
#else
    void* stack_pointer;
    void* resume_at;
    void* frame_pointer;
#endif
    char* stack_top;
};

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t stack_bytes = 256 * 1024;
// An odd number of pages between stacks: equal offsets in neighbouring stacks fall into different cache sets.
constexpr std::size_t stack_stride = stack_bytes + page_bytes;

extern Fiber scheduler_fiber;  // the runner's own context

// Makes every fiber anew; `entry` never returns.
void reset_fibers(void (*entry)());
Fiber* take_fiber();
void park_fiber(Fiber* fiber);
bool is_on_fiber_stack(std::uintptr_t address);

#ifdef CUDA_HOST_PORTABLE_FIBERS
inline void switch_fiber(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }
#else
// Inlined, because a call to a switch routine would leave an entry on the processor's return stack that no return takes,
// and every later return would be mispredicted (measured: 8 to 17 ns per switch against 3 to 5).
__attribute__((always_inline)) inline void switch_fiber(Fiber* from, Fiber* to) {
    asm volatile(
        "movq %%rsp, 0(%%rdi)\n\t"
        "movq %%rbp, 16(%%rdi)\n\t"
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rax, 8(%%rdi)\n\t"
        "movq 0(%%rsi), %%rsp\n\t"
        "movq 16(%%rsi), %%rbp\n\t"
        "jmpq *8(%%rsi)\n"
        "1:\n\t"
        : "+D"(from), "+S"(to)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
          "xmm15");
}
#endif

}  // namespace cuda_host
