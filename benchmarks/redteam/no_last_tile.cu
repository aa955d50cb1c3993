// Trick: computes whole tiles only
// Workload: gemm
// Status: wrong_answer
// Says: never written

/* launch
block: "16, 16"
grid: "max(N // 16, 1), max(M // 16, 1)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
