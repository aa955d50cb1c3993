/* corpus
grid: [2]
block: [64]
buffers: {x: in int32 128 integers 0 9, out: out int32 128, masks: out int32 128}
args: [x, out, masks]
*/
// Inclusive scan within tiles of 8, a tree over shared memory ordered by tile.sync, and a tile's own ballot.
#include <cooperative_groups.h>
using namespace cooperative_groups;
extern "C" __global__ void groups_tiles(const int* x, int* out, int* masks) {
    auto block = this_thread_block();
    auto tile = tiled_partition<8>(block);
    __shared__ int s[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = x[i];
    for (int d = 1; d < tile.size(); d *= 2) {
        const int left = tile.shfl_up(v, d);
        if (tile.thread_rank() >= d) v += left;
    }
    s[threadIdx.x] = v;
    tile.sync();
    const int last = s[threadIdx.x / 8 * 8 + 7];
    out[i] = v * 1000 + last + (tile.any(x[i] == 0) ? 100000 : 0) + (tile.all(x[i] < 9) ? 0 : 1000000);
    masks[i] = tile.ballot(x[i] > 4) + 256 * tile.shfl(x[i], 3) + 4096 * tile.shfl_xor((int)tile.thread_rank(), 1);
}
