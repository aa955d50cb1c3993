// Honest: the blocks of a cluster add what they have in the shared memory of the first
// Workload: reduction
// Devices: cuda

/* launch
launches:
  - {kernel: reduction, block: 256, grid: "4 * ceildiv(N, 4096)", args: [x, total, N]}
zero: [total]
cluster: 4
*/
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    __shared__ float shared;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) shared = 0.0f;
    cluster.sync();
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) sum += x[i];
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (threadIdx.x % 32 == 0) atomicAdd(cluster.map_shared_rank(&shared, 0), sum);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) atomicAdd(total, shared);
}
