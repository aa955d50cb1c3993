/* corpus
grid: [3]
block: [32]
buffers: {x: in float32 96 normal, sums: out float32 3, y: out float32 96}
args: [x, sums, y]
*/
// Uses the neighbour block's sum as though a barrier for the whole grid stood in between.
extern "C" __global__ void blocks_wait_for_nothing(const float* x, float* sums, float* y) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    float v = x[i];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) sums[blockIdx.x] = v;
    __syncthreads();
    y[i] = x[i] + (blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0.0f);  // FAULT race-global
}
