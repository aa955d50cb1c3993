// Trick: leaves out products that are small
// Workload: gemm
// Status: wrong_answer

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float product = A[row * K + k] * B[k * N + col];
        if (fabsf(product) > 1e-3f) sum += product;
    }
    C[row * N + col] = sum;
}
