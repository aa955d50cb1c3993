// NVRTC, loaded when the program runs: CUDA source in, machine code out.
#pragma once

#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "library.hpp"

namespace harness {

namespace fs = std::filesystem;

// Machine code, and each kernel's symbol in it.
struct Program {
    std::string image;
    std::map<std::string, std::string> symbols;
};

inline std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw CannotRun(path.string() + ": expected a file of this export, found none; export again");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Compiler {
  public:
    // Args: a library to take before all others ("" for none); folders with CUDA's headers; those of this export.
    Compiler(const std::string& library, std::vector<std::string> includes, const fs::path& own_headers)
        : includes_(std::move(includes)),
          library_(candidates(library, includes_), "no CUDA compiler: install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc`, and name its libnvrtc.so "
                   "with --nvrtc or KERNEL_EVO_NVRTC") {
        library_.find(version_, "nvrtcVersion");
        library_.find(error_, "nvrtcGetErrorString");
        library_.find(create_, "nvrtcCreateProgram");
        library_.find(destroy_, "nvrtcDestroyProgram");
        library_.find(name_, "nvrtcAddNameExpression");
        library_.find(lowered_, "nvrtcGetLoweredName");
        library_.find(compile_, "nvrtcCompileProgram");
        library_.find(log_size_, "nvrtcGetProgramLogSize");
        library_.find(log_, "nvrtcGetProgramLog");
        library_.find(image_size_, "nvrtcGetCUBINSize");
        library_.find(image_, "nvrtcGetCUBIN");
        read_headers(own_headers, small_);
        whole_ = small_;
        read_headers(own_headers / "whole", whole_);
    }

    std::string version() const {
        int major = 0, minor = 0;
        version_(&major, &minor);
        return std::to_string(major) + "." + std::to_string(minor);
    }

    // Compile; `name` is the file's name in messages. Standard C++ headers come whole only where the small ones lack
    // something, since NVRTC takes more than a second to read them.
    Program compile(const std::string& source, const std::string& name, const std::vector<std::string>& kernels,
                    const std::string& arch, const std::vector<std::string>& defines,
                    const std::vector<std::string>& options) const {
        std::vector<std::string> all{"--gpu-architecture=" + arch};
        const auto is_standard = [](const std::string& option) { return option.rfind("--std", 0) == 0; };
        if (std::none_of(options.begin(), options.end(), is_standard)) all.push_back("--std=c++17");
        for (const std::string& folder : includes_) all.push_back("--include-path=" + folder);
        for (const std::string& define : defines) all.push_back("-D" + define);
        all.insert(all.end(), options.begin(), options.end());
        std::vector<std::string> slim = all;
        slim.push_back("-D_CG_LIMIT_INCLUDED_DEPENDENCIES=1");
        Attempt made = attempt(source, name, kernels, slim, small_);
        if (made.code == NVRTC_ERROR_COMPILATION && includes_large_headers(source)) {
            made = attempt(source, name, kernels, all, whole_);
        }
        if (made.code != NVRTC_SUCCESS) {
            throw CannotRun(name + " does not compile with NVRTC " + version() + " for " + arch + " (" +
                            error_(made.code) + "):\n" + made.log);
        }
        return made.program;
    }

  private:
    struct Attempt {
        nvrtcResult code;
        std::string log;
        Program program;
    };
    using Headers = std::map<std::string, std::string>;

    static std::vector<std::string> candidates(const std::string& library, const std::vector<std::string>& includes) {
        if (!library.empty()) return {library};
        if (const char* named = std::getenv("KERNEL_EVO_NVRTC")) return {named};
        std::vector<fs::path> roots;
        for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
            if (const char* home = std::getenv(variable)) roots.emplace_back(home);
        for (const std::string& folder : includes) {
            roots.push_back(fs::path(folder).parent_path());
            roots.push_back(fs::path(folder).parent_path().parent_path());
        }
        roots.emplace_back("/usr/local/cuda");
        std::vector<std::string> found;
        for (const fs::path& root : roots)
            for (const char* part : {"lib64", "lib", "cuda_nvrtc/lib"}) append_libraries(root / part, found);
        for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) found.emplace_back(name);
        return found;
    }

    static void append_libraries(const fs::path& folder, std::vector<std::string>& found) {
        std::error_code ignored;
        std::vector<std::string> here;
        for (const auto& entry : fs::directory_iterator(folder, ignored)) {
            const std::string name = entry.path().filename().string();
            if (name.rfind("libnvrtc.so", 0) == 0) here.push_back(entry.path().string());
        }
        std::sort(here.rbegin(), here.rend());
        found.insert(found.end(), here.begin(), here.end());
    }

    static bool includes_large_headers(const std::string& source) {
        for (const char* name : {"cooperative_groups", "algorithm", "array", "functional", "initializer_list", "limits",
                                 "tuple", "type_traits", "utility"}) {
            for (const char* quote : {"<", "\""})
                if (source.find(std::string(quote) + name) != std::string::npos) return true;
        }
        return false;
    }

    static void read_headers(const fs::path& folder, Headers& headers) {
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator(folder, ignored))
            if (entry.is_regular_file()) headers[entry.path().filename().string()] = read_file(entry.path());
    }

    Attempt attempt(const std::string& source, const std::string& name, const std::vector<std::string>& kernels,
                    const std::vector<std::string>& options, const Headers& headers) const {
        std::vector<const char*> texts, names, given;
        for (const auto& [header, text] : headers) {
            names.push_back(header.c_str());
            texts.push_back(text.c_str());
        }
        for (const std::string& option : options) given.push_back(option.c_str());
        nvrtcProgram program = nullptr;
        const int count = static_cast<int>(headers.size());
        Attempt made{create_(&program, source.c_str(), name.c_str(), count, texts.data(), names.data()), "", {}};
        if (made.code != NVRTC_SUCCESS) return made;
        for (const std::string& kernel : kernels) name_(program, kernel.c_str());
        made.code = compile_(program, static_cast<int>(given.size()), given.data());
        std::size_t size = 0;
        if (log_size_(program, &size) == NVRTC_SUCCESS && size > 1) {
            made.log.resize(size);
            log_(program, made.log.data());
            made.log.resize(size - 1);  // without its closing zero
        }
        if (made.code == NVRTC_SUCCESS) collect(program, kernels, made.program);
        destroy_(&program);
        return made;
    }

    void collect(nvrtcProgram program, const std::vector<std::string>& kernels, Program& made) const {
        std::size_t size = 0;
        image_size_(program, &size);
        made.image.resize(size);
        image_(program, made.image.data());
        for (const std::string& kernel : kernels) {
            const char* symbol = nullptr;
            const bool known = lowered_(program, kernel.c_str(), &symbol) == NVRTC_SUCCESS && symbol;
            made.symbols[kernel] = known ? symbol : kernel;
        }
    }

    std::vector<std::string> includes_;
    Library library_;
    Headers small_, whole_;
    nvrtcResult (*version_)(int*, int*);
    const char* (*error_)(nvrtcResult);
    nvrtcResult (*create_)(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
    nvrtcResult (*destroy_)(nvrtcProgram*);
    nvrtcResult (*name_)(nvrtcProgram, const char*);
    nvrtcResult (*lowered_)(nvrtcProgram, const char*, const char**);
    nvrtcResult (*compile_)(nvrtcProgram, int, const char* const*);
    nvrtcResult (*log_size_)(nvrtcProgram, std::size_t*);
    nvrtcResult (*log_)(nvrtcProgram, char*);
    nvrtcResult (*image_size_)(nvrtcProgram, std::size_t*);
    nvrtcResult (*image_)(nvrtcProgram, char*);
};

}  // namespace harness
