/* corpus
grid: [4]
block: [128]
buffers: {x: in int32 500 integers -5 6, out: out int32 500, count: inout int32 1 zeros}
args: [x, out, count, 500]
*/
// Ballot within the warp, offsets of warps through shared memory, one atomic per block.
extern "C" __global__ void compact_ballot(const int* x, int* out, int* count, int n) {
    __shared__ int offsets[4];
    __shared__ int base;
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const bool keep = i < n && x[i] > 0;
    const unsigned kept = __ballot_sync(0xffffffffu, keep);
    if (lane == 0) offsets[warp] = __popc(kept);
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int w = 0; w < 4; ++w) {
            const int mine = offsets[w];
            offsets[w] = total;
            total += mine;
        }
        base = atomicAdd(count, total);
    }
    __syncthreads();
    if (keep) out[base + offsets[warp] + __popc(kept & ((1u << lane) - 1))] = x[i];
}
