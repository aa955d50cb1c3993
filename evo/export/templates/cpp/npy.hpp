// Reads NumPy's .npy files (format 1 to 3), as numpy.save writes them: C order, little-endian.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "errors.hpp"

namespace harness {

// NumPy's name of a type -> how a .npy file spells it.
inline std::string spelling(const std::string& dtype) {
    if (dtype == "float16") return "<f2";
    if (dtype == "float32") return "<f4";
    if (dtype == "float64") return "<f8";
    const bool is_signed = dtype.rfind("int", 0) == 0;
    const int bits = std::stoi(dtype.substr(is_signed ? 3 : 4));
    return std::string(bits == 8 ? "|" : "<") + (is_signed ? "i" : "u") + std::to_string(bits / 8);
}

// Return the bytes of an array; its type and number of elements must be as told.
inline std::vector<unsigned char> read_npy(const std::string& path, const std::string& dtype, std::size_t bytes) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw CannotRun(path + ": expected a stored array, found no file; export again with this case");
    unsigned char head[12] = {};
    file.read(reinterpret_cast<char*>(head), 10);
    if (!file || std::string(head, head + 6) != "\x93NUMPY") throw CannotRun(path + ": expected a .npy file");
    std::size_t length = head[8] | head[9] << 8;
    if (head[6] > 1) {
        file.read(reinterpret_cast<char*>(head + 10), 2);
        length |= static_cast<std::size_t>(head[10]) << 16 | static_cast<std::size_t>(head[11]) << 24;
    }
    std::string description(length, '\0');
    file.read(description.data(), static_cast<std::streamsize>(length));
    const auto says = [&description](const std::string& text) { return description.find(text) != std::string::npos; };
    if (!says("'descr': '" + spelling(dtype) + "'") || !says("'fortran_order': False")) {
        throw CannotRun(path + ": expected " + dtype + " in C order, found " + description);
    }
    std::vector<unsigned char> content(bytes);
    file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(bytes));
    if (static_cast<std::size_t>(file.gcount()) != bytes || file.peek() != std::ifstream::traits_type::eof()) {
        throw CannotRun(path + ": expected " + std::to_string(bytes) + " bytes of data, found more or fewer");
    }
    return content;
}

}  // namespace harness
