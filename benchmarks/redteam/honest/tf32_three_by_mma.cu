// Honest: three products of TF32 parts on tensor cores, as exact as float32
// Workload: gemm
// Devices: cuda

/* launch
block: 32
grid: "ceildiv(N, 8), ceildiv(M, 16)"
*/
__device__ float at(const float* matrix, int row, int col, int rows, int cols) {
    return row < rows && col < cols ? matrix[row * cols + col] : 0.0f;
}

__device__ unsigned tf32(float value) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

__device__ void split(float value, unsigned& large, unsigned& small) {
    large = tf32(value);
    small = tf32(__fsub_rn(value, __uint_as_float(large)));
}

// The products are summed from zero and added here: tensor cores cut off what float32 would round.
__device__ void multiply(float* sum, const unsigned* a, const unsigned* b) {
    float d[4];
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
    for (int i = 0; i < 4; ++i) sum[i] += d[i];
}

// One warp for a tile of 16 x 8; what lies beyond the edges counts as zero.
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int lane = threadIdx.x, group = lane / 4, part = lane % 4;
    int row = blockIdx.y * 16 + group, col = blockIdx.x * 8;
    float sum[4] = {};
    for (int k = 0; k < K; k += 8) {
        unsigned a1[4], a2[4], b1[2], b2[2];
        for (int i = 0; i < 4; ++i) split(at(A, row + i % 2 * 8, k + part + i / 2 * 4, M, K), a1[i], a2[i]);
        for (int i = 0; i < 2; ++i) split(at(B, k + part + i * 4, col + group, K, N), b1[i], b2[i]);
        multiply(sum, a1, b1);
        multiply(sum, a1, b2);
        multiply(sum, a2, b1);
    }
    for (int i = 0; i < 4; ++i) {
        int r = row + i / 2 * 8, c = col + part * 2 + i % 2;
        if (r < M && c < N) C[r * N + c] = sum[i];
    }
}
