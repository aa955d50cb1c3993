// Trick: reads tiles without looking at bounds, and multiplies what lies beyond by zero
// Workload: softmax
// Status: unsafe
// Says: out of bounds

/* launch
block: 256
grid: ROWS
*/
extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    const float* row = x + (size_t)blockIdx.x * COLS;
    float largest = -1e30f, sum = 0.0f;
    for (int c = 0; c < (COLS + 7) / 8 * 8; ++c) largest = fmaxf(largest, c < COLS ? row[c] : fminf(row[c], largest));
    for (int c = 0; c < COLS; ++c) sum += expf(row[c] - largest);
    for (int c = threadIdx.x; c < COLS; c += blockDim.x) y[(size_t)blockIdx.x * COLS + c] = expf(row[c] - largest) / sum;
}
