/* corpus
grid: [2]
block: [64]
buffers: {x: in float32 128 normal, y: out float32 1}
args: [x, y]
*/
// Adds to an output that nobody has zeroed.
extern "C" __global__ void output_not_initialised(const float* x, float* y) {
    atomicAdd(y, x[blockIdx.x * 64 + threadIdx.x]);  // FAULT uninitialised
}
