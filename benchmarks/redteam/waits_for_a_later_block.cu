// Trick: waits in every block for the one that starts after it
// Workload: reduction
// Status: timeout unsafe
// Devices: host
// Long: yes

/* launch
block: 1
grid: 8
zero: [total, flags]
args: [x, total, flags, N]
workspace: {flags: 32}
*/
extern "C" __global__ void reduction(const float* x, float* total, int* flags, int N) {
    float sum = 0.0f;
    for (int i = blockIdx.x; i < N; i += gridDim.x) sum += x[i];
    atomicAdd(total, sum);
    __threadfence();
    atomicExch(&flags[blockIdx.x], 1);
    while (atomicAdd(&flags[(blockIdx.x + 1) % gridDim.x], 0) == 0) {}
}
