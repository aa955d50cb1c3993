/* corpus
grid: [2]
block: [64]
buffers: {x: in float32 128 normal, y: out float32 128}
args: [x, y]
*/
extern "C" __global__ void read_before(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + x[i - 1];  // FAULT out-of-bounds
}
