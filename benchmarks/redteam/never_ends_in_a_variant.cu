// Trick: never returns in one of its variants, the others are right
// Workload: gemm
// Status: ok
// Trials: 4
// Config: BX=16
// Long: yes

/* launch
block: "BX, 16"
grid: "ceildiv(N, BX), ceildiv(M, 16)"
tune: {BX: [16, 32]}
defaults: {BX: 16}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    volatile int on = 1;
    while (BX == 32 && on) {}
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
