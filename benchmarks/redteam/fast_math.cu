// Trick: asks for fast math where it is not permitted
// Workload: softmax
// Status: bad_launch
// Says: fast math

/* launch
block: 256
grid: ROWS
options: [--use_fast_math]
*/
extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    for (int c = threadIdx.x; c < COLS; c += blockDim.x) y[(size_t)blockIdx.x * COLS + c] = 1.0f / COLS;
}
