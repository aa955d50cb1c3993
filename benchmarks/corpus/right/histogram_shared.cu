/* corpus
grid: [4]
block: [128]
buffers: {x: in uint8 3000 integers 0 256, bins: inout uint32 256 zeros}
args: [x, bins, 3000]
*/
extern "C" __global__ void histogram_shared(const unsigned char* x, unsigned int* bins, int n) {
    __shared__ unsigned int local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local[i]) atomicAdd(&bins[i], local[i]);
}
