// Shared libraries that are looked for when the program runs, so that it starts on any machine.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "errors.hpp"

namespace harness {

class Library {
  public:
    // Open the first of `names` that can be loaded; `missing` says what it means that none can, and what to do.
    Library(const std::vector<std::string>& names, const std::string& missing) : name_(names.back()) {
        std::string why;
        for (const std::string& name : names) {
            handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle_) {
                name_ = name;
                return;
            }
            const char* error = dlerror();
            why += std::string("\n  ") + (error ? error : name.c_str());
        }
        throw CannotRun(missing + why);
    }

    template <class Function>
    void find(Function& function, const char* symbol) const {
        function = reinterpret_cast<Function>(dlsym(handle_, symbol));
        if (!function) throw CannotRun(name_ + " has no function " + symbol + ": it is too old; update it");
    }

  private:
    std::string name_;
    void* handle_ = nullptr;
};

}  // namespace harness
