/* corpus
grid: [4]
block: [64]
buffers: {x: in int32 250 integers -5 6, out: out int32 250, count: inout int32 1 zeros}
args: [x, out, count, 250]
*/
// Warp-aggregated append with coalesced_threads.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int append(int* count) {
    cg::coalesced_group active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
    return active.shfl(base, 0) + active.thread_rank();
}
extern "C" __global__ void groups_coalesced(const int* x, int* out, int* count, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) out[append(count)] = x[i];
}
