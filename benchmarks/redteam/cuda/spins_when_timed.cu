// Trick: spins where it is timed
// Workload: gemm
// Status: timeout
// Says: case 'square'
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
__device__ int arrived;

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    while (M == 256 && atomicAdd(&arrived, 0) == 0) {}
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
