// Honest: one cooperative launch: every block leaves its sum, all wait, and one adds them
// Workload: reduction
// Devices: cuda

/* launch
block: 256
grid: 8
cooperative: true
workspace: {parts: 32}
args: [x, total, parts, N]
*/
#include <cooperative_groups.h>

extern "C" __global__ void reduction(const float* x, float* total, float* parts, int N) {
    __shared__ float warps[8];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) sum += x[i];
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.0f;
        for (int i = 0; i < 8; ++i) all += warps[i];
        parts[blockIdx.x] = all;
    }
    cooperative_groups::this_grid().sync();
    if (blockIdx.x > 0 || threadIdx.x > 0) return;
    float all = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) all += parts[i];
    *total = all;
}
