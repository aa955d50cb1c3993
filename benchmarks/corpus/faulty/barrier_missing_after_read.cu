/* corpus
grid: [2, 2]
block: [16, 16]
buffers: {A: in float32 1024 normal, B: in float32 1024 normal, C: out float32 1024}
args: [A, B, C, 32, 32, 32]
*/
#define T 16
extern "C" __global__ void barrier_missing_after_read(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[T][T], b[T][T];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, col = blockIdx.x * T + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += T) {
        a[y][x] = A[row * K + k0 + x];  // FAULT race-shared
        b[y][x] = B[(k0 + y) * N + col];
        __syncthreads();
        for (int k = 0; k < T; ++k) sum += a[y][k] * b[k][x];
    }
    C[row * N + col] = sum;
}
