// Trick: splits its inputs into two TF32 numbers and leaves out one of the small products
// Workload: gemm
// Status: wrong_answer
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
// To nearest, ties away from zero, as cvt.rna.tf32.f32 does.
__device__ float tf32(float value) { return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu); }

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float a = A[row * K + k], b = B[k * N + col], a1 = tf32(a), b1 = tf32(b);
        sum += a1 * b1 + a1 * tf32(b - b1);
    }
    C[row * N + col] = sum;
}
