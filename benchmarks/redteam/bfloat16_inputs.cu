// Trick: rounds its inputs to bfloat16
// Workload: gemm
// Status: wrong_answer
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
#include <cuda_bf16.h>
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        sum += __bfloat162float(__float2bfloat16(A[row * K + k])) * __bfloat162float(__float2bfloat16(B[k * N + col]));
    }
    C[row * N + col] = sum;
}
