// CUDA's keywords and built-in variables as macros. `__shared__` variables become thread-local ones of the one OS thread
// that runs blocks: they land in the executable's TLS segment, whose bounds and symbols the runner knows.
#pragma once
#include "runtime.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__ __attribute__((noinline))
#define __inline_hint__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __builtin_assume(c) ((void)0)
#define __nv_pure__

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 800

#define threadIdx (::cuda_host::current->index)
#define blockIdx (::cuda_host::block_index)
#define blockDim (::cuda_host::block_dim)
#define gridDim (::cuda_host::grid_dim)
#define warpSize 32

#define __syncthreads() ((void)::cuda_host::block_barrier(__LINE__, 0, ::cuda_host::BarrierKind::plain))
#define __syncthreads_count(p) (::cuda_host::block_barrier(__LINE__, (p) ? 1 : 0, ::cuda_host::BarrierKind::count))
#define __syncthreads_and(p) (::cuda_host::block_barrier(__LINE__, (p) ? 1 : 0, ::cuda_host::BarrierKind::all))
#define __syncthreads_or(p) (::cuda_host::block_barrier(__LINE__, (p) ? 1 : 0, ::cuda_host::BarrierKind::any))
#define __activemask() (::cuda_host::active_mask(__LINE__))
#define __trap() ::cuda_host::trap("__trap()", __LINE__)
#define __nanosleep(n) ((void)(n), ::cuda_host::yield_thread())
#undef assert
#define assert(c) ((c) ? (void)0 : ::cuda_host::trap("assert(" #c ")", __LINE__))
#define printf(...) ((void)sizeof(::cuda_host::unevaluated(__VA_ARGS__)), 0)

#define __threadfence() ::cuda_host::fence()
#define __threadfence_system() ::cuda_host::fence()
#define __threadfence_block() ::cuda_host::keep_order()

namespace cuda_host {

template <class... A>
int unevaluated(const A&...);

CUDA_HOST_DEVICE void keep_order() { __asm__ volatile("" ::: "memory"); }
CUDA_HOST_DEVICE void fence() {
#ifdef CUDA_HOST_CHECK
    on_fence();
#endif
    keep_order();
}

}  // namespace cuda_host
