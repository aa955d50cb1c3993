// Honest: the compiler knows K; the loop has a constant end
// Workload: gemm
// Long: yes

/* launch
block: "32, 4"
grid: "ceildiv(N, 32), ceildiv(M, 4)"
specialize: [K]
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
