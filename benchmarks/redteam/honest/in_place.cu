// Honest: changes its inout buffer where it lies
// Workload: halve_in_place

/* launch
block: 128
grid: "ceildiv(N, 128)"
*/
extern "C" __global__ void halve(float* x, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) x[i] = 0.5f * x[i] + 1.0f;
}
