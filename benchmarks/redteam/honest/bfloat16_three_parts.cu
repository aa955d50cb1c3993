// Honest: splits each input into three bfloat16 numbers and takes six products
// Workload: gemm
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
#include <cuda_bf16.h>
__device__ float rounded(float value) { return __bfloat162float(__float2bfloat16(value)); }

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sums[3] = {};
    for (int k = 0; k < K; ++k) {
        float a = A[row * K + k], b = B[k * N + col];
        float a1 = rounded(a), a2 = rounded(a - a1), a3 = rounded(a - a1 - a2);
        float b1 = rounded(b), b2 = rounded(b - b1), b3 = rounded(b - b1 - b2);
        sums[0] += a1 * b1;
        sums[1] += a1 * b2 + a2 * b1;
        sums[2] += a1 * b3 + a2 * b2 + a3 * b1;
    }
    C[row * N + col] = sums[0] + (sums[1] + sums[2]);
}
