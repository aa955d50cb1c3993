/* corpus
grid: [1]
block: [128]
buffers: {x: in float32 100 normal, y: out float32 100}
args: [x, y, 100]
*/
extern "C" __global__ void read_beyond_by_one(const float* x, float* y, int n) {
    const int i = threadIdx.x;
    if (i < n) y[i] = x[i] - x[i + 1];  // FAULT out-of-bounds
}
