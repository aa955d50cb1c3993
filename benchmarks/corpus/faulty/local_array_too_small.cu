/* corpus
grid: [1]
block: [32]
buffers: {x: in float32 128 normal, y: out float32 32}
args: [x, y, 5]
*/
extern "C" __global__ void local_array_too_small(const float* x, float* y, int width) {
    float window[4];
    for (int k = 0; k < 4; ++k) window[k] = x[threadIdx.x + k];
    float sum = 0.0f;
    for (int k = 0; k < width; ++k) sum += window[k];  // FAULT out-of-bounds
    y[threadIdx.x] = sum;
}
