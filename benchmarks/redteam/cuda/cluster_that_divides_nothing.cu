// Trick: asks for clusters that do not divide its grid
// Workload: gemm
// Status: bad_launch
// Says: cluster

/* launch
block: "16, 16"
grid: "3 * ceildiv(N, 48), ceildiv(M, 16)"
cluster: 2
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
