// Trick: adds to a workspace that it takes for zero
// Workload: reduction
// Status: unsafe wrong_answer

/* launch
launches:
  - {kernel: add, block: 256, grid: "ceildiv(N, 256)", args: [x, sum, N]}
  - {kernel: store, block: 1, grid: 1, args: [sum, total]}
workspace: {sum: 4}
*/
extern "C" __global__ void add(const float* x, float* sum, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(sum, x[i]);
}
extern "C" __global__ void store(const float* sum, float* total) { *total = *sum; }
