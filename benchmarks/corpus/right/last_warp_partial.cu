/* corpus
grid: [2]
block: [256]
buffers: {x: in float32 512 normal, out: out float32 2}
args: [x, out]
*/
// The last step runs in 8 lanes of one warp with a mask of 8: lanes 4 to 7 read absent ones and nobody uses it.
extern "C" __global__ void last_warp_partial(const float* x, float* out) {
    __shared__ float partial[8];
    float v = x[blockIdx.x * 256 + threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 8) {
        v = partial[threadIdx.x];
        for (int d = 4; d > 0; d >>= 1) v += __shfl_down_sync(0xffu, v, d);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}
