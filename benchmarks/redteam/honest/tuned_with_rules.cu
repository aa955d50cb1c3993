// Honest: tunables, requirements and rules that choose by size
// Workload: gemm
// Trials: 3
// Long: yes

/* launch
block: "BX, BY"
grid: "ceildiv(N, BX), ceildiv(M, BY * ROWS)"
tune: {BX: [16, 32], BY: [4, 8], ROWS: [1, 2, 3]}
require: ["BX * BY >= 128"]
defaults: {BX: 16, BY: 8, ROWS: 3}
choose:
  - {when: "M >= 128 and K % 2 == 0", set: {BX: 32, BY: 4, ROWS: 2}}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * BX + threadIdx.x, row = (blockIdx.y * BY + threadIdx.y) * ROWS;
    if (col >= N) return;
    float sums[ROWS] = {};
    for (int k = 0; k < K; ++k) {
        float b = B[k * N + col];
        for (int r = 0; r < ROWS; ++r)
            if (row + r < M) sums[r] += A[(row + r) * K + k] * b;
    }
    for (int r = 0; r < ROWS; ++r)
        if (row + r < M) C[(row + r) * N + col] = sums[r];
}
