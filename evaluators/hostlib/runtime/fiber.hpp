// The stacks of the threads of one block, and the fibers on them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../device/fiber.hpp"

namespace cuda_host {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t stack_bytes = 256 * 1024;
// An odd number of pages between stacks: equal offsets in neighbouring stacks fall into different cache sets.
constexpr std::size_t stack_stride = stack_bytes + page_bytes;

extern Fiber scheduler_fiber;  // the runner's own context

// Makes every fiber anew; `entry` never returns.
void reset_fibers(void (*entry)());
Fiber* take_fiber();
void park_fiber(Fiber* fiber);
// Nothing that one run leaves in local memory reaches the next: stacks are poisoned where they are used, else given back.
void forget_local_memory(std::uint64_t seed);
bool is_on_fiber_stack(std::uintptr_t address);

}  // namespace cuda_host
