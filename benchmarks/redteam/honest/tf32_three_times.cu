// Honest: splits each input into TF32 parts and takes three products, as exact as float32
// Workload: gemm

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
__device__ float tf32(float value) { return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu); }

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float large = 0.0f, small = 0.0f;
    for (int k = 0; k < K; ++k) {
        float a = A[row * K + k], b = B[k * N + col];
        float a1 = tf32(a), b1 = tf32(b), a2 = tf32(__fsub_rn(a, a1)), b2 = tf32(__fsub_rn(b, b1));
        large += a1 * b1;
        small += a1 * b2 + a2 * b1;
    }
    C[row * N + col] = large + small;
}
