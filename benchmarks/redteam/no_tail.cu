// Trick: sums whole blocks of 256 and leaves out the tail
// Workload: reduction
// Status: wrong_answer

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [total]
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N / 256 * 256) atomicAdd(total, x[i]);
}
