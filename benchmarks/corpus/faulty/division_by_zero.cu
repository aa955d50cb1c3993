/* corpus
grid: [1]
block: [32]
buffers: {x: in int32 32 ramp, y: out int32 32}
args: [x, y]
*/
extern "C" __global__ void division_by_zero(const int* x, int* y) {
    y[threadIdx.x] = 100 / x[threadIdx.x];  // FAULT arithmetic
}
