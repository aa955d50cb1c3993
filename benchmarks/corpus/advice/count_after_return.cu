/* corpus
grid: [2]
block: [128]
buffers: {x: in float32 75 normal, y: out float32 75, counts: out int32 6, sums: out float32 5}
args: [x, y, counts, sums, 75]
*/
// Whole warps and a part of one leave early; who stays sums up by warps and is counted.
extern "C" __global__ void count_after_return(const float* x, float* y, int* counts, float* sums, int n) {
    __shared__ float s[128];
    const int rows = blockIdx.x == 0 ? n : n - 37;
    const int i = threadIdx.x;
    if (i >= rows) return;
    s[i] = x[i];
    __syncwarp();  // ADVICE early-exit
    const int last = i == (i | 31) || i == rows - 1;
    if (last) {
        float sum = 0.0f;
        for (int k = i & ~31; k <= i; ++k) sum += s[k];
        sums[blockIdx.x * 3 + i / 32] = sum;
    }
    const int here = __syncthreads_count(1);  // ADVICE early-exit
    const int all = __syncthreads_and(s[i] > -100.0f);  // ADVICE early-exit
    const int any = __syncthreads_or(s[i] > 100.0f);  // ADVICE early-exit
    if (i == 0) {
        counts[blockIdx.x * 3] = here;
        counts[blockIdx.x * 3 + 1] = all != 0;
        counts[blockIdx.x * 3 + 2] = any != 0;
    }
    if (blockIdx.x == 0) y[i] = s[n - 1 - i];
}
