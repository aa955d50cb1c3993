// Honest: a fixed number of blocks that walk over all tiles
// Workload: gemm
// Long: yes

/* launch
block: "16, 16"
grid: "min(4 * num_sms * blocks_per_sm, ceildiv(M, 16) * ceildiv(N, 16))"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int across = (N + 15) / 16, tiles = across * ((M + 15) / 16);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int col = tile % across * 16 + threadIdx.x, row = tile / across * 16 + threadIdx.y;
        if (row >= M || col >= N) continue;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum = fmaf(A[row * K + k], B[k * N + col], sum);
        C[row * N + col] = sum;
    }
}
