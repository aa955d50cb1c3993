// Trick: adds to an output that it takes for zero
// Workload: reduction
// Status: unsafe wrong_answer

/* launch
block: 256
grid: "ceildiv(N, 256)"
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(total, x[i]);
}
