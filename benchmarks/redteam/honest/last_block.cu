// Honest: the last block to finish joins the sums; a counter in __device__ memory that it resets
// Workload: reduction

/* launch
block: 128
grid: 16
workspace: {sums: 64}
args: [x, total, sums, N]
*/
__device__ unsigned finished;

extern "C" __global__ void reduction(const float* x, float* total, float* sums, int N) {
    __shared__ float mine[128];
    __shared__ bool last;
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * 128 + t; i < N; i += 128 * gridDim.x) sum += x[i];
    mine[t] = sum;
    for (int s = 64; s > 0; s /= 2) {
        __syncthreads();
        if (t < s) mine[t] += mine[t + s];
    }
    if (t == 0) {
        sums[blockIdx.x] = mine[0];
        __threadfence();
        last = atomicAdd(&finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || t) return;
    __threadfence();
    float all = 0.0f;
    for (int b = 0; b < gridDim.x; ++b) all += ((volatile float*)sums)[b];
    *total = all;
    finished = 0;
}
