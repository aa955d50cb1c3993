// Honest: copies tiles into shared memory with cp.async, two on the way at a time
// Workload: reduction
// Devices: cuda

/* launch
launches:
  - {kernel: reduction, block: 256, grid: "ceildiv(N, 1024)", args: [x, total, N]}
zero: [total]
*/
__device__ void fetch(float* to, const float* from, bool there) {
    unsigned place = (unsigned)__cvta_generic_to_shared(to);
    int nbytes = there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(nbytes)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    __shared__ float tile[2][256];
    int step = gridDim.x * 256, first = blockIdx.x * 256 + threadIdx.x;
    float sum = 0.0f;
    fetch(&tile[0][threadIdx.x], first < N ? x + first : x, first < N);
    for (int i = first, turn = 0; i - (int)threadIdx.x < N; i += step, turn ^= 1) {
        int next = i + step;
        fetch(&tile[turn ^ 1][threadIdx.x], next < N ? x + next : x, next < N);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        sum += tile[turn][threadIdx.x];
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}
