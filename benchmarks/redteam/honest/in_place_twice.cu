// Honest: reads its inout buffer in one launch and writes it in the next, through a workspace
// Workload: halve_in_place
// Long: yes

/* launch
launches:
  - {kernel: half, block: 128, grid: "ceildiv(N, 128)", args: [x, kept, N]}
  - {kernel: plus, block: 64, grid: "ceildiv(N, 64)", args: [x, kept, N]}
workspace: {kept: "4 * N"}
*/
extern "C" __global__ void half(const float* x, float* kept, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) kept[i] = 0.5f * x[i];
}
extern "C" __global__ void plus(float* x, const float* kept, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) x[i] = kept[i] + 1.0f;
}
