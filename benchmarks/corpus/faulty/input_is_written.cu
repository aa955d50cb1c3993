/* corpus
grid: [1]
block: [64]
buffers: {x: in float32 64 normal, y: out float32 64}
args: [x, y]
*/
extern "C" __global__ void input_is_written(float* x, float* y) {
    x[threadIdx.x] *= 2.0f;  // FAULT input-written
    y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}
