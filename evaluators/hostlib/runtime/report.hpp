// What was found, and how it is told to the parent: lines of tab-separated fields on standard output.
//
//   ready                                              buffers are prepared; the parent's byte starts the timed run
//   sample <ns>                                        one timed run by this clock
//   finding <kind> <line> <other> <pc> <other pc> <count> <text>
//   end <how>                                          done, refused or failed: nothing follows
// A line of the candidate's source is given where it is known, else a program counter for the parent to look up.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_host {

struct Thread;

enum class Kind : std::uint8_t {
    out_of_bounds,
    input_written,
    race_shared,
    race_global,
    uninitialised,
    divergence,
    early_exit,
    misaligned,
    stack_overflow,
    wild_access,
    timeout,
    arithmetic,
    trap,
    bad_launch,
    fault,
};

// Worth saying, and no fault: the run goes on and its results count (explain.py has the same table).
constexpr bool is_advice(Kind kind) { return kind == Kind::early_exit; }

// Where in the candidate something happened: `line` if known, else `pc`.
struct Place {
    int line = 0;
    std::uintptr_t pc = 0;
    Place(int line_) : line(line_) {}
    // No program lies below the first 4 MiB (the linker's default), so a small number is a line.
    explicit Place(std::uintptr_t site) : line(site < 0x400000 ? static_cast<int>(site) : 0), pc(site < 0x400000 ? 0 : site) {}
};

// Equal kinds at equal places are one finding with a count. Where there is no room, a fault takes the place of advice.
void note(Kind kind, Place where, Place other, const char* text, ...) __attribute__((format(printf, 4, 5)));
// Whether such a finding is there already; it is counted then. Spares the work of wording it.
bool noted_again(Kind kind, Place where, Place other);
bool any_fault_noted();
void format(char* out, std::size_t size, const char* text, ...) __attribute__((format(printf, 3, 4)));

const char* block_text();                       // "(0,1,0)"
const char* thread_text(const Thread* thread);  // "(31,0,0)"
const char* here_text();                        // "block (0,1,0), thread (31,0,0)"

void send(const char* text, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void end(const char* how);         // sends all findings first

}  // namespace cuda_host
