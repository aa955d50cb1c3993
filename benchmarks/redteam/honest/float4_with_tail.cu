// Honest: loads four values at a time where it may, and one at a time behind them
// Workload: reduction
// Long: yes

/* launch
block: 128
grid: 4
zero: [total]
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    const float4* wide = reinterpret_cast<const float4*>(x);
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (int i = t; i < N / 4; i += threads) {
        float4 v = wide[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = N / 4 * 4 + t; i < N; i += threads) sum += x[i];
    for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffffu, sum, s);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}
