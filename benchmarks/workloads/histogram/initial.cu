/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [bins]
*/
// One thread counts one value with an atomic addition in global memory.
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        atomicAdd(&bins[data[i]], 1);
    }
}
