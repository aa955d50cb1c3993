// Atomic functions. Fibers are never interrupted, so a plain read and write is atomic; the check flavour is told of each.
// An atomic that polls (a failed compare-and-swap, an exchange or addition that changes nothing) lets other threads run,
// so that a lock whose holder waits elsewhere is released.
#pragma once
#include <cstring>

#include "runtime.hpp"

namespace cuda_host {

template <class T, class F>
CUDA_HOST_INTERNAL T modify(T* address, int line, F update) {
#ifdef CUDA_HOST_CHECK
    on_atomic(address, sizeof(T), line);
#else
    (void)line;
#endif
    const T old = *address;
    *address = update(old);
    return old;
}

template <class T>
CUDA_HOST_INTERNAL bool same_bits(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

}  // namespace cuda_host

#define CUDA_HOST_ATOMIC(NAME, POLLS, RESULT)                                                                        \
    template <class T, class V>                                                                                      \
    CUDA_HOST_INTERNAL T NAME(T* address, V value_, int line = __builtin_LINE()) {                                   \
        const T value = static_cast<T>(value_);                                                                      \
        const T old = ::cuda_host::modify(                                                                           \
            address, line, [value](T o) __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) -> T { return (RESULT); }); \
        if (POLLS) ::cuda_host::yield_thread();                                                                      \
        return old;                                                                                                  \
    }                                                                                                                \
    template <class T, class V>                                                                                      \
    CUDA_HOST_INTERNAL T NAME##_block(T* address, V value, int line = __builtin_LINE()) {                            \
        return NAME(address, value, line);                                                                           \
    }                                                                                                                \
    template <class T, class V>                                                                                      \
    CUDA_HOST_INTERNAL T NAME##_system(T* address, V value, int line = __builtin_LINE()) {                           \
        return NAME(address, value, line);                                                                           \
    }

CUDA_HOST_ATOMIC(atomicAdd, value == T(0), o + value)
CUDA_HOST_ATOMIC(atomicSub, value == T(0), o - value)
CUDA_HOST_ATOMIC(atomicExch, ::cuda_host::same_bits(old, value), value)
CUDA_HOST_ATOMIC(atomicMin, false, value < o ? value : o)
CUDA_HOST_ATOMIC(atomicMax, false, value > o ? value : o)
CUDA_HOST_ATOMIC(atomicAnd, false, o & value)
CUDA_HOST_ATOMIC(atomicOr, value == T(0), o | value)
CUDA_HOST_ATOMIC(atomicXor, false, o ^ value)
CUDA_HOST_ATOMIC(atomicInc, false, o >= value ? T(0) : T(o + 1))
CUDA_HOST_ATOMIC(atomicDec, false, (o == 0 || o > value) ? value : T(o - 1))
#undef CUDA_HOST_ATOMIC

template <class T, class C, class V>
CUDA_HOST_INTERNAL T atomicCAS(T* address, C compare_, V value_, int line = __builtin_LINE()) {
    const T compare = static_cast<T>(compare_), value = static_cast<T>(value_);
    const T old = ::cuda_host::modify(
        address, line, [=](T o) __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) -> T {
            return ::cuda_host::same_bits(o, compare) ? value : o;
        });
    if (!::cuda_host::same_bits(old, compare)) ::cuda_host::yield_thread();
    return old;
}
template <class T, class C, class V>
CUDA_HOST_INTERNAL T atomicCAS_block(T* address, C compare, V value, int line = __builtin_LINE()) {
    return atomicCAS(address, compare, value, line);
}
template <class T, class C, class V>
CUDA_HOST_INTERNAL T atomicCAS_system(T* address, C compare, V value, int line = __builtin_LINE()) {
    return atomicCAS(address, compare, value, line);
}
