// Honest: sums chunks in float32 and the chunks in double, with an atomic on a double workspace
// Workload: reduction
// Long: yes

/* launch
launches:
  - {kernel: chunks, block: 64, grid: "ceildiv(N, 1024)", args: [x, sum, N]}
  - {kernel: store, block: 1, grid: 1, args: [sum, total]}
workspace: {sum: 8}
zero: [sum]
*/
extern "C" __global__ void chunks(const float* x, double* sum, int N) {
    float mine = 0.0f;
    int end = min(N, (blockIdx.x + 1) * 1024);
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < end; i += 64) mine += x[i];
    for (int s = 16; s > 0; s /= 2) mine += __shfl_down_sync(0xffffffffu, mine, s);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, (double)mine);
}
extern "C" __global__ void store(const double* sum, float* total) { *total = (float)*sum; }
