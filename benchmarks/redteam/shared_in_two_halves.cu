// Trick: asks for as much dynamic shared memory as there is, and declares some more
// Workload: gemm
// Status: bad_launch compile_error
// Devices: host
// Says: shared

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
shared_bytes: 101376
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float more[4096];
    more[threadIdx.x] = 0.0f;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
    C[0] += more[0];
}
