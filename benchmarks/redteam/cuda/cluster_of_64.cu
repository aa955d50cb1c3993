// Trick: asks for clusters of 64 blocks
// Workload: gemm
// Status: bad_launch
// Says: cluster

/* launch
block: "16, 16"
grid: "64 * ceildiv(N, 1024), ceildiv(M, 16)"
cluster: 64
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
