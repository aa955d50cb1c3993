/* corpus
grid: [9]
block: [64]
buffers: {x: in float32 2700 normal, y: out float32 2700}
args: [x, y, 300]
*/
// One pass for maximum and sum; lanes merge by xor shuffles, warps through shared memory.
__device__ void merge(float& m, float& s, float m2, float s2) {
    const float top = fmaxf(m, m2);
    s = s * __expf(m - top) + s2 * __expf(m2 - top);
    m = top;
}
extern "C" __global__ void softmax_online(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ float2 partial[2];
    const float* row = x + (size_t)blockIdx.x * columns;
    float m = -1e30f, s = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) merge(m, s, row[c], 1.0f);
    for (int lanes = 16; lanes > 0; lanes >>= 1) {
        const float m2 = __shfl_xor_sync(0xffffffffu, m, lanes), s2 = __shfl_xor_sync(0xffffffffu, s, lanes);
        merge(m, s, m2, s2);
    }
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = make_float2(m, s);
    __syncthreads();
    m = partial[0].x;
    s = partial[0].y;
    merge(m, s, partial[1].x, partial[1].y);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) y[(size_t)blockIdx.x * columns + c] = __expf(row[c] - m) / s;
}
