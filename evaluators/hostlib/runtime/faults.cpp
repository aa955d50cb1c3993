#include "faults.hpp"

#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "../device/runtime.hpp"
#include "checker.hpp"
#include "fiber.hpp"
#include "memory.hpp"
#include "report.hpp"

namespace cuda_host {

namespace {

std::uint64_t limit_ms;

std::uintptr_t program_counter(const ucontext_t& context) {
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]) + 1;  // as a return address: behind it
#elif defined(__aarch64__)
    return context.uc_mcontext.pc + 1;
#else
    return 0;
#endif
}

const char* did(const ucontext_t& context) {
#if defined(__x86_64__)
    return context.uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
    (void)context;
    return "touches";
#endif
}

void note_segmentation(std::uintptr_t address, const ucontext_t& context) {
    const Place where(program_counter(context));
    const Region* region = find_region(address);
    if (region && address >= region->low && address < region->high && region->read_only)
        note(Kind::input_written, where, 0, "%s writes the input %s at byte %ld", here_text(), region->name,
             static_cast<long>(address - region->low));
    else if (region)
        note(Kind::out_of_bounds, where, 0, "%s %s byte %ld of %s, which has %lu bytes", here_text(), did(context),
             static_cast<long>(address - region->low), region->name, static_cast<unsigned long>(region->high - region->low));
    else if (is_on_fiber_stack(address))
        note(Kind::stack_overflow, where, 0, "%s needs more than %zu bytes of local memory", here_text(), stack_bytes);
    else
        note(Kind::wild_access, where, 0, "%s %s address 0x%lx, which is no buffer's", here_text(), did(context),
             static_cast<unsigned long>(address));
}

void on_signal(int signal, siginfo_t* info, void* context_) {
    const auto& context = *static_cast<ucontext_t*>(context_);
    const Place where(program_counter(context));
    switch (signal) {
        case SIGPROF:
            note(Kind::timeout, last_access_pc ? Place(last_access_pc) : where, 0, "%s was still running after %lu ms",
                 here_text(), static_cast<unsigned long>(limit_ms));
            end("timeout");
        case SIGSEGV:
        case SIGBUS: note_segmentation(reinterpret_cast<std::uintptr_t>(info->si_addr), context); break;
        case SIGFPE: note(Kind::arithmetic, where, 0, "%s divides an integer by zero, or overflows in a division", here_text()); break;
        default: note(Kind::trap, where, 0, "%s executes an illegal instruction (signal %d)", here_text(), signal);
    }
    end("failed");
}

}  // namespace

void catch_faults() {
    static char stack[64 * 1024];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF};
    for (int signal : signals) sigaction(signal, &action, nullptr);
}

void start_clock(std::uint64_t limit) {
    limit_ms = limit;
    if (!limit) return;
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(limit / 1000);
    timer.it_value.tv_usec = static_cast<suseconds_t>(limit % 1000 * 1000);
    setitimer(ITIMER_PROF, &timer, nullptr);
}

[[noreturn]] void trap(const char* what, int line) {
    note(Kind::trap, line, 0, "%s fails in %s", what, here_text());
    end("failed");
}

}  // namespace cuda_host
