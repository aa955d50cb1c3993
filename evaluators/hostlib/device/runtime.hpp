// What the device headers and the runtime share: the state of the running block, and the calls that make a thread wait.
//
// One process runs one block at a time; its threads are fibers of one OS thread, so nothing here is atomic. A thread
// gives up the processor only inside the functions declared below.
#pragma once
#include "fiber.hpp"
#include "types.hpp"

namespace cuda_host {

constexpr unsigned warp_size = 32;
constexpr unsigned max_threads = 1024;
constexpr unsigned max_dynamic_shared = 256 * 1024;  // above every GPU's limit so far (227 KiB on compute capability 9.0)

struct Warp;

struct Thread {
    uint3 index;       // threadIdx
    unsigned linear;   // x + y * blockDim.x + z * blockDim.x * blockDim.y
    unsigned lane;
    int line;          // of the barrier or warp operation that it reached last
    Warp* warp;
    Fiber* fiber;
};

enum class WarpOperation : std::uint8_t { sync, shuffle, ballot, match_any, match_all, custom };

// Runs once per operation, in the lane that arrives last. `lanes` are those that take part.
using Resolve = void (*)(Warp& warp, unsigned lanes);

struct Meeting {       // lanes that wait for one another
    unsigned mask, arrived;
    WarpOperation operation;
    int line;
    Resolve resolve;
};

// Where its lanes are stands in masks, a bit per lane: who is none of `runnable`, `done`, `waits_active` and in no meeting
// waits at the block's barrier.
struct Warp {
    unsigned exists, unstarted, runnable, done, waits_active;
    unsigned number;
    unsigned meetings_count;
    unsigned syncs;                    // __syncwarp operations so far: orders memory within the warp
    Thread* threads;                   // of lane 0
    std::uint64_t given[warp_size];    // what each lane brought
    std::uint64_t taken[warp_size];    // what it gets back; written when the meeting is complete
    std::uint8_t source[warp_size];    // lane that a shuffle reads
    unsigned active[warp_size];        // answers to __activemask()
    Meeting meetings[warp_size];
};

struct Counts {
    unsigned alive;       // threads of the block that have not finished
    unsigned at_barrier;
};

extern Thread* current;
extern Counts counts;
extern uint3 block_index;
extern dim3 block_dim, grid_dim;
extern unsigned dynamic_shared_bytes;

// Dynamic shared memory: one array at a fixed place, between pages that are never accessible.
struct DynamicShared {
    char before[4096];
    char memory[max_dynamic_shared];
    char behind[4096];
};
extern DynamicShared dynamic_shared;

enum class BarrierKind { plain, count, all, any };

extern int barrier_result;

// The scheduler's half of waiting. Each returns the fiber that goes on instead, or null when the caller may itself.
Fiber* arrive_at_barrier(int line, int predicate, BarrierKind kind);
Fiber* arrive_at_meeting(WarpOperation operation, int line, unsigned mask, Resolve resolve);
Fiber* arrive_at_active_mask(int line);
Fiber* give_way();
Fiber* finish_slowly();
[[noreturn]] void trap(const char* what, int line);

void on_atomic(const volatile void* address, unsigned size, int line);  // check flavour only
void on_fence();

}  // namespace cuda_host

// Bookkeeping of ours that lies in the candidate's translation unit must not be taken for its memory accesses.
#define CUDA_HOST_INTERNAL inline __attribute__((unused, no_sanitize("thread"), no_sanitize("undefined")))
#define CUDA_HOST_DEVICE static inline __attribute__((always_inline, unused))

namespace cuda_host {

CUDA_HOST_DEVICE void go_on_with(Fiber* mine, Fiber* next) {
    if (next) switch_fiber(mine, next);
}

CUDA_HOST_DEVICE int block_barrier(int line, int predicate, BarrierKind kind) {
    Fiber* mine = current->fiber;
    go_on_with(mine, arrive_at_barrier(line, predicate, kind));
    return barrier_result;
}

CUDA_HOST_DEVICE void warp_meeting(WarpOperation operation, int line, unsigned mask, Resolve resolve) {
    Fiber* mine = current->fiber;
    go_on_with(mine, arrive_at_meeting(operation, line, mask, resolve));
}

CUDA_HOST_DEVICE unsigned active_mask(int line) {
    Fiber* mine = current->fiber;
    go_on_with(mine, arrive_at_active_mask(line));
    return current->warp->active[current->lane];
}

CUDA_HOST_DEVICE void yield_thread() {
    Fiber* mine = current->fiber;
    go_on_with(mine, give_way());
}

// The current thread is done; returns when this stack is to run another one. A kernel whose threads never wait runs as a
// plain loop: this costs it a few instructions per thread.
CUDA_HOST_DEVICE void finish_thread() {
    Thread* me = current;
    Warp& warp = *me->warp;
    const unsigned mine = 1u << me->lane;
    warp.runnable &= ~mine;
    warp.done |= mine;
    --counts.alive;
    const unsigned later = warp.runnable & (~1u << me->lane), next = later & -later;
    if (__builtin_expect((next & warp.unstarted) == 0 || (warp.meetings_count | counts.at_barrier) != 0, 0))
        return go_on_with(me->fiber, finish_slowly());
    warp.unstarted &= ~next;
    current = warp.threads + __builtin_ctz(next);
    current->fiber = me->fiber;
}

}  // namespace cuda_host
