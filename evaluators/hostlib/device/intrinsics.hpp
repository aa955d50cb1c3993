// Arithmetic, conversion, bit and cache-hint intrinsics. Fast-math ones come from the host's libm: at least as accurate
// as a GPU's, and not bit-equal to them. glibc declares some of the names itself, so ours hide behind macros.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime.hpp"

#define __expf cuda_host_expf
#define __exp10f cuda_host_exp10f
#define __logf cuda_host_logf
#define __log2f cuda_host_log2f
#define __log10f cuda_host_log10f
#define __powf cuda_host_powf
#define __sinf cuda_host_sinf
#define __cosf cuda_host_cosf
#define __tanf cuda_host_tanf
#define __sincosf cuda_host_sincosf
#define rsqrtf cuda_host_rsqrtf
#define rsqrt cuda_host_rsqrt
#define __clz cuda_host_clz
#define __ffs cuda_host_ffs
#define clock cuda_host_clock

using std::isfinite;
using std::isinf;
using std::isnan;

#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_MAX_NORMAL_F 3.402823466e38f

// Cache hints are plain accesses.
#define CUDA_HOST_LOAD(NAME) \
    template <class T>       \
    CUDA_HOST_DEVICE T NAME(const T* p) { return *p; }
CUDA_HOST_LOAD(__ldg)
CUDA_HOST_LOAD(__ldca)
CUDA_HOST_LOAD(__ldcg)
CUDA_HOST_LOAD(__ldcs)
CUDA_HOST_LOAD(__ldlu)
CUDA_HOST_LOAD(__ldcv)
#undef CUDA_HOST_LOAD
#define CUDA_HOST_STORE(NAME) \
    template <class T>        \
    CUDA_HOST_DEVICE void NAME(T* p, T value) { *p = value; }
CUDA_HOST_STORE(__stwb)
CUDA_HOST_STORE(__stcg)
CUDA_HOST_STORE(__stcs)
CUDA_HOST_STORE(__stwt)
#undef CUDA_HOST_STORE

namespace cuda_host {
// Keeps a rounded result out of a fused multiply-add.
template <class T>
CUDA_HOST_DEVICE T rounded(T value) {
    volatile T barrier = value;
    return barrier;
}
}  // namespace cuda_host

CUDA_HOST_DEVICE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
CUDA_HOST_DEVICE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
CUDA_HOST_DEVICE float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
CUDA_HOST_DEVICE float norm3df(float a, float b, float c) { return __builtin_sqrtf(a * a + b * b + c * c); }
CUDA_HOST_DEVICE float normcdff(float x) { return 0.5f * __builtin_erfcf(-x * 0.70710678118654752f); }
CUDA_HOST_DEVICE float sinpif(float x) { return static_cast<float>(__builtin_sin(3.14159265358979323846 * x)); }
CUDA_HOST_DEVICE float cospif(float x) { return static_cast<float>(__builtin_cos(3.14159265358979323846 * x)); }
CUDA_HOST_DEVICE float fdividef(float a, float b) { return a / b; }
CUDA_HOST_DEVICE float saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

CUDA_HOST_DEVICE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
CUDA_HOST_DEVICE double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
CUDA_HOST_DEVICE float __fadd_rn(float a, float b) { return cuda_host::rounded(a + b); }
CUDA_HOST_DEVICE float __fsub_rn(float a, float b) { return cuda_host::rounded(a - b); }
CUDA_HOST_DEVICE float __fmul_rn(float a, float b) { return cuda_host::rounded(a * b); }
CUDA_HOST_DEVICE double __dadd_rn(double a, double b) { return cuda_host::rounded(a + b); }
CUDA_HOST_DEVICE double __dmul_rn(double a, double b) { return cuda_host::rounded(a * b); }
CUDA_HOST_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
CUDA_HOST_DEVICE double __ddiv_rn(double a, double b) { return a / b; }
CUDA_HOST_DEVICE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
CUDA_HOST_DEVICE float __frcp_rn(float a) { return 1.0f / a; }
CUDA_HOST_DEVICE float __frsqrt_rn(float a) { return 1.0f / __builtin_sqrtf(a); }
CUDA_HOST_DEVICE float __fdividef(float a, float b) { return a / b; }
CUDA_HOST_DEVICE float __expf(float x) { return __builtin_expf(x); }
CUDA_HOST_DEVICE float __exp10f(float x) { return __builtin_powf(10.0f, x); }
CUDA_HOST_DEVICE float __logf(float x) { return __builtin_logf(x); }
CUDA_HOST_DEVICE float __log2f(float x) { return __builtin_log2f(x); }
CUDA_HOST_DEVICE float __log10f(float x) { return __builtin_log10f(x); }
CUDA_HOST_DEVICE float __powf(float x, float y) { return __builtin_powf(x, y); }
CUDA_HOST_DEVICE float __sinf(float x) { return __builtin_sinf(x); }
CUDA_HOST_DEVICE float __cosf(float x) { return __builtin_cosf(x); }
CUDA_HOST_DEVICE float __tanf(float x) { return __builtin_tanf(x); }
CUDA_HOST_DEVICE void __sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
CUDA_HOST_DEVICE float __saturatef(float x) { return saturatef(x); }

#define CUDA_HOST_BITS(NAME, FROM, TO)          \
    CUDA_HOST_DEVICE TO NAME(FROM value) {      \
        TO result;                              \
        std::memcpy(&result, &value, sizeof value); \
        return result;                          \
    }
CUDA_HOST_BITS(__float_as_int, float, int)
CUDA_HOST_BITS(__float_as_uint, float, unsigned)
CUDA_HOST_BITS(__int_as_float, int, float)
CUDA_HOST_BITS(__uint_as_float, unsigned, float)
CUDA_HOST_BITS(__double_as_longlong, double, long long)
CUDA_HOST_BITS(__longlong_as_double, long long, double)
#undef CUDA_HOST_BITS

namespace cuda_host {
// CUDA's conversions saturate, and turn NaN into 0; C++'s are undefined there.
template <class I>
CUDA_HOST_DEVICE I saturating(double x) {
    if (x != x) return 0;
    constexpr I low = std::is_signed_v<I> ? I(I(1) << (8 * sizeof(I) - 1)) : I(0), high = I(~low);
    if (x <= static_cast<double>(low)) return low;
    return x >= static_cast<double>(high) ? high : static_cast<I>(x);
}
}  // namespace cuda_host
CUDA_HOST_DEVICE int __float2int_rn(float x) { return cuda_host::saturating<int>(__builtin_rintf(x)); }
CUDA_HOST_DEVICE int __float2int_rz(float x) { return cuda_host::saturating<int>(x); }
CUDA_HOST_DEVICE int __float2int_rd(float x) { return cuda_host::saturating<int>(__builtin_floorf(x)); }
CUDA_HOST_DEVICE int __float2int_ru(float x) { return cuda_host::saturating<int>(__builtin_ceilf(x)); }
CUDA_HOST_DEVICE unsigned __float2uint_rn(float x) { return cuda_host::saturating<unsigned>(__builtin_rintf(x)); }
CUDA_HOST_DEVICE unsigned __float2uint_rz(float x) { return cuda_host::saturating<unsigned>(x); }
CUDA_HOST_DEVICE unsigned __float2uint_rd(float x) { return cuda_host::saturating<unsigned>(__builtin_floorf(x)); }
CUDA_HOST_DEVICE int __double2int_rn(double x) { return cuda_host::saturating<int>(__builtin_rint(x)); }
CUDA_HOST_DEVICE int __double2int_rz(double x) { return cuda_host::saturating<int>(x); }
CUDA_HOST_DEVICE float __double2float_rn(double x) { return static_cast<float>(x); }
CUDA_HOST_DEVICE float __int2float_rn(int x) { return static_cast<float>(x); }
CUDA_HOST_DEVICE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
CUDA_HOST_DEVICE double __int2double_rn(int x) { return x; }

CUDA_HOST_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
CUDA_HOST_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
CUDA_HOST_DEVICE int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
CUDA_HOST_DEVICE int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
CUDA_HOST_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
CUDA_HOST_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
CUDA_HOST_DEVICE unsigned __brev(unsigned x) {
    unsigned result = 0;
    for (int i = 0; i < 32; ++i) result |= ((x >> i) & 1u) << (31 - i);
    return result;
}
CUDA_HOST_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = (static_cast<unsigned long long>(b) << 32) | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i)
        result |= static_cast<unsigned>((both >> (8 * ((selector >> (4 * i)) & 7))) & 0xff) << (8 * i);
    return result;
}
CUDA_HOST_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    shift &= 31;
    return shift ? (high << shift) | (low >> (32 - shift)) : high;
}
CUDA_HOST_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    shift &= 31;
    return shift ? (low >> shift) | (high << (32 - shift)) : low;
}
CUDA_HOST_DEVICE int __mul24(int a, int b) { return a * b; }
CUDA_HOST_DEVICE unsigned __umul24(unsigned a, unsigned b) { return a * b; }
CUDA_HOST_DEVICE int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
CUDA_HOST_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
CUDA_HOST_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
CUDA_HOST_DEVICE unsigned __sad(int a, int b, unsigned c) { return c + static_cast<unsigned>(a < b ? b - a : a - b); }
CUDA_HOST_DEVICE int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
CUDA_HOST_DEVICE int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
    return c;
}
CUDA_HOST_DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += ((a >> (8 * i)) & 0xff) * ((b >> (8 * i)) & 0xff);
    return c;
}

CUDA_HOST_DEVICE long long clock64() {
#ifdef __x86_64__
    return static_cast<long long>(__builtin_ia32_rdtsc());
#else
    return 0;
#endif
}
CUDA_HOST_DEVICE long long clock() { return clock64(); }

#define CUDA_HOST_MINMAX(T)                                             \
    CUDA_HOST_DEVICE constexpr T min(T a, T b) { return b < a ? b : a; } \
    CUDA_HOST_DEVICE constexpr T max(T a, T b) { return a < b ? b : a; }
CUDA_HOST_MINMAX(int)
CUDA_HOST_MINMAX(unsigned)
CUDA_HOST_MINMAX(long)
CUDA_HOST_MINMAX(unsigned long)
CUDA_HOST_MINMAX(long long)
CUDA_HOST_MINMAX(unsigned long long)
#undef CUDA_HOST_MINMAX
CUDA_HOST_DEVICE constexpr unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
CUDA_HOST_DEVICE constexpr unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
CUDA_HOST_DEVICE constexpr unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
CUDA_HOST_DEVICE constexpr unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
// As fminf and fmaxf: a NaN loses against a number.
CUDA_HOST_DEVICE float min(float a, float b) { return __builtin_fminf(a, b); }
CUDA_HOST_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
CUDA_HOST_DEVICE double min(double a, double b) { return __builtin_fmin(a, b); }
CUDA_HOST_DEVICE double max(double a, double b) { return __builtin_fmax(a, b); }
CUDA_HOST_DEVICE double min(float a, double b) { return __builtin_fmin(a, b); }
CUDA_HOST_DEVICE double min(double a, float b) { return __builtin_fmin(a, b); }
CUDA_HOST_DEVICE double max(float a, double b) { return __builtin_fmax(a, b); }
CUDA_HOST_DEVICE double max(double a, float b) { return __builtin_fmax(a, b); }
