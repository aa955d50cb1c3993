// Warp operations. Each lane leaves its value in the warp, waits for the lanes of its mask, and takes its result.
#pragma once
#include <cstring>
#include <type_traits>

#include "runtime.hpp"

namespace cuda_host {

template <class T>
CUDA_HOST_INTERNAL std::uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a warp operation takes values of up to 8 bytes");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
CUDA_HOST_INTERNAL T from_bits(std::uint64_t bits) {
    std::remove_cv_t<T> value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T>
CUDA_HOST_INTERNAL T exchange(int line, WarpOperation operation, unsigned mask, std::uint64_t given) {
    Warp& warp = *current->warp;
    const unsigned lane = current->lane;
    warp.given[lane] = given;
    warp_meeting(operation, line, mask, nullptr);
    return from_bits<T>(warp.taken[lane]);
}

template <class T>
CUDA_HOST_INTERNAL T shuffle_from(int line, unsigned mask, T value, int source) {
    current->warp->source[current->lane] = static_cast<std::uint8_t>(source & 31);
    return exchange<T>(line, WarpOperation::shuffle, mask, to_bits(value));
}

// A segment of `width` lanes is a warp of its own; a source outside of it is the lane itself.
template <class T>
CUDA_HOST_INTERNAL T shuffle(int line, unsigned mask, T value, int source, int width = 32) {
    const int lane = static_cast<int>(current->lane);
    return shuffle_from(line, mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
CUDA_HOST_INTERNAL T shuffle_up(int line, unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = static_cast<int>(current->lane), source = lane - static_cast<int>(delta);
    return shuffle_from(line, mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T>
CUDA_HOST_INTERNAL T shuffle_down(int line, unsigned mask, T value, unsigned delta, int width = 32) {
    const int lane = static_cast<int>(current->lane), source = lane + static_cast<int>(delta);
    return shuffle_from(line, mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <class T>
CUDA_HOST_INTERNAL T shuffle_xor(int line, unsigned mask, T value, int lanes, int width = 32) {
    const int lane = static_cast<int>(current->lane), source = lane ^ lanes;
    return shuffle_from(line, mask, value, source > (lane | (width - 1)) ? lane : source);
}

CUDA_HOST_INTERNAL unsigned ballot(int line, unsigned mask, bool predicate) {
    return exchange<unsigned>(line, WarpOperation::ballot, mask, predicate ? 1 : 0);
}

template <class T>
CUDA_HOST_INTERNAL unsigned match_any(int line, unsigned mask, T value) {
    return exchange<unsigned>(line, WarpOperation::match_any, mask, to_bits(value));
}

template <class T>
CUDA_HOST_INTERNAL unsigned match_all(int line, unsigned mask, T value, int* predicate) {
    const unsigned lanes = exchange<unsigned>(line, WarpOperation::match_all, mask, to_bits(value));
    *predicate = lanes != 0;
    return lanes;
}

CUDA_HOST_INTERNAL void sync_warp(int line, unsigned mask = 0xffffffffu) {
    warp_meeting(WarpOperation::sync, line, mask, nullptr);
}

struct Plus {
    template <class T>
    T operator()(T a, T b) const { return a + b; }
};
struct Less {
    template <class T>
    T operator()(T a, T b) const { return b < a ? b : a; }
};
struct Greater {
    template <class T>
    T operator()(T a, T b) const { return a < b ? b : a; }
};
struct BitAnd {
    template <class T>
    T operator()(T a, T b) const { return a & b; }
};
struct BitOr {
    template <class T>
    T operator()(T a, T b) const { return a | b; }
};
struct BitXor {
    template <class T>
    T operator()(T a, T b) const { return a ^ b; }
};

template <class T, class F>
CUDA_HOST_INTERNAL void resolve_reduction(Warp& warp, unsigned lanes) {
    const unsigned first = __builtin_ctz(lanes);
    T total = from_bits<T>(warp.given[first]);
    for (unsigned rest = lanes & (lanes - 1); rest; rest &= rest - 1)
        total = F()(total, from_bits<T>(warp.given[__builtin_ctz(rest)]));
    for (unsigned rest = lanes; rest; rest &= rest - 1) warp.taken[__builtin_ctz(rest)] = to_bits(total);
}

template <class F, class T>
CUDA_HOST_INTERNAL T reduce(int line, unsigned mask, T value) {
    Warp& warp = *current->warp;
    const unsigned lane = current->lane;
    warp.given[lane] = to_bits(value);
    warp_meeting(WarpOperation::custom, line, mask, resolve_reduction<T, F>);
    return from_bits<T>(warp.taken[lane]);
}

}  // namespace cuda_host

#define __syncwarp(...) ::cuda_host::sync_warp(__LINE__, ##__VA_ARGS__)
#define __shfl_sync(...) ::cuda_host::shuffle(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) ::cuda_host::shuffle_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) ::cuda_host::shuffle_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) ::cuda_host::shuffle_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, p) ::cuda_host::ballot(__LINE__, mask, (p) ? true : false)
#define __any_sync(mask, p) (::cuda_host::ballot(__LINE__, mask, (p) ? true : false) != 0)
#define __all_sync(mask, p) (::cuda_host::ballot(__LINE__, mask, (p) ? false : true) == 0)
#define __match_any_sync(mask, v) ::cuda_host::match_any(__LINE__, mask, v)
#define __match_all_sync(mask, v, p) ::cuda_host::match_all(__LINE__, mask, v, p)
#define __reduce_add_sync(mask, v) ::cuda_host::reduce<::cuda_host::Plus>(__LINE__, mask, v)
#define __reduce_min_sync(mask, v) ::cuda_host::reduce<::cuda_host::Less>(__LINE__, mask, v)
#define __reduce_max_sync(mask, v) ::cuda_host::reduce<::cuda_host::Greater>(__LINE__, mask, v)
#define __reduce_and_sync(mask, v) ::cuda_host::reduce<::cuda_host::BitAnd>(__LINE__, mask, v)
#define __reduce_or_sync(mask, v) ::cuda_host::reduce<::cuda_host::BitOr>(__LINE__, mask, v)
#define __reduce_xor_sync(mask, v) ::cuda_host::reduce<::cuda_host::BitXor>(__LINE__, mask, v)
