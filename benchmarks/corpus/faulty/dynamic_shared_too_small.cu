/* corpus
grid: [1]
block: [64]
shared_bytes: 252
buffers: {x: in float32 64 normal, y: out float32 64}
args: [x, y]
*/
extern "C" __global__ void dynamic_shared_too_small(const float* x, float* y) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];  // FAULT out-of-bounds
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
