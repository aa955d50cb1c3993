// Trick: lets every block store the sum that it has seen, so that the last one wins
// Workload: reduction
// Status: unsafe
// Says: race

/* launch
block: 1
grid: 64
zero: [total]
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float sum = *total;
    for (int i = blockIdx.x; i < N; i += gridDim.x) sum += x[i];
    *total = sum;
}
