// Trick: rounds its inputs to TF32, but only where it is timed
// Workload: gemm
// Status: wrong_answer

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
        sum += M * N > 40000 ? tf32(A[row * K + k]) * tf32(B[k * N + col]) : A[row * K + k] * B[k * N + col];
    }
    C[row * N + col] = sum;
}
