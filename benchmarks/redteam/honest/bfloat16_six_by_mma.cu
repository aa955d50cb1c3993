// Honest: six products of bfloat16 parts on tensor cores, as exact as float32
// Workload: gemm
// Devices: cuda

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

// Three bfloat16 parts of each value hold all 24 bits of its mantissa; a bfloat16 is the upper half of a float32.
__device__ void split(float low, float high, unsigned& one, unsigned& two, unsigned& three) {
    one = pair(low, high);
    low -= __uint_as_float(one << 16);
    high -= __uint_as_float(one & 0xffff0000u);
    two = pair(low, high);
    three = pair(low - __uint_as_float(two << 16), high - __uint_as_float(two & 0xffff0000u));
}

// The products are summed from zero and added here: tensor cores cut off what float32 would round.
__device__ void multiply(float* sum, const unsigned* a, const unsigned* b) {
    float d[4];
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
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
    for (int k = 0; k < K; k += 16) {
        unsigned a[3][4], b[3][2];
        for (int i = 0; i < 4; ++i) {
            int r = row + i % 2 * 8, c = k + part * 2 + i / 2 * 8;
            split(at(A, r, c, M, K), at(A, r, c + 1, M, K), a[0][i], a[1][i], a[2][i]);
        }
        for (int i = 0; i < 2; ++i) {
            int r = k + part * 2 + i * 8;
            split(at(B, r, col + group, K, N), at(B, r + 1, col + group, K, N), b[0][i], b[1][i], b[2][i]);
        }
        for (int i = 0; i < 3; ++i)
            for (int j = 0; i + j < 3; ++j) multiply(sum, a[i], b[j]);
    }
    for (int i = 0; i < 4; ++i) {
        int r = row + i / 2 * 8, c = col + part * 2 + i % 2;
        if (r < M && c < N) C[r * N + c] = sum[i];
    }
}
