// The two ways to fail, and what the program returns for each.
#pragma once

#include <stdexcept>
#include <string>

namespace harness {

constexpr int RIGHT = 0, WRONG = 1, CANNOT_RUN = 2;

// The machine, the compiler or a file is at fault; the message says what to do.
struct CannotRun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The kernel is at fault: an illegal access, an assertion, …
struct KernelFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace harness
