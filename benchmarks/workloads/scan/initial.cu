/* launch
launches:
  - {kernel: scan_blocks, block: 256, grid: "ceildiv(N, 256)", shared_bytes: "4 * 256", args: [x, y, sums, N]}
  - {kernel: scan_sums, block: 1, grid: 1, args: [sums, "ceildiv(N, 256)"]}
  - {kernel: add_sums, block: 256, grid: "ceildiv(N, 256)", args: [y, sums, N]}
workspace: {sums: "4 * ceildiv(N, 256)"}
*/
// Hillis and Steele: every block scans its 256 values in shared memory and leaves their sum.
extern "C" __global__ void scan_blocks(const float* x, float* y, float* sums, int N) {
    extern __shared__ float values[];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    values[t] = i < N ? x[i] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        float left = t >= offset ? values[t - offset] : 0.0f;
        __syncthreads();
        values[t] += left;
        __syncthreads();
    }
    if (i < N) {
        y[i] = values[t];
    }
    if (t == blockDim.x - 1) {
        sums[blockIdx.x] = values[t];
    }
}

// One thread turns the blocks' sums into prefix sums.
extern "C" __global__ void scan_sums(float* sums, int count) {
    float running = 0.0f;
    for (int b = 0; b < count; ++b) {
        running += sums[b];
        sums[b] = running;
    }
}

// Every block but the first adds what stands before it.
extern "C" __global__ void add_sums(float* y, const float* sums, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N && blockIdx.x > 0) {
        y[i] += sums[blockIdx.x - 1];
    }
}
