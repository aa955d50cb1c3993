/* launch
block: "256"
grid: "ceildiv(N, 256)"
tune: {UNROLL: [4, 8]}
defaults: {UNROLL: 4}
*/
#include <cuda_fp16.h>
__device__ __forceinline__ float squared(float v) {
  return v * v + 1.0f;
}
__device__ __noinline__ float far(float v) {
  float s = v;
  for (int i = 0; i < 100 * v; ++i) s = s * 1.5f + i;
  return s;
}
extern "C" __global__ void spread(const float4* __restrict__ x, float* y, __half* h, int N) {
  __shared__ float tile[256];
  float local[32];
  float s = 0;
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    float4 v = x[i];
    s += squared(v.x) + v.y * v.z + v.w;
    local[i & 31] += s;
  }
  for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
  tile[threadIdx.x] = s + local[N & 31];
  __syncthreads();
  float t = 0;
  #pragma unroll 1
  for (int j = 0; j < 256; ++j) {
    for (int q = 0; q < UNROLL; ++q) t += tile[j] * __half2float(h[j * N + q]);
    while (t > 1000.0f && N > 5) { t = far(t) - N; if (t == 7) break; }
  }
  atomicAdd(y, t);
  asm volatile("{ .reg .pred p; setp.ne.f32 p, %0, 0f00000000; @p st.global.f32 [%1], %0; }" :: "f"(t), "l"(y) : "memory");
  h[threadIdx.x] = __float2half(t);
}
