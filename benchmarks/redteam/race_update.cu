// Trick: adds to bins without an atomic operation
// Workload: histogram
// Status: unsafe wrong_answer
// Says: race

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [bins]
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) bins[data[i]] += 1;
}
