// The job, as the parent writes it to standard input: lines of words, ended by `go`. The parent is trusted; the text is
// generated from numbers (evaluators/host.py), so a malformed job ends the program.
//
//   seed N | order N | time_limit_ms N | warmup N | timed 0|1 | flush N | tight 0|1
//   buffer NAME BYTES ALIGN in|out|inout FILE|-      file names are in the working directory
//   scalar NAME i|f|r HEX                            the value's bytes
//   symbol NAME global|shared ADDRESS BYTES          a variable of the candidate; shared: offset in the TLS segment
//   zero NAME
//   launch KERNEL GX GY GZ BX BY BZ SHARED COUNT
//   argument NAME                                    COUNT of these follow a launch
#pragma once
#include <cstddef>
#include <cstdint>

#include "../device/types.hpp"
#include "memory.hpp"

namespace cuda_host {

enum class Direction : std::uint8_t { in, out, inout };

struct Buffer {
    char name[64];
    std::size_t bytes, align;
    Direction direction;
    char file[64];         // "" when it arrives poisoned
    bool zero;
    Allocation memory;
    void* pointer;         // what a kernel's argument points at
    const char* content;   // the file, mapped
    unsigned region;
};

struct Scalar {
    char name[64];
    char kind;
    unsigned bytes;
    alignas(16) unsigned char value[16];
};

struct Argument {
    const Buffer* buffer;
    const Scalar* scalar;
};

constexpr unsigned most_buffers = 64, most_scalars = 64, most_launches = 64, most_arguments = 64;

struct JobLaunch {
    unsigned kernel;
    dim3 grid, block;
    unsigned shared_bytes, count;
    Argument arguments[most_arguments];
};

struct Job {
    std::uint64_t seed, order, time_limit_ms, warmup, flush;
    bool timed, tight;
    unsigned buffers_count, scalars_count, launches_count;
    Buffer buffers[most_buffers];
    Scalar scalars[most_scalars];
    JobLaunch launches[most_launches];
};

extern Job job;

void read_job();
// Bytes that follow the job on standard input: 'g' starts a timed run, behind it 'm' asks for one more and 'e' for the end.
char await_word();

}  // namespace cuda_host
