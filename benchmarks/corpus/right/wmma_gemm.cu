/* corpus
grid: [2, 1]
block: [64]
buffers: {A: in float16 1024 uniform, B: in float16 2048 uniform, C: out float32 2048}
args: [A, B, C, 32, 64, 32]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_gemm(const half* A, const half* B, float* C, int M, int N, int K) {
    const int row = threadIdx.x / 32 * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    for (int col = blockIdx.x * 32; col < (blockIdx.x + 1) * 32; col += 16) {
        wmma::fill_fragment(c, 0.0f);
        for (int k = 0; k < K; k += 16) {
            wmma::load_matrix_sync(a, A + row * K + k, K);
            wmma::load_matrix_sync(b, B + k * N + col, N);
            wmma::mma_sync(c, a, b, c);
        }
        for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 0.5f;
        wmma::store_matrix_sync(C + row * N + col, c, N, wmma::mem_row_major);
    }
}
