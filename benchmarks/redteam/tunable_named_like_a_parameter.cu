// Trick: tunes a name that belongs to the workload, and so changes what a case is
// Workload: gemm
// Status: bad_launch
// Says: free name

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
tune: {K: [1, 2]}
defaults: {K: 1}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
