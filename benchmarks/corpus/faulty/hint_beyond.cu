/* corpus
grid: [1]
block: [32]
buffers: {x: in float32 32 normal, y: out float32 32}
args: [x, y]
*/
__device__ __forceinline__ float pair(const float* x, int i) { return __ldg(x + i) + __ldg(&x[i + 1]); }  // FAULT out-of-bounds
extern "C" __global__ void hint_beyond(const float* __restrict__ x, float* __restrict__ y) {
    y[threadIdx.x] = pair(x, threadIdx.x);
}
