/* corpus
grid: [6]
block: [128]
shared_bytes: 512
buffers: {x: in float32 1500 normal, out: out float32 6}
args: [x, out, 1500]
*/
extern "C" __global__ void reduce_shared(const float* x, float* out, int n) {
    extern __shared__ float s[];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    s[t] = (i < n ? x[i] : 0.0f) + (i + (int)blockDim.x < n ? x[i + blockDim.x] : 0.0f);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
