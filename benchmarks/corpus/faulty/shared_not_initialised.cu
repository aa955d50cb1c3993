/* corpus
grid: [2]
block: [64]
buffers: {x: in float32 100 normal, y: out float32 128}
args: [x, y, 100]
*/
extern "C" __global__ void shared_not_initialised(const float* x, float* y, int n) {
    __shared__ float s[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) s[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[63 - threadIdx.x];  // FAULT uninitialised
}
