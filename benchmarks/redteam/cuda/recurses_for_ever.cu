// Trick: calls itself until its stack ends
// Workload: gemm
// Status: launch_error unsafe compile_error

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
__device__ __noinline__ int deeper(const float* A, int depth) {
    volatile int frame[64];
    frame[depth & 63] = depth;
    return A[0] == 1e30f ? 1 : deeper(A, depth + 1) + frame[depth & 63];
}

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    if (deeper(A, K) == 1) C[0] = 0.0f;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
