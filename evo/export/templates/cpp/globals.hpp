// A program's own memory that outlives a launch: __device__ and static variables. Every run begins as after loading.
#pragma once

#include <elf.h>

#include <string>
#include <vector>

#include "driver.hpp"

namespace harness {

// Return the names of variables in machine code (an ELF file) that code can write and that no launch clears.
inline std::vector<std::string> lasting_variables(const std::string& image) {
    const auto at = [&image](std::size_t offset, std::size_t bytes) {
        if (offset > image.size() || bytes > image.size() - offset) throw CannotRun("NVRTC's machine code is damaged");
        return image.data() + offset;
    };
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(at(0, sizeof(Elf64_Ehdr)));
    const auto* sections =
        reinterpret_cast<const Elf64_Shdr*>(at(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)));
    const auto name_of = [&](const Elf64_Shdr& section) {
        return std::string(at(sections[header->e_shstrndx].sh_offset + section.sh_name, 1));
    };
    const auto lasts = [&](const Elf64_Shdr& section) {
        const std::string name = name_of(section);
        const bool transient = name.rfind(".nv.shared.", 0) == 0 || name.rfind(".nv.merc.", 0) == 0;
        return (section.sh_flags & SHF_ALLOC) && (section.sh_flags & SHF_WRITE) && !transient;
    };
    std::vector<std::string> names;
    for (unsigned index = 0; index < header->e_shnum; ++index) {
        if (sections[index].sh_type != SHT_SYMTAB) continue;
        const Elf64_Shdr& table = sections[index];
        const auto* symbols = reinterpret_cast<const Elf64_Sym*>(at(table.sh_offset, table.sh_size));
        for (std::size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
            const Elf64_Sym& symbol = symbols[i];
            const bool placed = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < header->e_shnum;
            if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || !placed || !lasts(sections[symbol.st_shndx])) continue;
            names.emplace_back(at(sections[table.sh_link].sh_offset + symbol.st_name, 1));
        }
    }
    return names;
}

class Globals {
  public:
    Globals(const Driver& driver, CUmodule module, const std::string& image) : driver_(driver) {
        for (const std::string& name : lasting_variables(image)) {
            Variable found{};
            if (driver.module_global(&found.address, &found.bytes, module, name.c_str()) != CUDA_SUCCESS) continue;
            driver.check(driver.allocate(&found.first, found.bytes), "cuMemAlloc for a copy of the variable " + name);
            driver.check(driver.copy(found.first, found.address, found.bytes, nullptr), "a copy of " + name);
            variables_.push_back(found);
        }
        driver.check(driver.stream_wait(nullptr), "copies of variables");
    }

    ~Globals() {
        for (const Variable& variable : variables_) driver_.release(variable.first);
    }

    Globals(const Globals&) = delete;
    Globals& operator=(const Globals&) = delete;

    // Queue that every variable gets its first value again.
    void restore(CUstream stream) const {
        for (const Variable& variable : variables_) {
            driver_.check(driver_.copy(variable.address, variable.first, variable.bytes, stream), "restoring variables");
        }
    }

  private:
    struct Variable {
        CUdeviceptr address, first;
        std::size_t bytes;
    };
    const Driver& driver_;
    std::vector<Variable> variables_;
};

}  // namespace harness
