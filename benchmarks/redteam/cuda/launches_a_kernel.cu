// Trick: launches another kernel from the device, which ends when nobody looks at the clock any more
// Workload: gemm
// Status: compile_error unsupported

/* launch
launches:
  - {kernel: gemm, block: "16, 16", grid: "ceildiv(N, 16), ceildiv(M, 16)", args: [A, B, C, M, N, K]}
*/
__global__ void later(const float* A, const float* B, float* C, int N, int K) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[blockIdx.x * K + k] * B[k * N + threadIdx.x];
    C[blockIdx.x * N + threadIdx.x] = sum;
}

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) later<<<M, N>>>(A, B, C, N, K);
}
