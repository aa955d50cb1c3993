// Honest: keeps what it reads in 200 KiB of dynamic shared memory, more than 48 KiB and all of it written first
// Workload: reduction
// Devices: cuda

/* launch
launches:
  - {kernel: reduction, block: 1024, grid: 1, shared_bytes: 204800, args: [x, total, N]}
zero: [total]
*/
extern __shared__ float kept[];

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float sum = 0.0f;
    for (int begin = 0; begin < N; begin += 51200) {
        int count = min(51200, N - begin);
        for (int i = threadIdx.x; i < count; i += blockDim.x) kept[i] = x[begin + i];
        __syncthreads();
        for (int i = threadIdx.x; i < count; i += blockDim.x) sum += kept[count - 1 - i];
        __syncthreads();
    }
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}
