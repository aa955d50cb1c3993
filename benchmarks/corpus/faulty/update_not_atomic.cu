/* corpus
grid: [2]
block: [64]
buffers: {x: in float32 128 normal, out: inout float32 1 zeros}
args: [x, out]
*/
extern "C" __global__ void update_not_atomic(const float* x, float* out) {
    out[0] += x[blockIdx.x * blockDim.x + threadIdx.x];  // FAULT race-global
}
