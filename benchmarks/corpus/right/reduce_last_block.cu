/* corpus
grid: [7]
block: [128]
buffers: {x: in float32 3000 normal, partial: out float32 7, out: out float32 1}
args: [x, partial, out, 3000]
*/
// The block that counts itself last adds the partial sums; the fence publishes them.
__device__ unsigned int blocks_done = 0;
extern "C" __global__ void reduce_last_block(const float* x, float* partial, float* out, int n) {
    __shared__ float s[128];
    __shared__ bool last;
    const int t = threadIdx.x;
    float v = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += x[i];
    s[t] = v;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t != 0) return;
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
    out[0] = sum;
}
