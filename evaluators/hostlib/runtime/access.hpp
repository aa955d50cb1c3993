// One access of the candidate to memory, as the compiler's instrumentation reports it.
#pragma once
#include <cstdint>

namespace cuda_host {

enum class Touch : std::uint8_t { read, write, atomic };

struct Access {
    std::uintptr_t address;
    unsigned size;
    Touch touch;
    bool is_volatile;
    std::uintptr_t pc;  // or a line: see Place
};

void on_access(const Access& access);
void publish();  // an atomic or volatile write: what this thread fenced before is visible to who reads it

}  // namespace cuda_host
