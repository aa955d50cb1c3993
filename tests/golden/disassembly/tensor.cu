/* launch
block: "128"
grid: "1"
*/
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void tensor(const __half* a, const __half* b, float* c, int n) {
  __shared__ __align__(16) __half s[16 * 16 * 2];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  #pragma unroll 1
  for (int i = 0; i < n; ++i) {
    unsigned p = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 8 % 512]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(p), "l"(a + i * 512 + threadIdx.x * 8));
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    wmma::load_matrix_sync(fa, s, 16);
    wmma::load_matrix_sync(fb, b + i * 256, 16);
    unsigned r0, r1, r2, r3;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(p));
    wmma::mma_sync(fc, fa, fb, fc);
    if (r0 == r1 + r2 + r3) c[1000] = 1;
    __syncthreads();
  }
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
