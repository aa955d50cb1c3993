/* corpus
grid: [3]
block: [96]
buffers: {x: in int32 800 integers 0 16, bins: inout int32 16 zeros, agreed: inout int32 1 zeros}
args: [x, bins, agreed, 800]
*/
// Equal keys of a warp are counted by one atomic. The mask is of the lanes that happen to go together: how many do, the
// compiler and the hardware decide, and no result may depend on it.
extern "C" __global__ void match_aggregate(const int* x, int* bins, int* agreed, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned active = __activemask();
        const unsigned same = __match_any_sync(active, x[i]);
        const int leader = __ffs(same) - 1;
        if ((threadIdx.x & 31) == leader) atomicAdd(&bins[x[i]], __popc(same));
        int all;
        __match_all_sync(active, x[i] < 16, &all);
        if (all && (threadIdx.x & 31) == __ffs(active) - 1) atomicAdd(agreed, __popc(active));
    }
}
