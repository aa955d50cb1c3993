// What the scheduler tells the checker. The plain flavour links empty functions in its place (checker_off.cpp).
#pragma once
#include <cstdint>

namespace cuda_host {

struct Region;

constexpr std::uint64_t checker_poison_seed = 1;

// Where the candidate last accessed memory, for a fault inside the checker itself; 0 in the plain flavour.
extern std::uintptr_t last_access_pc;

void checker_open();          // all regions are known
void checker_begin_run();     // a run of the whole plan: buffers are as they were handed over
void checker_begin_launch();
void checker_begin_block();
void checker_end_block();
void checker_zeroed(const Region& region);  // the plan's own zeroing counts as writing

}  // namespace cuda_host
