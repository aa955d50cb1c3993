// Trick: multiplies on tensor cores in bfloat16
// Workload: gemm
// Status: wrong_answer

/* launch
block: 32
grid: "ceildiv(N, 8), ceildiv(M, 16)"
*/
__device__ float at(const float* matrix, int row, int col, int rows, int cols) {
    return row < rows && col < cols ? matrix[row * cols + col] : 0.0f;
}

__device__ unsigned pair(float low, float high) {
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

// One warp for a tile of 16 x 8; what lies beyond the edges counts as zero.
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int lane = threadIdx.x, group = lane / 4, part = lane % 4;
    int row = blockIdx.y * 16 + group, col = blockIdx.x * 8;
    float sum[4] = {};
    for (int k = 0; k < K; k += 16) {
        unsigned a[4], b[2];
        for (int i = 0; i < 4; ++i) {
            int r = row + i % 2 * 8, c = k + part * 2 + i / 2 * 8;
            a[i] = pair(at(A, r, c, M, K), at(A, r, c + 1, M, K));
        }
        for (int i = 0; i < 2; ++i) {
            int r = k + part * 2 + i * 8;
            b[i] = pair(at(B, r, col + group, K, N), at(B, r + 1, col + group, K, N));
        }
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int i = 0; i < 4; ++i) {
        int r = row + i / 2 * 8, c = col + part * 2 + i % 2;
        if (r < M && c < N) C[r * N + c] = sum[i];
    }
}
