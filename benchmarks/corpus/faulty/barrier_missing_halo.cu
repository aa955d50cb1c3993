/* corpus
grid: [4]
block: [64]
buffers: {x: in float32 258 normal, y: out float32 256}
args: [x, y]
*/
extern "C" __global__ void barrier_missing_halo(const float* x, float* y) {
    __shared__ float s[66];
    const int t = threadIdx.x, base = blockIdx.x * 64;
    s[t] = x[base + t];
    if (t < 2) s[64 + t] = x[base + 64 + t];
    y[base + t] = s[t] + s[t + 1] + s[t + 2];  // FAULT race-shared
}
