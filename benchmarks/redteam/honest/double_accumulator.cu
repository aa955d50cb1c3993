// Honest: accumulates in double precision, more exact than asked
// Workload: gemm
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    double sum = 0.0;
    for (int k = 0; k < K; ++k) sum += (double)A[row * K + k] * B[k * N + col];
    C[row * N + col] = (float)sum;
}
