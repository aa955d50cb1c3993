// Signals become findings that name block, thread and the address that was touched.
#pragma once
#include <cstdint>

namespace cuda_host {

void catch_faults();
void start_clock(std::uint64_t limit_ms);  // of CPU time, for the whole job

}  // namespace cuda_host
