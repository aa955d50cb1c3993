/* corpus
grid: [1]
block: [64]
buffers: {x: in float32 64 normal, y: out float32 64}
args: [x, y]
*/
extern "C" __global__ void shuffle_without_half_the_lanes(const float* x, float* y) {
    float v = x[threadIdx.x];
    if (threadIdx.x & 1) v += __shfl_xor_sync(0xffffffffu, v, 2);  // FAULT divergence
    __syncthreads();
    y[threadIdx.x] = v;
}
