// Honest: blocks that draw their tiles from a counter
// Workload: gemm
// Long: yes

/* launch
block: 256
grid: 3
workspace: {next: 4}
zero: [next]
args: [A, B, C, next, M, N, K]
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int* next, int M, int N, int K) {
    __shared__ int mine;
    for (;;) {
        if (threadIdx.x == 0) mine = atomicAdd(next, 1);
        __syncthreads();
        int at = mine * blockDim.x + threadIdx.x;
        bool over = mine * blockDim.x >= M * N;
        __syncthreads();
        if (over) return;
        if (at >= M * N) continue;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[at / N * K + k] * B[k * N + at % N];
        C[at] = sum;
    }
}
