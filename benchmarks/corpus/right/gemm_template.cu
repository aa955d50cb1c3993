/* corpus
kernel: "gemm_template<32, 4>"
grid: [2, 4]
block: [32]
buffers: {A: in float32 320 normal, B: in float32 1280 normal, C: out float32 1024}
args: [A, B, C, 16, 64, 20]
*/
// A template: a column per thread, ROWS rows in registers, a row panel of A in shared memory.
template <int COLS, int ROWS>
__global__ void gemm_template(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    extern __shared__ float nothing[];
    __shared__ float panel[ROWS][64];
    const int col = blockIdx.x * COLS + threadIdx.x, row0 = blockIdx.y * ROWS;
    for (int i = threadIdx.x; i < ROWS * K; i += COLS) panel[i / K][i % K] = A[(row0 + i / K) * K + i % K];
    __syncthreads();
    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sum[r] = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float b = B[k * N + col];
#pragma unroll ROWS
        for (int r = 0; r < ROWS; ++r) sum[r] += panel[r][k] * b;
    }
    for (int r = 0; r < ROWS; ++r) C[(row0 + r) * N + col] = sum[r];
    (void)nothing;
}
