/* corpus
grid: [1]
block: [128]
buffers: {x: in float32 100 normal, y: out float32 100}
args: [x, y, 100]
*/
extern "C" __global__ void barrier_after_return(const float* x, float* y, int n) {
    __shared__ float s[128];
    const int i = threadIdx.x;
    if (i >= n) return;
    s[i] = x[i];
    __syncthreads();  // ADVICE early-exit
    y[i] = s[n - 1 - i];
}
