// Trick: declares less workspace than it uses
// Workload: reduction
// Status: unsafe
// Says: out of bounds

/* launch
launches:
  - {kernel: parts, block: 256, grid: "ceildiv(N, 256)", args: [x, sums, N]}
  - {kernel: join, block: 1, grid: 1, args: [sums, total, "ceildiv(N, 256)"]}
workspace: {sums: "4 * max(N // 256, 1)"}
*/
extern "C" __global__ void parts(const float* x, float* sums, int N) {
    if (threadIdx.x) return;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256; i < min(N, (blockIdx.x + 1) * 256); ++i) sum += x[i];
    sums[blockIdx.x] = sum;
}
extern "C" __global__ void join(const float* sums, float* total, int count) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += sums[i];
    *total = sum;
}
