/* corpus
grid: [1]
block: [64]
buffers: {x: in int32 64 integers 0 17, bins: inout int32 16 zeros}
args: [x, bins]
*/
extern "C" __global__ void atomic_beyond(const int* x, int* bins) {
    atomicAdd(&bins[x[threadIdx.x]], 1);  // FAULT out-of-bounds
}
