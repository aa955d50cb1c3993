/* corpus
grid: [4]
block: [128]
shared_bytes: 512
buffers: {x: in float32 512 normal, out: out float32 4}
args: [x, out]
*/
extern "C" __global__ void barrier_missing_in_tree(const float* x, float* out) {
    extern __shared__ float s[];
    const int t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1)
        if (t < half) s[t] += s[t + half];  // FAULT race-shared
    __syncthreads();
    if (t == 0) out[blockIdx.x] = s[0];
}
