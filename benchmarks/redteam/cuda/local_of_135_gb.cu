// Trick: needs more local memory than the device has for the threads that it can hold
// Workload: gemm
// Status: bad_launch launch_error compile_error unsupported

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    volatile char large[500000];
    large[(K * 977) % 500000] = 1;
    if (large[(M * 977) % 500000] == 77) return;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
