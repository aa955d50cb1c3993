// The parts of an exported program that decide what is right and how latencies are summed up, for comparison with the
// product's own.
//
//   compare DTYPE EXACT FACTOR SLACK SCALED COUNT   reads got.npy, want.npy and scale.npy of this folder
//   median SAMPLE…

#include <cstdlib>
#include <iostream>

#include "timing.hpp"

using namespace harness;

int compare_files(char** words) {
    const Buffer buffer{"y", words[2], {std::strtoul(words[7], nullptr, 10)}, Direction::out, 256,
                        static_cast<std::size_t>(std::stoi(spelling(words[2]).substr(2)))};
    const Tolerance tolerance{"y", words[3] == std::string("1"), std::strtod(words[4], nullptr),
                              std::strtod(words[5], nullptr), words[6] == std::string("1")};
    const std::string kind = tolerance.exact ? buffer.dtype : "float64";
    const std::size_t bytes = buffer.count() * (tolerance.exact ? buffer.item_bytes : 8);
    const Bytes scale = tolerance.scaled ? read_npy("scale.npy", "float64", bytes) : Bytes{};
    const Bytes got = read_npy("got.npy", buffer.dtype, buffer.bytes());
    const Verdict verdict = compare(buffer, tolerance, got, read_npy("want.npy", kind, bytes), scale);
    std::cout.precision(17);
    std::cout << verdict.error << " " << verdict.wrong << " " << verdict.first << "\n";
    return 0;
}

int main(int argc, char** argv) {
    if (argv[1] == std::string("compare")) return compare_files(argv);
    std::vector<double> samples;
    for (int i = 2; i < argc; ++i) samples.push_back(std::strtod(argv[i], nullptr));
    const Latency found = summarise(samples, true);
    std::cout.precision(17);
    std::cout << found.median_us << " " << found.low_us << " " << found.high_us << "\n";
    return 0;
}
