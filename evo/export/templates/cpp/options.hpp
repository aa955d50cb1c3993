// The command line.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "errors.hpp"
#include "plan.hpp"

namespace harness {

struct Options {
    std::vector<std::string> cases;  // none: all
    std::string arch, nvrtc, folder;
    std::vector<std::string> includes;
    int device = 0;
    bool compile_only = false;
};

constexpr const char* USAGE =
    "usage: harness [options]\n"
    "Compile best.cu, run the stored cases on a GPU, check the outputs and print the latencies.\n"
    "  --case NAME     this case alone; repeatable\n"
    "  --arch sm_90a   compile for this target instead of the GPU's own\n"
    "  --device N      number of the GPU, 0 by default\n"
    "  --compile-only  compile for --arch and run nothing; needs no GPU\n"
    "  --nvrtc FILE    the CUDA compiler to use (libnvrtc.so)\n"
    "  --include DIR   a folder with CUDA's headers; repeatable\n"
    "  --folder DIR    the export's folder, if it is no longer where it was built\n"
    "  --list          print the cases\n"
    "Returns 0 if every output is right, 1 if one is wrong, 2 if nothing can be said.\n";

inline int number(const std::string& flag, const std::string& text) {
    char* end = nullptr;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end || value < 0 || value > 1 << 20) {
        throw CannotRun(flag + ": expected a whole number, found '" + text + "'");
    }
    return static_cast<int>(value);
}

// Read the command line; what it does not say, the export and the build do.
inline Options parse(int argc, char** argv, const Export& what) {
    Options options;
    options.arch = what.target.arch;
    options.folder = HARNESS_FOLDER;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        const auto value = [&]() -> std::string {
            if (i + 1 == argc) throw CannotRun(flag + ": expected a value after it, found the end");
            return argv[++i];
        };
        if (flag == "-h" || flag == "--help") {
            std::cout << USAGE;
            std::exit(RIGHT);
        } else if (flag == "--list") {
            for (const Case& one : what.cases) std::cout << one.name << "  " << one.dims << "\n";
            std::exit(RIGHT);
        } else if (flag == "--case") {
            options.cases.push_back(value());
        } else if (flag == "--arch") {
            options.arch = value();
        } else if (flag == "--device") {
            options.device = number(flag, value());
        } else if (flag == "--compile-only") {
            options.compile_only = true;
        } else if (flag == "--nvrtc") {
            options.nvrtc = value();
        } else if (flag == "--include") {
            options.includes.push_back(value());
        } else if (flag == "--folder") {
            options.folder = value();
        } else {
            throw CannotRun(flag + ": no such option\n" + USAGE);
        }
    }
    for (const std::string& name : options.cases) {
        const auto same = [&name](const Case& one) { return one.name == name; };
        if (std::none_of(what.cases.begin(), what.cases.end(), same)) {
            throw CannotRun("--case " + name + ": this export has no such case; --list names those it has");
        }
    }
    options.includes.push_back(HARNESS_CUDA_INCLUDE);
    return options;
}

}  // namespace harness
