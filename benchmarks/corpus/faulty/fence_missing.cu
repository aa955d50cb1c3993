/* corpus
grid: [5]
block: [32]
buffers: {x: in float32 160 normal, partial: out float32 5, out: out float32 1}
args: [x, partial, out]
*/
__device__ unsigned int blocks_done = 0;
extern "C" __global__ void fence_missing(const float* x, float* partial, float* out) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x != 0) return;
    partial[blockIdx.x] = v;
    if (atomicInc(&blocks_done, gridDim.x - 1) != gridDim.x - 1) return;
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];  // FAULT race-global
    out[0] = sum;
}
