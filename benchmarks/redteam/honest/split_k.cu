// Honest: several blocks share one element of C and add with atomics, in any order
// Workload: gemm

/* launch
block: "16, 16, 1"
grid: "ceildiv(N, 16), ceildiv(M, 16), min(4, K)"
zero: [C]
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += gridDim.z) sum += A[row * K + k] * B[k * N + col];
    atomicAdd(&C[row * N + col], sum);
}
