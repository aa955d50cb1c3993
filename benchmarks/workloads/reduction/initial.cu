/* launch
block: 256
grid: "ceildiv(N, 256)"
shared_bytes: "4 * 256"
zero: [total]
*/
// A tree in shared memory sums 256 values per block; one atomic addition per block joins the sums.
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    extern __shared__ float partial[];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    partial[t] = i < N ? x[i] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) {
            partial[t] += partial[t + s];
        }
        __syncthreads();
    }
    if (t == 0) {
        atomicAdd(total, partial[0]);
    }
}
