/* corpus
grid: [5]
block: [64]
buffers: {x: in float32 320 normal, partial: out float32 10, out: out float32 1}
args: [x, partial, out]
*/
// Both warps write and fence; behind the barrier one thread counts the block for them.
__device__ unsigned int blocks_done = 0;
extern "C" __global__ void publish_by_barrier(const float* x, float* partial, float* out) {
    float v = x[blockIdx.x * 64 + threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 31) {
        partial[blockIdx.x * 2 + threadIdx.x / 32] = v;
        __threadfence();
    }
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(&blocks_done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last || threadIdx.x != 40) return;
    float sum = 0.0f;
    for (unsigned i = 0; i < 2 * gridDim.x; ++i) sum += partial[i];
    out[0] = sum;
}
