// Honest: half of the warps load tiles, half multiply, with two buffers between them
// Workload: gemm

/* launch
block: 512
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[2][16][17], b[2][16][17];
    bool loads = threadIdx.x >= 256;
    int t = threadIdx.x % 256, x = t % 16, y = t / 16;
    int col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y, steps = (K + 15) / 16;
    float sum = 0.0f;
    for (int step = 0; step <= steps; ++step) {
        if (loads && step < steps) {
            int k = step * 16;
            a[step % 2][y][x] = row < M && k + x < K ? A[row * K + k + x] : 0.0f;
            b[step % 2][y][x] = col < N && k + y < K ? B[(k + y) * N + col] : 0.0f;
        }
        if (!loads && step > 0)
            for (int k = 0; k < 16; ++k) sum += a[(step - 1) % 2][y][k] * b[(step - 1) % 2][k][x];
        __syncthreads();
    }
    if (!loads && row < M && col < N) C[row * N + col] = sum;
}
