/* corpus
grid: [1]
block: [64]
buffers: {x: in int32 64 integers 0 9, y: out int32 64}
args: [x, y]
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tile_sync_missing(const int* x, int* y) {
    __shared__ int s[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[threadIdx.x ^ 15] + tile.thread_rank();  // FAULT race-shared
}
