/* corpus
grid: [2]
block: [128]
buffers: {x: in uint8 256 integers 0 16, bins: inout int32 16 zeros}
args: [x, bins]
*/
extern "C" __global__ void shared_bins_not_atomic(const unsigned char* x, int* bins) {
    __shared__ int local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    local[x[blockIdx.x * 128 + threadIdx.x]] += 1;  // FAULT race-shared
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
