/* corpus
grid: [1]
block: [32]
buffers: {A: in float16 255 uniform, C: out float32 256}
args: [A, C]
*/
#include <mma.h>
extern "C" __global__ void wmma_beyond(const half* A, float* C) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> c;
    fill_fragment(c, 0.0f);
    fill_fragment(b, __float2half(1.0f));
    load_matrix_sync(a, A, 16);  // FAULT out-of-bounds
    mma_sync(c, a, b, c);
    store_matrix_sync(C, c, 16, mem_row_major);
}
