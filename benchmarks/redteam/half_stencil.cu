// Trick: computes the change of a point in half precision
// Workload: stencil
// Status: wrong_answer
// Long: yes

/* launch
block: "32, 8"
grid: "ceildiv(W, 32), ceildiv(H, 8)"
*/
#include <cuda_fp16.h>
extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int i = y * W + x;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) {
        out[i] = in[i];
        return;
    }
    __half around = __float2half(in[i - W] + in[i + W] + in[i - 1] + in[i + 1] - 4.0f * in[i]);
    out[i] = in[i] + 0.125f * __half2float(around);
}
