// Runs the blocks of a launch one after another, each block's threads as fibers.
//
// A thread starts when its turn comes and runs until it must wait; a thread that ends hands its stack to the next one,
// so that a kernel without barriers runs as a plain loop. Lanes of one warp are preferred: their stacks are warm.
#pragma once
#include "../device/kernels.hpp"
#include "../device/runtime.hpp"

namespace cuda_host {

struct Barrier {  // how many have arrived stands in `counts`
    int line, sum;
    BarrierKind kind;
};

struct Block {
    unsigned threads_count, warps_count;
    unsigned warps_runnable;  // bit per warp that may have a runnable lane; cleared when found to have none
    unsigned first_warp;      // where a block starts
    std::uint32_t epoch;      // grows at every barrier and every block; never repeats
    std::uint32_t serial;     // number of the block since the program began, from 1
    Barrier barrier;
    Thread threads[max_threads];
    Warp warps[max_threads / warp_size];
};

extern Block block;

struct LaunchShape {
    dim3 grid, block;
    unsigned shared_bytes;
    std::uint64_t order;  // 0: natural order of blocks and warps; else a permutation of both
};

// Returns false when the launch could not be finished; a finding says why.
bool run_launch(const Kernel& kernel, void* const* arguments, const LaunchShape& shape);

// Gives up the running launch from inside a thread.
[[noreturn]] void abandon_launch();

}  // namespace cuda_host
