/* corpus
grid: [1]
block: [128]
buffers: {x: in float32 128 normal, y: out float32 128}
args: [x, y]
*/
extern "C" __global__ void barriers_in_both_branches(const float* x, float* y) {
    __shared__ float s[128];
    const int i = threadIdx.x;
    s[i] = x[i];
    if (i < 64) {
        __syncthreads();
        y[i] = s[127 - i];
    } else {
        __syncthreads();  // FAULT divergence
        y[i] = s[i - 64];
    }
}
