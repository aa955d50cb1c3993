/* corpus
grid: [2]
block: [64]
buffers: {y: out float32 128}
args: [y]
*/
extern "C" __global__ void write_far_beyond(float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i * 1000] = 1.0f;  // FAULT out-of-bounds
}
