/* corpus
buffers: {x: in int32 900 integers 0 9, y: out int32 900, sums: out int32 8, flags: out int32 8}
launches:
  - {kernel: clear, grid: [1], block: [32], args: [flags, 8]}
  - {kernel: scan_lookback, grid: [8], block: [128], args: [x, y, sums, flags, 900]}
*/
// Each block waits for its left neighbour's flag and hands its own sum on: one pass over the data.
extern "C" __global__ void clear(int* flags, int n) {
    if ((int)threadIdx.x < n) flags[threadIdx.x] = 0;
}
__device__ unsigned tickets;
extern "C" __global__ void scan_lookback(const int* x, int* y, int* sums, volatile int* flags, int n) {
    __shared__ int s[128];
    __shared__ int before;
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(&tickets, 1u);  // blocks start in an order that nobody promises
    __syncthreads();
    const int t = threadIdx.x, i = ticket * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    for (int d = 1; d < 128; d <<= 1) {
        __syncthreads();
        const int left = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += left;
    }
    __syncthreads();
    if (t == 0) {
        before = 0;
        if (ticket > 0) {
            while (flags[ticket - 1] == 0) {
            }
            __threadfence();
            before = sums[ticket - 1];
        }
        sums[ticket] = before + s[127];
        __threadfence();
        flags[ticket] = 1;
    }
    __syncthreads();
    if (i < n) y[i] = before + s[t];
}
