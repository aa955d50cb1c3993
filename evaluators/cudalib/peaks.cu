// What the GPU reaches at best: memory copied, multiply-adds of float32, products of tensor cores.
// Compiled by NVRTC like any candidate. Every kernel of arithmetic notes what one of its blocks computes in flops[0].

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 THREADS = 256;
constexpr u32 WORDS = 4;  // of 16 bytes, which a thread has in flight

// `words` is a multiple of THREADS * WORDS.
extern "C" __global__ void __launch_bounds__(THREADS) stream(uint4* to, const uint4* from, u64 words) {
    constexpr u64 CHUNK = THREADS * WORDS;
    for (u64 at = blockIdx.x * CHUNK + threadIdx.x; at < words; at += gridDim.x * CHUNK) {
        uint4 held[WORDS];
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) held[i] = from[at + i * THREADS];
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) to[at + i * THREADS] = held[i];
    }
}

template <u32 N>
__device__ void finish(const float (&sums)[N], u64 flops_of_block, u64* flops, float* sink) {
    float sum = 0;
#pragma unroll
    for (u32 i = 0; i < N; i++) sum += sums[i];
    if (sum == 12345.0f) *sink = sum;  // or the compiler would leave all of it out
    if (blockIdx.x == 0 && threadIdx.x == 0) flops[0] = flops_of_block;
}

// Dense random mantissas, signs too: zeros would raise the clocks.
__device__ u32 random_word(u32 seed, u32 base, u32 mask) {
    seed = (seed ^ 61) * 0x9E3779B1u;
    seed = (seed ^ (seed >> 15)) * 0x85EBCA77u;
    return base | ((seed ^ (seed >> 13)) & mask);
}

extern "C" __global__ void __launch_bounds__(THREADS) rate_fp32(u32 rounds, u32, u32, u64* flops, float* sink) {
    constexpr u32 SUMS = 16, TIMES = 8;
    float sums[SUMS];
    const float x = 0.999f - 1e-5f * blockIdx.x, y = 1e-3f * threadIdx.x;
#pragma unroll
    for (u32 i = 0; i < SUMS; i++) sums[i] = y + i;
    for (u32 round = 0; round < rounds; round++) {
#pragma unroll
        for (u32 i = 0; i < SUMS * TIMES; i++) sums[i % SUMS] = fmaf(sums[i % SUMS], x, y);
    }
    finish(sums, 2ull * THREADS * rounds * SUMS * TIMES, flops, sink);
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Hopper's tensor cores reach their peak by warpgroups that read shared memory: m64n128, rows of 128 swizzled bytes
// (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and "Shared Memory Matrix Layout").
__device__ u64 matrix(const u32* shared) {
    const u64 address = (u64)__cvta_generic_to_shared(shared);
    return ((address & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define TENSOR(NAME, TYPES, K, TRANSPOSED)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        NAME(u32 rounds, u32 base, u32 mask, u64* flops, float* sink) {                                                \
        constexpr u32 ROW = 32, TIMES = 16; /* words of a row; products of a round */                                  \
        __shared__ __align__(1024) u32 memory[(2 * 64 + 128) * ROW];                                                   \
        for (u32 i = threadIdx.x; i < (2 * 64 + 128) * ROW; i += THREADS) memory[i] = random_word(i, base, mask);      \
        asm volatile("fence.proxy.async;" ::: "memory");                                                               \
        __syncthreads();                                                                                               \
        const u64 a = matrix(memory + threadIdx.x / 128 * 64 * ROW), b = matrix(memory + 2 * 64 * ROW);                \
        float d[64];                                                                                                   \
        _Pragma("unroll") for (u32 i = 0; i < 64; i++) d[i] = 0;                                                       \
        for (u32 round = 0; round < rounds; round++) {                                                                 \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                    \
            _Pragma("unroll") for (u32 i = 0; i < TIMES; i++) {                                                        \
                asm volatile("wgmma.mma_async.sync.aligned.m64n128k" #K ".f32" TYPES " {"                              \
                    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                           \
                    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                 \
                    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                 \
                    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "                \
                    "%64, %65, 1, 1, 1" TRANSPOSED ";"                                                                 \
                    : OUT16(0), OUT16(16), OUT16(32), OUT16(48)                                                        \
                    : "l"(a + 2 * (i % 4)), "l"(b + 2 * (i % 4)));                                                     \
            }                                                                                                          \
            asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");         \
        }                                                                                                              \
        finish(d, 2ull * rounds * TIMES * (2 * 64 * 128) * K, flops, sink);                                            \
    }
#define OUT4(I) "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3])
#define OUT16(I) OUT4(I), OUT4(I + 4), OUT4(I + 8), OUT4(I + 12)

#elif __CUDA_ARCH__ >= 800

#define TENSOR(NAME, TYPES, K, TRANSPOSED)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        NAME(u32 rounds, u32 base, u32 mask, u64* flops, float* sink) {                                                \
        constexpr u32 SUMS = 8, TIMES = 4;                                                                             \
        u32 a[4], b[2];                                                                                                \
        _Pragma("unroll") for (u32 i = 0; i < 4; i++) a[i] = random_word(8 * threadIdx.x + i, base, mask);             \
        _Pragma("unroll") for (u32 i = 0; i < 2; i++) b[i] = random_word(8 * threadIdx.x + 4 + i, base, mask);         \
        float d[4 * SUMS];                                                                                             \
        _Pragma("unroll") for (u32 i = 0; i < 4 * SUMS; i++) d[i] = 0;                                                 \
        for (u32 round = 0; round < rounds; round++) {                                                                 \
            _Pragma("unroll") for (u32 i = 0; i < SUMS * TIMES; i++) {                                                 \
                float* c = d + 4 * (i % SUMS);                                                                         \
                asm volatile("mma.sync.aligned.m16n8k" #K ".row.col.f32" TYPES ".f32 "                                 \
                    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                  \
                    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                   \
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                               \
            }                                                                                                          \
        }                                                                                                              \
        finish(d, (THREADS / 32) * (u64)rounds * SUMS * TIMES * (2 * 16 * 8) * K, flops, sink);                        \
    }

#else  // no such instruction: nothing is computed

#define TENSOR(NAME, TYPES, K, TRANSPOSED)                                                                             \
    extern "C" __global__ void NAME(u32, u32, u32, u64* flops, float*) { flops[0] = 0; }

#endif

TENSOR(rate_tf32, ".tf32.tf32", 8, "")
TENSOR(rate_fp16, ".f16.f16", 16, ", 0, 0")
TENSOR(rate_bf16, ".bf16.bf16", 16, ", 0, 0")
