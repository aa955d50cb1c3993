// A fiber is a stack and a place to go on from. Switching saves what the compiler is told survives, and no more.
#pragma once
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

#ifdef CUDA_HOST_PORTABLE_FIBERS
inline void switch_fiber(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }
#else
#ifdef __AVX512F__
#define CUDA_HOST_WIDE_REGISTERS                                                                                       \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",      \
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CUDA_HOST_WIDE_REGISTERS
#endif
// Inlined into the kernel, at every place where a thread waits. A call to a switch routine would leave an entry on the
// processor's return stack, and the return that took it would be mispredicted: measured, that doubles the cost.
__attribute__((always_inline)) inline void switch_fiber(Fiber* from, Fiber* to) {
    __asm__ volatile(
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
          "xmm15" CUDA_HOST_WIDE_REGISTERS);
}
#undef CUDA_HOST_WIDE_REGISTERS
#endif

}  // namespace cuda_host
