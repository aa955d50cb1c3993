/* corpus
grid: [1]
block: [128]
buffers: {y: out float32 100}
args: [y, 100]
*/
extern "C" __global__ void write_beyond_by_one(float* y, int n) {
    const int i = threadIdx.x;
    if (i <= n) y[i] = 1.0f;  // FAULT out-of-bounds
}
