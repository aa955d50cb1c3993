#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "../device/runtime.hpp"
#include "memory.hpp"

namespace cuda_host {

Fiber scheduler_fiber;

namespace {

Fiber fibers[max_threads];
Fiber* parked[max_threads];
unsigned fibers_made, fibers_parked;
std::uint64_t poison_seed;
char* stacks;
void (*fiber_entry)();

void map_stacks() {
    void* memory = mmap(nullptr, max_threads * stack_stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) _exit(71);
    stacks = static_cast<char*>(memory);
}

constexpr std::size_t busy_bytes = 8192;  // a thread's frame hardly ever exceeds it, and stays mapped and warm

void forget(const Fiber& fiber, char* lowest) {
    const auto from = (reinterpret_cast<std::uintptr_t>(fiber.stack_top) - busy_bytes) / page_bytes * page_bytes;
    char* busy = reinterpret_cast<char*>(from);
    madvise(lowest, static_cast<std::size_t>(busy - lowest), MADV_DONTNEED);
    poison(busy, static_cast<std::size_t>(fiber.stack_top - busy), poison_seed);
}

void prepare(Fiber& fiber, unsigned number) {
    char* base = stacks + number * stack_stride;
    if (!fiber.stack_top) {
        if (mprotect(base + page_bytes, stack_bytes, PROT_READ | PROT_WRITE)) _exit(71);
        fiber.stack_top = base + stack_stride - (number % 31) * 256;  // spreads the hot frames over the cache's sets
        forget(fiber, base + page_bytes);
    }
#ifdef CUDA_HOST_PORTABLE_FIBERS
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = base + page_bytes;
    fiber.context.uc_stack.ss_size = static_cast<std::size_t>(fiber.stack_top - base) - page_bytes;
    makecontext(&fiber.context, fiber_entry, 0);
#else
    fiber.stack_pointer = fiber.stack_top - 8;  // as after a call: 8 modulo 16
    fiber.resume_at = reinterpret_cast<void*>(fiber_entry);
    fiber.frame_pointer = nullptr;
#endif
}

}  // namespace

void reset_fibers(void (*entry)()) {
    if (!stacks) map_stacks();
    fiber_entry = entry;
    fibers_made = fibers_parked = 0;
}

Fiber* take_fiber() {
    if (fibers_parked) return parked[--fibers_parked];
    Fiber* fiber = &fibers[fibers_made];
    prepare(*fiber, fibers_made++);
    return fiber;
}

void forget_local_memory(std::uint64_t seed) {
    poison_seed = seed;
    for (unsigned i = 0; i < max_threads && fibers[i].stack_top; ++i) forget(fibers[i], stacks + i * stack_stride + page_bytes);
}

void park_fiber(Fiber* fiber) { parked[fibers_parked++] = fiber; }

bool is_on_fiber_stack(std::uintptr_t address) {
    const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(stacks);
    return stacks && address >= base && address < base + max_threads * stack_stride;
}

}  // namespace cuda_host
