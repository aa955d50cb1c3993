/* corpus
grid: [4]
block: [96]
buffers: {x: in float32 1000 normal, out: inout float32 1 zeros, largest: inout int32 1 zeros}
args: [x, out, largest, 1000]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void reduce_groups(const float* x, float* out, int* largest, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    __shared__ float partial[3];
    float v = 0.0f;
    for (int i = blockIdx.x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size()) v += x[i];
    v = cg::reduce(warp, v, cg::plus<float>());
    const int top = cg::reduce(warp, (int)block.thread_rank(), [](int a, int b) { return a > b ? a : b; });
    if (warp.thread_rank() == 0) {
        partial[warp.meta_group_rank()] = v;
        atomicMax(largest, top);
    }
    cg::sync(block);
    if (block.thread_rank() == 0) atomicAdd(out, partial[0] + partial[1] + partial[2]);
}
