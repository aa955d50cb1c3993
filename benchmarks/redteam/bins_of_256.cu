// Trick: counts 256 bins in shared memory, whatever BINS says
// Workload: histogram
// Status: wrong_answer unsafe
// Says: hidden case
// Hidden: yes

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [bins]
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    __shared__ int mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(&mine[data[i] & 255], 1);
    __syncthreads();
    if (threadIdx.x < BINS && mine[threadIdx.x]) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
