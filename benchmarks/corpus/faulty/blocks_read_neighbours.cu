/* corpus
grid: [4]
block: [64]
buffers: {y: inout float32 256 normal}
args: [y, 256]
*/
// Smoothing in place: the neighbour block may be before or behind.
extern "C" __global__ void blocks_read_neighbours(float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = 0.5f * (y[i > 0 ? i - 1 : i] + y[i < n - 1 ? i + 1 : i]);  // FAULT race-global
    __syncthreads();
    y[i] = v;
}
