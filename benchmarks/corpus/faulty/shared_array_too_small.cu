/* corpus
grid: [1]
block: [128]
buffers: {x: in float32 128 normal, y: out float32 128}
args: [x, y]
*/
extern "C" __global__ void shared_array_too_small(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];  // FAULT out-of-bounds
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
