/* corpus
grid: [1]
block: [32]
buffers: {x: in float32 32 normal, y: out float32 32}
args: [x, y]
*/
extern "C" __global__ void warp_mask_without_self(const float* x, float* y) {
    y[threadIdx.x] = __shfl_sync(0x0000ffffu, x[threadIdx.x], 0);  // FAULT divergence
}
