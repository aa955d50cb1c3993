// Honest: maximum, sum and quotient in launches of their own, with a workspace between them
// Workload: softmax

/* launch
launches:
  - {kernel: maxima, block: 64, grid: "ceildiv(ROWS, 64)", args: [x, largest, ROWS, COLS]}
  - {kernel: sums, block: 64, grid: "ceildiv(ROWS, 64)", args: [x, largest, total, ROWS, COLS]}
  - {kernel: quotients, block: 128, grid: "ceildiv(ROWS * COLS, 128)", args: [x, y, largest, total, ROWS, COLS]}
workspace: {largest: "4 * ROWS", total: "4 * ROWS"}
*/
extern "C" __global__ void maxima(const float* x, float* largest, int ROWS, int COLS) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= ROWS) return;
    float most = x[r * COLS];
    for (int c = 1; c < COLS; ++c) most = fmaxf(most, x[r * COLS + c]);
    largest[r] = most;
}
extern "C" __global__ void sums(const float* x, const float* largest, float* total, int ROWS, int COLS) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= ROWS) return;
    float sum = 0.0f;
    for (int c = 0; c < COLS; ++c) sum += expf(x[r * COLS + c] - largest[r]);
    total[r] = sum;
}
extern "C" __global__ void quotients(const float* x, float* y, const float* largest, const float* total, int ROWS, int COLS) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ROWS * COLS) y[i] = expf(x[i] - largest[i / COLS]) / total[i / COLS];
}
