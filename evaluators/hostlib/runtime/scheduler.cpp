#include "scheduler.hpp"

#include <cstring>

#include "checker.hpp"
#include "fiber.hpp"
#include "report.hpp"

namespace cuda_host {

Thread* current;
Counts counts;
int barrier_result;
uint3 block_index;
dim3 block_dim, grid_dim;
unsigned dynamic_shared_bytes;
Block block;

namespace {

const Kernel* running_kernel;
void* const* running_arguments;
bool abandoned;

void fiber_main() { running_kernel->run_threads(running_arguments); }

inline __attribute__((always_inline)) void wake(Warp& warp, unsigned lanes) {
    warp.runnable |= lanes;
    block.warps_runnable |= 1u << warp.number;
}

inline __attribute__((always_inline)) void suspend(Thread* thread, int line) {
    thread->line = line;
    thread->warp->runnable &= ~(1u << thread->lane);
}

// Lanes that asked for the active mask at one line and cannot be joined by more of their warp.
void answer_active_masks(Warp& warp) {
    unsigned waiting = warp.waits_active;
    warp.waits_active = 0;
    while (waiting) {
        const int line = warp.threads[__builtin_ctz(waiting)].line;
        unsigned together = 0;
        for (unsigned rest = waiting; rest; rest &= rest - 1)
            if (warp.threads[__builtin_ctz(rest)].line == line) together |= 1u << __builtin_ctz(rest);
        for (unsigned rest = together; rest; rest &= rest - 1) warp.active[__builtin_ctz(rest)] = together;
        wake(warp, together);
        waiting &= ~together;
    }
}

inline __attribute__((always_inline)) Thread* lowest(Warp& warp, unsigned preferred) {
    return warp.threads + __builtin_ctz(preferred ? preferred : warp.runnable);
}

// A runnable thread of the warps behind `number`, round and round; that warp itself comes last. Null: there is none.
Thread* in_other_warps(unsigned number) {
    while (block.warps_runnable) {
        const unsigned after = block.warps_runnable & (~1u << number);
        Warp& warp = block.warps[__builtin_ctz(after ? after : block.warps_runnable)];
        if (warp.runnable) return lowest(warp, 0);
        block.warps_runnable &= ~(1u << warp.number);
    }
    return nullptr;
}

void describe_deadlock();

// The next thread to run: one of the same warp if there is one. Null: the block is done, or stuck.
inline __attribute__((always_inline)) Thread* next_thread(Thread* me) {
    Warp& warp = *me->warp;
    if (__builtin_expect(warp.runnable != 0, 1)) return lowest(warp, warp.runnable & (~1u << me->lane));
    if (__builtin_expect(warp.waits_active != 0, 0)) {
        answer_active_masks(warp);
        return lowest(warp, 0);
    }
    if (Thread* other = in_other_warps(warp.number)) return other;
    if (counts.alive) describe_deadlock();
    return nullptr;
}

// Whether a thread has not run yet; from now on it has.
inline __attribute__((always_inline)) bool starts(Thread* thread) {
    const unsigned bit = 1u << thread->lane, unstarted = thread->warp->unstarted;
    thread->warp->unstarted = unstarted & ~bit;
    return unstarted & bit;
}

inline __attribute__((always_inline)) Fiber* go_to(Thread* next) {
    if (__builtin_expect(next == nullptr, 0)) return &scheduler_fiber;
    if (starts(next)) next->fiber = take_fiber();
    current = next;
    return next->fiber;
}

void resolve_match(Warp& warp, unsigned lanes, bool all) {
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        unsigned equal = 0;
        for (unsigned others = lanes; others; others &= others - 1)
            if (warp.given[__builtin_ctz(others)] == warp.given[lane]) equal |= 1u << __builtin_ctz(others);
        warp.taken[lane] = !all || equal == lanes ? equal : 0;
    }
}

void resolve_shuffle(Warp& warp, unsigned lanes) {
    if (lanes == ~0u) {
        for (unsigned lane = 0; lane < warp_size; ++lane) warp.taken[lane] = warp.given[warp.source[lane]];
        return;
    }
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest), source = warp.source[lane];
        // From an absent lane the value is undefined, and harmless where nobody uses it: all ones, a NaN, shows if one does.
        warp.taken[lane] = lanes >> source & 1 ? warp.given[source] : ~0ull;
    }
}

void resolve_ballot(Warp& warp, unsigned lanes) {
    unsigned votes = 0;
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        if (warp.given[__builtin_ctz(rest)]) votes |= 1u << __builtin_ctz(rest);
    for (unsigned rest = lanes; rest; rest &= rest - 1) warp.taken[__builtin_ctz(rest)] = votes;
}

void resolve(Warp& warp, const Meeting& meeting) {
    switch (meeting.operation) {
        case WarpOperation::sync: ++warp.syncs; break;
        case WarpOperation::shuffle: resolve_shuffle(warp, meeting.arrived); break;
        case WarpOperation::ballot: resolve_ballot(warp, meeting.arrived); break;
        case WarpOperation::match_any: resolve_match(warp, meeting.arrived, false); break;
        case WarpOperation::match_all: resolve_match(warp, meeting.arrived, true); break;
        case WarpOperation::custom: meeting.resolve(warp, meeting.arrived); break;
    }
}

// From compute capability 7.0 on, who has left the kernel is not waited for: neither at a barrier ("all non-exited threads
// in the block", Volta Tuning Guide, Independent Thread Scheduling) nor by a warp operation ("all non-exited threads named
// in mask", CUDA C++ Programming Guide, Synchronization Functions and Warp Shuffle Functions). Before, it was undefined.
const char* const since_volta = "it goes on without them from compute capability 7.0 on, and is undefined before";

const Thread* first_gone(const Warp& warp, unsigned lanes) { return warp.threads + __builtin_ctz(lanes & warp.done); }

void note_gone_from_barrier(int line) {
    if (noted_again(Kind::early_exit, line, 0)) return;
    const Warp* warp = block.warps;
    while (!warp->done) ++warp;
    note(Kind::early_exit, line, 0, "block %s: %u of %u threads have left the kernel before the barrier of line %d (first: thread %s); %s",
         block_text(), block.threads_count - counts.alive, block.threads_count, line, thread_text(first_gone(*warp, ~0u)),
         since_volta);
}

__attribute__((noinline)) void note_gone_from_meeting(const Warp& warp, const Meeting& meeting) {
    if (noted_again(Kind::early_exit, meeting.line, 0)) return;
    note(Kind::early_exit, meeting.line, 0,
         "block %s: of the mask 0x%08x, lanes 0x%08x have left the kernel before the warp operation of line %d (first: thread %s); %s%s",
         block_text(), meeting.mask, meeting.mask & warp.done, meeting.line, thread_text(first_gone(warp, meeting.mask)), since_volta,
         meeting.operation == WarpOperation::shuffle ? "; a value that is read from them is undefined" : "");
}

void complete(Warp& warp, Meeting& meeting) {
    if (__builtin_expect((meeting.mask & warp.done) != 0, 0)) note_gone_from_meeting(warp, meeting);
    resolve(warp, meeting);
    wake(warp, meeting.arrived);
    meeting = warp.meetings[--warp.meetings_count];
}

Meeting& join_meeting(Warp& warp, WarpOperation operation, int line, unsigned mask, Resolve resolve) {
    for (unsigned i = 0; i < warp.meetings_count; ++i) {
        Meeting& meeting = warp.meetings[i];
        if (meeting.operation == operation && meeting.mask == mask && meeting.resolve == resolve) return meeting;
    }
    Meeting& meeting = warp.meetings[warp.meetings_count++];
    meeting = {mask, 0, operation, line, resolve};
    return meeting;
}

void release_barrier() {
    Barrier& barrier = block.barrier;
    const int everyone = static_cast<int>(counts.at_barrier);
    barrier_result = barrier.kind == BarrierKind::all   ? barrier.sum == everyone
                     : barrier.kind == BarrierKind::any ? barrier.sum != 0
                                                        : barrier.sum;
    counts.at_barrier = 0;
    barrier.sum = 0;
    ++block.epoch;
    for (unsigned i = 0; i < block.warps_count; ++i) {
        Warp& warp = block.warps[i];
        if (const unsigned lanes = warp.exists & ~warp.done) wake(warp, lanes);
    }
}

const Meeting* meeting_of(const Thread& thread) {
    const Warp& warp = *thread.warp;
    for (unsigned i = 0; i < warp.meetings_count; ++i)
        if (warp.meetings[i].arrived >> thread.lane & 1) return &warp.meetings[i];
    return nullptr;
}

void describe_deadlock() {
    unsigned at_barrier = 0, in_meetings = 0;
    const Thread *barrier_thread = nullptr, *meeting_thread = nullptr;
    for (unsigned i = 0; i < block.threads_count; ++i) {
        const Thread& thread = block.threads[i];
        if (thread.warp->done >> thread.lane & 1) continue;
        if (!meeting_of(thread)) barrier_thread = at_barrier++ ? barrier_thread : &thread;
        else meeting_thread = in_meetings++ ? meeting_thread : &thread;
    }
    char waiting[160] = "", meeting_text[240] = "", exited[80] = "";
    if (barrier_thread)
        format(waiting, sizeof waiting, "; %u threads wait at __syncthreads() line %d (first: thread %s)", at_barrier,
               barrier_thread->line, thread_text(barrier_thread));
    if (meeting_thread)
        format(meeting_text, sizeof meeting_text,
               "; %u threads wait in a warp operation at line %d (first: thread %s; mask 0x%08x, arrived 0x%08x)", in_meetings,
               meeting_thread->line, thread_text(meeting_thread), meeting_of(*meeting_thread)->mask,
               meeting_of(*meeting_thread)->arrived);
    if (counts.alive != block.threads_count)
        format(exited, sizeof exited, "; %u threads have exited", block.threads_count - counts.alive);
    const Thread* blamed = meeting_thread ? meeting_thread : barrier_thread;
    note(Kind::divergence, blamed ? blamed->line : 0, barrier_thread ? barrier_thread->line : 0,
         "block %s can never go on%s%s%s", block_text(), waiting, meeting_text, exited);
    abandoned = true;
}

void set_up_threads(const dim3& shape) {
    block.threads_count = shape.x * shape.y * shape.z;
    block.warps_count = (block.threads_count + warp_size - 1) / warp_size;
    for (unsigned i = 0; i < block.threads_count; ++i) {
        Thread& thread = block.threads[i];
        thread.index = {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)};
        thread.linear = i;
        thread.lane = i % warp_size;
        thread.warp = &block.warps[i / warp_size];
    }
    for (unsigned i = 0; i < block.warps_count; ++i) {
        const unsigned left = block.threads_count - i * warp_size;
        block.warps[i].number = i;
        block.warps[i].threads = &block.threads[i * warp_size];
        block.warps[i].exists = left >= warp_size ? ~0u : (1u << left) - 1;
    }
}

void run_block() {
    for (unsigned i = 0; i < block.warps_count; ++i) {
        Warp& warp = block.warps[i];
        warp.runnable = warp.unstarted = warp.exists;
        warp.done = warp.waits_active = warp.meetings_count = warp.syncs = 0;
    }
    block.warps_runnable = block.warps_count == 32 ? ~0u : (1u << block.warps_count) - 1;
    counts = {block.threads_count, 0};
    block.barrier = {};
    ++block.epoch;
    ++block.serial;
    checker_begin_block();
    current = block.warps[block.first_warp].threads;
    starts(current);
    current->fiber = take_fiber();
    switch_fiber(&scheduler_fiber, current->fiber);
    checker_end_block();
}

std::uint64_t greatest_common_divisor(std::uint64_t a, std::uint64_t b) { return b ? greatest_common_divisor(b, a % b) : a; }

// i -> (start + i * step) mod total visits every block once when step and total share no factor.
struct Permutation {
    std::uint64_t total, start = 0, step = 1;
    Permutation(std::uint64_t total_, std::uint64_t order) : total(total_) {
        if (!order || total < 2) return;
        start = order % total;
        step = (order >> 8) % total | 1;
        while (greatest_common_divisor(step, total) != 1) ++step;
    }
    std::uint64_t operator()(std::uint64_t i) const {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * step + start) % total);
    }
};

}  // namespace

bool run_launch(const Kernel& kernel, void* const* arguments, const LaunchShape& shape) {
    reset_fibers(fiber_main);
    running_kernel = &kernel;
    running_arguments = arguments;
    abandoned = false;
    block_dim = shape.block;
    grid_dim = shape.grid;
    dynamic_shared_bytes = shape.shared_bytes;
    set_up_threads(shape.block);
    block.first_warp = static_cast<unsigned>(shape.order % block.warps_count);
    checker_begin_launch();
    const std::uint64_t total = 1ull * shape.grid.x * shape.grid.y * shape.grid.z;
    const Permutation permutation(total, shape.order);
    for (std::uint64_t i = 0; i < total && !abandoned; ++i) {
        const std::uint64_t b = permutation(i);
        block_index = {static_cast<unsigned>(b % shape.grid.x), static_cast<unsigned>(b / shape.grid.x % shape.grid.y),
                       static_cast<unsigned>(b / shape.grid.x / shape.grid.y)};
        run_block();
    }
    current = nullptr;
    return !abandoned;
}

void abandon_launch() {
    abandoned = true;
    switch_fiber(current->fiber, &scheduler_fiber);
    __builtin_unreachable();
}

Fiber* arrive_at_barrier(int line, int predicate, BarrierKind kind) {
    Barrier& barrier = block.barrier;
    Thread* me = current;
    if (counts.at_barrier == 0) {
        barrier.line = line;
        barrier.kind = kind;
    } else if (barrier.line != line) {
        note(Kind::divergence, line, barrier.line, "block %s: thread %s is at the barrier of line %d while others wait at line %d",
             block_text(), thread_text(me), line, barrier.line);
    }
    barrier.sum += predicate;
    if (++counts.at_barrier == counts.alive) {
        if (counts.alive != block.threads_count) note_gone_from_barrier(line);
        release_barrier();
        return nullptr;
    }
    suspend(me, line);
    return go_to(next_thread(me));
}

Fiber* arrive_at_meeting(WarpOperation operation, int line, unsigned mask, Resolve resolve) {
    Thread* me = current;
    Warp& warp = *me->warp;
    const unsigned mine = 1u << me->lane;
    mask &= warp.exists;
    if (__builtin_expect(!(mask & mine), 0)) {
        note(Kind::divergence, line, 0, "block %s, thread %s calls a warp operation with mask 0x%08x, which lacks its own lane %u",
             block_text(), thread_text(me), mask, me->lane);
        mask |= mine;
    }
    Meeting& meeting = join_meeting(warp, operation, line, mask, resolve);
    meeting.arrived |= mine;
    if (meeting.arrived == (meeting.mask & ~warp.done)) {
        complete(warp, meeting);
        return nullptr;
    }
    suspend(me, line);
    return go_to(next_thread(me));
}

Fiber* arrive_at_active_mask(int line) {
    Thread* me = current;
    me->warp->waits_active |= 1u << me->lane;
    suspend(me, line);
    return go_to(next_thread(me));
}

Fiber* give_way() {
    Thread* me = current;
    Warp& warp = *me->warp;
    const unsigned later = warp.runnable & (~1u << me->lane);
    Thread* next = later ? lowest(warp, later) : in_other_warps(warp.number);
    return next == me ? nullptr : go_to(next);
}

// Behind `finish_thread`: somebody waits, or the next thread does not simply start on this stack.
Fiber* finish_slowly() {
    Thread* me = current;
    Warp& warp = *me->warp;
    for (unsigned i = 0; i < warp.meetings_count;) {
        Meeting& meeting = warp.meetings[i];
        if ((meeting.mask & ~warp.done) != meeting.arrived) ++i;
        else complete(warp, meeting), i = 0;
    }
    if (counts.at_barrier != 0 && counts.at_barrier == counts.alive) {
        note_gone_from_barrier(block.barrier.line);
        release_barrier();
    }
    Thread* next = next_thread(me);
    if (next && starts(next)) {
        next->fiber = me->fiber;
        current = next;
        return nullptr;
    }
    park_fiber(me->fiber);
    return go_to(next);
}

}  // namespace cuda_host
