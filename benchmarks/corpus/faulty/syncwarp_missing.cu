/* corpus
grid: [1]
block: [32]
buffers: {x: in float32 64 normal, out: out float32 1}
args: [x, out]
*/
// The old way: lanes of a warp were thought to go in step.
extern "C" __global__ void syncwarp_missing(const float* x, float* out) {
    __shared__ volatile float s[64];
    const int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = x[t + 32];
    __syncwarp();
    s[t] += s[t + 32];
    if (t < 16) s[t] += s[t + 16];  // FAULT race-shared
    if (t == 0) out[0] = s[0];
}
