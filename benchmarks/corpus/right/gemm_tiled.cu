/* corpus
grid: [3, 2]
block: [16, 16]
buffers: {A: in float32 1160 normal, B: in float32 1480 normal, C: out float32 1073}
args: [A, B, C, 29, 37, 40]
*/
#define T 16
extern "C" __global__ void __launch_bounds__(T * T)
gemm_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float a[T][T];
    __shared__ float b[T][T + 1];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, col = blockIdx.x * T + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        a[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b[y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < T; ++k) sum = fmaf(a[y][k], b[k][x], sum);
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
