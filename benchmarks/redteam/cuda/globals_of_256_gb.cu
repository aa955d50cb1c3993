// Trick: carries more globals than the device has memory
// Workload: gemm
// Status: bad_launch launch_error compile_error unsupported

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
__device__ char large[1ull << 38];

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    if (K < 0) large[K & 7] = 1;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
