// mma.h: warp-wide matrix fragments, multiplied in float32, or in integers for an integer
// accumulator. Which lane holds which element is unspecified in CUDA too:
// here element e lies in lane e % 32.
#pragma once
#include <type_traits>

#include "half.hpp"
#include "warp.hpp"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    static_assert((M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16),
                  "host device: no support for wmma shapes beyond m16n16k16, m32n8k16 and m8n32k16");
    using Element = T;
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
    static constexpr int columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = rows * columns / 32;
    T x[num_elements];
};

template <class F, class V>
inline void fill_fragment(F& f, V value) {
    for (int i = 0; i < F::num_elements; ++i) f.x[i] = value;
}

template <class F, class T>
inline void load_elements(F& f, const T* p, unsigned ld, bool row_major_memory) {
    ::cuda_host::sync_warp(__LINE__);
    for (int i = 0, e = static_cast<int>(::cuda_host::current->lane); i < F::num_elements; ++i, e += 32) {
        const unsigned row = e / F::columns, column = e % F::columns;
        f.x[i] = row_major_memory ? p[row * ld + column] : p[column * ld + row];
    }
}

template <class Use, int M, int N, int K, class T, class Layout>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const T* p, unsigned ld) {
    load_elements(f, p, ld, std::is_same_v<Layout, row_major>);
}
template <int M, int N, int K, class T>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* p, unsigned ld, layout_t layout) {
    load_elements(f, p, ld, layout == mem_row_major);
}
template <int M, int N, int K, class T>
inline void store_matrix_sync(T* p, const fragment<accumulator, M, N, K, T>& f, unsigned ld, layout_t layout) {
    using F = fragment<accumulator, M, N, K, T>;
    ::cuda_host::sync_warp(__LINE__);
    for (int i = 0, e = static_cast<int>(::cuda_host::current->lane); i < F::num_elements; ++i, e += 32) {
        const unsigned row = e / F::columns, column = e % F::columns;
        (layout == mem_row_major ? p[row * ld + column] : p[column * ld + row]) = f.x[i];
    }
    ::cuda_host::sync_warp(__LINE__);
}

template <class D, class A, class B, class C>
struct Operands {
    D* d;
    const A* a;
    const B* b;
    const C* c;
};

template <class Sum, class F>
CUDA_HOST_INTERNAL void gather(const F& f, int lane, Sum* matrix) {
    for (int i = 0; i < F::num_elements; ++i) matrix[lane + 32 * i] = static_cast<Sum>(f.x[i]);
}

template <class D, class A, class B, class C>
CUDA_HOST_INTERNAL void resolve_product(::cuda_host::Warp& warp, unsigned lanes) {
    constexpr int M = A::rows, K = A::columns, N = B::columns;
    using Sum = std::conditional_t<std::is_integral_v<typename C::Element>, int, float>;
    Sum a[M * K], b[K * N], c[M * N];
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const auto* o = reinterpret_cast<const Operands<D, A, B, C>*>(warp.given[lane]);
        gather(*o->a, lane, a), gather(*o->b, lane, b), gather(*o->c, lane, c);
    }
    for (int i = 0; i < M; ++i)
        for (int k = 0; k < K; ++k)
            for (int j = 0; j < N; ++j) c[i * N + j] += a[i * K + k] * b[k * N + j];
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        auto* o = reinterpret_cast<Operands<D, A, B, C>*>(warp.given[lane]);
        for (int i = 0; i < D::num_elements; ++i) o->d->x[i] = c[lane + 32 * i];
    }
}

template <class D, class A, class B, class C>
CUDA_HOST_INTERNAL void mma_sync(D& d, const A& a, const B& b, const C& c) {
    Operands<D, A, B, C> operands{&d, &a, &b, &c};
    ::cuda_host::current->warp->given[::cuda_host::current->lane] = reinterpret_cast<std::uintptr_t>(&operands);
    ::cuda_host::warp_meeting(::cuda_host::WarpOperation::custom, __LINE__, 0xffffffffu, resolve_product<D, A, B, C>);
}

}  // namespace wmma
}  // namespace nvcuda
