// From a kernel's type to something that the runner can launch: no signature is parsed, templates deduce it.
#pragma once
#include <type_traits>
#include <utility>

#include "runtime.hpp"

namespace cuda_host {

enum class ParameterKind : std::uint8_t { pointer, integer, floating, bytes };

struct ParameterType {
    ParameterKind kind;
    unsigned size;
};

struct Kernel {
    const char* name;
    void (*run_threads)(void* const* arguments);  // runs thread after thread, and never returns
    const ParameterType* parameters;
    unsigned count;
};

template <class T>
constexpr ParameterType parameter_type() {
    using U = std::remove_cv_t<T>;
    constexpr ParameterKind kind = std::is_pointer_v<U>                           ? ParameterKind::pointer
                                   : std::is_integral_v<U> || std::is_enum_v<U>   ? ParameterKind::integer
                                   : std::is_floating_point_v<U>                  ? ParameterKind::floating
                                                                                  : ParameterKind::bytes;
    return {kind, sizeof(U)};
}

template <auto F>
struct Entry;

template <class... A, void (*F)(A...)>
struct Entry<F> {
    static_assert((!std::is_reference_v<A> && ...), "a kernel cannot take references");
    static constexpr ParameterType parameters[sizeof...(A) + 1] = {parameter_type<A>()..., {}};

    template <std::size_t... I>
    __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) static void loop(void* const* arguments,
                                                                                      std::index_sequence<I...>) {
        for (;;) {
            F(*static_cast<std::remove_cv_t<A>*>(arguments[I])...);
            finish_thread();
        }
    }
    static void run_threads(void* const* arguments) { loop(arguments, std::index_sequence_for<A...>{}); }
    static constexpr Kernel kernel(const char* name) { return {name, run_threads, parameters, sizeof...(A)}; }
};

extern const Kernel* const kernels;  // ends with a null name; defined behind the candidate's source

}  // namespace cuda_host
