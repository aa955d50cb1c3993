// Is an output right? The same rule that the run used; see Tolerance in plan.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "plan.hpp"

namespace harness {

using Bytes = std::vector<unsigned char>;

// IEEE half precision, which C++17 has no type for.
struct Half {
    std::uint16_t bits;
    explicit operator double() const {
        const int exponent = bits >> 10 & 31;
        const double sign = bits & 0x8000 ? -1.0 : 1.0, fraction = bits & 0x3ff;
        if (exponent == 31) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
        return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
    }
    bool operator==(Half other) const { return double(*this) == double(other); }
};

// What an expected value becomes where it overflows the output's type; any other value stays as it is.
template <class T>
double overflowed(double value) {
    if constexpr (std::is_same_v<T, float>) return std::isinf(static_cast<float>(value)) ? INFINITY * value : value;
    if constexpr (std::is_same_v<T, Half>) return std::fabs(value) >= 65520 ? INFINITY * value : value;
    return value;
}

struct Verdict {
    double error = 0;  // the largest, in units of what is allowed; infinite where nothing excuses it
    std::size_t wrong = 0, first = 0;
    std::string words;

    void note(std::size_t index, double units) {
        error = std::max(error, units);
        if (units > 1 && wrong++ == 0) first = index;
    }
};

template <class T>
T element(const Bytes& bytes, std::size_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

template <class T>
std::string number(T value) {
    char text[40];
    if constexpr (std::is_integral_v<T>) return std::to_string(value);
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    return text;
}

inline std::string index_text(std::size_t flat, const std::vector<std::size_t>& shape) {
    std::string text;
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
        text = std::to_string(flat % *extent) + (text.empty() ? "" : ", ") + text;
        flat /= *extent;
    }
    return "[" + text + "]";
}

template <class T, class Expected>
void describe(Verdict& verdict, const Buffer& buffer, const Bytes& got, const Bytes& expected) {
    if (!verdict.wrong) return;
    verdict.words = "output " + buffer.name + ": " + std::to_string(verdict.wrong) + " of " +
                    std::to_string(buffer.count()) + " elements are wrong; the first is " +
                    index_text(verdict.first, buffer.shape) + ": got " + number(element<T>(got, verdict.first)) +
                    ", expected " + number(element<Expected>(expected, verdict.first));
}

// Expected values have the output's own type.
template <class T>
Verdict compare_exactly(const Buffer& buffer, const Bytes& got, const Bytes& expected) {
    Verdict verdict;
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        const T found = element<T>(got, i), want = element<T>(expected, i);
        bool same = found == want;
        if constexpr (!std::is_integral_v<T>) same |= std::isnan(double(found)) && std::isnan(double(want));
        verdict.note(i, same ? 0 : INFINITY);
    }
    describe<T, T>(verdict, buffer, got, expected);
    return verdict;
}

// Expected values, and the scale where there is one, are float64.
template <class T>
Verdict compare_within(const Buffer& buffer, const Tolerance& tolerance, const Bytes& got, const Bytes& expected,
                       const Bytes& scale) {
    Verdict verdict;
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        const double found = static_cast<double>(element<T>(got, i)), want = element<double>(expected, i);
        const double magnitude = tolerance.scaled ? element<double>(scale, i) : std::fabs(want);
        const double allowed = tolerance.factor * magnitude + tolerance.slack, rounded = overflowed<T>(want);
        double units = INFINITY;
        if (std::isnan(found) || std::isnan(want)) {
            if (std::isnan(found) && std::isnan(want)) units = 0;
        } else if (std::isinf(found) || std::isinf(rounded)) {
            if (found == rounded) units = 0;
            // The exact result overflows by rounding alone, so that its finite neighbour is as near.
            if (std::isfinite(found) && std::isfinite(want)) units = std::fabs(found - want) / allowed;
        } else {
            units = found == want ? 0 : std::fabs(found - want) / allowed;
        }
        verdict.note(i, units);
    }
    describe<T, double>(verdict, buffer, got, expected);
    return verdict;
}

template <class T>
Verdict compare_as(const Buffer& buffer, const Tolerance& tolerance, const Bytes& got, const Bytes& expected,
                   const Bytes& scale) {
    if (tolerance.exact) return compare_exactly<T>(buffer, got, expected);
    if constexpr (std::is_integral_v<T>) return compare_exactly<T>(buffer, got, expected);
    else return compare_within<T>(buffer, tolerance, got, expected, scale);
}

// Compare one output. Args: what the kernel wrote; what is right; the scale of errors, empty unless `scaled`.
inline Verdict compare(const Buffer& buffer, const Tolerance& tolerance, const Bytes& got, const Bytes& expected,
                       const Bytes& scale) {
    const std::string& dtype = buffer.dtype;
    if (dtype == "float16") return compare_as<Half>(buffer, tolerance, got, expected, scale);
    if (dtype == "float32") return compare_as<float>(buffer, tolerance, got, expected, scale);
    if (dtype == "float64") return compare_as<double>(buffer, tolerance, got, expected, scale);
    if (dtype == "int8") return compare_as<std::int8_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "int16") return compare_as<std::int16_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "int32") return compare_as<std::int32_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "int64") return compare_as<std::int64_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "uint8") return compare_as<std::uint8_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "uint16") return compare_as<std::uint16_t>(buffer, tolerance, got, expected, scale);
    if (dtype == "uint32") return compare_as<std::uint32_t>(buffer, tolerance, got, expected, scale);
    return compare_as<std::uint64_t>(buffer, tolerance, got, expected, scale);
}

}  // namespace harness
