/* corpus
buffers: {x: in int32 1000 integers 0 9, y: out int32 1000, sums: out int32 8}
launches:
  - {kernel: scan_blocks, grid: [8], block: [128], args: [x, y, sums, 1000]}
  - {kernel: add_sums, grid: [8], block: [128], args: [y, sums, 1000]}
*/
extern "C" __global__ void scan_blocks(const int* x, int* y, int* sums, int n) {
    __shared__ int warps[4];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        const int left = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += left;
    }
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; ++w) v += warps[w];
    if (i < n) y[i] = v;
    if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}
extern "C" __global__ void add_sums(int* y, const int* sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int before = 0;
    for (unsigned b = 0; b < blockIdx.x; ++b) before += sums[b];
    if (i < n) y[i] += before;
}
