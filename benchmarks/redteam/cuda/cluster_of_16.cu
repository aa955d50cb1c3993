// Trick: asks for clusters of 16 blocks, which are not portable, with all the shared memory there is
// Workload: gemm
// Status: ok bad_launch launch_error

/* launch
block: "32, 32"
grid: "16 * ceildiv(N, 512), ceildiv(M, 32)"
cluster: 16
shared_bytes: 232448
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
