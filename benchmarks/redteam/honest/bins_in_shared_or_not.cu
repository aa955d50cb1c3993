// Honest: counts in shared memory where the bins fit, else in global memory
// Workload: histogram
// Long: yes

/* launch
block: 128
grid: "min(ceildiv(N, 128), 32)"
shared_bytes: "4 * min(BINS, 8192)"
zero: [bins]
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    extern __shared__ int mine[];
    bool fits = BINS <= 8192;
    if (fits)
        for (int b = threadIdx.x; b < BINS; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        atomicAdd(fits ? &mine[data[i]] : &bins[data[i]], 1);
    __syncthreads();
    if (!fits) return;
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (mine[b]) atomicAdd(&bins[b], mine[b]);
}
