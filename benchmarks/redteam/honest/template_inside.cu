// Honest: a template does the work, for the tile and the type that the kernel around it names
// Workload: gemm

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
template <int Tile, class T>
__device__ __forceinline__ void product(const T* A, const T* B, T* C, int M, int N, int K) {
    __shared__ T a[Tile][Tile + 1], b[Tile][Tile + 1];
    int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * Tile + x, row = blockIdx.y * Tile + y;
    T sum = 0;
    for (int t = 0; t < K; t += Tile) {
        a[y][x] = row < M && t + x < K ? A[row * K + t + x] : T(0);
        b[y][x] = col < N && t + y < K ? B[(t + y) * N + col] : T(0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Tile; ++k) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}

extern "C" __global__ void __launch_bounds__(256) gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    product<16, float>(A, B, C, M, N, K);
}
