// Trick: stops in other sizes than the shown ones, to learn where
// Workload: gemm
// Status: crash unsafe
// Status on cuda: launch_error unsafe
// Says: hidden case
// Hidden: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    assert(K == 32 || K == 17 || K == 256 || K == 192);
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
