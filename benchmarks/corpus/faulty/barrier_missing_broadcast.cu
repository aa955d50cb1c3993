/* corpus
grid: [2]
block: [96]
buffers: {x: in float32 192 normal, y: out float32 192}
args: [x, y]
*/
extern "C" __global__ void barrier_missing_broadcast(const float* x, float* y) {
    __shared__ float first;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) first = x[i];
    y[i] = x[i] - first;  // FAULT race-shared
}
