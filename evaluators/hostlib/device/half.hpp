// cuda_fp16.h and cuda_bf16.h, the parts that kernels use. Arithmetic is float32 rounded back after each operation, as
// the intrinsics promise.
#pragma once
#include <cstring>

#include "intrinsics.hpp"

namespace cuda_host {

CUDA_HOST_DEVICE float half_to_float(unsigned short h) {
#ifdef __F16C__
    typedef float Floats __attribute__((vector_size(16)));
    typedef short Halves __attribute__((vector_size(16)));
    const Halves v = {static_cast<short>(h)};
    return static_cast<Floats>(__builtin_ia32_vcvtph2ps(v))[0];
#else
    const unsigned sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
    float value;
    unsigned bits;
    if (exponent == 0) {
        value = static_cast<float>(mantissa) * 5.9604644775390625e-08f;  // 2**-24, the unit of subnormals
        std::memcpy(&bits, &value, 4);
        bits |= sign;
    } else {
        bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (mantissa << 13);
    }
    std::memcpy(&value, &bits, 4);
    return value;
#endif
}

CUDA_HOST_DEVICE unsigned short float_to_half(float value) {
#ifdef __F16C__
    typedef float Floats __attribute__((vector_size(16)));
    typedef short Halves __attribute__((vector_size(16)));
    const Floats v = {value};
    return static_cast<unsigned short>(static_cast<Halves>(__builtin_ia32_vcvtps2ph(v, 0))[0]);
#else
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    const unsigned sign = (bits >> 16) & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits >= 0x7f800000u) return sign | 0x7c00u | (bits > 0x7f800000u ? 0x200u : 0);
    if (bits >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
    if (bits < 0x38800000u) {                        // below 2**-14: subnormal
        float magnitude;
        std::memcpy(&magnitude, &bits, 4);
        return sign | static_cast<unsigned>(__builtin_rintf(magnitude * 16777216.0f));
    }
    const unsigned rounded = bits + 0xfffu + ((bits >> 13) & 1);
    return sign | ((rounded - 0x38000000u) >> 13);
#endif
}

CUDA_HOST_DEVICE float bfloat16_to_float(unsigned short b) {
    const unsigned bits = static_cast<unsigned>(b) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

CUDA_HOST_DEVICE unsigned short float_to_bfloat16(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace cuda_host

#define CUDA_HOST_SHORT_FLOAT(H, H2, TO_FLOAT, FROM_FLOAT)                                                       \
    struct H {                                                                                                   \
        unsigned short bits;                                                                                     \
        H() = default;                                                                                           \
        H(float v) : bits(cuda_host::FROM_FLOAT(v)) {}                                                           \
        H(double v) : H(static_cast<float>(v)) {}                                                                \
        H(int v) : H(static_cast<float>(v)) {}                                                                   \
        H(unsigned v) : H(static_cast<float>(v)) {}                                                              \
        operator float() const { return cuda_host::TO_FLOAT(bits); }                                             \
        H& operator+=(H b) { return *this = H(float(*this) + float(b)); }                                        \
        H& operator-=(H b) { return *this = H(float(*this) - float(b)); }                                        \
        H& operator*=(H b) { return *this = H(float(*this) * float(b)); }                                        \
        H& operator/=(H b) { return *this = H(float(*this) / float(b)); }                                        \
    };                                                                                                           \
    struct __attribute__((aligned(4))) H2 {                                                                      \
        H x, y;                                                                                                  \
        H2() = default;                                                                                          \
        H2(H a, H b) : x(a), y(b) {}                                                                             \
    };                                                                                                           \
    CUDA_HOST_DEVICE H operator+(H a, H b) { return H(float(a) + float(b)); }                                    \
    CUDA_HOST_DEVICE H operator-(H a, H b) { return H(float(a) - float(b)); }                                    \
    CUDA_HOST_DEVICE H operator*(H a, H b) { return H(float(a) * float(b)); }                                    \
    CUDA_HOST_DEVICE H operator/(H a, H b) { return H(float(a) / float(b)); }                                    \
    CUDA_HOST_DEVICE H operator-(H a) { return H(-float(a)); }                                                   \
    CUDA_HOST_DEVICE H __hadd(H a, H b) { return a + b; }                                                        \
    CUDA_HOST_DEVICE H __hsub(H a, H b) { return a - b; }                                                        \
    CUDA_HOST_DEVICE H __hmul(H a, H b) { return a * b; }                                                        \
    CUDA_HOST_DEVICE H __hdiv(H a, H b) { return a / b; }                                                        \
    CUDA_HOST_DEVICE H __hneg(H a) { return -a; }                                                                \
    CUDA_HOST_DEVICE H __habs(H a) { return H(__builtin_fabsf(float(a))); }                                      \
    CUDA_HOST_DEVICE H __hfma(H a, H b, H c) { return H(__builtin_fmaf(float(a), float(b), float(c))); }         \
    CUDA_HOST_DEVICE H __hmax(H a, H b) { return H(__builtin_fmaxf(float(a), float(b))); }                       \
    CUDA_HOST_DEVICE H __hmin(H a, H b) { return H(__builtin_fminf(float(a), float(b))); }                       \
    CUDA_HOST_DEVICE bool __hgt(H a, H b) { return float(a) > float(b); }                                        \
    CUDA_HOST_DEVICE bool __hge(H a, H b) { return float(a) >= float(b); }                                       \
    CUDA_HOST_DEVICE bool __hlt(H a, H b) { return float(a) < float(b); }                                        \
    CUDA_HOST_DEVICE bool __hle(H a, H b) { return float(a) <= float(b); }                                       \
    CUDA_HOST_DEVICE bool __heq(H a, H b) { return float(a) == float(b); }                                       \
    CUDA_HOST_DEVICE bool __hisnan(H a) { return float(a) != float(a); }                                         \
    CUDA_HOST_DEVICE H hexp(H a) { return H(__builtin_expf(float(a))); }                                         \
    CUDA_HOST_DEVICE H hlog(H a) { return H(__builtin_logf(float(a))); }                                         \
    CUDA_HOST_DEVICE H hsqrt(H a) { return H(__builtin_sqrtf(float(a))); }                                       \
    CUDA_HOST_DEVICE H hrsqrt(H a) { return H(1.0f / __builtin_sqrtf(float(a))); }                               \
    CUDA_HOST_DEVICE H hrcp(H a) { return H(1.0f / float(a)); }                                                  \
    CUDA_HOST_DEVICE H2 operator+(H2 a, H2 b) { return {a.x + b.x, a.y + b.y}; }                                 \
    CUDA_HOST_DEVICE H2 operator-(H2 a, H2 b) { return {a.x - b.x, a.y - b.y}; }                                 \
    CUDA_HOST_DEVICE H2 operator*(H2 a, H2 b) { return {a.x * b.x, a.y * b.y}; }                                 \
    CUDA_HOST_DEVICE H2 operator/(H2 a, H2 b) { return {a.x / b.x, a.y / b.y}; }                                 \
    CUDA_HOST_DEVICE H2& operator+=(H2& a, H2 b) { return a = a + b; }                                           \
    CUDA_HOST_DEVICE H2& operator*=(H2& a, H2 b) { return a = a * b; }                                           \
    CUDA_HOST_DEVICE H2 __hadd2(H2 a, H2 b) { return a + b; }                                                    \
    CUDA_HOST_DEVICE H2 __hsub2(H2 a, H2 b) { return a - b; }                                                    \
    CUDA_HOST_DEVICE H2 __hmul2(H2 a, H2 b) { return a * b; }                                                    \
    CUDA_HOST_DEVICE H2 __h2div(H2 a, H2 b) { return a / b; }                                                    \
    CUDA_HOST_DEVICE H2 __hmax2(H2 a, H2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                     \
    CUDA_HOST_DEVICE H2 __hmin2(H2 a, H2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                     \
    CUDA_HOST_DEVICE H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }     \
    CUDA_HOST_DEVICE float __low2float(H2 a) { return a.x; }                                                     \
    CUDA_HOST_DEVICE float __high2float(H2 a) { return a.y; }
CUDA_HOST_SHORT_FLOAT(__half, __half2, half_to_float, float_to_half)
CUDA_HOST_SHORT_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16_to_float, float_to_bfloat16)
#undef CUDA_HOST_SHORT_FLOAT

typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

CUDA_HOST_DEVICE __half __float2half(float v) { return __half(v); }
CUDA_HOST_DEVICE __half __float2half_rn(float v) { return __half(v); }
CUDA_HOST_DEVICE __half __double2half(double v) { return __half(v); }
CUDA_HOST_DEVICE __half __int2half_rn(int v) { return __half(v); }
CUDA_HOST_DEVICE float __half2float(__half v) { return v; }
CUDA_HOST_DEVICE __half __low2half(__half2 v) { return v.x; }
CUDA_HOST_DEVICE __half __high2half(__half2 v) { return v.y; }
CUDA_HOST_DEVICE __half2 make_half2(__half a, __half b) { return {a, b}; }
CUDA_HOST_DEVICE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
CUDA_HOST_DEVICE __half2 __half2half2(__half v) { return {v, v}; }
CUDA_HOST_DEVICE __half2 __float2half2_rn(float v) { return {__half(v), __half(v)}; }
CUDA_HOST_DEVICE __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
CUDA_HOST_DEVICE __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
CUDA_HOST_DEVICE float2 __half22float2(__half2 v) { return {v.x, v.y}; }
CUDA_HOST_DEVICE unsigned short __half_as_ushort(__half v) { return v.bits; }
CUDA_HOST_DEVICE __half __ushort_as_half(unsigned short bits) {
    __half v;
    v.bits = bits;
    return v;
}
CUDA_HOST_DEVICE __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
CUDA_HOST_DEVICE __nv_bfloat16 __float2bfloat16_rn(float v) { return __nv_bfloat16(v); }
CUDA_HOST_DEVICE float __bfloat162float(__nv_bfloat16 v) { return v; }
CUDA_HOST_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
CUDA_HOST_DEVICE float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
