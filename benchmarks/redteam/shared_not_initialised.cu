// Trick: counts in shared memory that it takes for zero
// Workload: histogram
// Status: unsafe
// Says: uninitialised

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [bins]
shared_bytes: "4 * BINS"
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    extern __shared__ int mine[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(&mine[data[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (mine[b]) atomicAdd(&bins[b], mine[b]);
}
