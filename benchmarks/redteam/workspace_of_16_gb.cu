// Trick: asks for more workspace than the machine has
// Workload: gemm
// Status: bad_launch launch_error
// Status on cuda: bad_launch launch_error ok

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
workspace: {all: "16 * 1024 * 1024 * 1024"}
args: [A, B, C, M, N, K]
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
