// Honest: one pass that keeps a running maximum and rescales its sum
// Workload: softmax

/* launch
block: 32
grid: ROWS
*/
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int ROWS, int COLS) {
    const float* row = x + (size_t)blockIdx.x * COLS;
    float most = -3.402823466e+38f, sum = 0.0f;
    for (int c = threadIdx.x; c < COLS; c += 32) {
        float v = __ldg(row + c), higher = fmaxf(most, v);
        sum = sum * expf(most - higher) + expf(v - higher);
        most = higher;
    }
    for (int s = 16; s > 0; s /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, most, s), more = __shfl_xor_sync(0xffffffffu, sum, s);
        float higher = fmaxf(most, other);
        sum = sum * expf(most - higher) + more * expf(other - higher);
        most = higher;
    }
    for (int c = threadIdx.x; c < COLS; c += 32) y[(size_t)blockIdx.x * COLS + c] = expf(row[c] - most) / sum;
}
