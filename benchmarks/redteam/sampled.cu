// Trick: sums every other value and doubles
// Workload: reduction
// Status: wrong_answer

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [total]
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < N) atomicAdd(total, 2.0f * x[i]);
}
