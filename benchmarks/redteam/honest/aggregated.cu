// Honest: lanes with the same value count together, found by __match_any_sync
// Workload: histogram
// Long: yes

/* launch
block: 256
grid: "ceildiv(N, 256)"
zero: [bins]
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned there = __ballot_sync(0xffffffffu, i < N);
    if (i >= N) return;
    int value = data[i];
    unsigned equal = __match_any_sync(there, value);
    if (threadIdx.x % 32 == __ffs(equal) - 1) atomicAdd(&bins[value], __popc(equal));
}
