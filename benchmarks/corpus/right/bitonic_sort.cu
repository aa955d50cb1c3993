/* corpus
grid: [2]
block: [128]
buffers: {x: inout int32 512 integers -99 99}
args: [x]
*/
// 256 values per block, in shared memory.
extern "C" __global__ void bitonic_sort(int* x) {
    __shared__ int s[256];
    const int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    s[t + 128] = x[blockIdx.x * 256 + t + 128];
    for (int size = 2; size <= 256; size <<= 1)
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            const int i = 2 * t - (t & (stride - 1)), j = i + stride;
            const bool ascending = (i & size) == 0;
            if ((s[i] > s[j]) == ascending) {
                const int swap = s[i];
                s[i] = s[j];
                s[j] = swap;
            }
        }
    __syncthreads();
    x[blockIdx.x * 256 + t] = s[t];
    x[blockIdx.x * 256 + t + 128] = s[t + 128];
}
