// Trick: uses so many registers that a block of 1,024 threads cannot start
// Workload: gemm
// Status: bad_launch launch_error

/* launch
block: "32, 32"
grid: "ceildiv(N, 32), ceildiv(M, 32)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    float held[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) held[i] = A[(threadIdx.x + i) % (M * K)];
    __syncthreads();
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < 96; ++i) all += held[i] * held[95 - i];
    if (all == 1e30f) return;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
