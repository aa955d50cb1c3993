// What an export holds: cases, buffers, launches, tolerances. Plain data, which plans.hpp fills in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace harness {

enum class Direction { in, out, inout };

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

// An array of the kernel, row-major; `dtype` is NumPy's word, e.g. float32.
struct Buffer {
    std::string name;
    std::string dtype;
    std::vector<std::size_t> shape;
    Direction direction;
    std::size_t align;
    std::size_t item_bytes;

    std::size_t count() const {
        std::size_t product = 1;
        for (std::size_t extent : shape) product *= extent;
        return product;
    }
    std::size_t bytes() const { return count() * item_bytes; }
};

struct Scalar {
    std::string name;
    std::array<unsigned char, 8> bytes;
};

template <class T>
Scalar scalar(std::string name, T value) {
    static_assert(sizeof(T) <= 8, "a kernel's scalars have at most 8 bytes");
    Scalar made{std::move(name), {}};
    std::memcpy(made.bytes.data(), &value, sizeof value);
    return made;
}

// The name of a buffer, a scalar or a workspace; or an int.
using Argument = std::variant<std::string, std::int32_t>;

struct Launch {
    std::string kernel;
    Dim3 grid, block;
    unsigned shared_bytes;
    std::vector<Argument> arguments;
};

struct Workspace {
    std::string name;
    std::size_t bytes;
};

// Everything that is timed of one case, and the program that it needs.
struct Plan {
    std::vector<Launch> launches;
    std::vector<Workspace> workspaces;
    std::vector<std::string> zero;  // zeroed before the first launch
    std::vector<std::string> defines, options;
    bool cooperative = false;
    bool clustered = false;
    Dim3 cluster;
};

// An element is right if |got - expected| <= factor * scale + slack, or, where `exact`, if it is equal. The scale is
// stored beside the expected values where the reference tells one (`scaled`), else it is |expected|.
struct Tolerance {
    std::string output;
    bool exact;
    double factor, slack;
    bool scaled;
};

struct Case {
    std::string name;
    std::string dims;
    double run_latency_us = 0;  // of the run that this comes from; 0 where it was not timed
    std::vector<Buffer> buffers;
    std::vector<Scalar> scalars;
    std::vector<Tolerance> tolerances;
    Plan plan;
};

// The device that the plans are for. They depend on these figures only where the launch header names them.
struct Target {
    std::string name;
    std::string arch;  // "" compiles for the GPU that is there
    bool depends;
    int num_sms, l2_bytes;
};

struct Export {
    std::string workload;
    std::string origin;
    std::vector<std::string> kernels;
    int warmup, launches;
    bool cold;
    Target target;
    std::vector<Case> cases;
};

}  // namespace harness
