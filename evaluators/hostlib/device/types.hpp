// CUDA's built-in vector types and dim3, with CUDA's sizes and alignments (CUDA C++ Programming Guide, "Built-in Types").
#pragma once
#include <cstddef>
#include <cstdint>

#define CUDA_HOST_VECTOR(T, NAME, ALIGN2, ALIGN4)                                          \
    struct NAME##1 {                                                                       \
        T x;                                                                               \
    };                                                                                     \
    struct __attribute__((aligned(ALIGN2))) NAME##2 {                                      \
        T x, y;                                                                            \
    };                                                                                     \
    struct NAME##3 {                                                                       \
        T x, y, z;                                                                         \
    };                                                                                     \
    struct __attribute__((aligned(ALIGN4))) NAME##4 {                                      \
        T x, y, z, w;                                                                      \
    };                                                                                     \
    static inline constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                    \
    static inline constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }            \
    static inline constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }    \
    static inline constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDA_HOST_VECTOR(signed char, char, 2, 4)
CUDA_HOST_VECTOR(unsigned char, uchar, 2, 4)
CUDA_HOST_VECTOR(short, short, 4, 8)
CUDA_HOST_VECTOR(unsigned short, ushort, 4, 8)
CUDA_HOST_VECTOR(int, int, 8, 16)
CUDA_HOST_VECTOR(unsigned int, uint, 8, 16)
CUDA_HOST_VECTOR(long, long, 16, 16)
CUDA_HOST_VECTOR(unsigned long, ulong, 16, 16)
CUDA_HOST_VECTOR(long long, longlong, 16, 16)
CUDA_HOST_VECTOR(unsigned long long, ulonglong, 16, 16)
CUDA_HOST_VECTOR(float, float, 8, 16)
CUDA_HOST_VECTOR(double, double, 16, 16)
#undef CUDA_HOST_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
