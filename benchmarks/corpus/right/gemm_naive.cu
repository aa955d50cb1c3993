/* corpus
grid: [3, 2]
block: [16, 16]
buffers: {A: in float32 1160 normal, B: in float32 1480 normal, C: out float32 1073}
args: [A, B, C, 29, 37, 40]
*/
extern "C" __global__ void gemm_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
