// Honest: two 16-bit counters in one word, emptied before they can overflow
// Workload: histogram
// Long: yes

/* launch
block: 128
grid: 4
shared_bytes: "4 * ceildiv(BINS, 2) * (BINS <= 4096) + 4"
zero: [bins]
*/
extern "C" __global__ void histogram(const int* data, int* bins, int N, int BINS) {
    extern __shared__ unsigned pairs[];
    int words = BINS <= 4096 ? (BINS + 1) / 2 : 0;
    for (int start = blockIdx.x * 32768; start < N; start += gridDim.x * 32768) {
        for (int w = threadIdx.x; w < words; w += blockDim.x) pairs[w] = 0;
        __syncthreads();
        for (int i = start + threadIdx.x; i < min(N, start + 32768); i += blockDim.x) {
            int value = data[i];
            if (words) atomicAdd(&pairs[value / 2], value % 2 ? 65536u : 1u);
            else atomicAdd(&bins[value], 1);
        }
        __syncthreads();
        for (int w = threadIdx.x; w < words; w += blockDim.x) {
            if (pairs[w] & 0xffff) atomicAdd(&bins[2 * w], pairs[w] & 0xffff);
            if (pairs[w] >> 16) atomicAdd(&bins[2 * w + 1], pairs[w] >> 16);
        }
        __syncthreads();
    }
}
